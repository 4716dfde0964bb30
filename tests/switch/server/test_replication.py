"""Multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from finsy.proto import p4r

from switch.dataplane import PortStatus
from switch.server.errors import Code
from tests.switch.server.controller import BatchError, Controller, number
from tests.switch.server.eventually import eventually
from tests.switch.server.fake_dataplane import FakeDataplane


def replica(port: int, instance: int = 0, *backups: tuple[int, int]) -> p4r.Replica:
    others = [p4r.BackupReplica(port=number(p), instance=i) for p, i in backups]
    return p4r.Replica(port=number(port), instance=instance, backup_replicas=others)


def group(
    key: int, *replicas: p4r.Replica, **fields: Any
) -> dict[str, p4r.PacketReplicationEngineEntry]:
    entry = p4r.MulticastGroupEntry(multicast_group_id=key, replicas=replicas, **fields)
    return {
        "packet_replication_engine_entry": p4r.PacketReplicationEngineEntry(
            multicast_group_entry=entry
        )
    }


def session(
    key: int, *replicas: p4r.Replica, **fields: Any
) -> dict[str, p4r.PacketReplicationEngineEntry]:
    entry = p4r.CloneSessionEntry(session_id=key, replicas=replicas, **fields)
    return {
        "packet_replication_engine_entry": p4r.PacketReplicationEngineEntry(
            clone_session_entry=entry
        )
    }


def fails(call: Callable[..., Any], entity: dict[str, p4r.PacketReplicationEngineEntry]) -> int:
    with pytest.raises(BatchError) as caught:
        call(**entity)
    return caught.value.codes[0]


def entries(
    primary: Controller, wanted: dict[str, p4r.PacketReplicationEngineEntry]
) -> list[dict[str, Any]]:
    read = primary.read(**wanted)
    return [{"packet_replication_engine_entry": e.packet_replication_engine_entry} for e in read]


def test_groups_are_written_read_and_deleted(primary: Controller, dataplane: FakeDataplane) -> None:
    deprecated = p4r.Replica(egress_port=9, instance=3)
    written = group(5, replica(1, 1), replica(1, 2), deprecated, metadata=b"m")
    primary.insert(**written)
    assert dataplane.multicast == {5: [(1, 1), (1, 2), (9, 3)]}
    assert entries(primary, group(0)) == entries(primary, group(5)) == [written]
    primary.modify(**group(5, replica(2)))
    assert dataplane.multicast == {5: [(2, 0)]}
    primary.delete(**group(5))
    assert dataplane.multicast == {}
    assert entries(primary, group(0)) == []


def test_group_rules(primary: Controller) -> None:
    assert fails(primary.insert, group(0)) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, group(65536)) == Code.OUT_OF_RANGE
    assert fails(primary.modify, group(1)) == Code.NOT_FOUND
    assert fails(primary.delete, group(1)) == Code.NOT_FOUND
    assert fails(primary.read, group(1)) == Code.NOT_FOUND
    assert fails(primary.insert, group(1, replica(1), replica(1))) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, group(1, p4r.Replica())) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, group(1, p4r.Replica(port=b""))) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, group(1, replica(512))) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, group(1, replica(1, 1 << 16))) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, group(1, replica(1, 1, (1, 2)))) == Code.INVALID_ARGUMENT
    primary.insert(**group(1))
    assert fails(primary.insert, group(1)) == Code.ALREADY_EXISTS


def test_a_backup_replaces_a_port_that_is_down(
    primary: Controller, dataplane: FakeDataplane
) -> None:
    dataplane.interfaces = {1: "a", 2: "b", 3: "c"}
    dataplane.up = {1: True, 2: True, 3: True}
    written = group(1, replica(1, 10, (2, 20), (3, 30)), replica(3, 1))
    primary.insert(**written)
    assert dataplane.multicast == {1: [(1, 10), (3, 1)]}
    dataplane.report(PortStatus(1, False))
    assert eventually(lambda: dataplane.multicast == {1: [(2, 20), (3, 1)]})
    dataplane.report(PortStatus(2, False))
    assert eventually(lambda: dataplane.multicast == {1: [(3, 30), (3, 1)]})
    dataplane.report(PortStatus(1, True))
    assert eventually(lambda: dataplane.multicast == {1: [(1, 10), (3, 1)]})
    assert entries(primary, group(1)) == [written]


def test_sessions_are_written_read_and_deleted(
    primary: Controller, dataplane: FakeDataplane
) -> None:
    written = session(100, replica(510, 1), class_of_service=2, packet_length_bytes=128)
    primary.insert(**written)
    assert dataplane.clones == {100: ([(510, 1)], 2, 128)}
    assert entries(primary, session(0)) == entries(primary, session(100)) == [written]
    primary.modify(**session(100, replica(4)))
    assert dataplane.clones == {100: ([(4, 0)], 0, 0)}
    primary.delete(**session(100))
    assert dataplane.clones == {}


def test_session_rules(primary: Controller) -> None:
    assert fails(primary.insert, session(0)) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, session(1 << 15)) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, session(1, packet_length_bytes=-1)) == Code.INVALID_ARGUMENT
    assert fails(primary.modify, session(1)) == Code.NOT_FOUND
    assert fails(primary.delete, session(1)) == Code.NOT_FOUND
    assert fails(primary.read, session(1)) == Code.NOT_FOUND
    primary.insert(**session(1))
    assert fails(primary.insert, session(1)) == Code.ALREADY_EXISTS


def test_an_entry_without_kind_is_refused(primary: Controller) -> None:
    for call in (primary.insert, primary.read):
        empty = {"packet_replication_engine_entry": p4r.PacketReplicationEngineEntry()}
        assert fails(call, empty) == Code.INVALID_ARGUMENT
