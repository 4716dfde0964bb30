"""`edf`: the flow with the earliest ideal finish is served first, whatever its job."""

from __future__ import annotations

import numpy as np

from controller.scheduling import rates
from controller.scheduling.policy import Decision, NetworkState


class Edf:
    """Earliest ideal finish time d_j first, flow by flow; each takes all that its path has left.

    Source: earliest deadline first (Liu and Layland, 1973) with d_j as the deadline. Complexity:
    O(n log n + path entries) for n flows. Tie rule: equal d go by release, then `tie`.
    """

    name = "edf"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks by ideal finish; flows that get nothing are held."""
        order = np.lexsort((state.tie, state.release, state.ideal_finish))
        return rates.by_flow(order, rates.in_order(state, order))
