"""The data plane of one switch: a P4 program running as native code, and the calls that fill its tables.

The P4Runtime server (and the tests) see only this class. It hides the generated C, the compiler cache and the
packet thread. Objects are addressed by small integers, resolved once per program from the names in the BMv2 JSON
(`Dataplane.table("MyIngress.ipv4_lpm")`); the calls that happen often take integers and bytes only.

Encodings
---------
Key of a table entry: for each key field in the JSON's order, with n = ceil(bits / 8), big-endian:

====================  =======================================
exact, valid          value (n bytes)
lpm                   value (n bytes) + prefix length (2 bytes)
ternary, optional     value (n bytes) + mask (n bytes)
range                 low (n bytes) + high (n bytes)
====================  =======================================

An omitted (don't care) field is mask 0, prefix length 0, or the full range. Bits outside the mask must be 0 in the
value (they are cleared otherwise). Parameters of an action: each parameter big-endian in ceil(bits / 8) bytes,
concatenated in the action's order.

Threads: every method may be called from any thread while packets flow; ctypes releases the GIL. Table writes never
stop the packet thread. `load` pauses it for the time of a pointer swap and drops what is queued.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Sequence
from ctypes import byref, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Any, Self

from switch.compile import CompilerError, program_library
from switch.generator import generate
from switch.generator.generate import cell_bytes
from switch.generator.tables import default_params
from switch.native import close_program, open_program, runtime
from switch.program import Program, UnsupportedProgram

__all__ = [
    "Dataplane",
    "DataplaneError",
    "Digest",
    "DuplicateEntry",
    "Event",
    "InvalidArgument",
    "MeterConfig",
    "NotFound",
    "PacketIn",
    "PortCounters",
    "PortStatus",
    "QueueCounters",
    "TableFull",
    "Target",
    "TargetKind",
    "UnsupportedProgram",
]


class DataplaneError(Exception):
    """What the data plane could not do. The subclass says which P4Runtime code it maps to."""


class DuplicateEntry(DataplaneError):
    """The key (with this priority), member or group exists already: ALREADY_EXISTS."""


class TableFull(DataplaneError):
    """No room in the table, profile, counter ...: RESOURCE_EXHAUSTED."""


class NotFound(DataplaneError):
    """No such handle, member, group, index or port: NOT_FOUND."""


class InvalidArgument(DataplaneError):
    """Bytes of the wrong length, an action the table does not have, a constant table ...: INVALID_ARGUMENT."""


_ERRORS: dict[int, tuple[type[DataplaneError], str]] = {
    -1: (DuplicateEntry, "exists already"),
    -2: (TableFull, "no room"),
    -3: (NotFound, "does not exist"),
    -4: (InvalidArgument, "bytes of the wrong length or range, or not allowed here"),
    -5: (InvalidArgument, "still in use"),
}


def _error(code: int, what: str) -> DataplaneError:
    kind, text = _ERRORS[code]
    return kind(f"{what}: {text}")


def _check(code: int, what: str) -> int:
    if code < 0:
        raise _error(code, what)
    return code


MAX_PRIORITY = (1 << 31) - 1
"""Entries of the JSON have BMv2's priority, smaller first; here they get MAX_PRIORITY - priority, as in PI."""

_SECOND_PART = {"exact": 0, "valid": 0, "lpm": 2}
_MAX_PARAMS = 65536
_MAX_EVENT = 1 << 17
_MAX_CAPTURE = 1 << 20


class TargetKind(IntEnum):
    """What an entry points to."""

    ACTION = 0
    MEMBER = 1
    GROUP = 2


@dataclass(frozen=True, slots=True)
class Target:
    """What happens on a match."""

    kind: TargetKind
    """An action with parameters (direct tables), or a member or a group of the table's action profile."""
    id: int
    """Action id (`Dataplane.action`), member id or group id (the ids given to `add_member` / `add_group`)."""
    params: bytes = b""
    """Action parameters, encoded as the module says; empty for members and groups."""


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """A two-rate three-colour marker (RFC 2698) in the meter's own unit, bytes or packets."""

    cir: int
    """Committed rate, units per second."""
    cburst: int
    """Committed burst, units."""
    pir: int
    """Peak rate, units per second."""
    pburst: int
    """Peak burst, units."""


@dataclass(frozen=True, slots=True)
class PacketIn:
    """A frame the pipeline sent to the CPU port, with its packet-in header in front."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class Digest:
    """Samples of one digest list."""

    digest: int
    """The digest's id (`Dataplane.digest`)."""
    samples: list[bytes]
    """Each the fields of the digest, big-endian in ceil(bits / 8) bytes each, concatenated."""


@dataclass(frozen=True, slots=True)
class PortStatus:
    """A port's link came up or went down (or the port was added or removed)."""

    port: int
    up: bool


@dataclass(frozen=True, slots=True)
class _Filling:
    """What a program's tables start with."""

    defaults: dict[int, Target | None]
    """Table -> default action."""
    entries: list[tuple[int, bytes, int, Target]]
    """(table, key, priority, target)."""


Event = PacketIn | Digest | PortStatus


@dataclass(frozen=True, slots=True)
class PortCounters:
    """Frames and bytes of one port since it was added."""

    rx_packets: int
    rx_bytes: int
    rx_dropped: int
    """Frames lost in the kernel's ring before the program saw them."""
    tx_packets: int
    tx_bytes: int
    tx_dropped: int
    """Frames the kernel refused to send (link down)."""


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """One queue of one port."""

    enqueued_packets: int
    enqueued_bytes: int
    dropped_packets: int
    """Tail drops."""
    dropped_bytes: int
    depth_packets: int
    """Now in the queue."""
    depth_bytes: int


class Dataplane:
    """One switch. Create it, `load` a program, add ports, `start`; `close` at the end (also a context manager)."""

    def __init__(
        self,
        *,
        queues: int = 1,
        cpu_port: int | None = None,
        drop_port: int = 511,
        device_id: int = 0,
        log_fd: int | None = None,
        sanitize: bool = False,
    ) -> None:
        """A switch without program or ports.

        `queues`: priority queues per port (BMv2's `--priority-queues`). `log_fd`: a file descriptor that gets the
        text of log_msg, assert and assume, and one line per packet event of interest; None is silent.
        `sanitize`: compile with address and undefined-behaviour sanitizers (tests; needs LD_PRELOAD of libasan).
        """
        self._lib = runtime(sanitize)
        self._sanitize = sanitize
        self.queues = queues
        self.cpu_port = cpu_port
        self.device_id = device_id
        self._rt: Any = self._lib.sw_new(
            queues,
            -1 if cpu_port is None else cpu_port,
            drop_port,
            -1 if log_fd is None else log_fd,
        )
        self._program: Program | None = None
        self._ids: dict[str, dict[str, int]] = {}
        self._filling = _Filling({}, [])
        self._interfaces: dict[int, str] = {}
        self._captured: Any = None
        self._event = ctypes.create_string_buffer(_MAX_EVENT)

    # -- life cycle -------------------------------------------------------------------------------------------

    def load(self, json: bytes, fill: Callable[[], None] = lambda: None) -> None:
        """Generate, compile (or find in the cache) and swap in a program. All table, counter, meter, register and
        action-profile state starts afresh (const entries and defaults from the JSON); multicast groups and clone
        sessions are cleared; ports stay. Frames wait in their rings until `fill` has run: what it writes is there
        before the first of them.

        Raises UnsupportedProgram (construct and source line) or ValueError (not a BMv2 JSON); the old program stays.
        """
        program, filling, path = self._compile(json)
        handle, address = open_program(path)
        old = c_void_p()
        _check(self._lib.sw_load(self._rt, address, handle, byref(old)), "program")
        try:
            self._program = program
            self._filling = filling
            self._ids = {
                "table": {t.name: t.id for t in program.tables},
                "action profile": {p.name: p.id for p in program.profiles},
                "counter": {c.name: c.id for c in program.counters},
                "meter": {m.name: m.id for m in program.meters},
                "register": {r.name: r.id for r in program.registers},
                "digest": {d.name: d.id for d in program.digests},
                "value set": {v.name: v.id for v in program.value_sets},
            }
            self._fill(self._rt, filling)
            fill()
        finally:
            self._lib.sw_resume(self._rt)
            close_program(old.value)

    def check(self, json: bytes) -> Program:
        """Generate and compile without swapping in (P4Runtime VERIFY / VERIFY_AND_SAVE). Raises as `load`."""
        return self._compile(json)[0]

    def _compile(self, json: bytes) -> tuple[Program, _Filling, str]:
        """The program, what its tables start with, and its library; all of it tried out."""
        program, source, root = generate(json)
        try:
            path = str(program_library(source, "program", self._sanitize))
        except CompilerError as error:
            raise UnsupportedProgram(
                f"{program.name}: its translation does not compile: {error}"
            ) from error
        try:
            filling = _filling(program, root)
            self._try_out(path, filling)
        except (DataplaneError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(
                f"{program.name}: an entry or default action is wrong: {error}"
            ) from error
        return program, filling, path

    def _try_out(self, path: str, filling: _Filling) -> None:
        """Loads a program on a switch of its own, so that `load` cannot fail half-way."""
        scratch = self._lib.sw_new(self.queues, -1, 511, -1)
        handle, address = open_program(path)
        try:
            _check(self._lib.sw_load(scratch, address, handle, byref(c_void_p())), "program")
            self._lib.sw_resume(scratch)
            self._fill(scratch, filling)
        finally:
            self._lib.sw_free(scratch)
            close_program(handle)

    def _fill(self, rt: Any, filling: _Filling) -> None:
        for table, target in filling.defaults.items():
            self._write_default(rt, table, target)
        for table, key, priority, target in filling.entries:
            _check(
                self._lib.sw_insert(
                    rt,
                    table,
                    key,
                    len(key),
                    priority,
                    target.kind,
                    target.id,
                    target.params,
                    len(target.params),
                ),
                f"entry {key.hex()} of table {table}",
            )

    def _write_default(self, rt: Any, table: int, target: Target | None) -> None:
        kind, number, params = (
            (-1, 0, b"") if target is None else (int(target.kind), target.id, target.params)
        )
        _check(
            self._lib.sw_set_default(rt, table, kind, number, params, len(params)),
            f"default action of table {self._table_name(table)}",
        )

    def _table_name(self, table: int) -> str:
        tables = self._program.tables if self._program else ()
        return tables[table].name if 0 <= table < len(tables) else f"#{table}"

    @property
    def program(self) -> Program | None:
        """The loaded program's description: tables with key fields, actions, counters ... None before `load`."""
        return self._program

    def start(self) -> None:
        """Start the packet thread. Without a program, frames are dropped."""
        code = self._lib.sw_start(self._rt)
        if code:
            raise OSError(-code, os.strerror(-code))

    def stop(self) -> None:
        """Stop the packet thread (idempotent)."""
        self._lib.sw_stop(self._rt)

    def close(self) -> None:
        """Stop and free everything (idempotent)."""
        if self._rt:
            self._lib.sw_stop(self._rt)
            close_program(self._lib.sw_free(self._rt))
            self._rt = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- names to ids (KeyError if the program has none of that name) -----------------------------------------

    def table(self, name: str) -> int:
        """Id of a table."""
        return self._id("table", name)

    def _id(self, what: str, name: str) -> int:
        try:
            return self._ids[what][name]
        except KeyError:
            raise KeyError(f"the program has no {what} {name}") from None

    def _action_id(self, actions: Sequence[int], name: str) -> int:
        assert self._program is not None
        for number in actions:
            if self._program.actions[number].name == name:
                return number
        raise KeyError(f"no action {name} here")

    def action(self, table: int, name: str) -> int:
        """Id of an action of a table (BMv2 may have several actions of one name; the table says which)."""
        assert self._program is not None
        return self._action_id(self._program.tables[table].actions, name)

    def action_profile(self, name: str) -> int:
        """Id of an action profile or selector."""
        return self._id("action profile", name)

    def profile_action(self, profile: int, name: str) -> int:
        """Id of an action for members of a profile."""
        assert self._program is not None
        for table in self._program.tables:
            if table.profile == profile:
                return self._action_id(table.actions, name)
        raise KeyError(f"no table uses action profile {profile}")

    def counter(self, name: str) -> int:
        """Id of an indirect counter array."""
        return self._id("counter", name)

    def meter(self, name: str) -> int:
        """Id of an indirect meter array."""
        return self._id("meter", name)

    def register(self, name: str) -> int:
        """Id of a register array."""
        return self._id("register", name)

    def digest(self, name: str) -> int:
        """Id of a digest (BMv2 JSON `learn_lists`)."""
        return self._id("digest", name)

    def value_set(self, name: str) -> int:
        """Id of a parser value set."""
        return self._id("value set", name)

    # -- tables -----------------------------------------------------------------------------------------------

    def insert(self, table: int, key: bytes, priority: int, target: Target) -> int:
        """Add an entry; its handle (never negative, unique over all tables, not reused while the entry lives).

        Larger `priority` wins; it is ignored for exact and lpm tables. Raises DuplicateEntry, TableFull, NotFound
        (member or group), InvalidArgument.
        """
        handle: int = self._lib.sw_insert(
            self._rt,
            table,
            key,
            len(key),
            priority,
            target.kind,
            target.id,
            target.params,
            len(target.params),
        )
        if handle < 0:
            raise _error(handle, f"entry of table {self._table_name(table)}")
        return handle

    def insert_many(
        self, table: int, entries: Sequence[tuple[bytes, int, Target]]
    ) -> list[int | DataplaneError]:
        """`insert` for each (key, priority, target) in one call into C: a handle or an error for each."""
        count = len(entries)
        if not count:
            return []
        self._check_keys(table, entries)
        results = (c_int64 * count)()
        packed = b"".join(key + target.params for key, _, target in entries)
        _check(
            self._lib.sw_insert_many(
                self._rt,
                table,
                count,
                packed,
                (c_int64 * count)(*(e[1] for e in entries)),
                (c_int32 * count)(*(e[2].kind for e in entries)),
                (c_uint32 * count)(*(e[2].id for e in entries)),
                (c_uint32 * count)(*(len(e[2].params) for e in entries)),
                results,
            ),
            "table",
        )
        what = f"entry of table {self._table_name(table)}"
        return [code if code >= 0 else _error(code, what) for code in results]

    def _check_keys(self, table: int, entries: Sequence[tuple[bytes, int, Target]]) -> None:
        """The packed form has no key lengths: they must be right."""
        assert self._program is not None
        size = sum(
            (f.bits + 7) // 8 + _SECOND_PART.get(f.match, (f.bits + 7) // 8)
            for f in self._program.tables[table].key
        )
        if any(len(entry[0]) != size for entry in entries):
            raise InvalidArgument(f"keys of table {self._table_name(table)} have {size} bytes")

    def modify(self, handle: int, target: Target) -> None:
        """Point an entry elsewhere; its counter and meter stay. Raises NotFound, InvalidArgument."""
        _check(
            self._lib.sw_modify(
                self._rt, handle, target.kind, target.id, target.params, len(target.params)
            ),
            "entry",
        )

    def delete(self, handle: int) -> None:
        """Remove an entry. Raises NotFound."""
        _check(self._lib.sw_delete(self._rt, handle), "entry")

    def find(self, table: int, key: bytes, priority: int) -> int | None:
        """The handle of an entry with this key and priority, if there is one."""
        handle: int = self._lib.sw_find(self._rt, table, key, len(key), priority)
        return handle if handle >= 0 else None

    def entries(self, table: int) -> list[tuple[int, bytes, int, Target]]:
        """All entries, const ones included, as (handle, key, priority, target), oldest first."""
        count = self._lib.sw_handles(self._rt, table, None, 0)
        handles = (c_uint64 * max(count, 1))()
        count = self._lib.sw_handles(self._rt, table, handles, count)
        key, params = (
            ctypes.create_string_buffer(_MAX_PARAMS),
            ctypes.create_string_buffer(_MAX_PARAMS),
        )
        priority, order, kind, number, size = (
            c_int64(),
            c_uint64(),
            c_int32(),
            c_uint32(),
            c_uint32(),
        )
        assert self._program is not None
        key_bytes = sum(
            (f.bits + 7) // 8 + _SECOND_PART.get(f.match, (f.bits + 7) // 8)
            for f in self._program.tables[table].key
        )
        found = []
        for handle in handles[:count]:
            if (
                self._lib.sw_entry(
                    self._rt,
                    handle,
                    key,
                    byref(priority),
                    byref(order),
                    byref(kind),
                    byref(number),
                    params,
                    byref(size),
                )
                == 0
            ):
                target = Target(TargetKind(kind.value), number.value, params.raw[: size.value])
                found.append((order.value, (handle, key.raw[:key_bytes], priority.value, target)))
        return [entry for _, entry in sorted(found, key=lambda pair: pair[0])]

    def set_default(self, table: int, target: Target | None) -> None:
        """Set the default action; None restores the program's own. Raises InvalidArgument (const default)."""
        self._write_default(
            self._rt, table, self._filling.defaults[table] if target is None else target
        )

    def default(self, table: int) -> Target | None:
        """The default action now in force, None if the table has none."""
        kind, number, size = c_int32(), c_uint32(), c_uint32()
        params = ctypes.create_string_buffer(_MAX_PARAMS)
        if self._lib.sw_default(self._rt, table, byref(kind), byref(number), params, byref(size)):
            return None
        return Target(TargetKind(kind.value), number.value, params.raw[: size.value])

    def last_hit(self, handle: int) -> float:
        """Seconds since the entry was last matched, or since it was inserted or modified. Raises NotFound."""
        idle: int = self._lib.sw_idle(self._rt, handle)
        return _check(idle, "entry") / 1e9

    # -- direct counters and meters (of an entry), indirect ones (by id and index) ------------------------------

    def direct_counter(self, handle: int) -> tuple[int, int]:
        """(packets, bytes) of an entry. Raises NotFound, InvalidArgument (the table has no counter)."""
        out = (c_uint64 * 2)()
        _check(self._lib.sw_direct_counter(self._rt, handle, out, None), "counter of the entry")
        return out[0], out[1]

    def set_direct_counter(self, handle: int, packets: int, octets: int) -> None:
        """Write an entry's counter."""
        _check(
            self._lib.sw_direct_counter(self._rt, handle, None, (c_uint64 * 2)(packets, octets)),
            "counter of the entry",
        )

    def direct_meter(self, handle: int) -> MeterConfig | None:
        """An entry's meter, None if unset (always green)."""
        return _read_meter(
            lambda out: self._lib.sw_direct_meter(self._rt, handle, out, None), "meter of the entry"
        )

    def set_direct_meter(self, handle: int, config: MeterConfig | None) -> None:
        """Configure an entry's meter; None unsets it."""
        _check(
            self._lib.sw_direct_meter(self._rt, handle, None, _meter_words(config)),
            "meter of the entry",
        )

    def counter_read(self, counter: int, index: int) -> tuple[int, int]:
        """(packets, bytes). Raises NotFound if the index is outside the array."""
        out = (c_uint64 * 2)()
        _check(
            self._lib.sw_counter(self._rt, counter, index, 1, out, None),
            f"counter {counter}[{index}]",
        )
        return out[0], out[1]

    def counter_read_all(self, counter: int) -> list[tuple[int, int]]:
        """The whole array."""
        assert self._program is not None
        size = self._program.counters[counter].size
        out = (c_uint64 * (2 * size))()
        _check(self._lib.sw_counter(self._rt, counter, 0, size, out, None), f"counter {counter}")
        return list(zip(out[::2], out[1::2], strict=True))

    def counter_write(self, counter: int, index: int, packets: int, octets: int) -> None:
        """Set one cell."""
        words = (c_uint64 * 2)(packets, octets)
        _check(
            self._lib.sw_counter(self._rt, counter, index, 1, None, words),
            f"counter {counter}[{index}]",
        )

    def meter_read(self, meter: int, index: int) -> MeterConfig | None:
        """One cell's configuration, None if unset (always green)."""
        return _read_meter(
            lambda out: self._lib.sw_meter(self._rt, meter, index, out, None),
            f"meter {meter}[{index}]",
        )

    def meter_write(self, meter: int, index: int, config: MeterConfig | None) -> None:
        """Configure one cell (buckets start full); None unsets it."""
        _check(
            self._lib.sw_meter(self._rt, meter, index, None, _meter_words(config)),
            f"meter {meter}[{index}]",
        )

    def register_read(self, register: int, index: int) -> int:
        """One cell (unsigned)."""
        bits = self._register_bits(register)
        size = cell_bytes(bits)
        out = ctypes.create_string_buffer(size)
        _check(
            self._lib.sw_register(self._rt, register, index, out, None),
            f"register {register}[{index}]",
        )
        return int.from_bytes(out.raw, "little" if bits <= 128 else "big")

    def register_write(self, register: int, index: int, value: int) -> None:
        """Set one cell; the value is truncated to the register's width."""
        bits = self._register_bits(register)
        data = (value & ((1 << bits) - 1)).to_bytes(
            cell_bytes(bits), "little" if bits <= 128 else "big"
        )
        _check(
            self._lib.sw_register(self._rt, register, index, None, data),
            f"register {register}[{index}]",
        )

    def _register_bits(self, register: int) -> int:
        assert self._program is not None
        return self._program.registers[register].bits

    # -- parser value sets --------------------------------------------------------------------------------------

    def value_set_write(self, value_set: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace the members of a parser value set by (value, mask) pairs: the select key's fields, each big-endian
        in ceil(bits / 8) bytes, concatenated."""
        data = b"".join(value + mask for value, mask in members)
        assert self._program is not None
        size = sum((b + 7) // 8 for b in self._program.value_sets[value_set].bits)
        if len(data) != 2 * size * len(members):
            raise InvalidArgument(f"members of value set {value_set} have {size} bytes")
        _check(self._lib.sw_vset(self._rt, value_set, data, len(members)), f"value set {value_set}")

    # -- action profiles ----------------------------------------------------------------------------------------

    def add_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Add a member under the caller's id (1..2^32-1). Raises DuplicateEntry, TableFull, InvalidArgument."""
        _check(
            self._lib.sw_add_member(self._rt, profile, member, action, params, len(params)),
            f"member {member}",
        )

    def modify_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Change what a member does."""
        _check(
            self._lib.sw_modify_member(self._rt, profile, member, action, params, len(params)),
            f"member {member}",
        )

    def delete_member(self, profile: int, member: int) -> None:
        """Remove a member. Raises NotFound, InvalidArgument (still in use by an entry or group)."""
        _check(self._lib.sw_delete_member(self._rt, profile, member), f"member {member}")

    def set_group(self, profile: int, group: int, members: Sequence[tuple[int, int]]) -> None:
        """Create or replace a group: (member id, weight) in the order in which the selector's hash picks them (a
        member of weight w counts as w). Leave out members whose watch port is down. Raises NotFound (member)."""
        count = len(members)
        _check(
            self._lib.sw_set_group(
                self._rt,
                profile,
                group,
                (c_uint32 * count)(*(m for m, _ in members)),
                (c_uint32 * count)(*(w for _, w in members)),
                count,
            ),
            f"group {group} or a member",
        )

    def delete_group(self, profile: int, group: int) -> None:
        """Remove a group. Raises NotFound, InvalidArgument (still in use)."""
        _check(self._lib.sw_delete_group(self._rt, profile, group), f"group {group}")

    # -- packet replication ---------------------------------------------------------------------------------------

    def set_multicast(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Create or replace multicast group 1..65535 by (port, replication id) pairs; empty removes it."""
        _check(
            self._lib.sw_replicas(self._rt, 0, group, _pairs(replicas), len(replicas), 0, 0),
            f"multicast group {group}",
        )

    def set_clone_session(
        self,
        session: int,
        replicas: Sequence[tuple[int, int]],
        *,
        class_of_service: int = 0,
        packet_length: int = 0,
    ) -> None:
        """Create or replace clone session 1..32767 by (port, replication id) pairs; empty removes it.
        `packet_length`: bytes kept of a clone, 0 for all."""
        _check(
            self._lib.sw_replicas(
                self._rt,
                1,
                session,
                _pairs(replicas),
                len(replicas),
                class_of_service,
                packet_length,
            ),
            f"clone session {session}",
        )

    # -- packets, digests, events --------------------------------------------------------------------------------

    def packet_out(self, frame: bytes) -> None:
        """Feed a frame (packet-out header in front) into the parser as if it came in on the CPU port. Raises
        InvalidArgument without a CPU port."""
        if self.cpu_port is None:
            raise InvalidArgument("packet-out: the switch has no CPU port (--cpu-port)")
        _check(self._lib.sw_inject(self._rt, self.cpu_port, frame, len(frame)), "packet-out")

    @property
    def events_fd(self) -> int:
        """Readable (eventfd) while `read_events` has something to give."""
        return int(self._lib.sw_events_fd(self._rt))

    def read_events(self, limit: int = 1024) -> list[Event]:
        """Take what has happened since the last call, oldest first; never blocks. When nobody reads, the oldest
        4096 events are kept and later ones are lost (and counted, `events_lost`)."""
        events: list[Event] = []
        kind, number = c_uint32(), c_uint32()
        while len(events) < limit:
            size = self._lib.sw_next_event(
                self._rt, byref(kind), byref(number), self._event, _MAX_EVENT
            )
            if size < 0:
                break
            data = ctypes.string_at(self._event, size)
            if kind.value == 0:
                events.append(PacketIn(data))
            elif kind.value == 1:
                last = events[-1] if events else None
                if isinstance(last, Digest) and last.digest == number.value:
                    last.samples.append(data)
                else:
                    events.append(Digest(number.value, [data]))
            else:
                events.append(PortStatus(number.value, data != b"\0"))
        return events

    @property
    def events_lost(self) -> int:
        """Events dropped because nobody read them."""
        return int(self._lib.sw_events_lost(self._rt))

    def enable_digest(self, digest: int, enabled: bool) -> None:
        """Digests are produced only while enabled (initially not), and each distinct sample once until it is
        forgotten (BMv2: suppressed until acknowledged)."""
        _check(self._lib.sw_enable_digest(self._rt, digest, int(enabled)), f"digest {digest}")

    def forget_digests(self, digest: int, samples: Sequence[bytes] | None = None) -> None:
        """Allow samples to be reported again (acknowledged or timed out); None is all."""
        if samples is None:
            self._lib.sw_forget(self._rt, digest, None, 0)
        for sample in samples or ():
            self._lib.sw_forget(self._rt, digest, sample, len(sample))

    # -- ports and the traffic manager ----------------------------------------------------------------------------

    def add_port(self, port: int, interface: str) -> None:
        """Attach port 0..510 to a network interface (promiscuous). Raises DuplicateEntry, OSError."""
        code = self._lib.sw_add_port(self._rt, port, interface.encode())
        if code < -1000:
            number = -1000 - code
            hint = " (packet sockets need root or CAP_NET_RAW)" if number == errno.EPERM else ""
            raise OSError(
                number, f"port {port} on interface {interface}: {os.strerror(number)}{hint}"
            )
        _check(code, f"port {port}")
        self._interfaces[port] = interface

    def remove_port(self, port: int) -> None:
        """Detach. Raises NotFound."""
        _check(self._lib.sw_remove_port(self._rt, port), f"port {port}")
        del self._interfaces[port]

    def ports(self) -> dict[int, str]:
        """Port number -> interface name."""
        return dict(self._interfaces)

    def port_up(self, port: int) -> bool:
        """Whether the link is up (changes are also events)."""
        return bool(_check(self._lib.sw_port_up(self._rt, port), f"port {port}"))

    def port_counters(self, port: int) -> PortCounters:
        """Counters of a port. Raises NotFound."""
        out = (c_uint64 * 6)()
        _check(self._lib.sw_port_counters(self._rt, port, out), f"port {port}")
        return PortCounters(*out)

    def set_port_rate(self, port: int, bits_per_second: int | None) -> None:
        """Shape a port to so many bits of frame (Ethernet header to payload, no preamble, no FCS) per second;
        None or 0 is unlimited. May precede `add_port`."""
        _check(self._lib.sw_port_rate(self._rt, port, bits_per_second or 0), f"port {port}")

    def set_queue_limits(
        self,
        packets: int | None = None,
        octets: int | None = None,
        *,
        port: int | None = None,
        queue: int | None = None,
    ) -> None:
        """Limit queues (tail drop); None leaves that limit as it is; port / queue None is all of them, also of
        ports added later. Initially 64 packets, no limit in bytes."""

        def number(value: int | None) -> int:
            return -1 if value is None else value

        _check(
            self._lib.sw_queue_limits(
                self._rt, number(packets), number(octets), number(port), number(queue)
            ),
            f"port {port}, queue {queue}",
        )

    def queue_counters(self, port: int, queue: int) -> QueueCounters:
        """Counters of one queue (queue 0..queues-1, the highest served first)."""
        out = (c_uint64 * 6)()
        _check(
            self._lib.sw_queue_counters(self._rt, port, queue, out), f"port {port}, queue {queue}"
        )
        return QueueCounters(*out)

    @property
    def priority_drops(self) -> int:
        """Packets dropped because standard_metadata.priority was not below the number of queues."""
        return int(self._lib.sw_priority_drops(self._rt))

    # -- tests ------------------------------------------------------------------------------------------------------

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Run one frame through ingress, traffic manager and egress without sockets or shaping; every frame that
        leaves, as (port, frame), in order (also those for the CPU port). Only while the packet thread is stopped.
        Also returns frames for ports that have no interface."""
        if self._captured is None:
            self._captured = ctypes.create_string_buffer(_MAX_CAPTURE)
        out = self._captured
        used = _check(
            self._lib.sw_process(self._rt, port, frame, len(frame), out, _MAX_CAPTURE), "process"
        )
        frames, at = [], 0
        while at < used:
            number, size = (int.from_bytes(out[at + i : at + i + 4], "little") for i in (0, 4))
            frames.append((number, ctypes.string_at(ctypes.addressof(out) + at + 8, size)))
            at += 8 + size
        return frames


def _filling(program: Program, root: dict[str, Any]) -> _Filling:
    """Default actions and entries of a JSON."""
    filling = _Filling({}, [])
    sources = [t for pipeline in root["pipelines"] for t in pipeline["tables"]]
    for table, source in zip(program.tables, sources, strict=True):
        default = source.get("default_entry")
        filling.defaults[table.id] = None
        if default is not None and table.profile is None:
            filling.defaults[table.id] = _action(program, default)
        for entry in source.get("entries") or []:
            key = b"".join(
                _json_key(part, field.bits)
                for part, field in zip(entry["match_key"], table.key, strict=True)
            )
            priority = MAX_PRIORITY - entry.get("priority", 0)
            filling.entries.append(
                (table.id, key, priority, _action(program, entry["action_entry"]))
            )
    return filling


def _action(program: Program, entry: dict[str, Any]) -> Target:
    return Target(TargetKind.ACTION, entry["action_id"], default_params(program, entry))


def _pairs(replicas: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(
        port.to_bytes(2, "little") + rid.to_bytes(2, "little") for port, rid in replicas
    )


def _meter_words(config: MeterConfig | None) -> Any:
    values = (
        (0, 0, 0, 0, 0)
        if config is None
        else (1, config.cir, config.cburst, config.pir, config.pburst)
    )
    return (c_uint64 * 5)(*values)


def _read_meter(read: Callable[[Any], int], what: str) -> MeterConfig | None:
    out = (c_uint64 * 5)()
    _check(read(out), what)
    return MeterConfig(out[1], out[2], out[3], out[4]) if out[0] else None


def _json_key(part: dict[str, Any], bits: int) -> bytes:
    """One field of a JSON entry's match key, encoded as the module says."""
    size = (bits + 7) // 8

    def number(name: str) -> bytes:
        return (int(part[name], 16) & ((1 << bits) - 1)).to_bytes(size, "big")

    kind = part["match_type"]
    if kind == "valid":
        return bytes([bool(part["key"])])
    if kind == "exact":
        return number("key")
    if kind == "lpm":
        return number("key") + int(part["prefix_length"]).to_bytes(2, "big")
    if kind == "range":
        return number("start") + number("end")
    return number("key") + number("mask")
