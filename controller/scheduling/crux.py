"""`crux`: the job whose traffic keeps the most computing waiting is served first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from controller.scheduling import rates
from controller.scheduling.policy import Decision, Floats, Ints, JobState, NetworkState

LEVELS = 8
"Priority levels of a switch port."
ORDERS = 10
"Topological orders of the contention graph that are tried for the cut."
PERIODS = 30
"Length of a what-if, in iterations of the slower job."


@dataclass(frozen=True, slots=True)
class Alternation:
    """A job as Crux sees it: it computes, then communicates, and again."""

    compute: float
    "Seconds of an iteration in which its busiest link is idle."
    link: float
    "Seconds of an iteration in which its busiest link is busy."


class Crux:
    """GPU intensity I = work / link time of an iteration, corrected by k from pairwise what-ifs
    against the job with most traffic of those in the state, cut into 8 levels; within a level flows share max-min.

    Source: Cao et al., "Crux: GPU-efficient communication scheduling for deep learning training",
    SIGCOMM 2024; its path selection is left out (paths are given here). Hosts are not paced.
    Complexity: O(j^2 * 8 * ORDERS) for j jobs, remembered while the jobs are the same, then
    max-min. Tie rule: jobs of equal priority go by their place in the state; the orders tried are
    seeded.
    """

    name = "crux"
    local = True
    rhythmic = True  # looks at `alone_s`, `silent_s` and `first_group` of the jobs

    def __init__(self) -> None:
        self._seen: dict[tuple[int, ...], tuple[list[JobState], Ints]] = {}

    def decide(self, state: NetworkState) -> Decision:
        """Ranks are levels, shared by all flows of a job."""
        rank = self._levels(state)[state.group_job[state.group]]
        return rates.by_level(state, rank)

    def _levels(self, state: NetworkState) -> Ints:
        # An answer remembered, not a state: the jobs are kept so that their ids stay theirs.
        key = tuple(map(id, state.jobs))
        if key not in self._seen:
            if len(self._seen) > 1000:
                self._seen.clear()
            self._seen[key] = state.jobs, levels(state.jobs, state.capacity, LEVELS)
        return self._seen[key][1]


def levels(jobs: list[JobState], capacity: Floats, count: int) -> Ints:
    """The level of every job, 0 first, at most `count` of them."""
    seen = [alternation(job, capacity) for job in jobs]
    intensity = np.array(
        [job.work / a.link if a.link > 0 else np.inf for job, a in zip(jobs, seen, strict=True)]
    )
    traffic = [sum(job.link_bytes.values()) for job in jobs]
    reference = seen[int(np.argmax(traffic))]
    priority = np.array([correction(a, reference) for a in seen]) * intensity
    order = np.argsort(-priority, kind="stable")
    return compressed(order, intensity, _contention(jobs), count)


def alternation(job: JobState, capacity: Floats) -> Alternation:
    """Link time of the busiest link; the rest of an iteration alone is computing."""
    link = max((8 * b / max(capacity[e], 1e-9) for e, b in job.link_bytes.items()), default=0.0)
    compute = max(0.0, job.alone_s - link) if job.alone_s > 0 else job.compute_s
    return Alternation(compute, float(link))


@lru_cache(maxsize=10_000)
def correction(job: Alternation, reference: Alternation) -> float:
    """k: link time the job gains by going first, for each second the reference job loses."""
    horizon = PERIODS * max(job.compute + job.link, reference.compute + reference.link)
    mine_first, other_second = what_if(job, reference, horizon)
    other_first, mine_second = what_if(reference, job, horizon)
    gain, loss = mine_first - mine_second, other_first - other_second
    return gain / loss if gain > 1e-9 * horizon and loss > 1e-9 * horizon else 1.0


def what_if(first: Alternation, second: Alternation, horizon: float) -> tuple[float, float]:
    """Seconds of one link that two jobs get in `horizon` seconds under strict priority.

    Both start computing at 0. Raises nothing; a job that never sends gets 0.
    """
    got = [0.0, 0.0]
    jobs = (first, second)
    if min(job.compute + job.link for job in jobs) <= 0:
        return got[0], got[1]
    now = 0.0
    computing = [True, True]
    left = [first.compute, second.compute]
    while now < horizon - 1e-12 * horizon:
        on_link = next((i for i in (0, 1) if not computing[i]), None)
        moving = [i for i in (0, 1) if computing[i] or i == on_link]
        step = min(horizon - now, *(left[i] for i in moving))
        now += step
        for i in moving:
            left[i] -= step
            if not computing[i]:
                got[i] += step
            if left[i] <= 1e-12 * horizon:
                computing[i] = not computing[i]
                left[i] = jobs[i].compute if computing[i] else jobs[i].link
    return got[0], got[1]


def compressed(order: Ints, intensity: Floats, contention: Ints, count: int) -> Ints:
    """Levels by max-K-cut: jobs that contend should differ in level, the intense ones above all.

    `order` is by priority; `contention` (jobs, jobs) is true where two jobs share a link. Tries
    topological orders of the graph whose edges run from the higher to the lower priority, and
    cuts each into runs by dynamic programming so that the least weight stays inside a run. An
    edge weighs the intensity of its upper job.
    """
    jobs = len(order)
    place = np.empty(jobs, np.int64)
    place[order] = np.arange(jobs)
    if jobs <= count:
        return place
    above = place[:, None] < place[None, :]
    finite = np.where(np.isfinite(intensity), intensity, 0.0)
    weight = np.where(contention & above, finite[:, None], 0.0)
    before = contention & above
    random = np.random.default_rng(0)
    best, answer = np.inf, place
    for attempt in range(ORDERS):
        line = order if attempt == 0 else _topological(before, random)
        inside, level = _cut(weight[np.ix_(line, line)], count)
        if inside < best - 1e-12:
            best, answer = inside, np.empty(jobs, np.int64)
            answer[line] = level
    return answer


def _contention(jobs: list[JobState]) -> Ints:
    links = {link: k for k, link in enumerate({link for job in jobs for link in job.link_bytes})}
    uses = np.zeros((len(jobs), len(links)))
    for j, job in enumerate(jobs):
        uses[j, [links[link] for link in job.link_bytes]] = 1.0
    out: Ints = (uses @ uses.T > 0) & ~np.eye(len(jobs), dtype=bool)
    return out


def _topological(before: Ints, random: np.random.Generator) -> Ints:
    waiting = before.sum(axis=0)
    ready = [int(j) for j in np.flatnonzero(waiting == 0)]
    line = []
    while ready:
        job = ready.pop(int(random.integers(len(ready))))
        line.append(job)
        waiting -= before[job]
        ready += np.flatnonzero(before[job] & (waiting == 0)).tolist()
    return np.array(line)


def _cut(weight: Floats, count: int) -> tuple[float, Ints]:
    """Cut a line of jobs into at most `count` runs: least weight inside them, level of each."""
    jobs = len(weight)
    total = np.zeros((jobs + 1, jobs + 1))
    total[1:, 1:] = weight.cumsum(axis=0).cumsum(axis=1)
    own = np.diag(total)
    run = own[:, None] - total.T - total + own  # [end, begin]: inside begin .. end - 1
    run[np.triu_indices(jobs + 1)] = np.inf
    best = np.full((count + 1, jobs + 1), np.inf)
    start = np.zeros((count + 1, jobs + 1), np.int64)
    best[0, 0] = 0.0
    for k in range(1, count + 1):
        cost = best[k - 1] + run
        start[k] = np.argmin(cost, axis=1)
        best[k] = cost[np.arange(jobs + 1), start[k]]
    level = np.zeros(jobs, np.int64)
    end = jobs
    runs = int(np.argmin(best[:, jobs]))
    for k in range(runs, 0, -1):
        level[start[k, end] : end] = k - 1
        end = start[k, end]
    return float(best[runs, jobs]), level
