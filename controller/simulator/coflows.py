"""The fast path for traces: jobs that are nothing but coflows, on one big switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.model.errors import WorkFailed
from controller.model.fabric import Fabric
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats, Ints
from controller.simulator import coflow_kernels, fair_kernels
from controller.simulator.agenda import INSTANT
from controller.simulator.result import Log
from controller.simulator.tables import CLASS_LOG, FLOW_LOG, TASK_LOG

RULES = {
    "varys": coflow_kernels.SEBF_MADD,
    "echelon": coflow_kernels.SEBF_MADD,
    "sincronia": coflow_kernels.BSSI_IN_ORDER,
}
"Policies whose schedule of coflows a compiled loop knows; `echelon` weighs, `varys` does not."


def applies(plans: Sequence[JobPlan], fabric: Fabric, policy: str, model: str) -> bool:
    """Whether the fast path plays these jobs exactly as the event loop would."""
    return (
        model == "ideal"
        and (policy in RULES or policy == "fair")
        and len(fabric.switches) == 1
        and not fabric.failed
        and len(fabric.links) == 2 * len(fabric.hosts)
        and all(only_coflows(plan) for plan in plans)
    )


def only_coflows(plan: JobPlan) -> bool:
    """Whether a job is coflows that are all released as it arrives."""
    return (
        not plan.tasks
        and plan.job.iterations == 1
        and all(plan.coflow)
        and all(needs == 1 for needs in plan.needs)
        and sum(map(len, plan.begins)) == len(plan.needs)
    )


def play_coflows(plans: Sequence[JobPlan], fabric: Fabric, policy: str, keep: bool) -> Log:
    """Play all jobs; `keep`: with a record of every flow. Raises `WorkFailed` as the event loop."""
    flows = _flows(plans, fabric)
    arrival = np.array([plan.arrival for plan in plans])
    first = np.flatnonzero(np.diff(flows.coflow, prepend=-1, append=-1))
    owner = flows.job[first[:-1]]
    capacity = np.array(fabric.capacities())
    size = 8.0 * flows.size
    if policy == "fair":
        start = arrival[flows.job]
        (outs, src), (ins, dst) = (
            np.unique(ends, return_inverse=True) for ends in (flows.src, flows.dst)
        )
        finish, all_finished = fair_kernels.play(
            arrival[owner], first, src, dst, size, capacity[outs], capacity[ins], INSTANT
        )
    else:
        weight = np.array([1.0 if policy == "varys" else plan.weight for plan in plans])
        start, finish, all_finished = coflow_kernels.play(
            RULES[policy],
            arrival[owner],
            weight[owner],
            first,
            flows.src,
            flows.dst,
            size,
            capacity,
            INSTANT,
        )
    if not all_finished:
        raise WorkFailed(f"{fabric.name}: no rate is ever given to some flows (is a link down?)")
    return _log(plans, flows, first, start, finish, keep)


@dataclass(frozen=True, slots=True)
class _Flows:
    """The flows that enter the network, coflow by coflow as they begin: by arrival, job, and the
    first flow; within a coflow in the order of the plan. All (flows,)."""

    job: Ints
    "Place of the job in the workload."
    row: Ints
    "Row in the job's plan."
    coflow: Ints
    "Number of the coflow, ascending."
    src: Ints
    "Link of the sending host."
    dst: Ints
    "Link of the receiving host."
    size: Floats
    "Bytes."


def _flows(plans: Sequence[JobPlan], fabric: Fabric) -> _Flows:
    up = {fabric.links[i].src: i for i in range(len(fabric.links))}
    down = {fabric.links[i].dst: i for i in range(len(fabric.links))}
    parts: list[tuple[Ints, ...]] = [(np.empty(0, np.int64),) * 6]
    coflows = 0
    for job in sorted(range(len(plans)), key=lambda job: plans[job].arrival):
        plan = plans[job]
        group = np.array(plan.group)
        crosses = np.array([a != b for a, b in zip(plan.src, plan.dst, strict=True)])
        _, begin, number = np.unique(group, return_index=True, return_inverse=True)
        order = np.argsort(begin[number], kind="stable")
        rows = order[crosses[order]]
        starts = np.diff(group[rows], prepend=-1) != 0
        parts.append(
            (
                np.full(len(rows), job),
                rows,
                coflows - 1 + np.cumsum(starts),
                np.array([up[host] for host in plan.src])[rows],
                np.array([down[host] for host in plan.dst])[rows],
                np.array(plan.size)[rows],
            )
        )
        coflows += int(starts.sum())
    return _Flows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _log(
    plans: Sequence[JobPlan],
    flows: _Flows,
    first: Ints,
    start: Floats,
    finish: Floats,
    keep: bool,
) -> Log:
    """The log of a run: coflow c has the flows first[c] .. first[c + 1] - 1."""
    arrival = np.array([plan.arrival for plan in plans])
    ends = arrival.copy()
    np.maximum.at(ends, flows.job, finish)
    owner = flows.job[first[:-1]]
    last = np.maximum.reduceat(finish, first[:-1]) if len(owner) else finish
    took = last - arrival[owner]
    weight = np.array([plan.weight for plan in plans])
    record = np.zeros(0, FLOW_LOG)
    if keep:
        inside = [
            (job, row)
            for job, plan in enumerate(plans)
            for row in range(len(plan.size))
            if plan.src[row] == plan.dst[row]
        ]
        record = np.zeros(len(finish) + len(inside), FLOW_LOG)
        jobs, rows = np.array(inside, np.int64).reshape(-1, 2).T
        record["job"] = np.concatenate([flows.job, jobs])
        record["flow"] = np.concatenate([flows.row, rows])
        record["ready"] = record["ideal_finish"] = arrival[record["job"]]
        record["start"] = np.concatenate([start, arrival[jobs]])
        record["finish"] = np.concatenate([finish, arrival[jobs]])
    return Log(
        ends=list(ends[:, None]),
        flows_ended=sum(len(plan.size) for plan in plans),
        tardiness_s=float(weight[owner] @ took),
        coflows=sum(len(plan.group_flows) for plan in plans),
        coflow_s=float(took.sum()),
        flows=record,
        tasks=np.zeros(0, TASK_LOG),
        classes=np.zeros(0, CLASS_LOG),
    )
