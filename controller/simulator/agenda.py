"""What happens next: events in order of time, then number; compiled."""

from __future__ import annotations

from controller.scheduling.compiling import bare
from controller.simulator.tables import Run

INSTANT = 4e-13
"Events closer than this, relative to the time (at least to one second), happen at one instant."


@bare
def same_instant(time: float) -> float:
    """The latest time that counts as the same instant as `time`, in seconds."""
    return time + INSTANT * max(1.0, time)


@bare
def schedule(run: Run, event: int, time: float) -> None:
    """The event, which was not coming, comes at a time, in seconds; inf: never."""
    run.when[event] = time
    if time < float("inf"):
        last = run.clock[0].events
        run.clock[0].events += 1
        _move_up(run, event, last)


@bare
def cancel(run: Run, event: int) -> None:
    """The event comes no more."""
    gap = run.place[event]
    if gap < 0:
        return
    run.place[event] = -1
    run.clock[0].events -= 1
    moved = run.heap[run.clock[0].events]
    if moved != event:
        _move_up(run, moved, gap)
        _move_down(run, moved, run.place[moved])


@bare
def _move_up(run: Run, event: int, i: int) -> None:
    """The event goes to place i, or above."""
    while i > 0 and _before(run, event, run.heap[(i - 1) // 2]):
        _put(run, run.heap[(i - 1) // 2], i)
        i = (i - 1) // 2
    _put(run, event, i)


@bare
def _move_down(run: Run, event: int, i: int) -> None:
    """The event goes to place i, or below."""
    size = run.clock[0].events
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _before(run, run.heap[child + 1], run.heap[child]):
            child += 1
        if not _before(run, run.heap[child], event):
            break
        _put(run, run.heap[child], i)
        i = child
    _put(run, event, i)


@bare
def _put(run: Run, event: int, i: int) -> None:
    run.heap[i], run.place[event] = event, i


@bare
def _before(run: Run, a: int, b: int) -> bool:
    return bool(run.when[a] < run.when[b] or (run.when[a] == run.when[b] and a < b))
