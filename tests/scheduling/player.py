"""A tiny fluid player of released flows, kept naive so that it can check policies and simulator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from controller.scheduling.policy import Decision, JobState, NetworkState, Policy


@dataclass(frozen=True)
class Transfer:
    """One released flow."""

    group: int
    "Its EchelonFlow, 0..G-1."
    bits: float
    "Size in bits (so that a link of capacity 1 moves 1 a second)."
    release: float
    "When it becomes ready, in seconds."
    offset: float = 0.0
    "a_j, from the EchelonFlow's first release."
    path: tuple[int, ...] = (0,)
    "Links."


@dataclass
class Played:
    """What happened."""

    finish: np.ndarray
    "(flows,) seconds."
    history: list[tuple[float, float, np.ndarray]] = field(default_factory=list)
    "(from, to, rate of every transfer) of each interval."


def state_of(
    transfers: list[Transfer],
    active: list[int],
    remaining: np.ndarray,
    now: float,
    capacity: list[float],
    weights: list[float] | None = None,
    jobs: list[int] | None = None,
    tie: list[int] | None = None,
) -> NetworkState:
    """The state a policy sees of some transfers that are active."""
    groups = sorted({transfers[i].group for i in active})
    row = {g: k for k, g in enumerate(groups)}
    reference = [min(t.release for t in transfers if t.group == g) for g in groups]
    sent = [
        sum((t.bits - left) / 8 for t, left in zip(transfers, remaining) if t.group == g)
        for g in groups
    ]
    links = [transfers[i].path for i in active]
    count = 1 + max((t.group for t in transfers), default=-1)
    job_of = jobs or list(range(count))
    return NetworkState(
        time=now,
        capacity=np.array(capacity, float),
        size=np.array([transfers[i].bits / 8 for i in active]),
        remaining=np.array([remaining[i] / 8 for i in active]),
        release=np.array([transfers[i].release for i in active]),
        ideal_finish=np.array(
            [reference[row[transfers[i].group]] + transfers[i].offset for i in active]
        ),
        group=np.array([row[transfers[i].group] for i in active], np.int64),
        path_start=np.cumsum([0, *map(len, links)]).astype(np.int64),
        path_links=np.array([e for path in links for e in path], np.int64),
        tie=np.array([(tie or range(len(transfers)))[i] for i in active], np.int64),
        group_reference=np.array(reference),
        group_weight=np.array([(weights or [1.0] * count)[g] for g in groups]),
        group_job=np.array([job_of[g] for g in groups], np.int64),
        group_index=np.zeros(len(groups), np.int64),
        group_sent=np.array(sent),
        group_tie=np.array(groups, np.int64),
        jobs=[JobState(f"job{j}", 1.0, 0.0) for j in range(1 + max(job_of, default=0))],
    )


def play(
    policy: Policy,
    transfers: list[Transfer],
    capacity: list[float],
    weights: list[float] | None = None,
    tie: list[int] | None = None,
) -> Played:
    """Play until every transfer is finished, deciding at every release and finish."""
    remaining = np.array([t.bits for t in transfers])
    finish = np.full(len(transfers), np.nan)
    played = Played(finish)
    now = 0.0
    while np.isnan(finish).any():
        active = [
            i for i, t in enumerate(transfers) if t.release <= now + 1e-12 and np.isnan(finish[i])
        ]
        coming = min((t.release for t in transfers if t.release > now + 1e-12), default=np.inf)
        rate = np.zeros(len(transfers))
        until = np.inf
        if active:
            state = state_of(transfers, active, remaining, now, capacity, weights, tie=tie)
            decision: Decision = policy.decide(state)
            rate[active] = decision.rate
            until = decision.valid_until
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(rate > 0, remaining / rate, np.inf)
        step = min(coming - now, left.min(), max(until - now, 1e-9))
        assert np.isfinite(step), "nothing moves and nothing is coming"
        done = left <= step * (1 + 1e-12)
        remaining = np.where(done, 0.0, remaining - rate * step)
        played.history.append((now, now + step, rate))
        now = now + step
        finish[done] = now
    return played


def pipeline(count: int, size: float, step: float, group: int = 0) -> list[Transfer]:
    """The micro-batches of one stage boundary: flow j ready at (j + 1) * step, on link 0."""
    return [Transfer(group, size, (j + 1) * step, j * step) for j in range(count)]


def shifted(transfers: list[Transfer], by: float) -> list[Transfer]:
    """The same transfers, later."""
    return [replace(t, release=t.release + by) for t in transfers]
