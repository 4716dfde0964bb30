"""Who is primary, who is told, and what the others may not do."""

from __future__ import annotations

import threading
from collections.abc import Callable

import grpc
import pytest
from finsy.proto import p4r, stratum
from google.protobuf import any_pb2

from switch.dataplane import PacketIn, Target
from switch.server.errors import Code
from tests.switch.server.controller import (
    BatchError,
    Controller,
    entry,
    exact_entry,
    insert,
)
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import SELECTOR_ID, TABLE_ID, config

Connect = Callable[..., Controller]


def status(controller: Controller) -> tuple[int, int]:
    """(status code, election id) of the next notification."""
    update = controller.arbitration()
    return update.status.code, update.election_id.high << 64 | update.election_id.low


def joined(connect: Connect, election_id: int) -> Controller:
    """A controller that has been answered: streams are served side by side, in no order."""
    controller = connect(election_id)
    controller.arbitration()
    return controller


def ends_with(controller: Controller) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        controller.receive()
    return caught.value.code()


def test_the_highest_election_id_is_primary(connect: Connect) -> None:
    first = connect(5)
    assert status(first) == (Code.OK, 5)
    lower = connect(3)
    assert status(lower) == (Code.ALREADY_EXISTS, 5)
    higher = connect(1 << 64)
    assert status(higher) == (Code.OK, 1 << 64)
    assert status(first) == status(lower) == (Code.ALREADY_EXISTS, 1 << 64)


def test_a_backup_is_promoted_when_the_primary_goes(connect: Connect) -> None:
    first, second, third = (joined(connect, election_id) for election_id in (9, 5, 7))
    first.close()
    assert status(third) == (Code.OK, 7)
    assert status(second) == (Code.ALREADY_EXISTS, 7)
    third.set_pipeline(config())
    third.insert(table_entry=exact_entry(1))


def test_a_write_that_has_begun_ends_before_another_client_is_told_that_it_is_primary(
    primary: Controller,
    connect: Connect,
    dataplane: FakeDataplane,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    insert_now = dataplane.insert

    def insert_late(table: int, key: bytes, priority: int, target: Target) -> int:
        begun.set()
        assert go_on.wait(10)
        return insert_now(table, key, priority, target)

    monkeypatch.setattr(dataplane, "insert", insert_late)
    write = threading.Thread(target=lambda: primary.insert(table_entry=exact_entry(1)))
    write.start()
    assert begun.wait(10)
    second = connect(2)
    assert second.nothing_for(0.2)
    go_on.set()
    assert status(second) == (Code.OK, 2)
    assert len(second.read_tables(table_id=TABLE_ID["exact"])) == 1
    write.join()
    with pytest.raises(grpc.RpcError) as caught:
        primary.insert(table_entry=exact_entry(2))
    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_a_primary_can_step_down_and_back_up(connect: Connect) -> None:
    first, second = joined(connect, 9), joined(connect, 5)
    first.arbitrate(4)
    assert status(first) == (Code.ALREADY_EXISTS, 5)
    assert status(second) == (Code.OK, 5)
    first.arbitrate(10)
    assert status(first) == (Code.OK, 10)
    assert status(second) == (Code.ALREADY_EXISTS, 10)


def test_without_election_id_a_client_never_becomes_primary(connect: Connect) -> None:
    observer = connect(None)
    update = observer.arbitration()
    assert update.status.code == Code.NOT_FOUND
    assert not update.HasField("election_id")
    primary = connect(0)
    assert status(primary) == (Code.OK, 0)
    assert status(observer) == (Code.ALREADY_EXISTS, 0)
    primary.close()
    assert status(observer) == (Code.NOT_FOUND, 0)


def test_a_used_election_id_ends_the_stream(connect: Connect) -> None:
    connect(5).arbitration()
    assert ends_with(connect(5)) == grpc.StatusCode.INVALID_ARGUMENT


def test_another_device_ends_the_stream(connect: Connect) -> None:
    assert ends_with(connect(1, device_id=99)) == grpc.StatusCode.NOT_FOUND
    changing = connect(2)
    changing.arbitration()
    changing.arbitrate(3, device_id=99)
    assert ends_with(changing) == grpc.StatusCode.FAILED_PRECONDITION


def test_too_many_clients_are_turned_away(connect: Connect) -> None:
    for election_id in range(16):
        connect(election_id).arbitration()
    assert ends_with(connect(16)) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_each_role_has_its_own_primary(connect: Connect) -> None:
    default, other = connect(5), connect(5, role=p4r.Role(name="other"))
    assert status(default) == (Code.OK, 5)
    update = other.arbitration()
    assert (update.status.code, update.role.name) == (Code.OK, "other")
    default.set_pipeline(config())
    other.insert(table_entry=exact_entry(1))
    default.insert(table_entry=exact_entry(2))
    other.arbitrate(6, role=p4r.Role(name="third"))
    assert ends_with(other) == grpc.StatusCode.FAILED_PRECONDITION


def role(*ids: int, **fields: object) -> p4r.Role:
    """A role with Stratum's configuration."""
    packed = any_pb2.Any()
    packed.Pack(stratum.P4RoleConfig(shared_p4_ids=ids, **fields))  # type: ignore[arg-type]
    return p4r.Role(name="scoped", config=packed)


def test_a_role_writes_and_reads_only_what_is_its_own(
    primary: Controller, connect: Connect
) -> None:
    scoped = connect(1, role=role(TABLE_ID["lpm"]))
    assert scoped.arbitration().status.code == Code.OK
    with pytest.raises(BatchError) as caught:
        scoped.write(insert(exact_entry(1)), insert(entry("lpm")))
    assert caught.value.codes == [Code.PERMISSION_DENIED, Code.OK]
    primary.insert(table_entry=exact_entry(2))
    assert [e.table_id for e in scoped.read_tables()] == [TABLE_ID["lpm"]]
    with pytest.raises(grpc.RpcError) as refused:
        scoped.set_pipeline(config())
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_a_role_gets_the_packets_it_wants(
    primary: Controller, connect: Connect, dataplane: FakeDataplane
) -> None:
    wanted = stratum.P4RoleConfig.PacketFilter(metadata_id=1, value=b"\x05")
    scoped = connect(1, role=role(receives_packet_ins=True, packet_in_filter=wanted))
    scoped.arbitration()
    dataplane.report(PacketIn(bytes.fromhex("0200") + b"other"))
    dataplane.report(PacketIn(bytes.fromhex("0280") + b"wanted"))
    assert [primary.receive().packet.payload for _ in range(2)] == [b"other", b"wanted"]
    assert scoped.receive().packet.payload == b"wanted"


def test_a_role_config_of_another_scheme_is_refused(connect: Connect) -> None:
    packed = any_pb2.Any()
    packed.Pack(p4r.Uint128())
    assert (
        ends_with(connect(1, role=p4r.Role(name="r", config=packed)))
        == grpc.StatusCode.INVALID_ARGUMENT
    )


@pytest.mark.parametrize("election_id", [2, None])
def test_only_the_primary_writes(primary: Controller, election_id: int | None) -> None:
    primary.election_id = election_id
    for attempt in (
        lambda: primary.insert(table_entry=exact_entry(1)),
        lambda: primary.set_pipeline(config()),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            attempt()
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_while_no_client_is_connected_requests_without_election_id_pass(
    primary: Controller, connect: Connect
) -> None:
    """As in BMv2: grpc_cli and one-shot scripts."""
    helper = connect(0)
    helper.arbitration()
    primary.close()
    assert helper.arbitration().status.code == Code.OK
    helper.send(None)  # type: ignore[arg-type]  # ends the stream; the channel stays
    while True:
        try:
            helper.election_id = None
            helper.insert(table_entry=exact_entry(1))
            break
        except grpc.RpcError as error:  # the server has yet to notice
            assert error.code() == grpc.StatusCode.PERMISSION_DENIED
    helper.election_id = 0
    with pytest.raises(grpc.RpcError) as caught:
        helper.insert(table_entry=exact_entry(2))
    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_a_backup_cannot_send_packets(
    primary: Controller, connect: Connect, dataplane: FakeDataplane
) -> None:
    backup = connect(0)
    backup.arbitration()
    packet = p4r.PacketOut(payload=b"x")
    backup.send(p4r.StreamMessageRequest(packet=packet))
    error = backup.receive().error
    assert error.canonical_code == Code.PERMISSION_DENIED
    assert error.packet_out.packet_out == packet
    assert dataplane.sent == []


def test_requests_for_another_device_are_not_found(primary: Controller) -> None:
    primary.device_id = 99
    for attempt in (
        lambda: primary.insert(table_entry=exact_entry(1)),
        lambda: primary.read_tables(),
        lambda: primary.set_pipeline(config()),
        lambda: primary.get_pipeline(),
        lambda: primary.stub.Capabilities(p4r.CapabilitiesRequest(device_id=99)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            attempt()
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_multicast_belongs_to_every_role(primary: Controller, connect: Connect) -> None:
    scoped = connect(1, role=role(SELECTOR_ID))
    scoped.arbitration()
    group = p4r.MulticastGroupEntry(multicast_group_id=1)
    scoped.insert(
        packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
            multicast_group_entry=group
        )
    )
