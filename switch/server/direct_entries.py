"""DirectCounterEntry and DirectMeterEntry: the counters and meters of table entries, addressed by the entry's key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4r

from switch.dataplane import Dataplane
from switch.server.direct_resources import (
    counter_message,
    counts,
    meter_config,
    meter_message,
    no_color_counters,
)
from switch.server.errors import Code, RequestError, invalid
from switch.server.tables import Entry, Table


class DirectEntries:
    """Direct counters and meters of all tables."""

    def __init__(self, tables: Mapping[int, Table], dataplane: Dataplane) -> None:
        self._tables = tables
        self._dataplane = dataplane

    def modify_counter(self, message: p4r.DirectCounterEntry) -> None:
        """Set an entry's counter; without data nothing changes. Raises NOT_FOUND, INVALID_ARGUMENT."""
        table = self._table(message.table_entry)
        self._need(table, table.info.counter, "counter")
        entry = self._entry(table, message.table_entry)
        if message.HasField("data"):
            self._dataplane.set_direct_counter(entry.handle, *counts(message.data))

    def modify_meter(self, message: p4r.DirectMeterEntry) -> None:
        """Configure an entry's meter; without a configuration it becomes always green. Raises NOT_FOUND,
        INVALID_ARGUMENT."""
        table = self._table(message.table_entry)
        self._need(table, table.info.meter, "meter")
        no_color_counters(message.HasField("counter_data"))
        entry = self._entry(table, message.table_entry)
        config = meter_config(message.config) if message.HasField("config") else None
        self._dataplane.set_direct_meter(entry.handle, config)

    def read_counters(self, request: p4r.DirectCounterEntry) -> Iterator[p4r.DirectCounterEntry]:
        """One entry's counter, those of a table (no match), or all (table id 0)."""
        for table, entry in self._selected(request.table_entry, "counter"):
            data = counter_message(self._dataplane.direct_counter(entry.handle))
            yield p4r.DirectCounterEntry(table_entry=table.key_message(entry), data=data)

    def read_meters(self, request: p4r.DirectMeterEntry) -> Iterator[p4r.DirectMeterEntry]:
        """One entry's meter, those of a table (no match), or all (table id 0); an unset one has no configuration."""
        no_color_counters(request.HasField("counter_data"))
        for table, entry in self._selected(request.table_entry, "meter"):
            config = self._dataplane.direct_meter(entry.handle)
            yield p4r.DirectMeterEntry(
                table_entry=table.key_message(entry),
                config=None if config is None else meter_message(config),
            )

    def _selected(self, request: p4r.TableEntry, what: str) -> Iterator[tuple[Table, Entry]]:
        if not request.table_id:
            for table in self._tables.values():
                if self._resource(table, what):
                    yield from ((table, entry) for entry in table.entries())
            return
        table = self._table(request)
        self._need(table, self._resource(table, what), what)
        if request.match or request.is_default_action or request.priority:
            yield table, self._entry(table, request)
        else:
            yield from ((table, entry) for entry in table.entries())

    def _resource(self, table: Table, what: str) -> int:
        return table.info.counter if what == "counter" else table.info.meter

    def _table(self, message: p4r.TableEntry) -> Table:
        if message.table_id not in self._tables:
            raise invalid(f"table_entry: no table has id {message.table_id:#010x}")
        return self._tables[message.table_id]

    def _need(self, table: Table, resource: int, what: str) -> None:
        if not resource:
            raise invalid(f"table {table.info.name} has no direct {what}")

    def _entry(self, table: Table, message: p4r.TableEntry) -> Entry:
        if message.is_default_action:
            raise RequestError(
                Code.UNIMPLEMENTED,
                f"table {table.info.name}: the default entry has no counter and no meter here",
            )
        return table.find(message)
