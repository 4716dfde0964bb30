"""Refuting: how low no schedule's mean slowdown is, by branch and bound over when each job ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controller.scheduling.policy import Floats
from controller.simulator.windows import Unrolled, narrow

CLAIMS = 10
"Means that are tried, about: each may take so many times less than the whole effort."
PASSES = 10
"Passes over all resources for which a claim's effort must suffice, or none is tried."
FINEST = 0.001
"Of the mean, between the last two that are tried."
THIN = 0.003
"Of a job's least time, within which its end is not told apart any further."
TRIED = 8
"Jobs whose end is tried as the one to branch on."


@dataclass(frozen=True, slots=True)
class Box:
    """Slowdowns of the jobs: those of every schedule lie in one of the boxes that remain."""

    least: Floats
    "(jobs,) at least."
    most: Floats
    "(jobs,) at most."

    def halves(self, job: int, at: float) -> tuple[Box, Box]:
        """One where the job ends sooner, and one where it ends later."""
        least, most = self.least.copy(), self.most.copy()
        least[job] = most[job] = at
        return Box(self.least, most), Box(least, self.most)


class Refuter:
    """Refutes claims that some schedule has a mean slowdown below a value."""

    def __init__(self, graph: Unrolled, arrival: Floats, unit: Floats, least: Floats) -> None:
        """`arrival`, `unit` (what a slowdown of 1 takes) and `least` are (jobs,) seconds."""
        self._graph, self._arrival, self._unit = graph, arrival, unit
        self._thin = THIN * least / unit
        self._all = Box(least / unit, np.full(len(unit), np.inf))
        self._steps = 0

    def climb(self, mean: float, effort: int) -> float:
        """The highest mean found that no schedule is below, from one that is known to be so.

        `effort` is the number of steps, each about a comparison of two flows on one resource.
        What more of it finds is never lower: the same means are tried until one more is refuted.
        """
        if effort // CLAIMS < PASSES * self._graph.comparisons:
            return mean
        finest = rise = mean * FINEST
        faster = True
        while rise >= finest:
            if self.refuted(mean + rise, effort // CLAIMS):
                mean += rise
            else:
                faster = False
            rise = rise * 2 if faster else rise / 2
        return mean

    def refuted(self, mean: float, effort: int) -> bool:
        """Whether it is shown that no schedule is below `mean`: boxes, cut in two until empty."""
        self._steps, left = 0, [self._all]
        while left:
            within = self._within(left.pop(), mean)
            if within is None:
                continue
            cut = self._cut(within, mean)
            if cut is None or self._steps > effort:
                return False
            left += reversed(within.halves(*cut))
        return True

    def _within(self, box: Box, mean: float) -> Box | None:
        """The part of a box that may hold a schedule below `mean`, if any."""
        total = mean * len(self._unit)
        most = np.minimum(box.most, box.least + total - box.least.sum())
        if np.any(most < box.least):
            return None
        head, steps = narrow(self._graph, self._arrival + most * self._unit)
        self._steps += steps
        if head is None:
            return None
        ends = (self._graph.ends(head, len(most)) - self._arrival) / self._unit
        least = np.maximum(box.least, ends)
        most = np.minimum(most, least + total - least.sum())
        return None if np.any(most < least) else Box(least, most)

    def _cut(self, box: Box, mean: float) -> tuple[int, float] | None:
        """The job and the slowdown to cut a box at; None: it is too thin in every direction.

        Of the widest, the job whose end in the first half tells most of the others' ends.
        """
        width = box.most - box.least
        best, cut = -np.inf, None
        for job in np.argsort(-width, kind="stable")[:TRIED]:
            if width[job] < self._thin[job]:
                break
            middle = float(box.least[job] + width[job] / 2)
            sooner = self._within(box.halves(job, middle)[0], mean)
            if sooner is None:
                return int(job), middle
            if sooner.least.sum() > best:
                best, cut = sooner.least.sum(), (int(job), middle)
        return cut
