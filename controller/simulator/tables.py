"""The tables of a run: what is known of its jobs from the start, and what is open at the moment.

Compiled code (`events`, `dag`, `fluid`) works on them; nothing else changes them while it runs. A
*row* is a task or flow of an iteration that is open. An iteration has a block of rows for all its
nodes, which the job uses again once the iteration has ended. Row and node differ by a constant
within a block, so what the plan says of a node is found without searching.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model.fabric import Fabric, Path
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats, Ints
from controller.scheduling.routing import Routing

Table = Any
"A structured array; compiled code reads its fields as attributes, which numpy's types do not know."

ROW_BITS = 32
ROW_MASK = (1 << ROW_BITS) - 1

JOB = np.dtype(
    [
        ("arrival", float),  # seconds
        ("node", int),  # its first node, worker, formation and entry of `ends`;
        ("worker", int),  # those of the next row are where its own end
        ("formation", int),
        ("end", int),
        ("iterations", int),  # how often it is played
        ("tasks", int),  # how many of its nodes are tasks: the first ones
    ]
)
NODE = np.dtype(
    [
        ("needs", int),  # see `JobPlan`
        ("frees", int),  # where its part of `frees` begins; that of the next node ends it
        ("holds", int),  # the same of `holds`
        ("seconds", float),  # of a task
        ("size", float),  # of a flow, bytes
        ("offset", float),  # of a flow, a_j in seconds
        ("formation", int),  # of a flow, counted within its job
        ("path", int),  # of a flow: it may take any of path .. last_path - 1;
        ("last_path", int),  # none: it stays on one host
    ]
)
WORKER = np.dtype([("held", int), ("begins", int)])  # see `JobPlan`; the list as in NODE
FORMATION = np.dtype([("flows", int), ("weight", float), ("coflow", bool), ("index", int)])

ITERATION = np.dtype(
    [
        ("job", int),
        ("number", int),  # 0 for the job's first
        ("left", int),  # nodes that have not ended
        ("next", int),  # the job's following iteration, if it is open; of one not in use, the
        ("row", int),  # next of the job's that is not; -1: none
        ("held", int),  # its first row, countdown in `held`, and group
        ("group", int),
    ]
)
ROW = np.dtype(
    [
        ("iteration", int),
        ("needs", int),  # what it still waits for
        ("end", float),  # when it ends, if the rates stay; a task: when it ends, in seconds
        # the rest is about flows
        ("active", bool),  # ready to send and not finished
        ("group", int),  # its EchelonFlow
        ("size", float),  # bytes
        ("remaining", float),  # bytes, when the rates were decided
        ("release", float),  # when it became ready, in seconds
        ("ideal_finish", float),
        ("started", float),  # when its rate first rose above zero; NaN: not yet
        ("speed", float),  # bytes per second
        ("tie", int),  # its number, in the order flows become ready
        ("path", int),
        ("class_", int),  # the last it was given; -1: none
        ("part", int),  # first row of the part it belongs to (see `fluid`); -1: none
        ("next", int),  # the next flow of the part; -1: no more
        ("shares", bool),  # whether it found a link of its used (of a first row: whether any did)
        ("since", float),  # of a part's first row: when the part's rates were decided
    ]
)
GROUP = np.dtype(
    [
        ("job", int),
        ("index", int),  # the EchelonFlow's place in its job's list
        ("weight", float),
        ("reference", float),  # r, in seconds
        ("tie", int),  # its number, in the order EchelonFlows begin; -1: it has not begun
        ("left", int),  # flows that have not finished
        ("sent", float),  # bytes of those that have
        ("worst", float),  # their largest tardiness, in seconds
        ("part", int),  # part its active flows belong to; -1: none
    ]
)
CLOCK = np.dtype(
    [
        ("now", float),  # seconds
        ("events", int),  # entries of `heap`, `ended`, `ready`, `loose`
        ("ended", int),
        ("ready", int),
        ("loose", int),
        ("asked", int),  # parts that wait for a decision
        ("lacking", int),  # the job that needs a block for another iteration
        ("iterations", int),  # how much of each table is in use
        ("rows", int),
        ("held", int),
        ("groups", int),
        ("flow_tie", int),  # the next flow's and EchelonFlow's
        ("group_tie", int),
        ("flows_ended", int),
        ("tardiness", float),  # sum of w_H t_H, in seconds
        ("coflows", int),  # coflows that have ended, and the sum of their completions in seconds
        ("coflow_s", float),
        ("whole", int),  # the one part there is, where the policy is not local; -1: none
        ("flow_log", int),  # entries of the logs
        ("task_log", int),
        ("class_log", int),
    ]
)
FLOW_LOG = np.dtype(
    [
        ("job", int),
        ("iteration", int),
        ("flow", int),  # row of the job's plan
        ("ready", float),
        ("start", float),
        ("finish", float),
        ("ideal_finish", float),
        ("tie", int),
    ]
)
TASK_LOG = np.dtype([("job", int), ("iteration", int), ("task", int), ("finish", float)])
CLASS_LOG = np.dtype([("tie", int), ("class_", int)])


class Run(NamedTuple):
    """All tables of one run."""

    # Known from the start. Tables that lists hang on have one row more, where the last list ends.
    jobs: Table
    "(jobs + 1,) JOB."
    nodes: Table
    "(nodes + 1,) NODE: every job's tasks, then its flows."
    workers: Table
    "(workers + 1,) WORKER."
    formations: Table
    "(formations,) FORMATION: the EchelonFlows of every job."
    frees: Ints
    "Nodes, counted within their job."
    holds: Ints
    "Workers, counted within their job."
    begins: Ints
    "Nodes, counted within their job."
    path_start: Ints
    "(paths + 1,) where each path's links start in `path_links`."
    path_links: Ints
    "Links of all paths that flows may take."
    rate: Floats
    "(links,) bit/s, up or down."
    capacity: Floats
    "(links,) bit/s; 0 for a link that is down."

    # Open at the moment.
    clock: Table
    "(1,) CLOCK."
    iterations: Table
    "ITERATION."
    rows: Table
    "ROW."
    groups: Table
    "GROUP: the EchelonFlows of open iterations."
    held: Ints
    "By how many nodes each worker's next iteration is held, a block per iteration."
    spare: Ints
    "(jobs,) an iteration that is not in use; -1: none."
    iterations_left: Ints
    "(jobs,) iterations that have not ended."
    ends: Floats
    "(iterations of all jobs,) when its last task (flow, if the job has no tasks) ended so far."
    running: Ints
    "(workers,) row of the task that the worker computes."
    part_of: Ints
    "(links,) the part that uses the link; -1: none."
    load: Floats
    "(links,) seconds that the sizes of the active flows take."

    # What happens next. Events are numbered: jobs that arrive, workers whose task ends, then parts
    # that are due, by their first row.
    when: Floats
    "(events,) seconds."
    place: Ints
    "(events,) index in `heap`; -1: not coming."
    heap: Ints
    "Events that come; the next one first."
    ended: Ints
    "Rows that have ended and whose successors have not been told."
    ready: Ints
    "Rows that may start: (place of the iteration in `ends`) << ROW_BITS | row."
    loose: Ints
    "Rows of active flows that belong to no part yet."
    members: Ints
    "Rows of the parts that wait for a decision, part after part."
    asked: Ints
    "Where each of those parts starts in `members`, and where the last one ends."

    # What has been; empty where no records are kept.
    flow_log: Table
    "FLOW_LOG."
    task_log: Table
    "TASK_LOG."
    class_log: Table
    "CLASS_LOG."


def tables(plans: Sequence[JobPlan], fabric: Fabric, routing: Routing, keep: bool) -> Run:
    """The tables of a run before it begins; `keep`: with logs. Raises `DisconnectedFabric`."""
    count = len(plans)
    jobs = np.zeros(count + 1, JOB)
    jobs["arrival"][:count] = [plan.arrival for plan in plans]
    jobs["iterations"][:count] = [plan.job.iterations for plan in plans]
    jobs["tasks"][:count] = [plan.tasks for plan in plans]
    jobs["node"] = _starts(len(plan.needs) for plan in plans)
    jobs["worker"] = _starts(len(plan.held) for plan in plans)
    jobs["formation"] = _starts(len(plan.group_flows) for plan in plans)
    jobs["end"] = _starts(plan.job.iterations for plan in plans)
    nodes, paths = _nodes(plans, fabric, routing)
    workers = np.zeros(jobs["worker"][-1] + 1, WORKER)
    workers["held"][:-1] = _joined(plan.held for plan in plans)
    workers["begins"] = _starts(len(begun) for plan in plans for begun in plan.begins)
    formations = np.zeros(jobs["formation"][-1], FORMATION)
    formations["flows"] = _joined(plan.group_flows for plan in plans)
    formations["weight"] = [plan.weight for plan in plans for _ in plan.group_flows]
    formations["coflow"] = _joined(plan.coflow for plan in plans)
    formations["index"] = _joined(range(len(plan.group_flows)) for plan in plans)
    clock = np.zeros(1, CLOCK)
    clock["whole"] = -1
    links, log = len(fabric.links), 1024 if keep else 0
    return Run(
        jobs=jobs,
        nodes=nodes,
        workers=workers,
        formations=formations,
        frees=_joined(listed for plan in plans for listed in plan.frees),
        holds=_joined(listed for plan in plans for listed in plan.holds),
        begins=_joined(listed for plan in plans for listed in plan.begins),
        path_start=_starts(map(len, paths)),
        path_links=_joined(paths),
        rate=np.array([link.rate for link in fabric.links]),
        capacity=np.array(fabric.capacities()),
        clock=clock,
        iterations=np.zeros(0, ITERATION),
        rows=np.zeros(0, ROW),
        groups=np.zeros(0, GROUP),
        held=np.zeros(0, int),
        spare=np.full(count, -1),
        iterations_left=jobs["iterations"][:count].copy(),
        ends=np.repeat(jobs["arrival"][:count], jobs["iterations"][:count]),
        running=np.zeros(len(workers) - 1, int),
        part_of=np.full(links, -1),
        load=np.zeros(links),
        when=np.full(count + len(workers) - 1, np.inf),
        place=np.full(count + len(workers) - 1, -1),
        heap=np.zeros(count + len(workers) - 1, int),
        ended=np.zeros(0, int),
        ready=np.zeros(0, int),
        loose=np.zeros(0, int),
        members=np.zeros(0, int),
        asked=np.zeros(1, int),
        flow_log=np.zeros(log, FLOW_LOG),
        task_log=np.zeros(log, TASK_LOG),
        class_log=np.zeros(log, CLASS_LOG),
    )


def with_block(run: Run, job: int) -> Run:
    """The run with a block of rows for one more iteration of a job; tables that are full double."""
    clock, given, following = run.clock[0], run.jobs[job], run.jobs[job + 1]
    index = int(clock["iterations"])
    row, held, group = int(clock["rows"]), int(clock["held"]), int(clock["groups"])
    rows = row + int(following["node"] - given["node"])
    helds = held + int(following["worker"] - given["worker"])
    formations = run.formations[given["formation"] : following["formation"]]
    groups = group + len(formations)
    events = len(run.jobs) - 1 + len(run.running)
    run = run._replace(
        iterations=_longer(run.iterations, index + 1),
        held=_longer(run.held, helds),
        groups=_longer(run.groups, groups),
        asked=_longer(run.asked, rows + 1),
        **{name: _longer(getattr(run, name), rows) for name in _ROWS},
        **{name: _longer(getattr(run, name), events + rows) for name in _EVENTS},
    )
    run.iterations[index] = (job, 0, 0, run.spare[job], row, held, group)
    run.spare[job] = index
    run.rows["iteration"][row:rows] = index
    run.rows["part"][row:rows] = -1
    run.place[events + row : events + rows] = -1
    block = run.groups[group:groups]
    block["job"], block["tie"], block["part"] = job, -1, -1
    block["index"], block["weight"] = formations["index"], formations["weight"]
    block["left"] = formations["flows"]
    clock["iterations"], clock["rows"], clock["held"], clock["groups"] = (
        index + 1, rows, helds, groups,
    )  # fmt: skip
    return run


def with_longer_logs(run: Run) -> Run:
    """The run with room for twice as many records, and for those of all rows."""
    return run._replace(
        **{name: _longer(log, 2 * len(log) + len(run.rows))
           for name in ("flow_log", "task_log", "class_log") if len(log := getattr(run, name))}
    )  # fmt: skip


_ROWS = ("rows", "ended", "ready", "loose", "members")
_EVENTS = ("when", "place", "heap")


def _longer(values: Table, length: int) -> Table:
    """The array with room for `length` entries and as many as it had again, if it has less."""
    if len(values) >= length:
        return values
    return np.concatenate([values, np.zeros(length, values.dtype)])


def _nodes(plans: Sequence[JobPlan], fabric: Fabric, routing: Routing) -> tuple[Table, list[Path]]:
    """The nodes of all jobs, and the paths that their flows may take."""
    nodes = np.zeros(sum(len(plan.needs) for plan in plans) + 1, NODE)
    nodes["needs"][:-1] = _joined(plan.needs for plan in plans)
    nodes["frees"] = _starts(len(freed) for plan in plans for freed in plan.frees)
    nodes["holds"] = _starts(len(held) for plan in plans for held in plan.holds)
    paths: list[Path] = []
    known: dict[tuple[Path, ...], int] = {}
    first = 0
    for plan in plans:
        flows = slice(first + plan.tasks, first + len(plan.needs))
        nodes["seconds"][first : flows.start] = plan.seconds
        nodes["size"][flows], nodes["offset"][flows] = plan.size, plan.offset
        nodes["formation"][flows] = plan.group
        for row, flow in enumerate(plan.job.flows):
            src, dst = plan.src[row], plan.dst[row]
            choices = () if src == dst else routing.choices(fabric, src, dst, flow.id)
            if choices not in known:
                known[choices] = len(paths)
                paths += choices
            node = nodes[flows.start + row]
            node["path"], node["last_path"] = known[choices], known[choices] + len(choices)
        first = flows.stop
    return nodes, paths


def _starts(lengths: Iterable[int]) -> Ints:
    """Where each list starts, and the last one ends, when they are joined."""
    return np.cumsum([0, *lengths])


def _joined(lists: Iterable[Iterable[Any]]) -> NDArray[Any]:
    return np.array(list(chain.from_iterable(lists)), int)
