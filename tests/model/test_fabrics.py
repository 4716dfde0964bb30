"""Fabrics: their shapes, their names on the command line, their paths, and what failures do."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest

from controller.model.errors import BadInput
from controller.model.fabric import DisconnectedFabric, Fabric, Link
from controller.model.fabrics import big_switch, fat_tree, leaf_spine, parse_topology


def graph_of(fabric: Fabric) -> nx.DiGraph:
    graph = nx.DiGraph()
    for index, link in enumerate(fabric.links):
        if index not in fabric.failed:
            graph.add_edge(link.src, link.dst, index=index)
    return graph


@pytest.mark.parametrize(
    ("text", "hosts", "switches", "cables"),
    [
        ("big-switch:5", 5, 1, 5),
        ("leaf-spine:3x2x4", 12, 5, 12 + 6),
        ("fat-tree:4", 16, 20, 48),
        ("fat-tree:10", 250, 125, 750),
        ("fat-tree:16", 1024, 320, 3072),
    ],
)
def test_sizes(text: str, hosts: int, switches: int, cables: int) -> None:
    fabric = parse_topology(text, 1e9)
    assert (len(fabric.hosts), len(fabric.switches)) == (hosts, switches)
    assert len(fabric.links) == 2 * cables
    assert fabric.name == text
    assert fabric.hosts[0] == "h1" and fabric.hosts[-1] == f"h{hosts}"
    assert fabric.host_rate == 1e9


@pytest.mark.parametrize("text", ["big-switch:4", "leaf-spine:3x2x2", "fat-tree:4"])
def test_paths_are_all_the_shortest_ones(text: str) -> None:
    fabric = parse_topology(text, 1e9)
    graph = graph_of(fabric)
    for src in fabric.hosts:
        for dst in fabric.hosts:
            expected = {
                tuple(graph.edges[edge]["index"] for edge in itertools.pairwise(nodes))
                for nodes in nx.all_shortest_paths(graph, src, dst)
            }
            found = fabric.paths(src, dst)
            assert set(found) == expected and len(found) == len(expected)


def test_between_pods_a_fat_tree_has_a_path_over_every_core() -> None:
    fabric = fat_tree(16, 1e9)
    assert len(fabric.paths("h1", "h1024")) == 64
    assert len(fabric.paths("h1", "h9")) == 8  # same pod
    assert len(fabric.paths("h1", "h2")) == 1  # same edge
    assert fabric.paths("h1", "h1") == ((),)


def test_oversubscription_fixes_the_rate_of_the_uplinks() -> None:
    fabric = leaf_spine(2, 2, 8, 10e9, oversubscription=4.0)
    rates = {link.rate for link in fabric.links if "h" not in link.src + link.dst}
    assert rates == {10e9}
    even = parse_topology("leaf-spine:2x2x8", 10e9, oversubscription=1.0)
    assert max(link.rate for link in even.links) == 40e9 and even.host_rate == 10e9


@pytest.mark.parametrize(
    "text",
    ["", "ring:4", "fat-tree", "fat-tree:3", "fat-tree:0", "leaf-spine:2x2", "big-switch:x",
     "big-switch:0", "leaf-spine:0x1x1", "big-switch:-3"],
)  # fmt: skip
def test_what_is_no_fabric_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_topology(text, 1e9)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_no_rate_is_refused(rate: float) -> None:
    with pytest.raises(BadInput, match="link rate"):
        parse_topology("big-switch:2", rate)


def test_a_dead_link_leaves_the_other_paths() -> None:
    fabric = leaf_spine(2, 2, 1, 1e9)
    first, second = fabric.paths("h1", "h2")
    failed = fabric.without([first[1]])
    assert failed.paths("h1", "h2") == (second,)
    assert failed.capacities()[first[1]] == 0.0
    with pytest.raises(DisconnectedFabric, match="h1 to h2"):
        failed.without([second[1]]).paths("h1", "h2")
    assert fabric.paths("h1", "h2") == (first, second)


def test_a_degraded_link_keeps_its_place() -> None:
    fabric = big_switch(2, 1e9).degraded(0, 1e6)
    assert fabric.capacities()[:2] == [1e6, 1e9]
    assert fabric.paths("h1", "h2") == big_switch(2, 1e9).paths("h1", "h2")


def test_hosts_do_not_forward() -> None:
    pairs = (("h1", "s1"), ("h2", "s1"), ("h2", "s2"), ("h3", "s2"))
    links = tuple(link for a, b in pairs for link in (Link(a, b, 1.0), Link(b, a, 1.0)))
    fabric = Fabric("odd", ("h1", "h2", "h3"), ("s1", "s2"), links)
    assert len(fabric.paths("h1", "h2")) == 1  # h2 has two links
    with pytest.raises(DisconnectedFabric):
        fabric.paths("h1", "h3")
