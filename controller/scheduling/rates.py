"""How fast each flow sends once an order is given: in order, MADD, or the smooth rule."""

from __future__ import annotations

import numpy as np

from controller.scheduling import kernels
from controller.scheduling.maxmin import priority_max_min
from controller.scheduling.policy import Decision, Floats, Ints, NetworkState
from controller.scheduling.ranks import Formation, positions


def in_order(state: NetworkState, order: Ints) -> Floats:
    """Each flow in `order` (rows) takes all that its path has left, bit/s. O(path entries)."""
    rate = np.zeros(state.flows)
    backfill(state, order, state.capacity.copy(), rate)
    return rate


def madd(state: NetworkState, formed: Formation, order: Ints) -> Floats:
    """Minimum allocation for desired duration, groups in `order`, then backfill in that order.

    All flows of a group finish together, at its remaining bottleneck time on what earlier groups
    leave (Varys, section 5.3): the smooth rule where every ideal finish is the same.
    """
    return _smooth_and_fill(state, formed, order, np.zeros(state.flows))


def smooth(state: NetworkState, formed: Formation, order: Ints) -> Floats:
    """The smooth rule (algorithms.md, section 3), groups in `order`, then backfill in that order;
    within a group by ideal finish, then tie. O(path entries)."""
    return _smooth_and_fill(state, formed, order, state.ideal_finish - state.time)


def backfill(state: NetworkState, order: Ints, residual: Floats, rate: Floats) -> None:
    """Rows in `order` add what their paths have left to `rate`; lowers `residual`."""
    kernels.fill(order, state.path_start, state.path_links, state.capacity, residual, rate)


def group_by_group(formed: Formation, order: Ints) -> Ints:
    """All rows, groups in `order`, within a group by ideal finish, then tie."""
    out: Ints = kernels.sequence(order, formed.start, formed.rows)
    return out


def by_flow(order: Ints, rate: Floats) -> Decision:
    """A decision in which every flow has a rank of its own and sends at exactly its rate."""
    return Decision(rank=positions(order), rate=rate, pace=rate.copy())


def by_group(state: NetworkState, order: Ints, rate: Floats) -> Decision:
    """A decision in which the flows of a group share its rank and send at exactly their rates."""
    return Decision(rank=positions(order)[state.group], rate=rate, pace=rate.copy())


def by_level(state: NetworkState, rank: Ints) -> Decision:
    """A decision by priority alone: max-min among flows of one rank, hosts unpaced."""
    return Decision(
        rank=rank, rate=priority_max_min(state, -rank), pace=np.full(state.flows, np.inf)
    )


def _smooth_and_fill(state: NetworkState, formed: Formation, order: Ints, slack: Floats) -> Floats:
    residual = state.capacity.copy()
    rate: Floats = kernels.smooth(
        order,
        formed.start,
        formed.rows,
        slack,
        state.remaining,
        state.path_start,
        state.path_links,
        state.capacity,
        residual,
    )
    backfill(state, group_by_group(formed, order), residual, rate)
    return rate
