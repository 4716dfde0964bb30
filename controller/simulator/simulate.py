"""Plays a workload on a fabric under a policy: exact, event by event, the same in every run."""

from __future__ import annotations

import heapq
from dataclasses import replace

from controller.model.check import require_valid
from controller.model.errors import WorkFailed
from controller.model.fabric import Fabric
from controller.model.job import Job, Workload
from controller.scheduling.plan import JobPlan, compile_job
from controller.scheduling.policy import Policy
from controller.scheduling.routing import Routing
from controller.scheduling.state import StateBuilder
from controller.simulator import coflows
from controller.simulator.allocation import allocator
from controller.simulator.critical import rhythm
from controller.simulator.dag import DagPlayer
from controller.simulator.fluid import FluidNetwork, same_instant
from controller.simulator.result import Recorder, SimulationResult


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
    recorder = Recorder(plans, records)
    if coflows.applies(plans, fabric, policy.name, model):
        coflows.play_coflows(plans, fabric, policy.name, recorder)
    else:
        Simulation(plans, fabric, policy, model, routing, recorder).run()
    return recorder.result(name, policy.name, model)


def plans_of(workload: Workload, fabric: Fabric, iterations: int | None = None) -> list[JobPlan]:
    """The workload's jobs compiled for a fabric. Raises `BadInput`, also for a job two of whose
    hosts have no path between them, whenever it would send."""
    require_valid(workload)
    plans = []
    for placed in workload.jobs:
        if iterations is not None:
            placed = replace(placed, job=replace(placed.job, iterations=iterations))
        plan = compile_job(placed, fabric, size_scale=scale_of(placed.job, fabric))
        for src, dst in sorted({*zip(plan.src, plan.dst, strict=True)}):
            fabric.paths(src, dst)  # raises where there is none
        plans.append(plan)
    return plans


Node = tuple[int, int, int]
"Job, iteration, node of the job's plan."


class Simulation:
    """The state of one run."""

    def __init__(
        self,
        plans: list[JobPlan],
        fabric: Fabric,
        policy: Policy,
        model: str,
        routing: Routing | None,
        recorder: Recorder,
    ) -> None:
        self.plans = plans
        self.recorder = recorder
        self.players = [DagPlayer(plan) for plan in plans]
        self.builder = StateBuilder(fabric, routing)
        local = getattr(policy, "local", False)
        self.rhythmic = getattr(policy, "rhythmic", False)
        self.network = FluidNetwork(fabric, self.builder, allocator(policy, model), local)
        self.arrivals = sorted(range(len(plans)), key=lambda job: (plans[job].arrival, job))
        self.arrivals.reverse()
        self.tasks: list[tuple[float, int, int, int]] = []  # end, job, iteration, node
        self.handles: dict[int, int] = {}  # job -> its handle in the state builder
        self.flow_of: dict[int, Node] = {}  # by slot

    def run(self) -> None:
        """Plays it all. Raises `WorkFailed` when a job never finishes."""
        self.run_until(float("inf"))
        self.refuse_unfinished()

    def run_until(self, end: float) -> None:
        """The event loop up to `end`: the next instant, all that ends and starts then, new rates."""
        while (now := self.next_instant()) <= end and now < float("inf"):
            ready = self.arrived(now)
            while ready or self.happening(now):
                ready += self.ended(now)
                ready = self.start(ready, now)
            self.network.settle(now)

    def next_instant(self) -> float:
        """The time of the next event, in seconds; inf: none."""
        arrival = self.plans[self.arrivals[-1]].arrival if self.arrivals else float("inf")
        task = self.tasks[0][0] if self.tasks else float("inf")
        return min(arrival, task, self.network.due)

    def happening(self, now: float) -> bool:
        """Whether a task or flow ends at this instant."""
        limit = same_instant(now)
        return bool(self.tasks and self.tasks[0][0] <= limit) or self.network.due <= limit

    def arrived(self, now: float) -> list[Node]:
        """Jobs that arrive: what they can start."""
        limit = same_instant(now)
        ready: list[Node] = []
        while self.arrivals and self.plans[self.arrivals[-1]].arrival <= limit:
            job = self.arrivals.pop()
            plan = self.plans[job]
            if self.rhythmic:
                known = rhythm(plan, self.builder.fabric)
                self.handles[job] = self.builder.add_job(
                    plan, known.period_s, known.silent_s, known.first_group
                )
            else:
                self.handles[job] = self.builder.add_job(plan)
            ready += [(job, *node) for node in self.players[job].begin()]
        return ready

    def ended(self, now: float) -> list[Node]:
        """Tasks and flows that end: what can start because of them."""
        limit = same_instant(now)
        ready: list[Node] = []
        while self.tasks and self.tasks[0][0] <= limit:
            end, job, iteration, node = heapq.heappop(self.tasks)
            self.recorder.task(job, iteration, node, end)
            ready += self.after(job, iteration, node)
        for slot in self.network.finished(now):
            job, iteration, node = self.flow_of.pop(slot)
            self.recorder.flow(
                job,
                iteration,
                node,
                self.builder.release(slot),
                float(self.network.started[slot]),
                now,
                self.builder.ideal_finish(slot),
                self.network.classes.pop(slot, ()),
            )
            self.builder.finish(slot)
            ready += self.after(job, iteration, node)
        return ready

    def after(self, job: int, iteration: int, node: int) -> list[Node]:
        """What a node's end makes ready; a job whose last node it was departs."""
        player = self.players[job]
        ready: list[Node] = [(job, *other) for other in player.end(iteration, node)]
        if player.done:
            self.builder.remove_job(self.handles.pop(job))
        return ready

    def start(self, ready: list[Node], now: float) -> list[Node]:
        """Start what is ready, in the workload's order: what that in turn makes ready."""
        more: list[Node] = []
        for job, iteration, node in sorted(ready):
            plan = self.plans[job]
            if node < plan.tasks:
                end = now + plan.seconds[node]
                heapq.heappush(self.tasks, (end, job, iteration, node))
                continue
            flow = node - plan.tasks
            handle = self.handles[job]
            if plan.src[flow] == plan.dst[flow]:
                ideal = self.builder.pass_by(handle, flow, iteration, now)
                self.recorder.flow(job, iteration, node, now, now, now, ideal, ())
                more += self.after(job, iteration, node)
            else:
                slot = self.builder.start(handle, flow, iteration, now)
                self.flow_of[slot] = (job, iteration, node)
                self.network.start(slot)
        return more

    def refuse_unfinished(self) -> None:
        """Raise `WorkFailed` when the events ran out before the jobs."""
        for job, player in enumerate(self.players):
            if not player.done:
                stuck = sorted(self.flow_of[slot] for slot in self.network.stuck())
                names = [
                    self.plans[j].job.flows[node - self.plans[j].tasks].id for j, _, node in stuck
                ]
                raise WorkFailed(
                    f"job {self.plans[job].job.name} never finishes: no rate is ever given to "
                    f"{', '.join(names[:5]) or 'its flows'} (is a link down?)"
                )


def scale_of(job: Job, fabric: Fabric) -> float:
    """By how much the bytes of a job shrink or grow on a fabric."""
    return 1.0 if job.reference_rate is None else fabric.host_rate / job.reference_rate
