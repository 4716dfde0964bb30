"""What comes over the stream: packets both ways, and digests with their acknowledgements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from finsy.proto import p4d, p4r

from switch.dataplane import Digest, PacketIn
from switch.server.errors import Code
from tests.switch.server.controller import BatchError, Controller, number
from tests.switch.server.eventually import eventually
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import DIGEST_ID


def sample(port: int, mac: int) -> bytes:
    return port.to_bytes(2, "big") + mac.to_bytes(6, "big")


def data(port: int, mac: int) -> p4d.P4Data:
    members = [p4d.P4Data(bitstring=number(value)) for value in (port, mac)]
    return p4d.P4Data(struct=p4d.P4StructLike(members=members))


def digest(**config: int) -> p4r.DigestEntry:
    return p4r.DigestEntry(digest_id=DIGEST_ID, config=p4r.DigestEntry.Config(**config))


def fails(call: Callable[..., Any], **entity: Any) -> int:
    with pytest.raises(BatchError) as caught:
        call(**entity)
    return caught.value.codes[0]


class TestPackets:
    def test_packet_in_loses_its_header_to_the_metadata(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        dataplane.report(PacketIn(bytes.fromhex("8081") + b"frame"))
        packet = primary.receive().packet
        assert packet.payload == b"frame"
        assert [(m.metadata_id, m.value) for m in packet.metadata] == [
            (1, b"\x01\x01"),
            (2, b"\x01"),
        ]

    def test_packet_out_gains_its_header(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        packet = p4r.PacketOut(payload=b"frame")
        packet.metadata.add(metadata_id=1, value=b"\x01\x01")
        primary.send(p4r.StreamMessageRequest(packet=packet))
        assert eventually(lambda: dataplane.sent == [bytes.fromhex("8080") + b"frame"])

    def test_a_bad_packet_out_is_reported_and_the_stream_goes_on(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        for metadata_id, value in ((9, b"\x01"), (1, b"\x02\x00"), (1, b"")):
            packet = p4r.PacketOut(payload=b"frame")
            packet.metadata.add(metadata_id=metadata_id, value=value)
            primary.send(p4r.StreamMessageRequest(packet=packet))
            error = primary.receive().error
            assert error.canonical_code == Code.INVALID_ARGUMENT
            assert error.packet_out.packet_out == packet
        primary.send(p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"good")))
        assert eventually(lambda: len(dataplane.sent) == 1)

    def test_a_frame_shorter_than_the_header_is_dropped(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        dataplane.report(PacketIn(b"\x00"))
        dataplane.report(PacketIn(b"\x00\x00next"))
        assert primary.receive().packet.payload == b"next"

    def test_a_switch_without_cpu_port_says_so(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        dataplane.cpu_port = None
        primary.send(p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"x")))
        assert primary.receive().error.canonical_code == Code.INVALID_ARGUMENT

    def test_unknown_stream_messages_are_reported(self, primary: Controller) -> None:
        primary.send(p4r.StreamMessageRequest())
        error = primary.receive().error
        assert error.canonical_code == Code.UNIMPLEMENTED
        assert error.HasField("other")

    def test_packets_before_a_pipeline_are_refused(
        self, connect: Callable[..., Controller]
    ) -> None:
        controller = connect(1)
        controller.arbitration()
        controller.send(p4r.StreamMessageRequest(packet=p4r.PacketOut()))
        assert controller.receive().error.canonical_code == Code.FAILED_PRECONDITION

    def test_order_is_kept(self, primary: Controller, dataplane: FakeDataplane) -> None:
        for sequence in range(500):
            dataplane.report(PacketIn(b"\0\0" + sequence.to_bytes(2, "big")))
        got = [int.from_bytes(primary.receive().packet.payload, "big") for _ in range(500)]
        assert got == list(range(500))


class TestDigests:
    def test_configuration_is_written_read_and_deleted(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        written = digest(max_timeout_ns=5, max_list_size=2, ack_timeout_ns=10**9)
        primary.insert(digest_entry=written)
        assert dataplane.enabled_digests == {0}
        assert [e.digest_entry for e in primary.read(digest_entry=p4r.DigestEntry())] == [written]
        changed = digest(max_list_size=9)
        primary.modify(digest_entry=changed)
        assert [e.digest_entry for e in primary.read(digest_entry=digest())] == [changed]
        primary.delete(digest_entry=digest())
        assert dataplane.enabled_digests == set()
        assert primary.read(digest_entry=p4r.DigestEntry()) == []

    def test_rules(self, primary: Controller) -> None:
        assert fails(primary.modify, digest_entry=digest()) == Code.NOT_FOUND
        assert fails(primary.delete, digest_entry=digest()) == Code.NOT_FOUND
        assert fails(primary.read, digest_entry=digest()) == Code.NOT_FOUND
        assert fails(primary.insert, digest_entry=p4r.DigestEntry(digest_id=1)) == Code.NOT_FOUND
        assert fails(primary.insert, digest_entry=digest(max_list_size=-1)) == Code.INVALID_ARGUMENT
        primary.insert(digest_entry=digest())
        assert fails(primary.insert, digest_entry=digest()) == Code.ALREADY_EXISTS

    def test_a_full_list_is_sent_at_once(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.insert(
            digest_entry=digest(max_timeout_ns=10**12, max_list_size=2, ack_timeout_ns=10**12)
        )
        dataplane.report(Digest(0, [sample(1, 10)]))
        dataplane.report(Digest(0, [sample(2, 20), sample(3, 30)]))
        message = primary.receive().digest
        assert message.digest_id == DIGEST_ID
        assert list(message.data) == [data(1, 10), data(2, 20)]
        assert abs(message.timestamp - time.time_ns()) < 60e9
        assert primary.nothing_for(0.2)

    def test_an_old_list_is_sent_though_not_full(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.insert(
            digest_entry=digest(
                max_timeout_ns=100_000_000, max_list_size=100, ack_timeout_ns=10**12
            )
        )
        dataplane.report(Digest(0, [sample(1, 10)]))
        assert list(primary.receive().digest.data) == [data(1, 10)]

    def test_acknowledged_samples_may_come_again(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.insert(digest_entry=digest(max_list_size=1, ack_timeout_ns=10**12))
        dataplane.report(Digest(0, [sample(1, 10)]))
        list_id = primary.receive().digest.list_id
        assert dataplane.forgotten == []
        for acknowledged in (list_id + 100, list_id):
            ack = p4r.DigestListAck(digest_id=DIGEST_ID, list_id=acknowledged)
            primary.send(p4r.StreamMessageRequest(digest_ack=ack))
        assert eventually(lambda: dataplane.forgotten == [(0, [sample(1, 10)])])

    def test_unacknowledged_samples_come_again_after_the_time_out(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.insert(digest_entry=digest(max_list_size=1, ack_timeout_ns=50_000_000))
        dataplane.report(Digest(0, [sample(1, 10)]))
        primary.receive()
        assert eventually(lambda: dataplane.forgotten == [(0, [sample(1, 10)])])

    def test_samples_that_nobody_heard_may_come_again(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.insert(digest_entry=digest(max_list_size=1, ack_timeout_ns=10**12))
        primary.close()
        # the server may notice the end of the stream later than the first samples
        assert eventually(
            lambda: dataplane.report(Digest(0, [sample(1, 1)])) or dataplane.forgotten != []
        )  # type: ignore[func-returns-value]

    def test_a_bad_acknowledgement_is_reported(self, primary: Controller) -> None:
        ack = p4r.DigestListAck(digest_id=5, list_id=1)
        primary.send(p4r.StreamMessageRequest(digest_ack=ack))
        error = primary.receive().error
        assert error.canonical_code == Code.INVALID_ARGUMENT
        assert error.digest_list_ack.digest_list_ack == ack
