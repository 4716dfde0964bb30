"""`varys`: smallest effective bottleneck first among coflows, each finishing as one."""

from __future__ import annotations

from controller.scheduling import ranks, rates
from controller.scheduling.policy import Decision, NetworkState


class Varys:
    """SEBF (ascending Gamma), MADD within an EchelonFlow taken as a coflow, then backfill.

    Source: Chowdhury, Zhong, Stoica, "Efficient coflow scheduling with Varys", SIGCOMM 2014. It
    knows neither arrangements nor weights. Complexity: O(n log n + path entries) for n flows.
    Tie rule: equal Gamma go by group tie; backfill within a coflow by release, then tie.
    """

    name = "varys"
    local = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks of coflows, and a rate for every flow."""
        formed = ranks.coflows(state)
        order = ranks.ordered(ranks.gamma(state, formed), state.group_tie)
        return rates.by_group(state, order, rates.madd(state, formed, order))
