"""Plays the DAG of jobs: what may start once something has ended."""

from __future__ import annotations

from dataclasses import dataclass

from controller.scheduling.plan import JobPlan


@dataclass(slots=True)
class _Iteration:
    """Countdowns of one iteration that has begun and not ended."""

    needs: list[int]
    "(nodes,) what each still waits for."
    held: list[int]
    "(workers,) by how many nodes the worker's next iteration is held."
    left: int
    "Nodes that have not ended."


class DagPlayer:
    """One job: told what ended, it answers what is ready. Times are the caller's affair.

    Workers begin iteration k+1 one by one (`JobPlan.held`), so iterations overlap. Nothing of an
    iteration is kept once it has ended.
    """

    def __init__(self, plan: JobPlan) -> None:
        self.plan = plan
        self._open: dict[int, _Iteration] = {}
        self._ended = 0

    @property
    def done(self) -> bool:
        """Whether all iterations have ended."""
        return self._ended == self.plan.job.iterations

    def begin(self) -> list[tuple[int, int]]:
        """The job arrives: (iteration, node) that are ready."""
        return [
            ready for worker in range(len(self.plan.held)) for ready in self._take_turn(worker, 0)
        ]

    def end(self, iteration: int, node: int) -> list[tuple[int, int]]:
        """A task or flow has ended: (iteration, node) that are ready because of it."""
        playing = self._open[iteration]
        ready = []
        for other in self.plan.frees[node]:
            playing.needs[other] -= 1
            if not playing.needs[other]:
                ready.append((iteration, other))
        for worker in self.plan.holds[node]:
            playing.held[worker] -= 1
            if not playing.held[worker] and iteration + 1 < self.plan.job.iterations:
                ready += self._take_turn(worker, iteration + 1)
        playing.left -= 1
        if not playing.left:
            del self._open[iteration]
            self._ended += 1
        return ready

    def waiting(self) -> list[tuple[int, int]]:
        """(iteration, node) that have not started or not ended."""
        return [
            (iteration, node)
            for iteration, playing in self._open.items()
            for node, count in enumerate(playing.needs)
            if count
        ]

    def _take_turn(self, worker: int, iteration: int) -> list[tuple[int, int]]:
        if iteration not in self._open:
            nodes = len(self.plan.needs)
            self._open[iteration] = _Iteration(self.plan.needs.copy(), self.plan.held.copy(), nodes)
        needs = self._open[iteration].needs
        ready = []
        for node in self.plan.begins[worker]:
            needs[node] -= 1
            if not needs[node]:
                ready.append((iteration, node))
        return ready
