"""`srpt`: the flow with the least left to send is served first."""

from __future__ import annotations

import numpy as np

from controller.scheduling import rates
from controller.scheduling.policy import Decision, NetworkState


class Srpt:
    """Smallest remaining flow first; each takes all that its path has left.

    Source: pFabric (Alizadeh et al., SIGCOMM 2013). Complexity: O(n log n + path entries) for n
    flows. Tie rule: equal remainders go by release, then `tie`.
    """

    name = "srpt"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks by remaining bytes; flows that get nothing are held."""
        order = np.lexsort((state.tie, state.release, state.remaining))
        return rates.by_flow(order, rates.in_order(state, order))
