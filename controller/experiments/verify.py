"""After a run: did the network do what was claimed? Classes, drops, retransmissions, paces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from controller.api import coordinator_pb2 as api
from controller.coordinator.client import LiveResult
from controller.model.network import CLASSES, Network

RETRANSMITTED = 0.01
"Share of a policy's segments sent again above which paced flows cannot be said to be paced."
CLASS_SLACK = 0.03
"By how much counted and claimed bytes of a class may differ: headers, acknowledgements."
PACE_SLACK = 0.05
"By how much a paced flow may exceed what its paces allowed."
LONG_FLOW_S = 0.5
"Flows shorter than this are not judged by their pace: TCP sends its first window at once."
DROPS = ("policed", "dead_paths", "no_routes", "ttl_expired", "bad_packets")
"Switch counters that mean a packet of ours was lost or misled."

Counters = Mapping[str, Any]
"The JSON form of `controller.switches.counters.FabricCounters`."


def verify(
    result: LiveResult, network: Network, lost: Mapping[str, int]
) -> tuple[list[str], dict[str, Any]]:
    """What is not as claimed, in words, and the figures behind it. `lost`: switch -> frames."""
    flows = list(result.raw.flows)
    segments = sum(flow.segments for flow in flows)
    retransmits = sum(flow.retransmits for flow in flows)
    paced = [flow for flow in flows if flow.pace_ratio > 0]
    figures: dict[str, Any] = {
        "flows": len(flows),
        "segments": segments,
        "retransmits": retransmits,
        "lost_frames": dict(lost),
        "paced_flows": len(paced),
        "decisions": _decisions(result.raw.decisions),
    }
    found = list(result.raw.notes)
    found += _paces(paced)
    if flows and len(paced) == len(flows) and retransmits > RETRANSMITTED * segments:
        found.append(f"{retransmits} of {segments} segments sent again although all were paced")
    if result.counters_before is not None and result.counters_after is not None:
        before, after = result.counters_before, result.counters_after
        counted = _class_bytes(before, after, network)
        figures["bytes_to_hosts_by_class"] = counted
        figures["switch_counters"] = {name: _total(before, after, name) for name in _names(after)}
        found += _classes(flows, counted)
        found += [
            f"the switches counted {count} packets as {name}"
            for name in DROPS
            if (count := figures["switch_counters"].get(name, 0))
        ]
    return found, figures


def _paces(paced: Iterable[api.FlowRecord]) -> list[str]:
    long = (flow for flow in paced if flow.finish - flow.start > LONG_FLOW_S)
    fast = [flow for flow in long if flow.pace_ratio > 1 + PACE_SLACK]
    if not fast:
        return []
    worst = max(fast, key=lambda flow: flow.pace_ratio)
    said = f"{worst.id.job} {worst.id.flow}: {worst.pace_ratio:.2f} of its pace"
    return [f"{len(fast)} flows sent faster than paced; worst {said}"]


def _classes(flows: list[api.FlowRecord], counted: list[int]) -> Iterator[str]:
    """A class carries at least the flows that were in it alone, at most all that ever were."""
    for class_ in range(CLASSES):
        least = most = 0.0
        for flow in flows:
            given = {change.class_ for change in flow.classes if change.pace > 0}
            if class_ in given:
                most += flow.wire_bytes
                least += flow.wire_bytes if len(given) == 1 else 0.0
        if counted[class_] < (1 - CLASS_SLACK) * least:
            yield (
                f"class {class_} carried {counted[class_] / 1e6:.2f} MB, "
                f"claimed were {least / 1e6:.2f} MB"
            )
        acknowledgements = class_ == CLASSES - 1
        if not acknowledgements and counted[class_] > (1 + CLASS_SLACK) * most + 100_000:
            yield (
                f"class {class_} carried {counted[class_] / 1e6:.2f} MB, "
                f"claimed were at most {most / 1e6:.2f} MB"
            )


def _class_bytes(before: Counters, after: Counters, network: Network) -> list[int]:
    """(classes,) bytes that left towards hosts meanwhile."""
    total = [0] * CLASSES
    for switch in network.switches:
        old = before["switches"].get(switch.name, {}).get("classes", {})
        new = after["switches"].get(switch.name, {}).get("classes", {})
        for port in map(str, switch.host_ports):
            for class_, (_, size) in enumerate(new.get(port, ())):
                earlier = old[port][class_][1] if port in old else 0
                total[class_] += size - earlier
    return total


def _total(before: Counters, after: Counters, name: str) -> int:
    return _sum(after, name) - _sum(before, name)


def _sum(counters: Counters, name: str) -> int:
    switches = counters["switches"].values()
    return sum(packets for one in switches for packets, _ in one["ports"].get(name, {}).values())


def _names(counters: Counters) -> list[str]:
    return sorted({name for one in counters["switches"].values() for name in one["ports"]})


def _decisions(record: api.DecisionRecord) -> dict[str, float]:
    values = {field.name: value for field, value in record.ListFields()}
    return {name: round(value, 6) for name, value in values.items() if math.isfinite(value)}
