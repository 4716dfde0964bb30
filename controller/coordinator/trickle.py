"""What a policy gives a flow may be too little to send: then the flow waits instead."""

from __future__ import annotations

import numpy as np

from controller.scheduling.policy import Floats, NetworkState

TRICKLE = 0.05
"Part of an equal share of its most crowded link below which a flow is held."


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
    least = np.full(state.flows, 0.0)
    least[rows] = TRICKLE * np.minimum.reduceat(share[state.path_links], state.path_start[rows])
    out[pace < least] = 0.0
    return out
