"""A placed job compiled to indices: what the simulator plays and the live coordinator tracks."""

from __future__ import annotations

from dataclasses import dataclass

from controller.model.check import require_valid
from controller.model.collectives import expand
from controller.model.errors import BadInput
from controller.model.fabric import Fabric
from controller.model.job import Flow, Job, PlacedJob, Task


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One job's DAG in integers. Nodes are the tasks, then the flows: node = tasks + flow row."""

    job: Job
    "The profile, its collectives expanded into flows and its EchelonFlows derived."
    arrival: float
    "Seconds from the start of the workload."
    weight: float
    "Weight of each of its EchelonFlows."
    seconds: list[float]
    "(tasks,) durations, scaled."
    size: list[float]
    "(flows,) bytes, scaled."
    src: list[str]
    "(flows,) sending host."
    dst: list[str]
    "(flows,) receiving host."
    group: list[int]
    "(flows,) row of the EchelonFlow; the last rows are flows that no EchelonFlow of the job names."
    offset: list[float]
    "(flows,) ideal finish offset a_j in seconds, scaled."
    group_names: list[str]
    "(groups,) ids of the EchelonFlows."
    group_flows: list[int]
    "(groups,) number of their flows."
    coflow: list[bool]
    "(groups,) whether all offsets are zero."
    flow_row: dict[str, int]
    "Flow id -> row."
    needs: list[int]
    "(nodes,) how many nodes must end before it may start, its worker's turn counted as one."
    frees: list[list[int]]
    "(nodes,) the nodes that wait for it."
    begins: list[list[int]]
    "(workers,) nodes that wait for the worker's turn to begin the iteration: its first task, and \
the flows it sends that wait for nothing else."
    holds: list[tuple[int, ...]]
    "(nodes,) the workers whose next iteration waits for this node of the present one."
    held: list[int]
    "(workers,) by how many nodes of an iteration its next one is held."
    tasks: int
    "Number of tasks, and so the node of the first flow."


def compile_job(
    placed: PlacedJob, fabric: Fabric, size_scale: float = 1.0, time_scale: float = 1.0
) -> JobPlan:
    """The plan of one placed job.

    `size_scale` multiplies bytes, `time_scale` multiplies durations and arrangements. Raises
    `InvalidJob` for a profile that cannot be played, `BadInput` for a placement that does not fit
    the fabric.

    A worker begins iteration k+1 when its own tasks of k are done and the flows of k into it have
    arrived; one that computes nothing also waits for the flows it sends.
    """
    require_valid(placed.job)
    return compile_valid(placed, fabric, size_scale, time_scale)


def compile_valid(
    placed: PlacedJob, fabric: Fabric, size_scale: float = 1.0, time_scale: float = 1.0
) -> JobPlan:
    """`compile_job` for a job that has been checked already."""
    job = expand(placed.job)
    row = {worker: i for i, worker in enumerate(job.workers)}
    host = [_host_of(placed, worker, fabric) for worker in job.workers]
    src_worker = [row[flow.src] for flow in job.flows]
    dst_worker = [row[flow.dst] for flow in job.flows]
    task_worker = [row[task.worker] for task in job.tasks]
    computing = set(task_worker)
    holds: list[tuple[int, ...]] = [(worker,) for worker in task_worker]
    holds += [
        (dst,) if src in computing or src == dst else (dst, src)
        for src, dst in zip(src_worker, dst_worker, strict=True)
    ]
    needs, frees, begins = _edges(job, task_worker, src_worker)
    names, group, offset = _membership(job)
    return JobPlan(
        job=job,
        arrival=placed.arrival,
        weight=placed.weight,
        seconds=[task.seconds * time_scale for task in job.tasks],
        size=[flow.bytes * size_scale for flow in job.flows],
        src=[host[worker] for worker in src_worker],
        dst=[host[worker] for worker in dst_worker],
        group=group,
        offset=[a * time_scale for a in offset],
        group_names=names,
        group_flows=_counts(group, len(names)),
        coflow=[not any(offsets) for offsets in _offsets_by_group(group, offset, len(names))],
        flow_row={flow.id: i for i, flow in enumerate(job.flows)},
        needs=needs,
        frees=frees,
        begins=begins,
        holds=holds,
        tasks=len(job.tasks),
        held=_counts([worker for workers in holds for worker in workers], len(job.workers)),
    )


def _edges(
    job: Job, task_worker: list[int], src_worker: list[int]
) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """`needs`, `frees` and `begins` of the plan; the tasks of one worker form a chain."""
    nodes: list[Task | Flow] = [*job.tasks, *job.flows]
    number = {node.id: i for i, node in enumerate(nodes)}
    needs = [0] * len(nodes)
    frees: list[list[int]] = [[] for _ in nodes]
    begins: list[list[int]] = [[] for _ in job.workers]
    last_task: dict[int, int] = {}
    for i, (node, worker) in enumerate(zip(nodes, [*task_worker, *src_worker], strict=True)):
        before = {number[name] for name in node.after} if node.after else set()
        if i < len(job.tasks):
            takes_turn = worker not in last_task
            if not takes_turn:
                before.add(last_task[worker])
            last_task[worker] = i
        else:
            takes_turn = not before
        needs[i] = len(before) + takes_turn
        for other in sorted(before):
            frees[other].append(i)
        if takes_turn:
            begins[worker].append(i)
    return needs, frees, begins


def _membership(job: Job) -> tuple[list[str], list[int], list[float]]:
    """Names of the EchelonFlows, and each flow's EchelonFlow and offset."""
    names = [h.id for h in job.echelonflows]
    place = {
        flow: (g, a)
        for g, h in enumerate(job.echelonflows)
        for flow, a in zip(h.flows, h.arrangement, strict=True)
    }
    for flow in job.flows:
        if flow.id not in place:
            place[flow.id] = (len(names), 0.0)
            names.append(flow.id)
    return names, [place[f.id][0] for f in job.flows], [place[f.id][1] for f in job.flows]


def _offsets_by_group(group: list[int], offset: list[float], groups: int) -> list[list[float]]:
    lists: list[list[float]] = [[] for _ in range(groups)]
    for g, a in zip(group, offset, strict=True):
        lists[g].append(a)
    return lists


def _counts(values: list[int], length: int) -> list[int]:
    counts = [0] * length
    for value in values:
        counts[value] += 1
    return counts


def _host_of(placed: PlacedJob, worker: str, fabric: Fabric) -> str:
    host = placed.placement.get(worker)
    if host is None:
        raise BadInput(f"job {placed.job.name}: worker {worker} has no host in its placement")
    if host not in fabric.host_row:
        raise BadInput(
            f"job {placed.job.name}: worker {worker} is placed on {host}, "
            f"but {fabric.name} has the hosts {fabric.hosts[0]}..{fabric.hosts[-1]}"
        )
    return host
