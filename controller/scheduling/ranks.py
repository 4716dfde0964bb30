"""Which EchelonFlow or flow goes first: the keys of section 3, and orders made of keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controller.scheduling import kernels
from controller.scheduling.policy import Floats, Ints, NetworkState


@dataclass(frozen=True, slots=True)
class Formation:
    """The flows of a state grouped by EchelonFlow."""

    start: Ints
    "(groups + 1,) where each group begins in `rows`."
    rows: Ints
    "(flows,) rows of the state, group after group."


def formation(state: NetworkState) -> Formation:
    """EchelonFlows: within one by (ideal finish, tie)."""
    return Formation(*kernels.group_rows(state.group, state.groups, state.ideal_finish, state.tie))


def coflows(state: NetworkState) -> Formation:
    """The same groups to a policy that knows no arrangement: within one by (release, tie)."""
    return Formation(*kernels.group_rows(state.group, state.groups, state.release, state.tie))


def gamma(state: NetworkState, formed: Formation) -> Floats:
    """Gamma_H of every group on the empty fabric, in seconds: its busiest link's remaining time.

    Source: Varys (SIGCOMM 2014), section 5. O(path entries).
    """
    return _lateness(state, formed, np.zeros(state.flows))


def tau(state: NetworkState, formed: Formation) -> Floats:
    """tau_H of every group on the empty fabric: a lower bound of its tardiness, in seconds.

    O(path entries).
    """
    return _lateness(state, formed, state.ideal_finish - state.time)


def rounded(key: Floats) -> Floats:
    """Keys closer than 1e-12 of their size made equal, so that the order in which sums were taken
    decides nothing."""
    out: Floats = kernels.all_rounded(key)
    return out


def ordered(key: Floats, tie: Ints) -> Ints:
    """Indices by ascending (rounded) key, then tie."""
    order: Ints = kernels.ordered(key, tie)
    return order


def positions(order: Ints) -> Ints:
    """The place of every index in an order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _lateness(state: NetworkState, formed: Formation, slack: Floats) -> Floats:
    out: Floats = kernels.lateness(
        formed.start,
        formed.rows,
        slack,
        state.remaining,
        state.path_start,
        state.path_links,
        state.capacity,
    )
    return out
