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

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from switch.program import Program, UnsupportedProgram

__all__ = [
    "Dataplane", "DataplaneError", "Digest", "DuplicateEntry", "Event", "InvalidArgument", "MeterConfig", "NotFound",
    "PacketIn", "PortCounters", "PortStatus", "QueueCounters", "TableFull", "Target", "TargetKind",
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

    def __init__(self, *, queues: int = 1, cpu_port: int | None = None, drop_port: int = 511, device_id: int = 0,
                 log_fd: int | None = None, sanitize: bool = False) -> None:
        """A switch without program or ports.

        `queues`: priority queues per port (BMv2's `--priority-queues`). `log_fd`: a file descriptor that gets the
        text of log_msg, assert and assume, and one line per packet event of interest; None is silent.
        `sanitize`: compile with address and undefined-behaviour sanitizers (tests; needs LD_PRELOAD of libasan).
        """
        raise NotImplementedError

    # -- life cycle -------------------------------------------------------------------------------------------

    def load(self, json: bytes) -> None:
        """Generate, compile (or find in the cache) and swap in a program. All table, counter, meter, register and
        action-profile state starts afresh (const entries and defaults from the JSON); multicast groups and clone
        sessions are cleared; ports stay.

        Raises UnsupportedProgram (construct and source line) or ValueError (not a BMv2 JSON); the old program stays.
        """
        raise NotImplementedError

    def check(self, json: bytes) -> Program:
        """Generate and compile without swapping in (P4Runtime VERIFY / VERIFY_AND_SAVE). Raises as `load`."""
        raise NotImplementedError

    @property
    def program(self) -> Program | None:
        """The loaded program's description: tables with key fields, actions, counters ... None before `load`."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the packet thread. Without a program, frames are dropped."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the packet thread (idempotent)."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop and free everything (idempotent)."""
        raise NotImplementedError

    # -- names to ids (KeyError if the program has none of that name) -----------------------------------------

    def table(self, name: str) -> int:
        """Id of a table."""
        raise NotImplementedError

    def action(self, table: int, name: str) -> int:
        """Id of an action of a table (BMv2 may have several actions of one name; the table says which)."""
        raise NotImplementedError

    def action_profile(self, name: str) -> int:
        """Id of an action profile or selector."""
        raise NotImplementedError

    def profile_action(self, profile: int, name: str) -> int:
        """Id of an action for members of a profile."""
        raise NotImplementedError

    def counter(self, name: str) -> int:
        """Id of an indirect counter array."""
        raise NotImplementedError

    def meter(self, name: str) -> int:
        """Id of an indirect meter array."""
        raise NotImplementedError

    def register(self, name: str) -> int:
        """Id of a register array."""
        raise NotImplementedError

    def digest(self, name: str) -> int:
        """Id of a digest (BMv2 JSON `learn_lists`)."""
        raise NotImplementedError

    def value_set(self, name: str) -> int:
        """Id of a parser value set."""
        raise NotImplementedError

    # -- tables -----------------------------------------------------------------------------------------------

    def insert(self, table: int, key: bytes, priority: int, target: Target) -> int:
        """Add an entry; its handle (never negative, unique over all tables, not reused while the entry lives).

        Larger `priority` wins; it is ignored for exact and lpm tables. Raises DuplicateEntry, TableFull, NotFound
        (member or group), InvalidArgument.
        """
        raise NotImplementedError

    def insert_many(self, table: int, entries: Sequence[tuple[bytes, int, Target]]) -> list[int | DataplaneError]:
        """`insert` for each (key, priority, target) in one call into C: a handle or an error for each."""
        raise NotImplementedError

    def modify(self, handle: int, target: Target) -> None:
        """Point an entry elsewhere; its counter and meter stay. Raises NotFound, InvalidArgument."""
        raise NotImplementedError

    def delete(self, handle: int) -> None:
        """Remove an entry. Raises NotFound."""
        raise NotImplementedError

    def find(self, table: int, key: bytes, priority: int) -> int | None:
        """The handle of an entry with this key and priority, if there is one."""
        raise NotImplementedError

    def entries(self, table: int) -> list[tuple[int, bytes, int, Target]]:
        """All entries, const ones included, as (handle, key, priority, target), oldest first."""
        raise NotImplementedError

    def set_default(self, table: int, target: Target | None) -> None:
        """Set the default action; None restores the program's own. Raises InvalidArgument (const default)."""
        raise NotImplementedError

    def default(self, table: int) -> Target | None:
        """The default action now in force, None if the table has none."""
        raise NotImplementedError

    def last_hit(self, handle: int) -> float:
        """Seconds since the entry was last matched, or since it was inserted or modified. Raises NotFound."""
        raise NotImplementedError

    # -- direct counters and meters (of an entry), indirect ones (by id and index) ------------------------------

    def direct_counter(self, handle: int) -> tuple[int, int]:
        """(packets, bytes) of an entry. Raises NotFound, InvalidArgument (the table has no counter)."""
        raise NotImplementedError

    def set_direct_counter(self, handle: int, packets: int, octets: int) -> None:
        """Write an entry's counter."""
        raise NotImplementedError

    def direct_meter(self, handle: int) -> MeterConfig | None:
        """An entry's meter, None if unset (always green)."""
        raise NotImplementedError

    def set_direct_meter(self, handle: int, config: MeterConfig | None) -> None:
        """Configure an entry's meter; None unsets it."""
        raise NotImplementedError

    def counter_read(self, counter: int, index: int) -> tuple[int, int]:
        """(packets, bytes). Raises NotFound if the index is outside the array."""
        raise NotImplementedError

    def counter_read_all(self, counter: int) -> list[tuple[int, int]]:
        """The whole array."""
        raise NotImplementedError

    def counter_write(self, counter: int, index: int, packets: int, octets: int) -> None:
        """Set one cell."""
        raise NotImplementedError

    def meter_read(self, meter: int, index: int) -> MeterConfig | None:
        """One cell's configuration, None if unset (always green)."""
        raise NotImplementedError

    def meter_write(self, meter: int, index: int, config: MeterConfig | None) -> None:
        """Configure one cell (buckets start full); None unsets it."""
        raise NotImplementedError

    def register_read(self, register: int, index: int) -> int:
        """One cell (unsigned)."""
        raise NotImplementedError

    def register_write(self, register: int, index: int, value: int) -> None:
        """Set one cell; the value is truncated to the register's width."""
        raise NotImplementedError

    # -- parser value sets --------------------------------------------------------------------------------------

    def value_set_write(self, value_set: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace the members of a parser value set by (value, mask) pairs: the select key's fields, each big-endian
        in ceil(bits / 8) bytes, concatenated."""
        raise NotImplementedError

    # -- action profiles ----------------------------------------------------------------------------------------

    def add_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Add a member under the caller's id (1..2^32-1). Raises DuplicateEntry, TableFull, InvalidArgument."""
        raise NotImplementedError

    def modify_member(self, profile: int, member: int, action: int, params: bytes) -> None:
        """Change what a member does."""
        raise NotImplementedError

    def delete_member(self, profile: int, member: int) -> None:
        """Remove a member. Raises NotFound, InvalidArgument (still in use by an entry or group)."""
        raise NotImplementedError

    def set_group(self, profile: int, group: int, members: Sequence[tuple[int, int]]) -> None:
        """Create or replace a group: (member id, weight) in the order in which the selector's hash picks them (a
        member of weight w counts as w). Leave out members whose watch port is down. Raises NotFound (member)."""
        raise NotImplementedError

    def delete_group(self, profile: int, group: int) -> None:
        """Remove a group. Raises NotFound, InvalidArgument (still in use)."""
        raise NotImplementedError

    # -- packet replication ---------------------------------------------------------------------------------------

    def set_multicast(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Create or replace multicast group 1..65535 by (port, replication id) pairs; empty removes it."""
        raise NotImplementedError

    def set_clone_session(self, session: int, replicas: Sequence[tuple[int, int]], *, class_of_service: int = 0,
                          packet_length: int = 0) -> None:
        """Create or replace clone session 1..32767 by (port, replication id) pairs; empty removes it.
        `packet_length`: bytes kept of a clone, 0 for all."""
        raise NotImplementedError

    # -- packets, digests, events --------------------------------------------------------------------------------

    def packet_out(self, frame: bytes) -> None:
        """Feed a frame (packet-out header in front) into the parser as if it came in on the CPU port. Raises
        InvalidArgument without a CPU port."""
        raise NotImplementedError

    @property
    def events_fd(self) -> int:
        """Readable (eventfd) while `read_events` has something to give."""
        raise NotImplementedError

    def read_events(self, limit: int = 1024) -> list[Event]:
        """Take what has happened since the last call, oldest first; never blocks. When nobody reads, the oldest
        4096 events are kept and later ones are lost (and counted, `events_lost`)."""
        raise NotImplementedError

    @property
    def events_lost(self) -> int:
        """Events dropped because nobody read them."""
        raise NotImplementedError

    def enable_digest(self, digest: int, enabled: bool) -> None:
        """Digests are produced only while enabled (initially not), and each distinct sample once until it is
        forgotten (BMv2: suppressed until acknowledged)."""
        raise NotImplementedError

    def forget_digests(self, digest: int, samples: Sequence[bytes] | None = None) -> None:
        """Allow samples to be reported again (acknowledged or timed out); None is all."""
        raise NotImplementedError

    # -- ports and the traffic manager ----------------------------------------------------------------------------

    def add_port(self, port: int, interface: str) -> None:
        """Attach port 0..510 to a network interface (promiscuous). Raises DuplicateEntry, OSError."""
        raise NotImplementedError

    def remove_port(self, port: int) -> None:
        """Detach. Raises NotFound."""
        raise NotImplementedError

    def ports(self) -> dict[int, str]:
        """Port number -> interface name."""
        raise NotImplementedError

    def port_up(self, port: int) -> bool:
        """Whether the link is up (changes are also events)."""
        raise NotImplementedError

    def port_counters(self, port: int) -> PortCounters:
        """Counters of a port. Raises NotFound."""
        raise NotImplementedError

    def set_port_rate(self, port: int, bits_per_second: int | None) -> None:
        """Shape a port to so many bits of frame (Ethernet header to payload, no preamble, no FCS) per second;
        None or 0 is unlimited. May precede `add_port`."""
        raise NotImplementedError

    def set_queue_limits(self, packets: int | None = None, octets: int | None = None, *, port: int | None = None,
                         queue: int | None = None) -> None:
        """Limit queues (tail drop); None leaves that limit as it is; port / queue None is all of them, also of
        ports added later. Initially 64 packets, no limit in bytes."""
        raise NotImplementedError

    def queue_counters(self, port: int, queue: int) -> QueueCounters:
        """Counters of one queue (queue 0..queues-1, the highest served first)."""
        raise NotImplementedError

    @property
    def priority_drops(self) -> int:
        """Packets dropped because standard_metadata.priority was not below the number of queues."""
        raise NotImplementedError

    # -- tests ------------------------------------------------------------------------------------------------------

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Run one frame through ingress, traffic manager and egress without sockets or shaping; every frame that
        leaves, as (port, frame), in order (also those for the CPU port). Only while the packet thread is stopped.
        Also returns frames for ports that have no interface."""
        raise NotImplementedError
