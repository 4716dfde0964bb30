"""Table entries: the store that mirrors the data plane's tables, keyed as P4Runtime keys them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy.proto import p4i, p4r

from switch.dataplane import Dataplane, DataplaneError, Target, TargetKind
from switch.server.actions import ActionSet
from switch.server.default_entry import DefaultEntry
from switch.server.direct_resources import (
    counter_message,
    counts,
    meter_config,
    meter_message,
    no_color_counters,
)
from switch.server.errors import Code, Outcome, RequestError, from_dataplane, invalid, not_found
from switch.server.idle import IdleTimeouts
from switch.server.matches import KeyCodec
from switch.server.pipeline import TableInfo
from switch.server.profiles import Profile


class Entry:
    """One entry of a table."""

    __slots__ = (
        "action",
        "cookie",
        "handle",
        "idle_timeout_ns",
        "is_const",
        "key",
        "metadata",
        "priority",
        "target",
    )

    handle: int
    """The data plane's."""
    key: bytes
    priority: int
    target: Target
    action: p4r.TableAction | None
    """What the client wrote, kept for indirect tables only; a direct one is rebuilt from `target`."""
    metadata: bytes
    cookie: int
    """`controller_metadata`."""
    idle_timeout_ns: int
    is_const: bool

    def __init__(self, key: bytes, priority: int, target: Target) -> None:
        self.handle = -1
        self.key = key
        self.priority = priority
        self.target = target
        self.action = None
        self.metadata = b""
        self.cookie = 0
        self.idle_timeout_ns = 0
        self.is_const = False


class Table:
    """One table: its entries and its default entry."""

    def __init__(self, info: TableInfo, dataplane: Dataplane, profile: Profile | None) -> None:
        self.info = info
        self.idle: IdleTimeouts[Entry] = IdleTimeouts(dataplane.last_hit)
        self._dataplane = dataplane
        self._id = dataplane.table(info.name)
        self._profile = profile
        self._keys = KeyCodec(info.fields, f"table {info.name}")
        self._needs_priority = info.needs_priority
        self._entries: dict[tuple[bytes, int], Entry] = {}
        # the actions of an indirect table are its profile's, which resolves them
        direct = {} if profile else info.actions
        self._actions = ActionSet(
            direct, lambda name: dataplane.action(self._id, name), f"table {info.name}"
        )
        self.default = DefaultEntry(info, dataplane, self._id, self._actions)
        self._load_initial()

    def __len__(self) -> int:
        return len(self._entries)

    # -- writes -----------------------------------------------------------------------------------------------

    def insert(self, messages: Sequence[p4r.TableEntry]) -> list[Outcome]:
        """Add entries, in one call to the data plane; for each None, or why it could not be added."""
        outcomes: list[Outcome] = [None] * len(messages)
        batch: list[tuple[int, Entry]] = []
        fresh: set[tuple[bytes, int]] = set()
        for position, message in enumerate(messages):
            try:
                entry = self._prepare_insert(message, fresh)
            except RequestError as error:
                outcomes[position] = error
            except DataplaneError as error:
                outcomes[position] = from_dataplane(error)
            else:
                batch.append((position, entry))
                fresh.add((entry.key, entry.priority))
        results = self._insert_all([(e.key, e.priority, e.target) for _, e in batch])
        for (position, entry), result in zip(batch, results, strict=True):
            if isinstance(result, DataplaneError):
                outcomes[position] = from_dataplane(result)
                self._release(entry.target)
                continue
            entry.handle = result
            self._entries[entry.key, entry.priority] = entry
            self._write_resources(entry.handle, messages[position])
            if entry.idle_timeout_ns:
                self.idle.watch(entry)
        return outcomes

    def modify(self, message: p4r.TableEntry) -> None:
        """Change an entry's action, metadata, time-out and direct resources. Raises NOT_FOUND, PERMISSION_DENIED
        (const), INVALID_ARGUMENT."""
        self._check_resources(message)
        if message.is_default_action:
            self.default.modify(message)
            return
        entry = self._existing(message)
        if entry.is_const:
            if message.HasField("action"):
                raise self._immutable("its entries' actions are constant")
        else:
            self._modify_action(entry, message)
        self._write_resources(entry.handle, message)
        if self.info.meter and not message.HasField("meter_config"):
            self._dataplane.set_direct_meter(entry.handle, None)

    def delete(self, message: p4r.TableEntry) -> None:
        """Remove an entry. Raises NOT_FOUND, PERMISSION_DENIED (const), INVALID_ARGUMENT."""
        if message.is_default_action:
            raise invalid(
                f"table {self.info.name}: the default entry cannot be deleted; MODIFY it without an action"
            )
        if self.info.is_const:
            raise self._immutable("it was declared with const entries")
        entry = self._existing(message)
        self._dataplane.delete(entry.handle)
        del self._entries[entry.key, entry.priority]
        self.idle.forget(entry)
        self._release(entry.target)

    # -- reads ------------------------------------------------------------------------------------------------

    def read(self, request: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        """The entries that a request selects. Raises INVALID_ARGUMENT."""
        if request.HasField("time_since_last_hit") and not self.info.idle_timeout:
            raise invalid(
                f"table {self.info.name} has no idle time-out, hence no time since last hit"
            )
        if request.is_default_action:
            self._no_match_for_default(request)
            yield self.default.read()
            return
        for entry in self._selected(request):
            yield self.message(entry, request)

    def find(self, message: p4r.TableEntry) -> Entry:
        """The entry that a message's key names. Raises NOT_FOUND, INVALID_ARGUMENT."""
        return self._existing(message)

    def entries(self) -> Iterator[Entry]:
        """All entries."""
        return iter(list(self._entries.values()))

    def key_message(self, entry: Entry) -> p4r.TableEntry:
        """Only what names an entry: table, match, priority."""
        return p4r.TableEntry(
            table_id=self.info.id, match=self._keys.decode(entry.key), priority=entry.priority
        )

    def message(self, entry: Entry, wanted: p4r.TableEntry) -> p4r.TableEntry:
        """An entry, with those of its direct resources that are set in `wanted`."""
        message = self.key_message(entry)
        if entry.action is not None:
            message.action.CopyFrom(entry.action)
        elif entry.target.kind is TargetKind.ACTION:
            message.action.action.CopyFrom(
                self._actions.decode(entry.target.id, entry.target.params)
            )
        message.controller_metadata = entry.cookie
        message.metadata = entry.metadata
        message.idle_timeout_ns = entry.idle_timeout_ns
        message.is_const = entry.is_const
        if wanted.HasField("counter_data") and self.info.counter:
            message.counter_data.CopyFrom(
                counter_message(self._dataplane.direct_counter(entry.handle))
            )
        if wanted.HasField("meter_config") and self.info.meter:
            config = self._dataplane.direct_meter(entry.handle)
            if config is not None:
                message.meter_config.CopyFrom(meter_message(config))
        if wanted.HasField("time_since_last_hit"):
            message.time_since_last_hit.elapsed_ns = int(
                self._dataplane.last_hit(entry.handle) * 1e9
            )
        return message

    def idle_messages(self) -> list[p4r.TableEntry]:
        """The entries that have idled for their time to live, as a notification names them."""
        messages = []
        for entry in self.idle.expired():
            message = self.key_message(entry)
            message.controller_metadata = entry.cookie
            message.metadata = entry.metadata
            message.idle_timeout_ns = entry.idle_timeout_ns
            messages.append(message)
        return messages

    # -- inside -----------------------------------------------------------------------------------------------

    def _load_initial(self) -> None:
        for handle, key, priority, target in self._dataplane.entries(self._id):
            entry = Entry(key, priority if self._needs_priority else 0, target)
            entry.handle = handle
            entry.is_const = self.info.is_const
            self._entries[entry.key, entry.priority] = entry

    def _prepare_insert(self, message: p4r.TableEntry, fresh: set[tuple[bytes, int]]) -> Entry:
        if message.is_default_action:
            raise invalid(
                f"table {self.info.name}: the default entry cannot be inserted; MODIFY it"
            )
        if self.info.is_const:
            raise self._immutable("it was declared with const entries")
        if not self.info.fields:
            raise invalid(f"table {self.info.name} has no key: it has a default entry only")
        if not message.HasField("action"):
            raise invalid(f"table {self.info.name}: the entry has no action")
        self._check_resources(message)
        key = self._keys.encode(message.match)
        priority = self._priority(message)
        target = self._acquire(message.action)
        if (key, priority) in self._entries or (key, priority) in fresh:
            self._release(target)
            raise RequestError(
                Code.ALREADY_EXISTS, "Match entry exists, use MODIFY if you wish to change action"
            )
        entry = Entry(key, priority, target)
        self._remember(entry, message)
        return entry

    def _insert_all(self, entries: list[tuple[bytes, int, Target]]) -> list[int | DataplaneError]:
        if len(entries) != 1:
            return self._dataplane.insert_many(self._id, entries)
        try:  # a third of what packing a batch of one costs
            return [self._dataplane.insert(self._id, *entries[0])]
        except DataplaneError as error:
            return [error]

    def _modify_action(self, entry: Entry, message: p4r.TableEntry) -> None:
        if not message.HasField("action"):
            raise invalid(f"table {self.info.name}: the entry has no action")
        target = self._acquire(message.action)
        try:
            self._dataplane.modify(entry.handle, target)
        except DataplaneError:
            self._release(target)
            raise
        self._release(entry.target)
        entry.target = target
        self._remember(entry, message)
        self.idle.forget(entry)
        if entry.idle_timeout_ns:
            self.idle.watch(entry)

    def _remember(self, entry: Entry, message: p4r.TableEntry) -> None:
        entry.metadata = message.metadata
        entry.cookie = message.controller_metadata
        entry.idle_timeout_ns = message.idle_timeout_ns
        if self._profile is not None:
            entry.action = p4r.TableAction()
            entry.action.CopyFrom(message.action)

    def _acquire(self, action: p4r.TableAction) -> Target:
        if self._profile is not None:
            return self._profile.acquire(action)
        if not action.HasField("action"):
            raise invalid(f"table {self.info.name} has no action profile: give an action")
        codec = self._actions.find(action.action.action_id)
        if codec.scope == p4i.ActionRef.DEFAULT_ONLY:
            raise RequestError(
                Code.PERMISSION_DENIED, f"action {codec.name} is for the default entry only"
            )
        return Target(TargetKind.ACTION, codec.dataplane_id, codec.encode(action.action))

    def _release(self, target: Target) -> None:
        if self._profile is not None:
            self._profile.release(target)

    def _priority(self, message: p4r.TableEntry) -> int:
        priority = message.priority
        if self._needs_priority:
            if priority <= 0:
                raise invalid(
                    f"table {self.info.name}: ternary, range and optional matches need a priority above 0"
                )
        elif priority:
            raise invalid(f"table {self.info.name}: exact and lpm matches take no priority")
        return priority

    def _existing(self, message: p4r.TableEntry) -> Entry:
        entry = self._entries.get((self._keys.encode(message.match), self._priority(message)))
        if entry is None:
            raise not_found(f"table {self.info.name}: no such entry")
        return entry

    def _selected(self, request: p4r.TableEntry) -> Iterator[Entry]:
        if request.match and (request.priority or not self._needs_priority):
            entry = self._entries.get((self._keys.encode(request.match), self._priority(request)))
            candidates = [entry] if entry is not None else []
        else:
            candidates = list(self._entries.values())
            if request.match:
                key = self._keys.encode(request.match)
                candidates = [e for e in candidates if e.key == key]
        action = None
        if request.action.HasField("action") and self._profile is None:
            action = self._actions.find(request.action.action.action_id).dataplane_id
        for entry in candidates:
            if (
                (not request.priority or entry.priority == request.priority)
                and (not request.controller_metadata or entry.cookie == request.controller_metadata)
                and (not request.metadata or entry.metadata == request.metadata)
                and (action is None or entry.target.id == action)
            ):
                yield entry

    def _check_resources(self, message: p4r.TableEntry) -> None:
        name = self.info.name
        if message.HasField("time_since_last_hit"):
            raise invalid(f"table {name}: time_since_last_hit cannot be written")
        if message.HasField("counter_data"):
            if not self.info.counter:
                raise invalid(f"table {name} has no direct counter")
            counts(message.counter_data)
        if message.HasField("meter_config"):
            if not self.info.meter:
                raise invalid(f"table {name} has no direct meter")
            meter_config(message.meter_config)
        no_color_counters(message.HasField("meter_counter_data"))
        if message.idle_timeout_ns:
            if message.idle_timeout_ns < 0:
                raise invalid(f"table {name}: idle_timeout_ns is negative")
            if not self.info.idle_timeout or message.is_default_action:
                raise invalid(f"table {name}: this entry cannot have an idle time-out")

    def _write_resources(self, handle: int, message: p4r.TableEntry) -> None:
        if message.HasField("counter_data"):
            self._dataplane.set_direct_counter(handle, *counts(message.counter_data))
        if message.HasField("meter_config"):
            self._dataplane.set_direct_meter(handle, meter_config(message.meter_config))

    def _no_match_for_default(self, message: p4r.TableEntry) -> None:
        if message.match or message.priority:
            raise invalid(
                f"table {self.info.name}: the default entry has neither match nor priority"
            )

    def _immutable(self, why: str) -> RequestError:
        return RequestError(Code.PERMISSION_DENIED, f"table {self.info.name} is constant: {why}")
