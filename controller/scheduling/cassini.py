"""`cassini`: whole jobs are shifted in time so that their communication phases interleave."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from controller.scheduling.maxmin import max_min
from controller.scheduling.policy import Decision, Floats, JobState, NetworkState

SHIFTS = 36
"Shifts of a job that are tried, evenly over its period."
SAMPLES = 1440
"Instants of the joint period at which demands are added up."
PERIODS = 16
"The joint period is cut at so many periods of the slowest job."
ROUNDS = 3
"How often every job may change its shift."
GONE = 3.0
"A job that sends nothing for so many periods has left."
DRIFT = 0.05
"A phase that begins late by less than this share of its period is left alone."


@dataclass(frozen=True, slots=True)
class Circle:
    """A job as Cassini sees it: silent, then communicating, once a period."""

    period: float
    "Seconds of an iteration on the idle fabric."
    busy: float
    "Seconds from its first byte to its last, silence left out."
    demand: dict[int, float]
    "bit/s that it asks of each link while busy."


AT_ONCE = 1e-9
"Seconds: a slot that comes so soon has come, or who plays us would ask again at the same instant."


class Cassini:
    """Jobs are rotated on the circle of their joint period; the phase of a job then begins at its
    slot and is held until the next one where it would begin more than 5 % of a period late.
    Flows that may send share max-min and are not paced. Not work-conserving, by design.

    Source: Rajasekaran et al., "CASSINI: network-aware job scheduling in machine learning
    clusters", NSDI 2024: score = 1 - mean(max(0, sum of demands - C)) / C per link. Here the
    shifts are found for all links at once by coordinate descent instead of link by link over an
    affinity graph, and placement is left out (hosts are given). Complexity: O(rounds * jobs *
    samples * (shifts + links of the job that others use)), when a job comes or goes (the one
    policy that remembers: who was there), then max-min. Tie rule: of
    equal shifts the smallest; jobs by traffic, then by their place in the state.
    """

    name = "cassini"
    local = False  # it holds flows that contend with nobody now
    rhythmic = True  # looks at `alone_s`, `silent_s` and `first_group` of the jobs

    def __init__(self) -> None:
        # A job that computes has no flow in the state: those seen of late are remembered.
        self._present: dict[int, tuple[JobState, float]] = {}
        self._shift: dict[int, float] = {}

    def decide(self, state: NetworkState) -> Decision:
        """One rank for all; the flows of a phase whose slot has not come are held until it has."""
        begins = self._begins(state)
        held = begins > state.time + AT_ONCE
        pace = np.where(held[state.group], 0.0, np.inf)
        return Decision(
            rank=np.zeros(state.flows, np.int64),
            rate=max_min(state, pace),
            pace=pace,
            valid_until=float(begins[held].min(initial=np.inf)),
        )

    def _begins(self, state: NetworkState) -> Floats:
        """(groups,) when each EchelonFlow may begin to send, in seconds."""
        begins = np.full(state.groups, -np.inf)
        shift = self._shifts(state)
        for group, job in enumerate(state.group_job.tolist()):
            seen = state.jobs[job]
            begin = shift[id(seen)]
            if begin >= 0 and state.group_index[group] == seen.first_group:
                late = (state.group_reference[group] - begin) % seen.alone_s
                if late > DRIFT * seen.alone_s:
                    begins[group] = state.group_reference[group] + seen.alone_s - late
        return begins

    def _shifts(self, state: NetworkState) -> dict[int, float]:
        """Shift by id of the job, found anew when a job comes or has been silent for long."""
        before = set(self._present)
        for job in state.jobs:
            self._present[id(job)] = job, state.time
        for key, (job, seen) in list(self._present.items()):
            if state.time - seen > GONE * job.alone_s:
                del self._present[key]
        if set(self._present) != before:
            jobs = [job for job, _ in self._present.values()]
            self._shift = dict(zip(self._present, shifts(jobs, state.capacity), strict=True))
        return self._shift


def shifts(jobs: list[JobState], capacity: Floats) -> list[float]:
    """The shift of every job in seconds; -1 where it contends with none or has no silence."""
    out = [-1.0] * len(jobs)
    circles = {
        j: circle(job)
        for j, job in enumerate(jobs)
        if job.silent_s > 0 and any(_contend(job, other) for other in jobs if other is not job)
    }
    if len(circles) < 2:
        return out
    for j, shift in rotate(circles, capacity).items():
        out[j] = shift
    return out


def circle(job: JobState) -> Circle:
    """A job's circle: its bytes spread evenly over all of the iteration but the silence."""
    busy = max(job.alone_s - job.silent_s, 1e-3 * job.alone_s)
    return Circle(job.alone_s, busy, {e: 8 * b / busy for e, b in job.link_bytes.items()})


def rotate(circles: dict[int, Circle], capacity: Floats) -> dict[int, float]:
    """The shift of each circle, in seconds, that makes the score greatest; a local optimum."""
    period = joint_period([c.period for c in circles.values()])
    times: Floats = np.arange(SAMPLES, dtype=np.float64) * (period / SAMPLES)
    turns = {j: _turns(c, times) for j, c in circles.items()}
    asked = {
        j: {link: min(bits, capacity[link]) for link, bits in sorted(c.demand.items())}
        for j, c in circles.items()
    }
    order = sorted(circles, key=lambda j: (-sum(asked[j].values()) * circles[j].busy, j))
    users = Counter(link for links in asked.values() for link in links)
    shared = sorted(link for link, count in users.items() if count > 1)  # the others never overflow
    limit = capacity[shared][:, None]
    demand = {j: np.array([asked[j].get(link, 0.0) for link in shared])[:, None] for j in order}
    total = np.zeros((len(shared), SAMPLES))
    turn: dict[int, int] = {}
    for _ in range(ROUNDS):
        for j in order:
            mine = np.flatnonzero(demand[j])  # on the other links all shifts are alike
            bits = demand[j][mine]
            if j in turn:
                total[mine] -= bits * turns[j][turn[j]]
            excess = overflow(total[mine], bits, limit[mine], turns[j])
            turn[j] = int(np.argmin(np.round(excess, 12)))
            total[mine] += bits * turns[j][turn[j]]
    return {j: circles[j].period * turn[j] / SHIFTS for j in order}


def overflow(total: Floats, asked: Floats, limit: Floats, turns: Floats) -> Floats:
    """(shifts,) by how much one more job makes links overflow, shift by shift: the sum over links
    of mean(max(0, sum of demands - C)) / C, less what it was without the job.

    `total` is (links, instants) bit/s, `asked` and `limit` (links, 1) bit/s, `turns` (shifts,
    instants) 1 where the job is busy, else 0. So an instant costs the same whichever shift makes
    the job busy then, and is counted once for all of them.
    """
    without = np.maximum(0.0, total - limit)
    added = (np.maximum(0.0, total + asked - limit) - without) / limit
    excess: Floats = turns @ added.sum(axis=0) / total.shape[1]
    return excess


def joint_period(periods: list[float]) -> float:
    """The least common multiple of periods, each taken as a simple fraction (denominator <= 12) of
    the slowest; cut at 16 of it."""
    slowest = max(periods)
    parts = [Fraction(period / slowest).limit_denominator(12) for period in periods]
    parts = [part for part in parts if part > 0]
    multiple = math.lcm(*(p.numerator for p in parts)) / math.gcd(*(p.denominator for p in parts))
    return min(multiple, PERIODS) * slowest


def _turns(circle: Circle, times: Floats) -> Floats:
    """(shifts, instants) 1 where the job is busy."""
    shift = circle.period * np.arange(SHIFTS)[:, None] / SHIFTS
    out: Floats = ((times - shift) % circle.period < circle.busy).astype(float)
    return out


def _contend(job: JobState, other: JobState) -> bool:
    return not job.link_bytes.keys().isdisjoint(other.link_bytes)
