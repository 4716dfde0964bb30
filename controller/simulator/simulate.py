"""Plays a workload on a fabric under a policy: exact, event by event, the same in every run."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np

from controller.model.check import require_valid
from controller.model.errors import WorkFailed
from controller.model.fabric import Fabric, Path
from controller.model.job import Job, Workload
from controller.scheduling import gather
from controller.scheduling.echelon_search import RULES, FixedOrder
from controller.scheduling.plan import JobPlan, compile_valid
from controller.scheduling.policy import Ints, JobState, NetworkState, Policy
from controller.scheduling.routing import LeastLoaded, Routing
from controller.scheduling.state import job_state
from controller.simulator import coflows, events, fluid, ordered
from controller.simulator.agenda import same_instant, schedule
from controller.simulator.allocation import allocator
from controller.simulator.critical import rhythm
from controller.simulator.result import Log, SimulationResult, result_of
from controller.simulator.tables import tables, with_block, with_longer_logs


def simulate(
    workload: Workload,
    fabric: Fabric,
    policy: Policy,
    model: str = "ideal",
    routing: Routing | None = None,
    iterations: int | None = None,
    records: bool = True,
) -> SimulationResult:
    """Every flow and task of a workload, and when it ran.

    `model`: `ideal`, the policy's continuous rates, or `enforced`, what K classes of strict
    priority and pacing hosts make of them. `iterations` overrides the jobs' own; `records` keeps
    every flow and task (without, only totals and the jobs' iterations). Sizes of a job with a
    reference rate are scaled by the fabric's host link rate over it. Raises `BadInput` before the
    run, `WorkFailed` when a flow never gets a rate.
    """
    plans = plans_of(workload, fabric, iterations)
    return play(plans, fabric, policy, model, routing, workload.name, records)


def play(
    plans: list[JobPlan],
    fabric: Fabric,
    policy: Policy,
    model: str = "ideal",
    routing: Routing | None = None,
    name: str = "workload",
    records: bool = True,
) -> SimulationResult:
    """`simulate` for jobs that are compiled already (`plans_of`), to be played again and again."""
    if coflows.applies(plans, fabric, policy.name, model):
        log = coflows.play_coflows(plans, fabric, policy.name, records)
    else:
        routing = routing or getattr(policy, "routing", None)  # a searched one chooses paths too
        simulation = Simulation(plans, fabric, policy, model, routing, records)
        simulation.play()
        log = simulation.log()
    return result_of(plans, log, name, policy.name, model)


def plans_of(workload: Workload, fabric: Fabric, iterations: int | None = None) -> list[JobPlan]:
    """The workload's jobs compiled for a fabric. Raises `BadInput`, also for a job two of whose
    hosts have no path between them, whenever it would send."""
    with _no_collection():
        require_valid(workload)
        plans = []
        for placed in workload.jobs:
            if iterations is not None:
                placed = replace(placed, job=replace(placed.job, iterations=iterations))
            plans.append(compile_valid(placed, fabric, size_scale=scale_of(placed.job, fabric)))
        pairs = (pair for plan in plans for pair in zip(plan.src, plan.dst, strict=True))
        for src, dst in dict.fromkeys(pairs):
            fabric.paths(src, dst)  # raises where there is none
    return plans


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage is looked for: plans are many small objects and no garbage, and looking for some
    takes as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Simulation:
    """One run: drives the compiled event loop, and asks the policy when that needs a decision."""

    def __init__(
        self,
        plans: Sequence[JobPlan],
        fabric: Fabric,
        policy: Policy,
        model: str = "ideal",
        routing: Routing | None = None,
        records: bool = True,
    ) -> None:
        """Paths are chosen among those of `routing` (all shortest ones unless given)."""
        self.plans = plans
        self.fabric = fabric
        self._allocator = allocator(policy, model)
        self._local = getattr(policy, "local", False)
        self._rhythmic = getattr(policy, "rhythmic", False)
        self._jobs: dict[int, JobState] = {}
        self._scratch: Ints = np.full(len(plans), -1)
        self.run = tables(plans, fabric, routing or LeastLoaded(), records)
        self._level: Ints | None = None
        if isinstance(policy, FixedOrder) and not records:  # records name classes: cut them
            self._rule = RULES.index(policy.rule)
            levels = [
                policy.level_of(plan.job.name, index)
                for plan in plans
                for index in range(len(plan.group_flows))
            ]
            self._level = np.array(levels, np.int64)
        for job, plan in enumerate(plans):
            schedule(self.run, job, plan.arrival)

    def play(self, until: float = float("inf")) -> None:
        """Play on up to a time, in seconds; `inf`: to the end.

        Raises `WorkFailed` when a job never finishes.
        """
        while (needed := self._until_needed(until)) != events.OVER:
            if needed == events.DECISION:
                self._decide()
            elif needed == events.BLOCK:
                self.run = with_block(self.run, int(self.run.clock[0]["lacking"]))
            else:
                self.run = with_longer_logs(self.run)
        if until == float("inf"):
            self._refuse_unfinished()

    def _until_needed(self, until: float) -> int:
        """Play on until something is needed that only this class has: see `events`."""
        if self._level is None:
            return int(events.play(self.run, until, self._local, self._allocator.highest))
        return int(ordered.play(self.run, until, self._rule, self._level))

    def log(self) -> Log:
        """What has been so far."""
        clock = self.run.clock[0]
        ends = np.split(self.run.ends, self.run.jobs["end"][1:-1])
        return Log(
            ends=ends,
            flows_ended=int(clock["flows_ended"]),
            tardiness_s=float(clock["tardiness"]),
            coflows=int(clock["coflows"]),
            coflow_s=float(clock["coflow_s"]),
            flows=self.run.flow_log[: clock["flow_log"]],
            tasks=self.run.task_log[: clock["task_log"]],
            classes=self.run.class_log[: clock["class_log"]],
        )

    def advance(self, time: float) -> None:
        """Bring what all flows have left up to a time before the next event, in seconds."""
        flows, active = self.run.rows, self.active()
        parts = flows["part"][active]
        flows["remaining"][active] -= flows["speed"][active] * (time - flows["since"][parts])
        flows["since"][parts] = time

    def active(self) -> Ints:
        """Rows of all active flows, ascending."""
        return np.flatnonzero(self.run.rows["active"])

    def state(self, time: float, rows: Ints) -> NetworkState:
        """What a policy sees of the active flows in some rows, at a time in seconds."""
        run = self.run
        if len(self._scratch) < len(run.groups):
            self._scratch = np.full(len(run.groups), -1)
        return gather.network_state(
            time,
            run.capacity,
            run.rows,
            run.groups,
            rows,
            fluid.paths_of(rows, run.rows, run.path_start, run.path_links),
            self._job_state,
            self._scratch,
        )

    def where(self, row: int) -> tuple[int, int, int]:
        """Job, iteration, and row in the job's plan of a flow."""
        iteration = self.run.iterations[self.run.rows["iteration"][row]]
        job = int(iteration["job"])
        return job, int(iteration["number"]), row - int(iteration["row"]) - self.plans[job].tasks

    def path(self, row: int) -> Path:
        """The links of an active flow."""
        run = self.run
        _, links = fluid.paths_of(np.array([row]), run.rows, run.path_start, run.path_links)
        return tuple(links.tolist())

    def _decide(self) -> None:
        """Ask for the rates of the parts that want them. Raises `WorkFailed` on bad ones."""
        run = self.run
        now, asked = float(run.clock[0]["now"]), int(run.clock[0]["asked"])
        later = same_instant(same_instant(now))  # asked again at this instant it would say the same
        for first, last in pairwise(run.asked[: asked + 1].tolist()):
            rows = run.members[first:last]
            rows = rows[np.argsort(run.rows["tie"][rows])]  # canonical: ties may go by place
            given = self._allocator.allocate(self.state(now, rows))
            classes = _NONE if given.classes is None else given.classes
            if not fluid.decide(run, rows, given.rate, max(given.valid_until, later), classes):
                raise WorkFailed(
                    f"at {now:g} s a policy gave a rate that is negative or not a number"
                )

    def _job_state(self, job: int) -> JobState:
        if job not in self._jobs:
            state = self._jobs[job] = job_state(self.plans[job], self.fabric)
            if self._rhythmic:
                known = rhythm(self.plans[job], self.fabric)
                state.alone_s, state.silent_s = known.period_s, known.silent_s
                state.first_group = known.first_group
        return self._jobs[job]

    def _refuse_unfinished(self) -> None:
        """Raise `WorkFailed` when the events ran out before the jobs."""
        for job in np.flatnonzero(self.run.iterations_left):
            active = self.active()
            stuck = sorted(map(self.where, active[self.run.rows["speed"][active] <= 0].tolist()))
            names = [self.plans[other].job.flows[flow].id for other, _, flow in stuck]
            raise WorkFailed(
                f"job {self.plans[job].job.name} never finishes: no rate is ever given to "
                f"{', '.join(names[:5]) or 'its flows'} (is a link down?)"
            )


_NONE: Ints = np.empty(0, np.int64)


def scale_of(job: Job, fabric: Fabric) -> float:
    """By how much the bytes of a job shrink or grow on a fabric."""
    return 1.0 if job.reference_rate is None else fabric.host_rate / job.reference_rate
