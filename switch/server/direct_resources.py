"""Counters and meters as values: P4Runtime's CounterData and MeterConfig <-> the data plane's."""

from __future__ import annotations

from finsy.proto import p4r

from switch.dataplane import MeterConfig
from switch.server.errors import Code, RequestError, invalid

_MAX_BURST = (1 << 32) - 1
_MAX_COUNT = (1 << 63) - 1


def meter_config(message: p4r.MeterConfig) -> MeterConfig | None:
    """A meter's configuration; None is always green, which PI also reads from all -1. Raises INVALID_ARGUMENT for
    negative values and UNIMPLEMENTED, as PI does, for bursts of 2^32 and more."""
    values = (message.cir, message.cburst, message.pir, message.pburst)
    if values == (-1, -1, -1, -1):
        return None
    for name, value in zip(("cir", "cburst", "pir", "pburst"), values, strict=True):
        if value < 0:
            raise invalid(f"meter: {name} is negative")
        if "burst" in name and value > _MAX_BURST:
            raise RequestError(
                Code.UNIMPLEMENTED, f"meter: {name} above {_MAX_BURST} is not supported"
            )
    if message.eburst:
        raise invalid("meter: eburst belongs to single-rate meters; this one has two rates")
    return MeterConfig(*values)


def meter_message(config: MeterConfig) -> p4r.MeterConfig:
    """The message of a configuration."""
    return p4r.MeterConfig(
        cir=config.cir, cburst=config.cburst, pir=config.pir, pburst=config.pburst
    )


def counts(message: p4r.CounterData) -> tuple[int, int]:
    """(packets, bytes) to write to a counter. Raises INVALID_ARGUMENT if negative."""
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid("counter: a count is negative")
    return message.packet_count, message.byte_count


def counter_message(counter: tuple[int, int]) -> p4r.CounterData:
    """The message of (packets, bytes)."""
    packets, octets = counter
    return p4r.CounterData(
        packet_count=min(packets, _MAX_COUNT), byte_count=min(octets, _MAX_COUNT)
    )


def no_color_counters(present: bool) -> None:
    """Meters here do not count by color. Raises UNIMPLEMENTED if the request asks for it."""
    if present:
        raise RequestError(Code.UNIMPLEMENTED, "this switch keeps no counters per meter color")
