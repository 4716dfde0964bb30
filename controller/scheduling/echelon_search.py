"""`echelon-search`: a fixed order of jobs and EchelonFlows, and paths, found by playing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from controller.model.errors import BadInput
from controller.scheduling import ranks, rates
from controller.scheduling.policy import Decision, Floats, Ints, NetworkState, Policy
from controller.scheduling.routing import Pin, Pinned

Item = tuple[str, int]
"A job and the place of an EchelonFlow in it; -1 stands for all of the job's that are not named."
WHOLE = -1
STARTS = 6
"Baselines, the best ones, whose order of jobs is a start."
SMOOTH = "smooth"
RULES = (SMOOTH, "in-order", "in-turn", "srpt", "edf", "fifo")
"""Within a level: `echelon`'s rank with its smooth rule, or in order of ideal finish; that of the
job's oldest EchelonFlow, so that a job's iterations never overtake each other; or flow by flow."""


@dataclass(frozen=True)
class FixedOrder:
    """What the search finds, as a pure policy: levels first, a simple rule within one.

    Source: ours. Complexity: O(n log n + path entries) for n flows. Tie rule: as the policy whose
    rule it is (`echelon`, `echelon-edf`, `srpt`, `edf`, `fifo`; in turn: the older EchelonFlow); a job without a level has level 0.
    """

    level: Mapping[Item, int] = field(default_factory=dict)
    "Level of every item, smaller is served first."
    rule: str = SMOOTH
    "One of `RULES`."
    paths: Mapping[Pin, int] = field(default_factory=dict)
    "Flows whose path is chosen; the others take the least loaded one."
    name: str = "echelon-search"
    local: bool = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks, and a rate for every flow; under all rules but smooth the others are held."""
        level = self._levels(state)
        if self.rule in (SMOOTH, "in-order", "in-turn"):
            formed = ranks.formation(state)
            key = ranks.gamma(state, formed) / state.group_weight
            if self.rule == "in-turn":
                key = _of_oldest(state, key)
            by_key = ranks.positions(ranks.ordered(key, state.group_tie))
            age = state.group_reference if self.rule == "in-turn" else np.zeros(state.groups)
            order = np.lexsort((by_key, age, ranks.rounded(key), level))
            if self.rule == SMOOTH:
                return rates.by_group(state, order, rates.smooth(state, formed, order))
            flows = rates.group_by_group(formed, order)
        else:
            flow_key = {
                "srpt": state.remaining,
                "edf": state.ideal_finish,
                "fifo": state.release,
            }[self.rule]
            flows = np.lexsort((state.tie, state.release, flow_key, level[state.group]))
        return rates.by_flow(flows, rates.in_order(state, flows))

    def _levels(self, state: NetworkState) -> Ints:
        names = [job.name for job in state.jobs]
        whole = [self.level.get((name, WHOLE), 0) for name in names]
        return np.array(
            [
                self.level.get((names[job], index), whole[job])
                for job, index in zip(
                    state.group_job.tolist(), state.group_index.tolist(), strict=True
                )
            ],
            np.int64,
        )

    @property
    def routing(self) -> Pinned | None:
        """What the simulator and the coordinator route by under this policy."""
        return Pinned(self.paths) if self.paths else None

    @property
    def spelled(self) -> str:
        """The order as a policy name that `registry.policy` reads, to hand to another process."""
        items = sorted((job, index, level) for (job, index), level in self.level.items())
        said: dict[str, object] = {"rule": self.rule, "levels": items}
        if self.paths:
            said["paths"] = sorted((*pin, path) for pin, path in self.paths.items())
        return f"{self.name}:{json.dumps(said)}"


def _of_oldest(state: NetworkState, key: Floats) -> Floats:
    """Every group's key replaced by that of the oldest group of its job."""
    oldest_last = np.lexsort((state.group_tie, state.group_reference))[::-1]
    lead = np.empty(len(state.jobs))
    for group in oldest_last.tolist():
        lead[state.group_job[group]] = key[group]
    return lead[state.group_job]


@dataclass(frozen=True)
class Adopted:
    """A baseline that no order tried has beaten, under the search's name."""

    policy: Policy
    "The baseline."
    name: str = "echelon-search"

    @property
    def local(self) -> bool:
        """As the baseline."""
        return self.policy.local

    def decide(self, state: NetworkState) -> Decision:
        """As the baseline."""
        return self.policy.decide(state)

    @property
    def spelled(self) -> str:
        """A policy name that `registry.policy` reads, to hand to another process."""
        return f"{self.name}:{json.dumps({'as': self.policy.name})}"


def read_spelled(text: str, named: Callable[[str], Policy]) -> FixedOrder | Adopted:
    """The policy of `spelled`, given what follows its name. `named` makes a baseline by name.

    Raises BadInput.
    """
    try:
        read = json.loads(text)
        if "as" in read:
            return Adopted(named(read["as"]))
        levels = {(str(job), int(index)): int(level) for job, index, level in read["levels"]}
        rule = RULES[RULES.index(read["rule"])]
        paths = {
            (str(src), str(dst), str(key)): int(path)
            for src, dst, key, path in read.get("paths", ())
        }
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{text!r} is no order that echelon-search wrote ({error})") from None
    return FixedOrder(levels, rule, paths)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a workload went under a policy."""

    cost: float
    "What the search makes small: the mean slowdown."
    slowdown: Mapping[str, float]
    "Job -> slowdown."


Routes = Mapping[str, Sequence[Mapping[Pin, int]]]
"Job -> ways to choose the paths of its flows."

Player = Callable[[Policy], Outcome]
"Plays a workload under a policy. Handed in, so that scheduling needs no simulator."


@dataclass(frozen=True, slots=True)
class Found:
    """What a search ends with."""

    policy: FixedOrder | Adopted
    "The best policy: an order, or the baseline that no order tried has beaten."
    outcome: Outcome
    "How it went."
    baseline: str
    "The best baseline."
    baseline_cost: float
    "Its cost: `outcome.cost` is never above it."
    evaluations: int
    "How often a workload was played."


def search(
    player: Player,
    baselines: Iterable[Policy],
    items: Mapping[str, int],
    starts: Iterable[Mapping[Item, int]] = (),
    budget: int = 200,
    seed: int = 0,
    routes: Routes | None = None,
) -> Found:
    """Search the orders of jobs and EchelonFlows for the least cost; seeded, deterministic.

    `items` gives the number of EchelonFlows of every job; `starts` are orders of jobs (all of
    them), or of EchelonFlows, that are worth a try; `routes` are ways for each job (of all jobs, or
    none) to choose its paths. Plays each baseline; then, under every rule, no order and, under the
    best two, the orders of jobs that each baseline served best to worst, and `starts`, alone and
    within those orders of jobs; the best of these with every job's first, second, .. choice of
    paths; then improves the best by local moves: a job or one of its EchelonFlows moves to
    another's level or just before or after it, two jobs change places, the rule changes, or a job
    chooses its paths otherwise. At most `budget` plays beyond the baselines. The result is never
    worse than the best baseline.

    Source: ours (algorithms.md, section 4); hill climbing with plateau moves.
    """
    played = {policy.name: (policy, player(policy)) for policy in baselines}
    if not played:
        raise BadInput("the search needs at least one baseline to start from")
    best_name = min(played, key=lambda name: played[name][1].cost)
    climb = _Climb(player, dict(items), budget, np.random.default_rng(seed), routes or {})
    plain = {rule: climb.consider({}, rule) for rule in RULES}
    rules = sorted(RULES, key=lambda rule: plain[rule])[:2]
    lines = []
    for _, outcome in sorted(played.values(), key=lambda entry: entry[1].cost)[:STARTS]:
        lines.append(sorted(items, key=lambda job: outcome.slowdown[job]))  # stable: as listed
    starts = list(starts)
    lines = [_line(start) for start in starts if _of_whole_jobs(start)] + lines
    starts = [start for start in starts if not _of_whole_jobs(start)]
    for rule in rules:
        for line in lines:
            climb.consider({(job, WHOLE): k for k, job in enumerate(line)}, rule)
        for start in starts:
            climb.consider(start, rule)
            for line in lines:
                climb.consider(_within(line, start), rule)
    for choice in range(max(map(len, climb.routes.values()), default=0)):
        chosen = {job: choice % len(ways) for job, ways in climb.routes.items()}
        for rule in rules:
            climb.consider(climb.level, rule, chosen)
    climb.run()
    baseline, outcome = played[best_name]
    evaluations = len(played) + climb.evaluations
    if climb.best is not None and climb.best.cost < outcome.cost:
        order = climb.order(climb.level, climb.rule, climb.route)
        return Found(order, climb.best, best_name, outcome.cost, evaluations)
    return Found(Adopted(baseline), outcome, best_name, outcome.cost, evaluations)


@dataclass
class _Climb:
    """The order the search stands on, and how it moves."""

    player: Player
    items: dict[str, int]
    budget: int
    random: np.random.Generator
    routes: Routes
    level: dict[Item, int] = field(default_factory=dict)
    rule: str = SMOOTH
    route: dict[str, int] = field(default_factory=dict)
    "Job -> which of its `routes`; a job that is not named takes the least loaded paths."
    best: Outcome | None = None
    evaluations: int = 0
    _tried: set[tuple[object, ...]] = field(default_factory=set)

    def order(self, level: Mapping[Item, int], rule: str, route: Mapping[str, int]) -> FixedOrder:
        """The policy of an order and a choice of paths."""
        paths: dict[Pin, int] = {}
        for job, choice in sorted(route.items()):
            paths |= self.routes[job][choice]
        return FixedOrder(level, rule, paths)

    def consider(
        self, order: Mapping[Item, int], rule: str, route: Mapping[str, int] | None = None
    ) -> float:
        """Play an order, by the present routes unless others are given, unless it was played
        before; stand on it if it is no worse. Its cost, or inf where it was not played."""
        level, route = _compact(order), dict(self.route if route is None else route)
        key = (rule, *sorted(level.items()), *sorted(route.items()))
        if key in self._tried or self.evaluations >= self.budget:
            return float("inf")
        self._tried.add(key)
        self.evaluations += 1
        outcome = self.player(self.order(level, rule, route))
        if self.best is None or outcome.cost <= self.best.cost:
            self.level, self.rule, self.route, self.best = level, rule, route, outcome
        return outcome.cost

    def run(self) -> None:
        """Move until the budget is spent, or moves lead nowhere new."""
        idle = 0
        while self.evaluations < self.budget and idle < 200:
            before = self.evaluations
            if self.routes and self.random.random() < 0.3:
                self.consider(self.level, self.rule, self._rerouted())
            else:
                self.consider(*self._moved())
            idle = idle + 1 if self.evaluations == before else 0

    def _rerouted(self) -> dict[str, int]:
        names = list(self.routes)
        job = names[int(self.random.integers(len(names)))]
        choice = int(self.random.integers(-1, len(self.routes[job])))
        others = {name: chosen for name, chosen in self.route.items() if name != job}
        return others if choice < 0 else others | {job: choice}

    def _moved(self) -> tuple[dict[Item, int], str]:
        # Levels are doubled, so that there is room before and after each.
        level = {(job, WHOLE): 2 * self.level.get((job, WHOLE), 0) for job in self.items}
        level |= {item: 2 * place for item, place in self.level.items()}
        kind = self.random.random()
        if kind < 0.1:
            return level, RULES[int(self.random.integers(len(RULES)))]
        item = self._item()
        other = self._item() if kind < 0.3 else (self._job(), WHOLE)
        if kind < 0.5 and item[1] == WHOLE and other[1] == WHOLE:
            level[item], level[other] = level[other], level[item]
        else:
            target = level.get(other, level[other[0], WHOLE])
            level[item] = target + int(self.random.integers(-1, 2))
        return level, self.rule

    def _job(self) -> str:
        names = list(self.items)
        return names[int(self.random.integers(len(names)))]

    def _item(self) -> Item:
        job = self._job()
        if self.items[job] < 2 or self.random.random() < 0.6:
            return job, WHOLE
        return job, int(self.random.integers(self.items[job]))


def _of_whole_jobs(start: Mapping[Item, int]) -> bool:
    return all(index == WHOLE for _, index in start)


def _line(start: Mapping[Item, int]) -> list[str]:
    return [job for job, _ in sorted(start, key=lambda item: start[item])]


def _within(line: list[str], start: Mapping[Item, int]) -> dict[Item, int]:
    """Jobs in `line`, the EchelonFlows of each in the order of `start`."""
    place = {job: k for k, job in enumerate(line)}
    width = 1 + max(start.values(), default=0)
    inner = {item: place[item[0]] * width + value for item, value in start.items()}
    return {(job, WHOLE): k * width for job, k in place.items()} | inner


def _compact(level: Mapping[Item, int]) -> dict[Item, int]:
    """The same order on levels 0, 1, 2, ...; an EchelonFlow on its job's level is not named."""
    place = {value: k for k, value in enumerate(sorted(set(level.values()) or {0}))}
    return {
        (job, index): place[value]
        for (job, index), value in level.items()
        if index == WHOLE or value != level.get((job, WHOLE))
    }
