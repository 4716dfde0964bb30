"""Which path a flow takes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from controller.model.errors import BadInput
from controller.model.fabrics import fat_tree
from controller.scheduling.routing import (
    EcmpHash,
    LeastLoaded,
    Pinned,
    SinglePath,
    least_loaded,
    routing,
)

FABRIC = fat_tree(4, 1e9)
IDLE = np.zeros(len(FABRIC.links))
PATHS = FABRIC.paths("h1", "h16")


def test_single_is_always_the_first_path() -> None:
    assert {SinglePath().choices(FABRIC, "h1", "h16", str(i)) for i in range(9)} == {PATHS[:1]}


def test_ecmp_spreads_flows_the_same_way_in_every_run() -> None:
    chosen = [EcmpHash(1).choices(FABRIC, "h1", "h16", str(i)) for i in range(400)]
    assert chosen == [EcmpHash(1).choices(FABRIC, "h1", "h16", str(i)) for i in range(400)]
    counts = Counter(chosen)
    assert set(counts) == {(path,) for path in PATHS} and min(counts.values()) > 60
    assert chosen != [EcmpHash(2).choices(FABRIC, "h1", "h16", str(i)) for i in range(400)]


def test_least_loaded_avoids_the_busy_link_and_takes_the_first_of_equals() -> None:
    assert LeastLoaded().choices(FABRIC, "h1", "h16", "") == PATHS
    assert least_loaded(PATHS, IDLE) == PATHS[0]
    load = IDLE.copy()
    load[PATHS[0][2]] = 1.0
    assert least_loaded(PATHS, load) == PATHS[1]


def test_an_unknown_routing_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="ecmp"):
        routing("valiant")


def test_a_pinned_flow_takes_the_path_chosen_for_it_and_another_any() -> None:
    pinned = Pinned({("h1", "h16", "f"): 2})
    assert pinned.choices(FABRIC, "h1", "h16", "f") == (PATHS[2],)
    assert pinned.choices(FABRIC, "h1", "h16", "g") == PATHS
    link = PATHS[0][2]
    fewer = FABRIC.without([link]).paths("h1", "h16")
    assert pinned.choices(FABRIC.without([link]), "h1", "h16", "f") == (fewer[2 % len(fewer)],)
