"""Whether the user's own workload can be played live, how slowly, and what to do where it cannot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import median

from controller.model import Fabric, Job, Workload
from controller.model.collectives import schedule, supported
from controller.model.errors import BadInput
from controller.profiles.scaling import scale
from controller.simulator.simulate import scale_of

MOST_FLOWS = 20_000
"More flows than one play follows: each costs the controller and two agents some milliseconds."

MOST_SECONDS = 1800.0
"Longer than anybody wants to wait for all plays together."

SHORT_S = 0.1
"A flow that takes less, alone on its link, is as much TCP's first window and our decision as the network."

MOST_LINES = 8
"Jobs whose scale is printed one by one."


def require_few_flows(workload: Workload) -> None:
    """Raises BadInput when a play would have more flows than can be followed, with the way out."""
    total = sum(_flow_count(placed.job) * placed.job.iterations for placed in workload.jobs)
    if total <= MOST_FLOWS:
        return
    largest = max(workload.jobs, key=lambda placed: _flow_count(placed.job)).job
    if len(workload.jobs) > 1 and not any(placed.job.tasks for placed in workload.jobs):
        hint = "`echelon replay FILE --coflows 20 --arrival-scale 0.003` plays the first narrow coflows; "
    elif len(workload.jobs) > 1:
        hint = "`echelon replay FILE --limit 5` takes the first jobs; "
    elif largest.iterations > 1 and total / largest.iterations <= MOST_FLOWS:
        hint = "play fewer --iterations; "
    else:
        hint = f"its {len(largest.workers)} workers send {_flow_count(largest):,} an iteration; "
        fewer = [
            name
            for name in ("halving_doubling", "tree")
            if _flow_count(largest, name) <= MOST_FLOWS
        ]
        if fewer:
            hint += f"`echelon replay FILE --algorithm {fewer[0]}` sends {_flow_count(largest, fewer[0]):,}; "
    raise BadInput(
        f"{total:,} flows: a live play follows at most {MOST_FLOWS:,}: {hint}"
        "or play it on the simulator (`replay --on simulator`)"
    )


def fitting_time_scale(workload: Workload, fabric: Fabric) -> float:
    """Factor for times and sizes by which half of the flows take `SHORT_S` alone on a link; at least 1."""
    times = list(_flow_seconds(workload, fabric))
    typical = median(times) if times else 0.0
    if not 0 < typical < SHORT_S:
        return 1.0
    factor = SHORT_S / typical
    unit = 10.0 ** (math.floor(math.log10(factor)) - 1)
    return math.ceil(round(factor / unit, 6)) * unit


def require_time(workload: Workload, seconds: Sequence[float]) -> str:
    """How long plays of so many `seconds` take, in words. Raises BadInput when nobody waits so long."""
    total = sum(seconds)
    if total <= MOST_SECONDS:
        return f"{len(seconds)} plays, about {_long(total)}"
    last = max(placed.arrival for placed in workload.jobs)
    if last > max(seconds) / 2:
        closer = MOST_SECONDS / 2 / len(seconds) / last
        hint = f"the jobs arrive during {_long(last)}: an --arrival-scale (of `replay`) {closer:.1g} times this one"
    else:
        hint = "fewer --iterations, fewer --policy, or a smaller --time-scale, with which flows get shorter"
    raise BadInput(
        f"the {len(seconds)} plays would take {_long(total)}, more than {_long(MOST_SECONDS)}: {hint}; "
        "or play it on the simulator (`replay --on simulator`)"
    )


def _long(seconds: float) -> str:
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def lines(workload: Workload, fabric: Fabric, time_scale: float) -> Iterator[str]:
    """What people should know of how a workload was fitted, a sentence each."""
    if time_scale != 1:
        yield f"times and sizes x {time_scale:g} (--time-scale)"
    elif (proposed := fitting_time_scale(workload, fabric)) > 1:
        yield (
            f"half of the flows take less than {SHORT_S:g} s, too short to be true: --time-scale {proposed:g} "
            "stretches them"
        )
    scaled = scale(workload, fabric.host_rate).lines()
    yield from scaled[:MOST_LINES]
    if len(scaled) > MOST_LINES:
        yield f"{len(scaled) - MOST_LINES} more jobs likewise"
    if len(workload.jobs) == 1:
        yield "one job alone has little to gain from a policy: docs/tutorial.md puts it beside others"
    most = max(
        (len(placed.job.workers) / len(set(placed.placement.values())), placed.job.name)
        for placed in workload.jobs
        if placed.placement
    )
    if most[0] > 1:
        yield (
            f"{most[1]}: {most[0]:.2g} workers on each host; what two workers of one host send each other "
            "does not cross the network"
        )


def _flow_count(job: Job, instead_of_ring: str = "ring") -> int:
    """Flows of an iteration, those of collectives included, rings by another algorithm where it can."""
    total = len(job.flows)
    for one in job.collectives:
        other = one.algorithm == "ring" and supported(one.kind, instead_of_ring)
        algorithm = instead_of_ring if other else one.algorithm
        total += _transfers(one.kind, algorithm, len(one.workers))
    return total


@cache
def _transfers(kind: str, algorithm: str, n: int) -> int:
    """Transfers of a collective; of one so large that it would be long to list, the least."""
    if algorithm in ("ring", "direct") and n > 1000:
        return n * (n - 1)
    return sum(map(len, schedule(kind, algorithm, n)))


def _flow_seconds(workload: Workload, fabric: Fabric) -> Iterator[float]:
    """Seconds that every flow of an iteration takes alone on a host's link."""
    for placed in workload.jobs:
        factor = scale_of(placed.job, fabric) * 8 / fabric.host_rate
        for flow in placed.job.flows:
            yield flow.bytes * factor
        for one in placed.job.collectives:
            for step in schedule(one.kind, one.algorithm, len(one.workers)):
                for _, _, share in step:
                    yield share * one.bytes * factor
