"""`aalo`: coflows of unknown size sink through queues as they send."""

from __future__ import annotations

import numpy as np

from controller.scheduling import kernels, ranks, rates
from controller.scheduling.policy import Decision, Floats, Ints, NetworkState

FIRST = 10e6
"Bytes at which a coflow leaves the first queue."
FACTOR = 10.0
"Each further queue ends at so many times the bytes of the one before."
QUEUES = 10
"Number of queues; queue q (from 0) weighs QUEUES - q."


class Aalo:
    """D-CLAS: queues by bytes sent so far, weighted shares between queues, first in first out
    within one, and the flows of a coflow share evenly; then backfill in the same order.

    Source: Chowdhury and Stoica, "Efficient coflow scheduling without prior knowledge", SIGCOMM
    2015, with its parameters (10 queues, 10 MB, factor 10). Sizes, ideal finish times and weights
    are not looked at. Complexity: O(n log n + path entries) for n flows. Tie rule: coflows that
    began together go by group tie; within a coflow backfill goes by release, then tie.
    """

    name = "aalo"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks of coflows and a rate for every flow, until the next coflow changes its queue."""
        formed = ranks.coflows(state)
        queue = _queue(state.group_sent)
        order = np.lexsort((state.group_tie, state.group_reference, queue))
        rate = _shares(state, formed, order, queue)
        decision = rates.by_group(state, order, rate)
        decision.valid_until = state.time + _next_change(state, queue, rate)
        return decision


def _queue(sent: Floats) -> Ints:
    limits = FIRST * FACTOR ** np.arange(QUEUES - 1)
    # A coflow that has reached its limit but for rounding has reached it.
    out: Ints = np.searchsorted(limits, sent * (1 + 1e-9), side="right")
    return out


def _shares(state: NetworkState, formed: ranks.Formation, order: Ints, queue: Ints) -> Floats:
    rate = np.zeros(state.flows)
    hops = np.diff(state.path_start)
    present = np.zeros((QUEUES, len(state.capacity)))
    present[np.repeat(queue[state.group], hops), state.path_links] = 1.0
    weighed = present * (QUEUES - np.arange(QUEUES))[:, None]
    left = state.capacity.copy()
    for q in np.unique(queue):
        share = state.capacity * weighed[q] / np.maximum(weighed.sum(axis=0), 1.0)
        residual = share.copy()
        kernels.even(
            order[queue[order] == q],
            formed.start,
            formed.rows,
            state.path_start,
            state.path_links,
            state.capacity,
            residual,
            rate,
        )
        left -= share - residual
    left[left < kernels.NOTHING * state.capacity] = 0.0
    rates.backfill(state, rates.group_by_group(formed, order), left, rate)
    return rate


def _next_change(state: NetworkState, queue: Ints, rate: Floats) -> float:
    """Seconds until some coflow has sent what moves it to the next queue."""
    moving = np.where(np.isfinite(rate), rate, 0.0)
    speed = np.bincount(state.group, moving, state.groups) / 8
    last = queue >= QUEUES - 1
    limit = np.where(last, np.inf, FIRST * FACTOR ** np.minimum(queue, QUEUES - 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = np.where(speed > 0, (limit - state.group_sent) / speed, np.inf)
    return float(wait.min(initial=np.inf))
