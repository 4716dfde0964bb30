"""The order in which a job's tasks, flows and collectives can happen, or the circle that forbids it."""

from __future__ import annotations

from collections.abc import Iterable

from controller.model.errors import BadInput
from controller.model.job import Collective, Flow, Job, Task

Node = Task | Flow | Collective


class CircularJob(BadInput):
    """A job that can never finish: things that wait for one another."""

    def __init__(self, job: str, circle: list[str]) -> None:
        self.circle = circle
        "Ids that wait for one another, each for the next, the last for the first."
        shown = " -> ".join([*circle[:8], *(["..."] if len(circle) > 8 else []), circle[0]])
        super().__init__(f"job {job}: can never finish: each waits for the next: {shown}")


def nodes(job: Job) -> dict[str, Node]:
    """id -> task, flow or collective, in the order the job lists them."""
    return {node.id: node for _, part in parts(job) for node in part}


def parts(job: Job) -> tuple[tuple[str, tuple[Node, ...]], ...]:
    """The job's lists of things to do, each with the key it has in a profile."""
    return (("tasks", job.tasks), ("flows", job.flows), ("collectives", job.collectives))


def predecessors(job: Job) -> dict[str, tuple[str, ...]]:
    """id -> ids that must end first: its `after`, and for a task the worker's task before it."""
    before = {id_: node.after for id_, node in nodes(job).items()}
    last: dict[str, str] = {}
    for task in job.tasks:
        if task.worker in last:
            before[task.id] = (*task.after, last[task.worker])
        last[task.worker] = task.id
    return before


def order(job: Job) -> list[str]:
    """All ids, each behind everything it waits for; ties in the job's own order.

    O(nodes + dependencies). Raises `CircularJob`; `KeyError` on an id that is not there.
    """
    before = predecessors(job)
    waiting = {id_: len(before[id_]) for id_ in before}
    successors: dict[str, list[str]] = {id_: [] for id_ in before}
    for id_, earlier in before.items():
        for other in earlier:
            successors[other].append(id_)
    ready = [id_ for id_, count in waiting.items() if not count]
    for id_ in ready:  # grows while it is read
        for follower in successors[id_]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    if len(ready) < len(before):
        stuck = [id_ for id_, count in waiting.items() if count]
        raise CircularJob(job.name, _circle(stuck, before))
    return ready


def _circle(stuck: Iterable[str], before: dict[str, tuple[str, ...]]) -> list[str]:
    """One circle among nodes of which each waits for another of them."""
    left = set(stuck)
    seen: dict[str, int] = {}
    node = next(iter(stuck))
    path: list[str] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(other for other in before[node] if other in left)
    return path[seen[node] :]
