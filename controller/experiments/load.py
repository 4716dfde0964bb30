"""How many packets a second a scenario will ask of this machine's switches, from its prediction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from controller.model import Fabric, Workload
from controller.model.record import FlowRecord, Played

FRAME_BYTES = 1514

ACKS_PER_FRAME = 0.5
"A receiver acknowledges every second segment."


def peak_forwardings(workload: Workload, played: Played, fabric: Fabric) -> float:
    """Frames a second that all switches together must forward at the busiest moment, acknowledgements included.

    A flow counts with its mean rate, from its predicted start to its predicted finish.
    """
    steps: list[tuple[float, float]] = []
    for flow, hops in _crossings(workload, played, fabric):
        duration = max(flow.finish - flow.start, flow.bytes * 8 / fabric.host_rate)
        rate = flow.bytes / FRAME_BYTES / duration * (1 + ACKS_PER_FRAME) * hops
        steps += [(flow.start, rate), (flow.start + duration, -rate)]
    return max(accumulate(step for _, step in sorted(steps)), default=0.0)


def longest_path(workload: Workload, played: Played, fabric: Fabric) -> int:
    """Switches in a row that a flow crosses at most; 0 when nothing leaves its host."""
    return max((hops for _, hops in _crossings(workload, played, fabric)), default=0)


def _crossings(
    workload: Workload, played: Played, fabric: Fabric
) -> Iterator[tuple[FlowRecord, int]]:
    """The flows that leave their host, with the number of switches they cross."""
    placement = {placed.job.name: placed.placement for placed in workload.jobs}
    for flow in played.flows:
        src, dst = placement[flow.job][flow.src], placement[flow.job][flow.dst]
        if src != dst:
            yield flow, len(fabric.paths(src, dst)[0]) - 1
