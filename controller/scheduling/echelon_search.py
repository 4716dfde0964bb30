"""`echelon-search`: a fixed order of jobs and EchelonFlows, and paths, found by playing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from controller.model.errors import BadInput
from controller.scheduling import order_kernels
from controller.scheduling.policy import Decision, Ints, NetworkState, Policy
from controller.scheduling.routing import Pin, Pinned

Item = tuple[str, int]
"A job and the place of an EchelonFlow in it; -1 stands for all of the job's that are not named."
WHOLE = -1
SMOOTH = "smooth"
RULES = (SMOOTH, "in-order", "in-turn", "srpt", "edf", "fifo")
"""Within a level: `echelon`'s rank with its smooth rule, or in order of ideal finish; that of the
job's oldest EchelonFlow, so that a job's iterations never overtake each other; or flow by flow."""


@dataclass(frozen=True)
class FixedOrder:
    """What the search finds, as a pure policy: levels first, a simple rule within one.

    Source: ours. Complexity: O(n log n + path entries) for n flows. Tie rule: as the policy whose
    rule it is (`echelon`, `echelon-edf`, `srpt`, `edf`, `fifo`; in turn: the older EchelonFlow); a job without a level has level 0.
    """

    level: Mapping[Item, int] = field(default_factory=dict)
    "Level of every item, smaller is served first."
    rule: str = SMOOTH
    "One of `RULES`."
    paths: Mapping[Pin, int] = field(default_factory=dict)
    "Flows whose path is chosen; the others take the least loaded one."
    name: str = "echelon-search"
    local: bool = True

    def decide(self, state: NetworkState) -> Decision:
        """Ranks, and a rate for every flow; under all rules but smooth the others are held."""
        rank, rate = order_kernels.decide(
            RULES.index(self.rule),
            self._levels(state),
            state.time,
            state.capacity,
            (state.size, state.remaining, state.release, state.ideal_finish, state.tie, state.group),
            (state.group_reference, state.group_weight, state.group_job, state.group_index,
             state.group_sent, state.group_tie),
            (state.path_start, state.path_links),
        )  # fmt: skip
        return Decision(rank=rank, rate=rate, pace=rate.copy())

    def level_of(self, job: str, index: int) -> int:
        """The level of a job's EchelonFlow."""
        return self.level.get((job, index), self.level.get((job, WHOLE), 0))

    def _levels(self, state: NetworkState) -> Ints:
        groups = zip(state.group_job.tolist(), state.group_index.tolist(), strict=True)
        levels = [self.level_of(state.jobs[job].name, index) for job, index in groups]
        return np.array(levels, np.int64)

    @property
    def routing(self) -> Pinned | None:
        """What the simulator and the coordinator route by under this policy."""
        return Pinned(self.paths) if self.paths else None

    @property
    def spelled(self) -> str:
        """The order as a policy name that `registry.policy` reads, to hand to another process."""
        items = sorted((job, index, level) for (job, index), level in self.level.items())
        said: dict[str, object] = {"rule": self.rule, "levels": items}
        if self.paths:
            said["paths"] = sorted((*pin, path) for pin, path in self.paths.items())
        return f"{self.name}:{json.dumps(said)}"


@dataclass(frozen=True)
class Adopted:
    """A baseline that no order tried has beaten, under the search's name."""

    policy: Policy
    "The baseline."
    name: str = "echelon-search"

    @property
    def local(self) -> bool:
        """As the baseline."""
        return self.policy.local

    def decide(self, state: NetworkState) -> Decision:
        """As the baseline."""
        return self.policy.decide(state)

    @property
    def spelled(self) -> str:
        """A policy name that `registry.policy` reads, to hand to another process."""
        return f"{self.name}:{json.dumps({'as': self.policy.name})}"


def read_spelled(text: str, named: Callable[[str], Policy]) -> FixedOrder | Adopted:
    """The policy of `spelled`, given what follows its name. `named` makes a baseline by name.

    Raises BadInput.
    """
    try:
        read = json.loads(text)
        if "as" in read:
            return Adopted(named(read["as"]))
        levels = {(str(job), int(index)): int(level) for job, index, level in read["levels"]}
        rule = RULES[RULES.index(read["rule"])]
        paths = {
            (str(src), str(dst), str(key)): int(path)
            for src, dst, key, path in read.get("paths", ())
        }
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{text!r} is no order that echelon-search wrote ({error})") from None
    return FixedOrder(levels, rule, paths)
