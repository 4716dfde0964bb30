"""finsy, the client that Echelon's controller uses, against the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import finsy as fy
import pytest
from google.protobuf import text_format

from switch.dataplane import Digest, PacketIn
from tests.switch.server.conftest import Server
from tests.switch.server.controller import DEVICE_ID
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import JSON, p4info

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def options(tmp_path: Path) -> fy.SwitchOptions:
    info, blob = tmp_path / "test.p4info.txt", tmp_path / "test.json"
    info.write_text(text_format.MessageToString(p4info()))
    blob.write_bytes(JSON)
    return fy.SwitchOptions(p4info=info, p4blob=blob, device_id=DEVICE_ID)


def exact_entry(a: int = 1) -> fy.P4TableEntry:
    action = fy.Action("forward", port=3, mac="00:00:00:00:00:04")
    return fy.P4TableEntry("exact", match=fy.Match(a=a, b=2), action=action)


async def test_entries_of_all_kinds_round_trip(server: Server, options: fy.SwitchOptions) -> None:
    entities = [
        exact_entry(),
        fy.P4TableEntry("lpm", match=fy.Match(dst="10.0.0.0/8"), action=fy.Action("drop")),
        fy.P4TableEntry(
            "ternary",
            match=fy.Match(a="0x12/&0xff", b="1...9", c=3, d=4),
            action=fy.Action("drop"),
            priority=7,
        ),
        fy.P4MulticastGroupEntry(5, replicas=[1, (2, 9)]),
        fy.P4CloneSessionEntry(6, class_of_service=0, packet_length_bytes=0, replicas=[3]),
        fy.P4DigestEntry("digest", max_list_size=4, max_timeout_ns=10**9, ack_timeout_ns=10**9),
    ]
    async with fy.Switch("s", server.address, options) as switch:
        assert switch.is_primary
        await switch.insert(entities)
        for entity in entities:
            read = [got.encode(switch.p4info) async for got in switch.read(entity)]
            assert read == [entity.encode(switch.p4info)]
        data = fy.P4CounterData(byte_count=7, packet_count=1)
        await switch.modify([fy.P4CounterEntry("counter", index=2, data=data)])
        counters = [
            counter.data.packet_count async for counter in switch.read(fy.P4CounterEntry("counter"))
        ]
        assert counters == [0, 0, 1, 0, 0, 0, 0, 0]
        await switch.delete_all()
        assert [entry async for entry in switch.read(fy.P4TableEntry("exact"))] == []


async def test_errors_name_the_update(server: Server, options: fy.SwitchOptions) -> None:
    async with fy.Switch("s", server.address, options) as switch:
        await switch.insert([exact_entry()])
        with pytest.raises(fy.P4ClientError) as caught:
            await switch.insert([exact_entry(2), exact_entry()])
        assert list(caught.value.details) == [1]
        assert caught.value.details[1].canonical_code == fy.GRPCStatusCode.ALREADY_EXISTS


async def test_a_second_controller_waits_as_backup_and_takes_over(
    server: Server, options: fy.SwitchOptions
) -> None:
    async with (
        fy.Switch("first", server.address, options) as first,
        fy.Switch("second", server.address, options) as second,
    ):
        assert first.is_primary
        assert not second.is_primary


async def test_packets_and_digests(
    server: Server, options: fy.SwitchOptions, dataplane: FakeDataplane
) -> None:
    async with fy.Switch("s", server.address, options) as switch:
        await switch.write(
            [+fy.P4DigestEntry("digest", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**12)]
        )
        packets, digests = switch.read_packets(), switch.read_digests("digest")
        dataplane.report(PacketIn(bytes.fromhex("0280") + b"frame"))
        packet = await anext(aiter(packets))
        assert (packet.payload, packet["port"]) == (b"frame", 5)
        dataplane.report(Digest(0, [bytes.fromhex("0003000000000004")]))
        digest = await anext(aiter(digests))
        assert [dict(sample) for sample in digest] == [{"f0": 3, "f1": 4}]  # type: ignore[arg-type]
        await switch.write([digest.ack()])
        await switch.write([fy.P4PacketOut(b"out", port=1, pad=0)])
        for _ in range(500):
            if dataplane.sent and dataplane.forgotten:
                break
            await asyncio.sleep(0.01)
        assert dataplane.sent == [bytes.fromhex("0080") + b"out"]
        assert dataplane.forgotten == [(0, [bytes.fromhex("0003000000000004")])]
