"""The search of `echelon-search`: where it starts, and what it ends with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from controller.model.errors import BadInput
from controller.scheduling.climb import Climb, Outcome, Player, Routes, Stand
from controller.scheduling.echelon_search import RULES, WHOLE, Adopted, FixedOrder, Item
from controller.scheduling.policy import Policy

LINES = 3
"Baselines, the best ones, whose order of jobs is a start."


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
    lines: Sequence[Sequence[str]] = (),
    inner: Mapping[Item, int] | None = None,
    budget: int = 200,
    seed: int = 0,
    routes: Routes | None = None,
    rivals: Mapping[str, Sequence[str]] | None = None,
) -> Found:
    """Search the orders of jobs and EchelonFlows for the least cost; seeded, deterministic.

    `items` gives the number of EchelonFlows of every job; `lines` are orders of jobs that are worth
    a try, `inner` levels of the EchelonFlows within their jobs; `routes` are ways for each job that
    has a choice to choose its paths; `rivals` tells which jobs share a link (all, unless given).

    Plays each baseline; then every rule without an order; under the best two `lines` and the
    orders of jobs that the best baselines served best to worst, each with `inner` and
    without; the best of these with every way of paths. Then it climbs (`Climb`). At most
    `budget` plays beyond the baselines. The result is never worse than the best baseline.

    Source: ours (algorithms.md, section 4).
    """
    played = [(policy, player(policy)) for policy in baselines]
    if not played:
        raise BadInput("the search needs at least one baseline to start from")
    played.sort(key=lambda entry: entry[1].cost)
    known = {job: [other for other in items if other != job] for job in items}
    climb = Climb(player, items, rivals or known, routes or {}, budget, np.random.default_rng(seed))
    served = [sorted(items, key=lambda job: outcome.slowdown[job]) for _, outcome in played[:LINES]]
    _start(climb, [*lines, *served], inner or {})
    if climb.best_outcome is not None:
        climb.run()
    baseline, outcome = played[0]
    found: FixedOrder | Adopted = Adopted(baseline)
    cost, evaluations = outcome.cost, len(played) + climb.plays
    if climb.best_outcome is not None and climb.best_outcome.cost < cost:
        found, outcome = climb.order(climb.best), climb.best_outcome
    return Found(found, outcome, baseline.name, cost, evaluations)


def _start(climb: Climb, lines: Sequence[Sequence[str]], inner: Mapping[Item, int]) -> None:
    """Let the climb stand on the best of the starts."""
    plain = {rule: climb.consider(Stand(rule=rule)) for rule in RULES}
    for rule in sorted(RULES, key=lambda rule: plain[rule])[:2]:
        for line in lines:
            for within in ({}, inner):
                climb.consider(Stand(_levels(line, within), rule))
    for choice in range(max(map(len, climb.routes.values()), default=0)):
        chosen = {job: choice % len(ways) for job, ways in climb.routes.items()}
        climb.consider(replace(climb.best, route=chosen))


def _levels(line: Sequence[str], inner: Mapping[Item, int]) -> dict[Item, int]:
    """Jobs in `line`, the EchelonFlows of each in the order of `inner`."""
    width = 1 + max(inner.values(), default=0)
    place = {job: k * width for k, job in enumerate(line)}
    named = {item: place[item[0]] + level for item, level in inner.items()}
    return {(job, WHOLE): level for job, level in place.items()} | named
