"""What a policy gives a flow may be too little to send: then the flow waits instead."""

from __future__ import annotations

import numpy as np

from controller.coordinator.plans import FRAME
from controller.scheduling.policy import Floats, NetworkState

TRICKLE = 0.05
"Part of an equal share of its most crowded link below which a flow is held."

A_FRAME_EVERY = 0.03
"Seconds: a flow too slow for that is held too, unless it has an equal share."


def without_trickles(state: NetworkState, pace: Floats) -> Floats:
    """The paces, bit/s, with those that are next to nothing set to 0: (flows,), a fresh array.

    The kernel sends a burst and then waits as long as the burst takes at the pace of that moment;
    a higher pace does not cut the wait short. At 1 bit/s a flow would be lost for hours, at 1 % of
    a link it still wastes what it is given next. On every link that is shared out in full somebody
    has an equal share or more, so somebody always sends. O(path entries).
    """
    entries = np.diff(state.path_start)
    out = pace.copy()
    if not len(state.path_links):
        return out
    users = np.bincount(state.path_links, minlength=len(state.capacity))
    share = state.capacity / np.maximum(users, 1)
    rows = np.flatnonzero(entries > 0)
    equal = np.full(state.flows, 0.0)
    equal[rows] = np.minimum.reduceat(share[state.path_links], state.path_start[rows])
    slow = np.minimum(FRAME * 8 / A_FRAME_EVERY, (1 - 1e-9) * equal)
    out[pace < np.maximum(TRICKLE * equal, slow)] = 0.0
    return out
