"""`echelon-edf`: EchelonFlows ranked as `echelon` does, within one the earliest flow first."""

from __future__ import annotations

from controller.scheduling import ranks, rates
from controller.scheduling.policy import Decision, NetworkState


class EchelonEdf:
    """Rank by Gamma_H / w_H; within an EchelonFlow each flow in order of its ideal finish takes
    all that its path has left.

    Source: algorithms.md, section 3. It needs no rates, only an order: natural for priority
    queues. Complexity: O(n log n + path entries) for n flows. Tie rule: equal keys go by group
    tie; within an EchelonFlow by ideal finish, then tie.
    """

    name = "echelon-edf"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks of flows; those that get nothing are held."""
        formed = ranks.formation(state)
        key = ranks.gamma(state, formed) / state.group_weight
        groups = ranks.ordered(key, state.group_tie)
        order = rates.group_by_group(formed, groups)
        return rates.by_flow(order, rates.in_order(state, order))
