"""What a policy sees and what it says: the state of the fabric in, ranks and rates out.

The state is a struct of arrays, one row per active flow, so that a decision over ten thousand
flows is a few passes over memory. Rows are stable only within one decision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class JobState:
    """What a policy may know of one job, from its profile and its past."""

    name: str
    "The job's name."
    weight: float
    "Its weight, > 0."
    arrival: float
    "When it arrived, in seconds."
    work: float = 0.0
    "Work of one iteration (GPU-seconds over all workers), for GPU intensity."
    compute_s: float = 0.0
    "Computing seconds of one iteration at its busiest worker."
    link_bytes: dict[int, float] = field(default_factory=dict)
    "Bytes that one iteration puts on each link it uses."
    alone_s: float = 0.0
    "Time of one iteration on the idle fabric, in seconds; 0: not known."
    silent_s: float = 0.0
    "The longest time in which an iteration on the idle fabric sends nothing, in seconds."
    first_group: int = -1
    "`group_index` of the EchelonFlow that ends the longest silence; -1: not known."


@dataclass(slots=True)
class NetworkState:
    """The active flows (released, not finished), their EchelonFlows and the links, at one moment."""

    time: float
    "Now, in seconds."
    capacity: Floats
    "(links,) bit/s; 0 for a link that is down."

    size: Floats
    "(flows,) bytes."
    remaining: Floats
    "(flows,) bytes still to send, > 0."
    release: Floats
    "(flows,) when the flow became ready to send, in seconds."
    ideal_finish: Floats
    "(flows,) d_j = r + a_j in seconds; may lie in the past."
    group: Ints
    "(flows,) row of the flow's EchelonFlow."
    path_start: Ints
    "(flows + 1,) where each flow's links start in `path_links`."
    path_links: Ints
    "Link indices, all paths one after another."
    tie: Ints
    "(flows,) a unique number a flow keeps for life; smaller goes first where a policy's key ties."

    group_reference: Floats
    "(groups,) reference time r: the release of the head flow, in seconds."
    group_weight: Floats
    "(groups,) weight w_H, > 0."
    group_job: Ints
    "(groups,) row of the group's job."
    group_index: Ints
    "(groups,) place of the EchelonFlow in its job's list: the same number in every iteration."
    group_sent: Floats
    "(groups,) bytes its flows have sent so far, finished ones included."
    group_tie: Ints
    "(groups,) a unique number a group keeps for life; smaller goes first where ranks tie."

    jobs: list[JobState]
    "The jobs present."

    @property
    def flows(self) -> int:
        """Number of active flows."""
        return len(self.remaining)

    @property
    def groups(self) -> int:
        """Number of EchelonFlows with at least one active flow."""
        return len(self.group_reference)


@dataclass(slots=True)
class Decision:
    """What a policy decides: valid until the next flow start or finish, or `valid_until`."""

    rank: Ints
    "(flows,) smaller is served first; equal ranks share. Classes are cut from this order."
    rate: Floats
    "(flows,) bit/s of the ideal allocation: feasible on every link; inf for an empty path."
    pace: Floats
    "(flows,) bit/s a host may send at most: inf is unpaced, 0 is held until a later decision."
    valid_until: float = float("inf")
    "When the policy wants to be asked again though no flow starts or ends, in seconds."


class Policy(Protocol):
    """A scheduling algorithm: a pure function of the state."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    @property
    def local(self) -> bool:
        """Whether a decision about a flow depends only on flows that share a link or an
        EchelonFlow with it, directly or through others: then those may be decided alone."""
        ...

    def decide(self, state: NetworkState) -> Decision:
        """Ranks and rates for every active flow. Never changes `state`."""
        ...
