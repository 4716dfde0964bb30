"""Indexed externs: counters, meters and registers, each an array of cells that P4Runtime reads and modifies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

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
from switch.server.p4data import DataCodec
from switch.server.pipeline import ArrayInfo, RegisterInfo

_Info = TypeVar("_Info", bound=ArrayInfo)


class Counters:
    """All indirect counters."""

    def __init__(self, infos: Mapping[int, ArrayInfo], dataplane: Dataplane) -> None:
        self._infos = infos
        self._dataplane = dataplane
        self._ids = {key: dataplane.counter(info.name) for key, info in infos.items()}

    def modify(self, message: p4r.CounterEntry) -> None:
        """Set one cell, or all if the message has no index; without data nothing changes, as the specification says."""
        info = _find(self._infos, message.counter_id, "counter")
        packets, octets = counts(message.data)
        for index in _indices(message, info):
            if message.HasField("data"):
                self._dataplane.counter_write(self._ids[info.id], index, packets, octets)

    def read(self, request: p4r.CounterEntry) -> Iterator[p4r.CounterEntry]:
        """One cell, all cells of a counter, or all of all."""
        for info in _selected(self._infos, request.counter_id, "counter"):
            if request.HasField("index"):
                index = _checked(request.index.index, info)
                cells = [(index, self._dataplane.counter_read(self._ids[info.id], index))]
            else:
                cells = list(enumerate(self._dataplane.counter_read_all(self._ids[info.id])))
            for index, cell in cells:
                yield p4r.CounterEntry(
                    counter_id=info.id, index=p4r.Index(index=index), data=counter_message(cell)
                )


class Meters:
    """All indirect meters."""

    def __init__(self, infos: Mapping[int, ArrayInfo], dataplane: Dataplane) -> None:
        self._infos = infos
        self._dataplane = dataplane
        self._ids = {key: dataplane.meter(info.name) for key, info in infos.items()}

    def modify(self, message: p4r.MeterEntry) -> None:
        """Configure one cell, or all if the message has no index; without a configuration it becomes always green."""
        info = _find(self._infos, message.meter_id, "meter")
        no_color_counters(message.HasField("counter_data"))
        config = meter_config(message.config) if message.HasField("config") else None
        for index in _indices(message, info):
            self._dataplane.meter_write(self._ids[info.id], index, config)

    def read(self, request: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
        """One cell, all cells of a meter, or all of all; an unset cell has no configuration in the answer."""
        no_color_counters(request.HasField("counter_data"))
        for info in _selected(self._infos, request.meter_id, "meter"):
            for index in _indices(request, info):
                config = self._dataplane.meter_read(self._ids[info.id], index)
                yield p4r.MeterEntry(
                    meter_id=info.id,
                    index=p4r.Index(index=index),
                    config=None if config is None else meter_message(config),
                )


class Registers:
    """All registers (BMv2's own server has none of this)."""

    def __init__(
        self, infos: Mapping[int, RegisterInfo], dataplane: Dataplane, types: DataCodec
    ) -> None:
        self._infos = infos
        self._dataplane = dataplane
        self._types = types
        self._ids = {key: dataplane.register(info.name) for key, info in infos.items()}

    def modify(self, message: p4r.RegisterEntry) -> None:
        """Set one cell, or all if the message has no index."""
        info = _find(self._infos, message.register_id, "register")
        if not message.HasField("data"):
            raise invalid(f"{info.name}: the entry has no data")
        octets = self._types.encode(info.type_spec, message.data, info.name)
        for index in _indices(message, info):
            self._dataplane.register_write(self._ids[info.id], index, int.from_bytes(octets, "big"))

    def read(self, request: p4r.RegisterEntry) -> Iterator[p4r.RegisterEntry]:
        """One cell, all cells of a register, or all of all."""
        for info in _selected(self._infos, request.register_id, "register"):
            for index in _indices(request, info):
                value = self._dataplane.register_read(self._ids[info.id], index)
                data = self._types.decode(
                    info.type_spec, value.to_bytes((info.bits + 7) // 8, "big")
                )
                yield p4r.RegisterEntry(
                    register_id=info.id, index=p4r.Index(index=index), data=data
                )


def _find(infos: Mapping[int, _Info], key: int, what: str) -> _Info:
    if key not in infos:
        raise invalid(f"no {what} has id {key:#010x}")
    return infos[key]


def _selected(infos: Mapping[int, _Info], key: int, what: str) -> Iterable[_Info]:
    return infos.values() if not key else [_find(infos, key, what)]


def _indices(
    message: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry, info: ArrayInfo
) -> Iterable[int]:
    return [_checked(message.index.index, info)] if message.HasField("index") else range(info.size)


def _checked(index: int, info: ArrayInfo) -> int:
    if index < 0:
        raise invalid(f"{info.name}: index {index} is negative")
    if index >= info.size:
        raise RequestError(
            Code.OUT_OF_RANGE, f"{info.name}: index {index} is not below its size, {info.size}"
        )
    return index
