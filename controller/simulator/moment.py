"""What a policy decides at one moment of a workload: every active flow with its class and rate."""

from __future__ import annotations

from dataclasses import dataclass

from controller.model.fabric import Fabric, Path
from controller.model.job import Workload
from controller.scheduling.classes import cut_classes
from controller.scheduling.policy import Policy
from controller.simulator.simulate import Simulation, plans_of, simulate


@dataclass(frozen=True, slots=True)
class Decided:
    """One active flow and what was decided for it."""

    job: str
    "Name of its job."
    iteration: int
    "0 for the first."
    flow: str
    "Its id."
    echelonflow: str
    "Id of its EchelonFlow."
    remaining: float
    "Bytes still to send."
    ideal_finish: float
    "d_j = r + a_j, in seconds."
    rank: int
    "Smaller is served first."
    class_: int
    "The queue that the rank becomes: 7 is served first."
    rate: float
    "bit/s of the ideal allocation."
    pace: float
    "bit/s its host may send: inf is unpaced, 0 is held."
    path: Path
    "Links it takes."


def busiest_moment(workload: Workload, fabric: Fabric, policy: Policy) -> float:
    """When the most flows are active at once under the policy, in seconds (the first such time)."""
    events: list[tuple[float, int]] = []
    for flow in simulate(workload, fabric, policy).played.flows:
        if flow.finish > flow.ready:
            events += [(flow.ready, 1), (flow.finish, -1)]
    most = active = 0
    moment = 0.0
    for time, step in sorted(events):
        active += step
        if active > most:
            most, moment = active, time
    return moment


def decided_at(workload: Workload, fabric: Fabric, policy: Policy, time: float) -> list[Decided]:
    """Plays the workload up to `time` (ideal model) and decides; by rank, then ideal finish.

    Raises `BadInput`.
    """
    plans = plans_of(workload, fabric)
    simulation = Simulation(plans, fabric, policy, records=False)
    simulation.play(time)
    simulation.advance(time)
    rows = simulation.active()
    state = simulation.state(time, rows)
    decision = policy.decide(state)
    classes = cut_classes(state, decision)
    found = []
    for i, row in enumerate(rows.tolist()):
        job, iteration, flow = simulation.where(row)
        plan = plans[job]
        found.append(
            Decided(
                plan.job.name,
                iteration,
                plan.job.flows[flow].id,
                plan.group_names[plan.group[flow]],
                float(state.remaining[i]),
                float(state.ideal_finish[i]),
                int(decision.rank[i]),
                int(classes[i]),
                float(decision.rate[i]),
                float(decision.pace[i]),
                simulation.path(row),
            )
        )
    return sorted(found, key=lambda one: (one.rank, one.ideal_finish, one.job, one.flow))
