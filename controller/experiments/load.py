"""How many packets a second a scenario will ask of this machine's switches, from its prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from controller.model import Fabric, Workload
from controller.model.record import FlowRecord, Played

FRAME_BYTES = 1514

ACKS_PER_FRAME = 0.5
"A receiver acknowledges every second segment."


def peak_forwardings(workload: Workload, played: Played, fabric: Fabric) -> float:
    """Frames a second that all switches together must forward at the busiest moment, acknowledgements included.

    At any moment the hosts that send, and those that receive, can do so at most at their link's rate.
    """
    placement = {placed.job.name: placed.placement for placed in workload.jobs}

    def hosts(flow: FlowRecord) -> tuple[str, str]:
        return placement[flow.job][flow.src], placement[flow.job][flow.dst]

    crossing = [(*hosts(flow), flow) for flow in played.flows]
    crossing = [(src, dst, flow) for src, dst, flow in crossing if src != dst]
    if not crossing:
        return 0.0
    hops = max(len(fabric.paths(src, dst)[0]) - 1 for src, dst, _ in crossing)
    events = [(flow.start, 1, src, dst) for src, dst, flow in crossing]
    events += [(flow.finish, -1, src, dst) for src, dst, flow in crossing]
    busiest = _most_pairs_at_once(sorted(events))
    frames = busiest * fabric.host_rate / 8 / FRAME_BYTES
    return frames * (1 + ACKS_PER_FRAME) * hops


def _most_pairs_at_once(events: Iterable[tuple[float, int, str, str]]) -> int:
    """The most host links that can be full at one moment: the fewer of senders and receivers."""
    senders: Counter[str] = Counter()
    receivers: Counter[str] = Counter()
    most = 0
    for _, step, src, dst in events:
        for count, host in ((senders, src), (receivers, dst)):
            count[host] += step
            if not count[host]:
                del count[host]
        most = max(most, min(len(senders), len(receivers)))
    return most
