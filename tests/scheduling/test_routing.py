"""Which path a flow takes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from controller.model.errors import BadInput
from controller.model.fabrics import fat_tree
from controller.scheduling.routing import EcmpHash, LeastLoaded, SinglePath, routing

FABRIC = fat_tree(4, 1e9)
IDLE = np.zeros(len(FABRIC.links))
PATHS = FABRIC.paths("h1", "h16")


def test_single_is_always_the_first_path() -> None:
    assert {SinglePath().route(FABRIC, "h1", "h16", str(i), IDLE) for i in range(9)} == {PATHS[0]}


def test_ecmp_spreads_flows_the_same_way_in_every_run() -> None:
    chosen = [EcmpHash(1).route(FABRIC, "h1", "h16", str(i), IDLE) for i in range(400)]
    assert chosen == [EcmpHash(1).route(FABRIC, "h1", "h16", str(i), IDLE) for i in range(400)]
    counts = Counter(chosen)
    assert set(counts) == set(PATHS) and min(counts.values()) > 60
    assert chosen != [EcmpHash(2).route(FABRIC, "h1", "h16", str(i), IDLE) for i in range(400)]


def test_least_loaded_avoids_the_busy_link_and_takes_the_first_of_equals() -> None:
    assert LeastLoaded().route(FABRIC, "h1", "h16", "", IDLE) == PATHS[0]
    load = IDLE.copy()
    load[PATHS[0][2]] = 1.0
    assert LeastLoaded().route(FABRIC, "h1", "h16", "", load) == PATHS[1]


def test_an_unknown_routing_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="ecmp"):
        routing("valiant")
