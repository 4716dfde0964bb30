"""A pipeline as the simulator plays it: small enough to know every figure."""

from __future__ import annotations

from controller.experiments import scenarios
from controller.model.fabrics import parse_topology
from controller.model.record import Played
from controller.scheduling.registry import policy
from controller.simulator.simulate import simulate

RATE = 4e7
UNIT_S = 1.5
FABRIC = parse_topology("leaf-spine:2x2x4", RATE)


def figure2(name: str) -> Played:
    """Figure 2 of the paper under the policy of that name, in the enforced model."""
    workload = scenarios.figure2(UNIT_S, RATE).workload
    return simulate(workload, FABRIC, policy(name), "enforced").played
