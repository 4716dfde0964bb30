"""`echelon`: the EchelonFlow that delays the others least first, each kept in formation."""

from __future__ import annotations

from controller.scheduling import ranks, rates
from controller.scheduling.policy import Decision, NetworkState


class Echelon:
    """Rank by Gamma_H / w_H, the smooth rule within an EchelonFlow, then backfill in rank order.

    Source: algorithms.md, section 3: a delay adds to a released EchelonFlow's tardiness one for
    one, so Smith's rule orders them; on coflows of weight 1 it decides as Varys' SEBF. Complexity:
    O(n log n + path entries) for n flows. Tie rule: equal keys go by group tie; within an
    EchelonFlow by ideal finish, then tie.
    """

    name = "echelon"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks of EchelonFlows, and a rate for every flow."""
        formed = ranks.formation(state)
        key = ranks.gamma(state, formed) / state.group_weight
        order = ranks.ordered(key, state.group_tie)
        return rates.by_group(state, order, rates.smooth(state, formed, order))
