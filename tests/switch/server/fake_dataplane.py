"""An in-memory stand-in for `switch.dataplane.Dataplane`: tables and externs that remember, packets that a test
injects. Programs are given by name (`PROGRAMS`), so the server's tests need neither p4c nor a C compiler."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

from switch.dataplane import (
    DataplaneError,
    DuplicateEntry,
    Event,
    InvalidArgument,
    MeterConfig,
    NotFound,
    TableFull,
    Target,
    TargetKind,
)
from switch.program import Action, Program, Table, UnsupportedProgram


class FakeDataplane:
    """Same methods, same exceptions. `events` and `hits` are for tests to fill."""

    def __init__(self, programs: dict[bytes, Program], cpu_port: int | None = 510) -> None:
        self.programs = programs
        self.cpu_port = cpu_port
        self.interfaces: dict[int, str] = {}
        self.up: dict[int, bool] = {}
        self.sent: list[bytes] = []
        self.forgotten: list[tuple[int, list[bytes] | None]] = []
        self.enabled_digests: set[int] = set()
        self.loads = 0
        self.closed = False
        self._events: list[Event] = []
        self._events_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._next_handle = 0
        self._program: Program | None = None
        self._clear()

    # -- life cycle

    def check(self, json: bytes) -> Program:
        if json == b"unsupported":
            raise UnsupportedProgram("psa_recirculate, program.p4:12")
        if json not in self.programs:
            raise ValueError("not JSON")
        return self.programs[json]

    def load(self, json: bytes, fill: Callable[[], None] = lambda: None) -> None:
        self._program = self.check(json)
        self._clear()
        self.loads += 1
        for table in self._program.tables:
            if table.const_entries:
                key = b"".join(bytes((f.bits + 7) // 8) for f in table.key)
                self._add(
                    table.id,
                    key,
                    1,
                    Target(TargetKind.ACTION, table.actions[0], self._zeros(table.actions[0])),
                )
        fill()

    def close(self) -> None:
        if not self.closed:
            os.close(self._events_fd)
        self.closed = True

    @property
    def program(self) -> Program | None:
        return self._program

    # -- names

    def table(self, name: str) -> int:
        return self._named(self._loaded.tables, name).id

    def action(self, table: int, name: str) -> int:
        return self._named(
            [self._loaded.actions[a] for a in self._loaded.tables[table].actions], name
        ).id

    def action_profile(self, name: str) -> int:
        return self._named(self._loaded.profiles, name).id

    def profile_action(self, profile: int, name: str) -> int:
        tables = [t for t in self._loaded.tables if t.profile == profile]
        return self.action(tables[0].id, name)

    def counter(self, name: str) -> int:
        return self._named(self._loaded.counters, name).id

    def meter(self, name: str) -> int:
        return self._named(self._loaded.meters, name).id

    def register(self, name: str) -> int:
        return self._named(self._loaded.registers, name).id

    def digest(self, name: str) -> int:
        return self._named(self._loaded.digests, name).id

    def value_set(self, name: str) -> int:
        return self._named(self._loaded.value_sets, name).id

    # -- tables

    def insert(self, table: int, key: bytes, priority: int, target: Target) -> int:
        info = self._loaded.tables[table]
        if info.const_entries:
            raise InvalidArgument("constant table")
        if len(key) != sum(_length(f.match, f.bits) for f in info.key):
            raise InvalidArgument(f"{info.name}: key of {len(key)} bytes")
        self._check_target(info, target)
        if any(e[:3] == (table, key, priority) for e in self.entries_by_handle.values()):
            raise DuplicateEntry("entry exists")
        if sum(e[0] == table for e in self.entries_by_handle.values()) >= info.size:
            raise TableFull(f"{info.name} is full ({info.size} entries)")
        return self._add(table, key, priority, target)

    def insert_many(
        self, table: int, entries: Sequence[tuple[bytes, int, Target]]
    ) -> list[int | DataplaneError]:
        results: list[int | DataplaneError] = []
        for key, priority, target in entries:
            try:
                results.append(self.insert(table, key, priority, target))
            except DataplaneError as error:
                results.append(error)
        return results

    def modify(self, handle: int, target: Target) -> None:
        table, key, priority, _ = self._entry(handle)
        self._check_target(self._loaded.tables[table], target)
        self.entries_by_handle[handle] = (table, key, priority, target)
        self.hits[handle] = time.monotonic()

    def delete(self, handle: int) -> None:
        self._entry(handle)
        del self.entries_by_handle[handle]

    def entries(self, table: int) -> list[tuple[int, bytes, int, Target]]:
        return [(h, k, p, t) for h, (i, k, p, t) in self.entries_by_handle.items() if i == table]

    def set_default(self, table: int, target: Target | None) -> None:
        info = self._loaded.tables[table]
        if info.const_default:
            raise InvalidArgument("const default")
        if target is None:
            self.defaults.pop(table, None)
        else:
            self._check_target(info, target)
            self.defaults[table] = target

    def default(self, table: int) -> Target | None:
        info = self._loaded.tables[table]
        if table in self.defaults:
            return self.defaults[table]
        action = info.actions[-1]
        return Target(TargetKind.ACTION, action, self._zeros(action))

    def last_hit(self, handle: int) -> float:
        self._entry(handle)
        return time.monotonic() - self.hits[handle]

    # -- direct and indirect resources

    def direct_counter(self, handle: int) -> tuple[int, int]:
        self._entry(handle)
        return self.direct_counters.get(handle, (0, 0))

    def set_direct_counter(self, handle: int, packets: int, octets: int) -> None:
        self._entry(handle)
        self.direct_counters[handle] = (packets, octets)

    def direct_meter(self, handle: int) -> MeterConfig | None:
        self._entry(handle)
        return self.direct_meters.get(handle)

    def set_direct_meter(self, handle: int, config: MeterConfig | None) -> None:
        self._entry(handle)
        self.direct_meters.pop(handle, None)
        if config is not None:
            self.direct_meters[handle] = config

    def counter_read(self, counter: int, index: int) -> tuple[int, int]:
        return self.counters.get((counter, index), (0, 0))

    def counter_read_all(self, counter: int) -> list[tuple[int, int]]:
        return [self.counter_read(counter, i) for i in range(self._loaded.counters[counter].size)]

    def counter_write(self, counter: int, index: int, packets: int, octets: int) -> None:
        self.counters[counter, index] = (packets, octets)

    def meter_read(self, meter: int, index: int) -> MeterConfig | None:
        return self.meters.get((meter, index))

    def meter_write(self, meter: int, index: int, config: MeterConfig | None) -> None:
        self.meters.pop((meter, index), None)
        if config is not None:
            self.meters[meter, index] = config

    def register_read(self, register: int, index: int) -> int:
        return self.registers.get((register, index), 0)

    def register_write(self, register: int, index: int, value: int) -> None:
        self.registers[register, index] = value

    def value_set_write(self, value_set: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        self.value_sets[value_set] = list(members)

    # -- profiles

    def add_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        if (profile, member) in self.members:
            raise DuplicateEntry("member exists")
        if sum(p == profile for p, _ in self.members) >= self._loaded.profiles[profile].size:
            raise TableFull("profile is full")
        self.members[profile, member] = (action, params)

    def modify_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        self.members[profile, member] = (action, params)

    def delete_member(self, profile: int, member: int) -> None:
        if any(member in dict(slots) for (p, _), slots in self.groups.items() if p == profile):
            raise InvalidArgument("member in use by a group")
        del self.members[profile, member]

    def set_group(self, profile: int, group: int, members: Sequence[tuple[int, int]]) -> None:
        for member, _ in members:
            if (profile, member) not in self.members:
                raise NotFound(f"member {member}")
        self.groups[profile, group] = list(members)

    def delete_group(self, profile: int, group: int) -> None:
        target = Target(TargetKind.GROUP, group)
        if any(
            t == target and self._loaded.tables[i].profile == profile for i, _, _, t in self._all()
        ):
            raise InvalidArgument("group in use by an entry")
        del self.groups[profile, group]

    # -- replication

    def set_multicast(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        self.multicast.pop(group, None)
        if replicas:
            self.multicast[group] = list(replicas)

    def set_clone_session(
        self,
        session: int,
        replicas: Sequence[tuple[int, int]],
        *,
        class_of_service: int = 0,
        packet_length: int = 0,
    ) -> None:
        self.clones.pop(session, None)
        if replicas:
            self.clones[session] = (list(replicas), class_of_service, packet_length)

    # -- packets, digests, events

    def packet_out(self, frame: bytes) -> None:
        if self.cpu_port is None:
            raise InvalidArgument("no CPU port")
        self.sent.append(frame)

    @property
    def events_fd(self) -> int:
        return self._events_fd

    def report(self, event: Event) -> None:
        """For tests: something happens."""
        with self._lock:
            self._events.append(event)
        os.eventfd_write(self._events_fd, 1)

    def read_events(self, limit: int = 1024) -> list[Event]:
        with self._lock:
            events, self._events = self._events[:limit], self._events[limit:]
            if not self._events:
                try:
                    os.eventfd_read(self._events_fd)
                except BlockingIOError:
                    pass
        return events

    def enable_digest(self, digest: int, enabled: bool) -> None:
        (self.enabled_digests.add if enabled else self.enabled_digests.discard)(digest)

    def forget_digests(self, digest: int, samples: Sequence[bytes] | None = None) -> None:
        self.forgotten.append((digest, None if samples is None else list(samples)))

    # -- ports

    def ports(self) -> dict[int, str]:
        return self.interfaces

    def port_up(self, port: int) -> bool:
        return self.up.get(port, False)

    # -- inside

    def _clear(self) -> None:
        self.entries_by_handle: dict[int, tuple[int, bytes, int, Target]] = {}
        self.hits: dict[int, float] = {}
        self.defaults: dict[int, Target] = {}
        self.direct_counters: dict[int, tuple[int, int]] = {}
        self.direct_meters: dict[int, MeterConfig] = {}
        self.counters: dict[tuple[int, int], tuple[int, int]] = {}
        self.meters: dict[tuple[int, int], MeterConfig] = {}
        self.registers: dict[tuple[int, int], int] = {}
        self.value_sets: dict[int, list[tuple[bytes, bytes]]] = {}
        self.members: dict[tuple[int, int], tuple[int, bytes]] = {}
        self.groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.multicast: dict[int, list[tuple[int, int]]] = {}
        self.clones: dict[int, tuple[list[tuple[int, int]], int, int]] = {}

    @property
    def _loaded(self) -> Program:
        assert self._program is not None
        return self._program

    def _all(self) -> list[tuple[int, bytes, int, Target]]:
        return list(self.entries_by_handle.values())

    def _add(self, table: int, key: bytes, priority: int, target: Target) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self.entries_by_handle[handle] = (table, key, priority, target)
        self.hits[handle] = time.monotonic()
        return handle

    def _entry(self, handle: int) -> tuple[int, bytes, int, Target]:
        if handle not in self.entries_by_handle:
            raise NotFound(f"no entry {handle}")
        return self.entries_by_handle[handle]

    def _zeros(self, action: int) -> bytes:
        return bytes(sum((p.bits + 7) // 8 for p in self._loaded.actions[action].parameters))

    def _check_target(self, table: Table, target: Target) -> None:
        if target.kind is not TargetKind.ACTION:
            known = self.members if target.kind is TargetKind.MEMBER else self.groups
            if (table.profile, target.id) not in known:
                raise NotFound(f"{target.kind.name.lower()} {target.id}")
        elif target.id not in table.actions or len(target.params) != len(self._zeros(target.id)):
            raise InvalidArgument(
                f"{table.name}: action {target.id} with {len(target.params)} bytes"
            )

    @staticmethod
    def _named(items: Sequence[Table] | Sequence[Action], name: str):  # type: ignore[no-untyped-def]
        for item in items:
            if item.name == name:
                return item
        raise KeyError(name)


def _length(match: str, bits: int) -> int:
    size = (bits + 7) // 8
    return {"exact": size, "valid": size, "lpm": size + 2}.get(match, 2 * size)
