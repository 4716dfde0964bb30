"""What the network makes of a policy's decision: its own rates, or what switches and hosts enforce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from controller.model.errors import BadInput
from controller.scheduling.classes import CLASSES, cut_classes
from controller.scheduling.maxmin import priority_max_min
from controller.scheduling.policy import Floats, Ints, NetworkState, Policy


@dataclass(slots=True)
class Allocation:
    """Rates of the flows of one state, and how long they stand."""

    rate: Floats
    "(flows,) bit/s."
    valid_until: float
    "When the policy wants to be asked again, in seconds."
    classes: Ints | None = None
    "(flows,) 0..7, 7 served first; None where the model has no classes."


class Allocator(Protocol):
    """Turns a state into rates."""

    highest: int
    "The class of flows that contend with nobody; -1 where the model has no classes."

    def allocate(self, state: NetworkState) -> Allocation:
        """Feasible rates for every flow of the state."""
        ...


class Ideal:
    """The policy's continuous rates, as they are."""

    highest = -1

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def allocate(self, state: NetworkState) -> Allocation:
        """The policy's rates."""
        decision = self._policy.decide(state)
        return Allocation(decision.rate, decision.valid_until)


class Enforced:
    """K classes of strict priority, max-min within a class, hosts that pace: algorithms.md, 5."""

    def __init__(self, policy: Policy, classes: int = CLASSES) -> None:
        self._policy = policy
        self._classes = classes
        self.highest = classes - 1

    def allocate(self, state: NetworkState) -> Allocation:
        """Classes cut from the policy's order, and the rates that follow from them."""
        decision = self._policy.decide(state)
        classes = cut_classes(state, decision, self._classes)
        rate = priority_max_min(state, classes, decision.pace)
        return Allocation(rate, decision.valid_until, classes)


def allocator(policy: Policy, model: str) -> Allocator:
    """`ideal` or `enforced`. Raises BadInput on another model."""
    if model == "ideal":
        return Ideal(policy)
    if model == "enforced":
        return Enforced(policy)
    raise BadInput(f"model {model!r}: expected ideal or enforced")


def feasible(state: NetworkState, rate: Floats, tolerance: float = 1e-9) -> bool:
    """Whether no link carries more than its capacity, within a relative tolerance."""
    load = np.zeros(len(state.capacity))
    np.add.at(load, state.path_links, np.repeat(rate, np.diff(state.path_start)))
    return bool(np.all(load <= state.capacity * (1 + tolerance)))
