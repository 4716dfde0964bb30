"""What the switches counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from controller.model.rule import FlowKey

PORT_COUNTERS = (
    "class_mismatches",
    "unknown_flows",
    "fragments",
    "policed",
    "dead_paths",
    "no_routes",
    "ttl_expired",
    "bad_packets",
    "punts_limited",
)
"Counters by ingress port; p4/README.md says what each counts."


class Count(NamedTuple):
    """Packets and bytes of whole frames."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FlowCount:
    """Packets that met a flow's entry; acknowledgements have an entry of their own."""

    key: FlowKey
    "The packets' 5-tuple."
    count: Count
    "How many."


@dataclass(frozen=True, slots=True)
class SwitchCounters:
    """Counters of one switch since its pipeline was loaded."""

    classes: dict[int, list[Count]] = field(default_factory=dict)
    "Egress port -> what left its queues, class 0 first."
    ports: dict[str, dict[int, Count]] = field(default_factory=dict)
    "Name (`PORT_COUNTERS`) -> ingress port -> count."
    flows: list[FlowCount] = field(default_factory=list)
    "Entries of `flow_policy`."


@dataclass(frozen=True, slots=True)
class FabricCounters:
    """Counters of all switches that answered."""

    switches: dict[str, SwitchCounters]
    "Switch -> its counters."

    def total(self, name: str) -> int:
        """Packets of one of `PORT_COUNTERS` over all switches and ports."""
        return sum(
            count.packets
            for switch in self.switches.values()
            for count in switch.ports[name].values()
        )

    def class_bytes(self) -> list[int]:
        """Bytes that left the queues of each class, class 0 first."""
        ports = [port for switch in self.switches.values() for port in switch.classes.values()]
        return [sum(count.bytes for count in counts) for counts in zip(*ports, strict=True)]
