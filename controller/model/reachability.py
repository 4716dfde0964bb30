"""Whether a task of a job must have ended before something else of it can start."""

from __future__ import annotations

import numpy as np

from controller.model import dag
from controller.model.job import Job, Task

_COLUMNS = 64
"Workers handled at once: bounds the memory to nodes x 64 x 4 bytes."


class Reachability:
    """Which tasks lie before a node, as one number a worker: how many of its tasks, in its order.

    A worker runs its tasks in order, so a task lies before a node when its place is below that
    number. Computed on demand for 64 workers at a time, in O(nodes + dependencies) steps.
    """

    def __init__(self, job: Job) -> None:
        self._nodes = dag.nodes(job)
        self._order = dag.order(job)
        self._row = {id_: row for row, id_ in enumerate(self._order)}
        self._before = dag.predecessors(job)
        self._column = {worker: column for column, worker in enumerate(job.workers)}
        self._place: dict[str, int] = {}
        count: dict[str, int] = {}
        for task in job.tasks:
            self._place[task.id] = count[task.worker] = count.get(task.worker, -1) + 1
        self._blocks: dict[int, np.ndarray[tuple[int, ...], np.dtype[np.int32]]] = {}

    def precedes(self, task: str, node: str) -> bool:
        """Whether the task has ended whenever the node starts."""
        column = self._column[self._nodes[task].worker]  # type: ignore[union-attr]
        block = column // _COLUMNS
        if block not in self._blocks:
            self._blocks[block] = self._count(block)
        return bool(self._blocks[block][self._row[node], column % _COLUMNS] > self._place[task])

    def _count(self, block: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        """(nodes, 64) how many tasks of each worker of the block lie before each node."""
        done = np.zeros((len(self._order), _COLUMNS), dtype=np.int32)
        for row, id_ in enumerate(self._order):
            for other in self._before[id_]:
                earlier = self._row[other]
                np.maximum(done[row], done[earlier], out=done[row])
                node = self._nodes[other]
                if isinstance(node, Task) and self._column[node.worker] // _COLUMNS == block:
                    column = self._column[node.worker] % _COLUMNS
                    done[row, column] = max(done[row, column], self._place[other] + 1)
        return done
