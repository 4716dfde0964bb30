"""The event loop, compiled: it runs until it needs something that only the caller has."""

from __future__ import annotations

from controller.scheduling.compiling import bare
from controller.scheduling.policy import Ints
from controller.simulator import dag, fluid
from controller.simulator.agenda import cancel, same_instant, schedule
from controller.simulator.tables import ROW_MASK, Run

OVER, DECISION, BLOCK, LOGS = range(4)
"Why `play` returns: nothing comes any more, or not until the time given; the parts in `asked` need \
a decision; the job `lacking` needs another block of rows; the logs need room."


@bare
def play(run: Run, until: float, local: bool, highest: int) -> int:
    """Play all that happens up to `until`, in seconds, and say what is needed to go on.

    At one instant first all that ends is told what waits for it, then what is ready starts, until
    nothing is; then flows get rates. For `local` and `highest` see `fluid.settle`.
    """
    clock = run.clock[0]
    jobs = len(run.jobs) - 1
    parts = fluid.event_of(run, 0)
    while True:
        coming = run.heap[0] if clock.events else -1
        if _logs_are_full(run):
            return LOGS
        if clock.ended:
            row = run.ended[clock.ended - 1]
            if dag.wants_block(run, row):
                clock.lacking = run.iterations[run.rows[row].iteration].job
                return BLOCK
            clock.ended -= 1
            _finish(run, row)
            dag.end(run, row)
        elif coming >= 0 and run.when[coming] <= same_instant(clock.now):
            if coming >= parts:
                fluid.dissolve(run, coming - parts)
            elif coming >= jobs:
                cancel(run, coming)
                run.ended[clock.ended] = run.running[coming - jobs]
                clock.ended += 1
            elif run.spare[coming] < 0:
                clock.lacking = coming
                return BLOCK
            else:
                cancel(run, coming)
                dag.begin(run, coming)
        elif clock.ready:
            _start_ready(run)
        elif clock.loose:
            fluid.settle(run, local, highest)
            if clock.asked:
                return DECISION
        elif coming >= 0 and run.when[coming] <= until:
            clock.now = run.when[coming]
        else:
            return OVER


@bare
def _finish(run: Run, row: int) -> None:
    """A task or flow has ended: record it."""
    ended = run.rows[row]
    current = run.iterations[ended.iteration]
    job = run.jobs[current.job]
    task = row - current.row
    if task >= job.tasks:
        fluid.finish(run, row)
        return
    number = job.end + current.number
    run.ends[number] = max(run.ends[number], ended.end)
    if len(run.task_log):
        record = run.task_log[run.clock[0].task_log]
        record.job, record.iteration = current.job, current.number
        record.task, record.finish = task, ended.end
        run.clock[0].task_log += 1


@bare
def _start_ready(run: Run) -> None:
    """Start all that is ready, in the order of jobs, iterations and nodes."""
    count = run.clock[0].ready
    run.clock[0].ready = 0
    _sort(run.ready[:count])
    for place in run.ready[:count]:
        _start(run, place & ROW_MASK)


@bare
def _sort(places: Ints) -> None:
    """Ascending, in place: Shell's sort (CACM 1959), nearly linear where they are in order."""
    gap = len(places) // 2
    while gap:
        for i in range(gap, len(places)):
            moved = places[i]
            while i >= gap and places[i - gap] > moved:
                places[i] = places[i - gap]
                i -= gap
            places[i] = moved
        gap = 1 if gap == 2 else gap * 5 // 11


@bare
def _start(run: Run, row: int) -> None:
    """A task or flow begins."""
    current = run.iterations[run.rows[row].iteration]
    job = run.jobs[current.job]
    task = row - current.row
    if task >= job.tasks:
        fluid.start(run, row)
        return
    node = job.node + task
    worker = job.worker + run.holds[run.nodes[node].holds]  # its own worker waits for its tasks
    run.rows[row].end = run.clock[0].now + run.nodes[node].seconds
    run.running[worker] = row
    schedule(run, len(run.jobs) - 1 + worker, run.rows[row].end)


@bare
def _logs_are_full(run: Run) -> bool:
    """Whether the logs, if there are any, lack room for one row that ends and all that settle."""
    clock = run.clock[0]
    return bool(
        len(run.flow_log)
        and (
            clock.flow_log == len(run.flow_log)
            or clock.task_log == len(run.task_log)
            or clock.class_log + clock.loose > len(run.class_log)
        )
    )
