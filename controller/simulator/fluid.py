"""The network as a fluid: flows drain at constant rates between decisions, part by part; compiled.

Active flows that share a link or an EchelonFlow, directly or through others, form a *part*. An
event touches the parts it belongs to and no others: only they are advanced, decided again, merged
or split. So its cost grows with them, not with the cluster. A part is a chain of rows (`next`),
named after the first.
"""

from __future__ import annotations

import numpy as np

from controller.scheduling.compiling import bare, compiled
from controller.scheduling.policy import Floats, Ints
from controller.simulator.agenda import cancel, same_instant, schedule
from controller.simulator.tables import Run, Table

LEAST_REMAINING = 1e-9
"Bytes a flow that has not finished has left at least: rounding must not make it zero or negative."


@bare
def start(run: Run, row: int) -> None:
    """A flow is ready to send; its rate is decided by the next `settle`. One that stays on its host
    has ended with that."""
    clock, flow = run.clock[0], run.rows[row]
    current = run.iterations[flow.iteration]
    node = run.nodes[run.jobs[current.job].node + row - current.row]
    flow.group = current.group + node.formation
    group = run.groups[flow.group]
    if group.tie < 0:
        group.tie, group.reference = clock.group_tie, clock.now
        group.sent, group.worst = 0.0, -np.inf
        clock.group_tie += 1
    flow.size = flow.remaining = node.size
    flow.release, flow.ideal_finish = clock.now, group.reference + node.offset
    if node.path == node.last_path:
        flow.started, flow.path, flow.tie, flow.class_ = clock.now, -1, -1, -1
        run.ended[clock.ended] = row
        clock.ended += 1
        return
    flow.active, flow.started, flow.class_ = True, np.nan, -1
    flow.tie = clock.flow_tie
    clock.flow_tie += 1
    flow.path = _least_loaded(run, node.path, node.last_path)
    dissolve(run, group.part)
    for e in range(run.path_start[flow.path], run.path_start[flow.path + 1]):
        link = run.path_links[e]
        run.load[link] += 8.0 * flow.size / run.rate[link]
        dissolve(run, run.part_of[link])
    run.loose[clock.loose] = row
    clock.loose += 1


@bare
def finish(run: Run, row: int) -> None:
    """A flow has ended: it leaves the network and its EchelonFlow, and is recorded."""
    clock, flow = run.clock[0], run.rows[row]
    group = run.groups[flow.group]
    current = run.iterations[flow.iteration]
    job = run.jobs[current.job]
    if flow.active:
        flow.active = False
        group.sent += flow.size
        for e in range(run.path_start[flow.path], run.path_start[flow.path + 1]):
            link = run.path_links[e]
            run.load[link] -= 8.0 * flow.size / run.rate[link]
    clock.flows_ended += 1
    group.worst = max(group.worst, clock.now - flow.ideal_finish)
    group.left -= 1
    if group.left == 0:
        formation = run.formations[job.formation + group.index]
        group.tie, group.left = -1, formation.flows
        clock.tardiness += group.weight * group.worst
        if formation.coflow:
            clock.coflows += 1
            clock.coflow_s += group.worst
    if job.tasks == 0:
        ended = job.end + current.number
        run.ends[ended] = max(run.ends[ended], clock.now)
    if len(run.flow_log):
        record = run.flow_log[clock.flow_log]
        record.job, record.iteration = current.job, current.number
        record.flow = row - current.row - job.tasks
        record.ready, record.start, record.finish = flow.release, flow.started, clock.now
        record.ideal_finish, record.tie = flow.ideal_finish, flow.tie
        clock.flow_log += 1


@bare
def dissolve(run: Run, part: int) -> None:
    """A part is no more: its flows are loose, those that finish at this instant have ended.

    -1 is no part.
    """
    if part < 0:
        return
    clock = run.clock[0]
    limit, passed = same_instant(clock.now), clock.now - run.rows[part].since
    cancel(run, event_of(run, part))
    clock.whole = -1
    row = part
    while row >= 0:
        flow = run.rows[row]
        run.groups[flow.group].part = -1
        for e in range(run.path_start[flow.path], run.path_start[flow.path + 1]):
            run.part_of[run.path_links[e]] = -1
        flow.part = -1
        if flow.end <= limit:
            run.ended[clock.ended] = row
            clock.ended += 1
        else:
            flow.remaining = max(flow.remaining - flow.speed * passed, LEAST_REMAINING)
            run.loose[clock.loose] = row
            clock.loose += 1
        row = flow.next


@bare
def settle(run: Run, local: bool, highest: int) -> None:
    """All loose flows form parts. Where none of a part's flows share a link each gets all of its
    path, in class `highest`; the others are asked about: `members`, `asked`.

    If not `local`, all active flows are one part, and it is asked about.
    """
    clock = run.clock[0]
    if not local:
        dissolve(run, clock.whole)
    _unite_loose(run, local)
    for i in range(clock.loose - 1, -1, -1):  # backwards, so that each chain is in order
        row = run.loose[i]
        flow, part = run.rows[row], _first(run, row)
        flow.part = run.groups[flow.group].part = part
        for e in range(run.path_start[flow.path], run.path_start[flow.path + 1]):
            run.part_of[run.path_links[e]] = part
        if row != part:
            flow.next = run.rows[part].next
            run.rows[part].next = row
            run.rows[part].shares = run.rows[part].shares or flow.shares
    members, clock.asked = 0, 0
    for part in run.loose[: clock.loose]:
        if run.rows[part].part != part:
            continue
        if run.rows[part].shares:
            row = clock.whole = part
            while row >= 0:
                run.members[members] = row
                members += 1
                row = run.rows[row].next
            clock.asked += 1
            run.asked[clock.asked] = members
        else:
            _widest(run, part, highest)
    clock.loose = 0


@bare
def decide(run: Run, rows: Ints, rate: Floats, until: float, classes: Ints) -> bool:
    """The flows of a part have these rates (bit/s) and classes (empty: none) until one ends, or
    `until`, in seconds.

    Returns False, and changes nothing, where a rate is negative or not a number.
    """
    for i in range(len(rows)):
        if not rate[i] >= 0.0:
            return False
    for i in range(len(rows)):
        until = min(until, _send(run, rows[i], rate[i], classes[i] if len(classes) else -1))
    _form(run, run.rows[rows[0]].part, until)
    return True


@bare
def event_of(run: Run, part: int) -> int:
    """The number of the event that a part is due."""
    return int(len(run.jobs) - 1 + len(run.running) + part)


@bare
def _widest(run: Run, part: int, highest: int) -> None:
    """Every flow of a part gets all of its path."""
    row, first = part, np.inf
    while row >= 0:
        rate = np.inf
        path = run.rows[row].path
        for e in range(run.path_start[path], run.path_start[path + 1]):
            rate = min(rate, run.capacity[run.path_links[e]])
        first = min(first, _send(run, row, rate, highest))
        row = run.rows[row].next
    _form(run, part, first)


@bare
def _send(run: Run, row: int, rate: float, class_: int) -> float:
    """The flow has a rate (bit/s) and a class from now on; returns when it would end, in seconds."""
    clock, flow = run.clock[0], run.rows[row]
    flow.speed = rate / 8.0
    flow.end = clock.now + flow.remaining / flow.speed
    if rate > 0.0 and np.isnan(flow.started):
        flow.started = clock.now
    if class_ != flow.class_ and len(run.class_log):
        record = run.class_log[clock.class_log]
        record.tie, record.class_ = flow.tie, class_
        clock.class_log += 1
    flow.class_ = class_
    return float(flow.end)


@bare
def _form(run: Run, part: int, due: float) -> None:
    run.rows[part].since = run.clock[0].now
    schedule(run, event_of(run, part), due)


@bare
def _least_loaded(run: Run, first: int, last: int) -> int:
    """`scheduling.routing.least_loaded` among paths first .. last - 1."""
    best, least = first, np.inf
    for path in range(first, last):
        a, b = run.path_start[path], run.path_start[path + 1]
        if b - a > 2:
            a, b = a + 1, b - 1
        most = 0.0
        for e in range(a, b):
            most = max(most, run.load[run.path_links[e]])
        if most < least:
            best, least = path, most
    return int(best)


@bare
def _unite_loose(run: Run, local: bool) -> None:
    """Let `part` of the loose flows lead to the first row of their part, and note who finds a link
    used by another. Union-find: nearly O(path entries)."""
    loose = run.loose[: run.clock[0].loose]
    for row in loose:
        flow = run.rows[row]
        flow.part, flow.next, flow.shares = row, -1, not local
    for row in loose:
        flow = run.rows[row]
        group = run.groups[flow.group]
        if not local:
            _unite(run, row, loose[0])
        if group.part < 0:
            group.part = row
        else:
            _unite(run, row, group.part)
        for e in range(run.path_start[flow.path], run.path_start[flow.path + 1]):
            link = run.path_links[e]
            if run.part_of[link] < 0:
                run.part_of[link] = row
            else:
                flow.shares = True
                _unite(run, row, run.part_of[link])


@bare
def _unite(run: Run, a: int, b: int) -> None:
    a, b = _first(run, a), _first(run, b)
    if a < b:
        run.rows[b].part = a
    else:
        run.rows[a].part = b


@bare
def _first(run: Run, row: int) -> int:
    while run.rows[row].part != row:
        run.rows[row].part = run.rows[run.rows[row].part].part
        row = run.rows[row].part
    return row


@compiled
def paths_of(rows: Ints, flows: Table, start: Ints, links: Ints) -> tuple[Ints, Ints]:
    """The links of some flows, as `path_start` and `path_links` of a `NetworkState`.

    `flows`, `start` and `links` are `rows`, `path_start` and `path_links` of the run.
    """
    first = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        path = flows[rows[i]].path
        first[i + 1] = first[i] + start[path + 1] - start[path]
    out = np.empty(first[-1], np.int64)
    for i in range(len(rows)):
        path = flows[rows[i]].path
        out[first[i] : first[i + 1]] = links[start[path] : start[path + 1]]
    return first, out
