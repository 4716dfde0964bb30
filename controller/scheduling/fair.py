"""`fair`: every flow gets its max-min fair share."""

from __future__ import annotations

import numpy as np

from controller.scheduling import rates
from controller.scheduling.policy import Decision, NetworkState


class Fair:
    """Max-min fairness per flow: what TCP does, roughly. Hosts are not paced.

    Source: Bertsekas and Gallager, "Data Networks", section 6.5.2. Complexity: O(path entries
    log links). Tie rule: none is needed, all flows have one rank.
    """

    name = "fair"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """One rank for all."""
        return rates.by_level(state, np.zeros(state.flows, np.int64))
