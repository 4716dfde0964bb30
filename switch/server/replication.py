"""The packet replication engine: multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from finsy.proto import p4r

from switch.dataplane import Dataplane
from switch.server.errors import Code, RequestError, invalid, not_found
from switch.server.ports import Ports, checked_port, port_number

MAX_MULTICAST_GROUP = 65535
MAX_CLONE_SESSION = 32767
MAX_INSTANCE = 65535
"""v1model's egress_rid has 16 bits."""

_Replicas = list[list[tuple[int, int]]]
"""For each replica its (port, instance), then those of its backups in order."""

_M = TypeVar("_M", p4r.MulticastGroupEntry, p4r.CloneSessionEntry)


class Replication:
    """Both kinds of entries, as clients wrote them, applied with the first live port of each replica."""

    def __init__(self, dataplane: Dataplane, ports: Ports) -> None:
        self._dataplane = dataplane
        self._ports = ports
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}
        self._sessions: dict[int, p4r.CloneSessionEntry] = {}

    # -- multicast groups ---------------------------------------------------------------------------------------

    def insert_group(self, message: p4r.MulticastGroupEntry) -> None:
        """Add a group. Raises ALREADY_EXISTS, INVALID_ARGUMENT, OUT_OF_RANGE."""
        self._check_group(message)
        if message.multicast_group_id in self._groups:
            raise RequestError(
                Code.ALREADY_EXISTS, f"multicast group {message.multicast_group_id} exists"
            )
        self._set_group(message)

    def modify_group(self, message: p4r.MulticastGroupEntry) -> None:
        """Replace a group's replicas. Raises NOT_FOUND, INVALID_ARGUMENT, OUT_OF_RANGE."""
        self._check_group(message)
        _existing(self._groups, message.multicast_group_id, "multicast group")
        self._set_group(message)

    def delete_group(self, message: p4r.MulticastGroupEntry) -> None:
        """Remove a group. Raises NOT_FOUND."""
        self._check_group_id(message.multicast_group_id)
        _existing(self._groups, message.multicast_group_id, "multicast group")
        self._dataplane.set_multicast(message.multicast_group_id, [])
        del self._groups[message.multicast_group_id]

    def read_groups(self, request: p4r.MulticastGroupEntry) -> Iterator[p4r.MulticastGroupEntry]:
        """One group, or all for id 0."""
        return _read(self._groups, request.multicast_group_id, "multicast group")

    # -- clone sessions -----------------------------------------------------------------------------------------

    def insert_session(self, message: p4r.CloneSessionEntry) -> None:
        """Add a session. Raises ALREADY_EXISTS, INVALID_ARGUMENT."""
        self._check_session(message)
        if message.session_id in self._sessions:
            raise RequestError(Code.ALREADY_EXISTS, f"clone session {message.session_id} exists")
        self._set_session(message)

    def modify_session(self, message: p4r.CloneSessionEntry) -> None:
        """Replace a session. Raises NOT_FOUND, INVALID_ARGUMENT."""
        self._check_session(message)
        _existing(self._sessions, message.session_id, "clone session")
        self._set_session(message)

    def delete_session(self, message: p4r.CloneSessionEntry) -> None:
        """Remove a session. Raises NOT_FOUND."""
        self._check_session_id(message.session_id)
        _existing(self._sessions, message.session_id, "clone session")
        self._dataplane.set_clone_session(message.session_id, [])
        del self._sessions[message.session_id]

    def read_sessions(self, request: p4r.CloneSessionEntry) -> Iterator[p4r.CloneSessionEntry]:
        """One session, or all for id 0."""
        return _read(self._sessions, request.session_id, "clone session")

    # -- ports --------------------------------------------------------------------------------------------------

    def port_changed(self, port: int) -> None:
        """A port went up or down: entries in which it has, or is, a backup are applied anew."""
        for group in self._groups.values():
            if _hangs_on(group.replicas, port):
                self._apply_group(group)
        for session in self._sessions.values():
            if _hangs_on(session.replicas, port):
                self._apply_session(session)

    # -- inside -------------------------------------------------------------------------------------------------

    def _set_group(self, message: p4r.MulticastGroupEntry) -> None:
        copy = p4r.MulticastGroupEntry()
        copy.CopyFrom(message)
        self._apply_group(copy)
        self._groups[copy.multicast_group_id] = copy

    def _set_session(self, message: p4r.CloneSessionEntry) -> None:
        copy = p4r.CloneSessionEntry()
        copy.CopyFrom(message)
        self._apply_session(copy)
        self._sessions[copy.session_id] = copy

    def _apply_group(self, group: p4r.MulticastGroupEntry) -> None:
        self._dataplane.set_multicast(group.multicast_group_id, self._alive(_parse(group.replicas)))

    def _apply_session(self, session: p4r.CloneSessionEntry) -> None:
        self._dataplane.set_clone_session(
            session.session_id,
            self._alive(_parse(session.replicas)),
            class_of_service=session.class_of_service,
            packet_length=session.packet_length_bytes,
        )

    def _alive(self, replicas: _Replicas) -> list[tuple[int, int]]:
        """The replica in use of each: the first whose port is up; its own port, where the frames are then lost and
        counted, if none is."""
        return [
            next((r for r in choices if self._ports.is_up(r[0])), choices[0])
            for choices in replicas
        ]

    def _check_group(self, message: p4r.MulticastGroupEntry) -> None:
        self._check_group_id(message.multicast_group_id)
        _check_replicas(_parse(message.replicas), "multicast group")

    def _check_group_id(self, group_id: int) -> None:
        if not group_id:
            raise invalid("0 is not a valid multicast group id")
        if group_id > MAX_MULTICAST_GROUP:
            raise RequestError(
                Code.OUT_OF_RANGE, f"multicast group id {group_id} is above {MAX_MULTICAST_GROUP}"
            )

    def _check_session(self, message: p4r.CloneSessionEntry) -> None:
        self._check_session_id(message.session_id)
        _check_replicas(_parse(message.replicas), "clone session")
        if message.packet_length_bytes < 0:
            raise invalid("clone session: packet_length_bytes is negative")

    def _check_session_id(self, session_id: int) -> None:
        if not 1 <= session_id <= MAX_CLONE_SESSION:
            raise invalid(f"clone session id {session_id} is not within 1..{MAX_CLONE_SESSION}")


def _parse(replicas: Iterable[p4r.Replica]) -> _Replicas:
    parsed = []
    for replica in replicas:
        kind = replica.WhichOneof("port_kind")
        if kind is None:
            raise invalid("Missing port in replica")
        port = port_number(replica.port) if kind == "port" else checked_port(replica.egress_port)
        backups = [(port_number(b.port), b.instance) for b in replica.backup_replicas]
        parsed.append([(port, replica.instance), *backups])
    return parsed


def _check_replicas(replicas: _Replicas, what: str) -> None:
    seen: set[tuple[int, int]] = set()
    for choices in replicas:
        if len({port for port, _ in choices}) < len(choices):
            raise invalid(f"{what}: a replica and its backups must be on different ports")
        for pair in choices:
            if pair[1] > MAX_INSTANCE:
                raise invalid(f"{what}: instance {pair[1]} is above {MAX_INSTANCE}")
            if pair in seen:
                raise invalid(f"{what}: port {pair[0]} with instance {pair[1]} is listed twice")
            seen.add(pair)


def _hangs_on(replicas: Iterable[p4r.Replica], port: int) -> bool:
    return any(
        len(choices) > 1 and any(p == port for p, _ in choices) for choices in _parse(replicas)
    )


def _existing(entries: dict[int, _M], key: int, what: str) -> _M:
    if key not in entries:
        raise not_found(f"{what} {key} does not exist")
    return entries[key]


def _read(entries: dict[int, _M], key: int, what: str) -> Iterator[_M]:
    if key:
        yield _existing(entries, key, what)
    else:
        yield from entries.values()
