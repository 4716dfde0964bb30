"""`fifo`: the flow that became ready first is served first."""

from __future__ import annotations

import numpy as np

from controller.scheduling import rates
from controller.scheduling.policy import Decision, NetworkState


class Fifo:
    """First in, first out, flow by flow; each takes all that its path has left.

    Source: the classic baseline. Complexity: O(n log n + path entries) for n flows. Tie rule:
    flows that became ready together go by `tie`.
    """

    name = "fifo"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks by release; flows that get nothing are held."""
        order = np.lexsort((state.tie, state.release))
        return rates.by_flow(order, rates.in_order(state, order))
