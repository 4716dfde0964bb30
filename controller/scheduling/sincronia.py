"""`sincronia`: coflows ordered from the last place backwards, priorities only."""

from __future__ import annotations

import numpy as np

from controller.scheduling import kernels, ranks, rates
from controller.scheduling.policy import Decision, Ints, NetworkState


class Sincronia:
    """BSSI: on the most loaded link, the coflow of least weight per second of it goes last, and
    the weights of the others shrink by what it pays; then greedy order-preserving rates.

    Source: Agarwal et al., "Sincronia: near-optimal network design for coflows", SIGCOMM 2018
    (algorithm 1); a 4-approximation of weighted coflow completion time that needs priorities
    only. Complexity: O(g * (links + g) + n log n + path entries) for g groups and n flows. Tie
    rule: of equal ratios the larger group tie goes last, of equally loaded links the first is
    taken; within a coflow by release, then tie.
    """

    name = "sincronia"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks of coflows; flows that get nothing are held."""
        formed = ranks.coflows(state)
        order = bssi(state, formed)
        rate = rates.in_order(state, rates.group_by_group(formed, order))
        return rates.by_group(state, order, rate)


def bssi(state: NetworkState, formed: ranks.Formation) -> Ints:
    """The groups, first to last."""
    usable = np.where(state.capacity > 0, state.capacity, 1.0)  # a dead link orders nothing
    begin, links, seconds = kernels.demands(
        formed.start, formed.rows, state.remaining, state.path_start, state.path_links, usable
    )
    order: Ints = kernels.last_first(
        begin, links, seconds, state.group_weight, state.group_tie, len(usable)
    )
    return order
