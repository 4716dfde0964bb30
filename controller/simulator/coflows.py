"""The fast path for traces: jobs that are nothing but coflows, on one big switch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controller.model.errors import WorkFailed
from controller.model.fabric import Fabric
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Ints
from controller.simulator import coflow_kernels, fair_kernels
from controller.simulator.fluid import INSTANT
from controller.simulator.result import Recorder

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


def play_coflows(plans: Sequence[JobPlan], fabric: Fabric, policy: str, recorder: Recorder) -> None:
    """Play all jobs and tell the recorder. Raises `WorkFailed` as the event loop does."""
    up = {fabric.links[i].src: i for i in range(len(fabric.links))}
    down = {fabric.links[i].dst: i for i in range(len(fabric.links))}
    arrival = np.array([plan.arrival for plan in plans])
    jobs = np.argsort(arrival, kind="stable")
    job_of, row_of, groups = _networked(plans, jobs)
    plan_of = [plans[job] for job in job_of.tolist()]
    rows = row_of.tolist()
    src = np.array([up[p.src[r]] for p, r in zip(plan_of, rows, strict=True)], np.int64)
    dst = np.array([down[p.dst[r]] for p, r in zip(plan_of, rows, strict=True)], np.int64)
    size = 8.0 * np.array([p.size[r] for p, r in zip(plan_of, rows, strict=True)])
    first = np.concatenate([np.flatnonzero(np.diff(groups, prepend=-1)), [len(groups)]]).astype(
        np.int64
    )
    owner = job_of[first[:-1]]
    capacity = np.array(fabric.capacities())
    if policy == "fair":
        start = arrival[job_of]
        (outs, src), (ins, dst) = (np.unique(ends, return_inverse=True) for ends in (src, dst))
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
            src,
            dst,
            size,
            capacity,
            INSTANT,
        )
    if not all_finished:
        raise WorkFailed(f"{fabric.name}: no rate is ever given to some flows (is a link down?)")
    for plan, job in zip(plans, range(len(plans)), strict=True):
        for row in range(len(plan.size)):
            if plan.src[row] == plan.dst[row]:
                recorder.flow(job, 0, row, *4 * (plan.arrival,), ())
    for i in np.argsort(finish, kind="stable").tolist():
        ready = plan_of[i].arrival
        recorder.flow(
            int(job_of[i]), 0, rows[i], ready, float(start[i]), float(finish[i]), ready, ()
        )


def _networked(plans: Sequence[JobPlan], jobs: Ints) -> tuple[Ints, Ints, Ints]:
    """(flows,) job, row and number of the coflow of every flow that enters the network.

    Coflows are numbered as they begin: by arrival, job, and their first flow.
    """
    job_of: list[int] = []
    row_of: list[int] = []
    group_of: list[int] = []
    groups = 0
    for job in jobs.tolist():
        plan = plans[job]
        members: dict[int, list[int]] = {}
        for row, group in enumerate(plan.group):
            members.setdefault(group, [])
            if plan.src[row] != plan.dst[row]:
                members[group].append(row)
        for listed in members.values():
            if listed:
                job_of += [job] * len(listed)
                row_of += listed
                group_of += [groups] * len(listed)
                groups += 1
    return np.array(job_of, np.int64), np.array(row_of, np.int64), np.array(group_of, np.int64)
