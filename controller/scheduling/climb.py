"""The climb of `echelon-search`: from an order of jobs and EchelonFlows to better ones, by moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controller.scheduling.echelon_search import RULES, SMOOTH, WHOLE, FixedOrder, Item
from controller.scheduling.policy import Policy
from controller.scheduling.routing import Pin

LATE = 0.01
"A move is taken that is no worse than where the climb stood this share of the budget ago."
IDLE = 200
"Moves in a row that lead nowhere new, after which there is nothing left to try."


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a workload went under a policy."""

    cost: float
    "What the search makes small: the mean slowdown."
    slowdown: Mapping[str, float]
    "Job -> slowdown."


Player = Callable[[Policy], Outcome]
"Plays a workload under a policy. Handed in, so that scheduling needs no simulator."

Routes = Mapping[str, Sequence[Mapping[Pin, int]]]
"Job -> ways to choose the paths of its flows."


@dataclass(frozen=True, slots=True)
class Stand:
    """An order and a choice of paths."""

    level: Mapping[Item, int] = field(default_factory=dict)
    "See `FixedOrder`."
    rule: str = SMOOTH
    "One of `RULES`."
    route: Mapping[str, int] = field(default_factory=dict)
    "Job -> which of its `Routes`; a job that is not named takes the least loaded paths."


@dataclass
class Climb:
    """Where the search stands, and the best it has seen."""

    player: Player
    items: Mapping[str, int]
    "Job -> its number of EchelonFlows."
    rivals: Mapping[str, Sequence[str]]
    "Job -> those it shares a link with; a job without any is never moved."
    routes: Routes
    budget: int
    "Plays."
    random: np.random.Generator
    stand: Stand = field(default_factory=Stand)
    outcome: Outcome | None = None
    "Of `stand`."
    best: Stand = field(default_factory=Stand)
    best_outcome: Outcome | None = None
    plays: int = 0
    _tried: set[tuple[object, ...]] = field(default_factory=set)

    def order(self, stand: Stand) -> FixedOrder:
        """The policy of an order and a choice of paths."""
        paths: dict[Pin, int] = {}
        for job, choice in sorted(stand.route.items()):
            paths |= self.routes[job][choice]
        return FixedOrder(stand.level, stand.rule, paths)

    def consider(self, stand: Stand, at_most: float | None = None) -> float:
        """Play it unless it was played before, and stand on it if its cost is no higher than
        `at_most`, or that of the best. Its cost, or inf where it was not played."""
        stand = Stand(compact(stand.level), stand.rule, stand.route)
        key = (stand.rule, *sorted(stand.level.items()), *sorted(stand.route.items()))
        if key in self._tried or self.plays >= self.budget:
            return float("inf")
        self._tried.add(key)
        self.plays += 1
        outcome = self.player(self.order(stand))
        if self.best_outcome is None or outcome.cost <= self.best_outcome.cost:
            self.best, self.best_outcome = stand, outcome
            self.stand, self.outcome = stand, outcome
        elif at_most is not None and outcome.cost <= at_most:
            self.stand, self.outcome = stand, outcome
        return outcome.cost

    def run(self) -> None:
        """Move until the budget is spent, or moves lead nowhere new.

        Late acceptance: Burke, Bykov, "The late acceptance hill-climbing heuristic", European
        Journal of Operational Research 258 (2017).
        """
        assert self.outcome is not None, "something has been considered"
        past = [self.outcome.cost] * max(1, round(LATE * self.budget))
        idle = move = 0
        while self.plays < self.budget and idle < IDLE:
            before = self.plays
            at = move % len(past)
            self.consider(self._moved(), max(past[at], self.outcome.cost))
            if self.plays == before:
                idle += 1
                continue
            past[at] = self.outcome.cost
            idle, move = 0, move + 1

    def _moved(self) -> Stand:
        """The stand after one move."""
        stand, kind = self.stand, self.random.random()
        if kind < 0.05:
            return Stand(stand.level, self._one_of(RULES), stand.route)
        if kind < 0.3 and self.routes:
            return Stand(stand.level, stand.rule, self._rerouted())
        # Levels are doubled, so that there is room before and after each.
        level = {(job, WHOLE): 2 * stand.level.get((job, WHOLE), 0) for job in self.items}
        level |= {item: 2 * place for item, place in stand.level.items()}
        job, rival = self._pair()
        item, other = self._item_of(job), self._item_of(rival)
        if item[1] != WHOLE:
            target = level.get(other, level[rival, WHOLE])
            level[item] = target + int(self.random.integers(-1, 2))
        elif self.random.random() < 0.3:
            self._shift(level, job, level[rival, WHOLE] - level[job, WHOLE], rival)
        else:
            step = level.get(other, level[rival, WHOLE]) - level[job, WHOLE]
            self._shift(level, job, step + int(self.random.integers(-1, 2)))
        return Stand(level, stand.rule, stand.route)

    def _shift(self, level: dict[Item, int], job: str, step: int, rival: str = "") -> None:
        """All of a job moves by a step, and all of its rival, if one is given, by the opposite."""
        for item in level:
            if item[0] == job:
                level[item] += step
            elif item[0] == rival:
                level[item] -= step

    def _pair(self) -> tuple[str, str]:
        """A job that moves and a rival of it (or itself: EchelonFlows of one job move too). One of
        the two is chosen by how much it is slowed down."""
        assert self.outcome is not None
        names = [job for job in self.items if self.rivals[job]] or list(self.items)
        slowed = np.array([self.outcome.slowdown[job] for job in names])
        weight = np.maximum(slowed - 1.0, 0.0) + 0.2 * max(self.outcome.cost - 1.0, 1e-3)
        job = names[int(self.random.choice(len(names), p=weight / weight.sum()))]
        rival = self._one_of([job, *self.rivals[job]])
        return (job, rival) if self.random.random() < 0.5 else (rival, job)

    def _item_of(self, job: str) -> Item:
        if self.items[job] < 2 or self.random.random() < 0.6:
            return job, WHOLE
        return job, int(self.random.integers(self.items[job]))

    def _rerouted(self) -> dict[str, int]:
        job = self._one_of(list(self.routes))
        choice = int(self.random.integers(-1, len(self.routes[job])))
        others = {name: chosen for name, chosen in self.stand.route.items() if name != job}
        return others if choice < 0 else others | {job: choice}

    def _one_of(self, names: Sequence[str]) -> str:
        return names[int(self.random.integers(len(names)))]


def compact(level: Mapping[Item, int]) -> dict[Item, int]:
    """The same order on levels 0, 1, 2, ...; an EchelonFlow on its job's level is not named."""
    place = {value: k for k, value in enumerate(sorted(set(level.values()) or {0}))}
    return {
        (job, index): place[value]
        for (job, index), value in level.items()
        if index == WHOLE or value != level.get((job, WHOLE))
    }
