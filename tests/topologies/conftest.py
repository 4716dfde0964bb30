"""A network of its own for a test: another instance than a run's, so that neither meets the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from controller.model.fabrics import parse_topology
from topologies.emulation import EmulatedNetwork
from topologies.layout import network_of

LINK_RATE = {"embedded": 40e6, "bmv2": 10e6}
"bit/s, what design.md gives each target."

MakeNetwork = Callable[[str, str], AbstractContextManager[EmulatedNetwork]]


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of an instance that no other process uses."""
    name = f"t{os.getpid() % 10000}"
    monkeypatch.setenv("ECHELON_INSTANCE", name)
    return name


@pytest.fixture
def emulate(instance: str) -> MakeNetwork:
    """`with emulate(topology, target) as network`."""

    @contextmanager
    def make(topology: str, target: str) -> Iterator[EmulatedNetwork]:
        rate = LINK_RATE[target]
        with EmulatedNetwork(network_of(parse_topology(topology, rate), rate, target)) as network:
            yield network

    return make
