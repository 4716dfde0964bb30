"""`echelon-paper`: the EchelonFlow paper's own sketch, ranked by tardiness."""

from __future__ import annotations

from controller.scheduling import ranks, rates
from controller.scheduling.policy import Decision, NetworkState


class EchelonPaper:
    """Rank by tau_H / w_H, least first, the smooth rule within an EchelonFlow, then backfill.

    Source: Pan et al., "Efficient flow scheduling in distributed deep learning training with
    echelon formation", HotNets 2022, which suggests ranking by tardiness and prints no direction.
    tau carries the age of an EchelonFlow, so the old can starve. Complexity: O(n log n + path
    entries) for n flows. Tie rule: equal keys go by group tie; within an EchelonFlow by ideal
    finish, then tie.
    """

    name = "echelon-paper"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks of EchelonFlows, and a rate for every flow."""
        formed = ranks.formation(state)
        key = ranks.tau(state, formed) / state.group_weight
        order = ranks.ordered(key, state.group_tie)
        return rates.by_group(state, order, rates.smooth(state, formed, order))
