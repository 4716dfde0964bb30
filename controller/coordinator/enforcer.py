"""What the coordinator asks of the switches; without switches, nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from controller.model.rule import FlowKey, FlowRule, RuleError


class FlowEnforcer(Protocol):
    """Puts flow rules into the switches. `controller.switches.FabricDriver` is one."""

    async def set_flows(self, changes: Sequence[FlowRule | FlowKey]) -> list[RuleError]:
        """Sets these rules, removes those of the bare keys; returns when they are in force.

        What a switch refused is in the answer: that flow travels in class 0 there.
        """
        ...

    async def counters(self) -> Any:
        """Counters of the switches, as something msgspec can encode."""
        ...


class NullEnforcer:
    """A network without switches of ours: hosts tag and pace, nobody enforces."""

    async def set_flows(self, changes: Sequence[FlowRule | FlowKey]) -> list[RuleError]:
        """Accepts all, does nothing."""
        return []

    async def counters(self) -> Any:
        """There are none."""
        return None
