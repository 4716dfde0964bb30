"""Plays the DAG of jobs: what may start once something has ended; compiled.

Workers begin iteration k+1 one by one (`JobPlan.held`), so iterations overlap.
"""

from __future__ import annotations

from controller.scheduling.compiling import bare
from controller.simulator.tables import ROW_BITS, Run


@bare
def begin(run: Run, job: int) -> None:
    """The job arrives: its workers begin their first iteration. It needs a spare one."""
    first = _open(run, job, 0)
    for worker in range(run.jobs[job + 1].worker - run.jobs[job].worker):
        _take_turn(run, first, worker)


@bare
def wants_block(run: Run, row: int) -> bool:
    """Whether the end of a row may open another iteration, and its job has none to spare."""
    current = run.iterations[run.rows[row].iteration]
    return bool(
        current.next < 0
        and run.spare[current.job] < 0
        and current.number + 1 < run.jobs[current.job].iterations
    )


@bare
def end(run: Run, row: int) -> None:
    """A task or flow has ended: what waited for it alone is ready."""
    index = run.rows[row].iteration
    current = run.iterations[index]
    job = run.jobs[current.job]
    node = job.node + row - current.row
    for k in range(run.nodes[node].frees, run.nodes[node + 1].frees):
        _count_down(run, current.row + run.frees[k])
    for k in range(run.nodes[node].holds, run.nodes[node + 1].holds):
        worker = run.holds[k]
        run.held[current.held + worker] -= 1
        if run.held[current.held + worker] == 0 and current.number + 1 < job.iterations:
            if current.next < 0:
                current.next = _open(run, current.job, current.number + 1)
            _take_turn(run, current.next, worker)
    current.left -= 1
    if current.left == 0:
        current.next = run.spare[current.job]
        run.spare[current.job] = index
        run.iterations_left[current.job] -= 1


@bare
def _open(run: Run, job: int, number: int) -> int:
    """An iteration opens, in a block the job has to spare: returns it."""
    given, following = run.jobs[job], run.jobs[job + 1]
    index = run.spare[job]
    opened = run.iterations[index]
    run.spare[job] = opened.next
    opened.number, opened.next = number, -1
    opened.left = following.node - given.node
    for node in range(given.node, following.node):
        run.rows[opened.row + node - given.node].needs = run.nodes[node].needs
    for worker in range(given.worker, following.worker):
        run.held[opened.held + worker - given.worker] = run.workers[worker].held
    return int(index)


@bare
def _take_turn(run: Run, index: int, worker: int) -> None:
    """A worker begins an iteration."""
    opened = run.iterations[index]
    number = run.jobs[opened.job].worker + worker
    for k in range(run.workers[number].begins, run.workers[number + 1].begins):
        _count_down(run, opened.row + run.begins[k])


@bare
def _count_down(run: Run, row: int) -> None:
    """A row waits for one thing less."""
    run.rows[row].needs -= 1
    if run.rows[row].needs == 0:
        current = run.iterations[run.rows[row].iteration]
        run.ready[run.clock[0].ready] = (
            (run.jobs[current.job].end + current.number) << ROW_BITS
        ) + row
        run.clock[0].ready += 1
