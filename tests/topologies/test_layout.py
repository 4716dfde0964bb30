"""A fabric becomes a network with the same graph, addresses for all, and names that Linux takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.model.errors import BadInput
from controller.model.fabric import Fabric, Link
from controller.model.fabrics import parse_topology
from controller.model.network import back
from controller.profiles.network_file import load_network, save_network
from topologies.emulation import write_network_file
from topologies.layout import interface_name, network_of, with_addresses


@pytest.mark.parametrize("topology", ["big-switch:5", "leaf-spine:2x2x4", "fat-tree:4"])
def test_the_network_has_the_fabrics_links_and_cables_both_ways(topology: str) -> None:
    fabric = parse_topology(topology, 4e7)
    network = network_of(fabric, 4e7, "embedded")
    again = network.fabric()
    assert again.links == fabric.links
    assert again.hosts == fabric.hosts
    path = fabric.paths(fabric.hosts[0], fabric.hosts[-1])[0]
    ends = [(fabric.links[i].src, fabric.links[i].dst) for i in path]
    assert [(fabric.links[i].dst, fabric.links[i].src) for i in back(path)] == ends[::-1]


def test_every_port_has_one_cable_and_hosts_have_their_own_addresses() -> None:
    network = network_of(parse_topology("fat-tree:4", 4e7), 4e7, "embedded")
    for switch in network.switches:
        assert network.ports(switch.name) == [1, 2, 3, 4]
    assert len({host.ipv4 for host in network.hosts} | {host.ipv6 for host in network.hosts}) == 32
    assert [network.egress(link) for link in network.links_at("s1", 1)] == [("h1", 0), ("s1", 1)]


def test_the_host_after_the_255th_has_an_address_of_its_own() -> None:
    network = network_of(parse_topology("big-switch:300", 1e9), 1e9, "embedded")
    assert network.host("h256").ipv4 == "10.0.1.0"
    assert network.host("h300").mac == "02:00:00:00:01:2c"
    assert len({host.ipv4 for host in network.hosts}) == 300


def test_a_one_way_link_is_refused_by_name() -> None:
    fabric = Fabric("odd", ("h1",), ("s1",), (Link("h1", "s1", 1e6), Link("s1", "h1", 2e6)))
    with pytest.raises(BadInput, match="h1 -> s1 has no way back at the same rate"):
        network_of(fabric, 1e6, "embedded")


def test_a_host_with_two_links_is_refused_by_name() -> None:
    both = [
        Link("h1", "s1", 1e6),
        Link("s1", "h1", 1e6),
        Link("h1", "s2", 1e6),
        Link("s2", "h1", 1e6),
    ]
    with pytest.raises(BadInput, match="host h1 has 2 links"):
        network_of(Fabric("odd", ("h1",), ("s1", "s2"), tuple(both)), 1e6, "embedded")


def test_interface_names_fit_linux() -> None:
    assert interface_name("ech", "s20", 64) == "ech-s20-64"
    with pytest.raises(BadInput, match="15 characters"):
        interface_name("ech", "very-long-name", 1)


def test_both_writers_of_the_network_file_are_read_alike(tmp_path: Path) -> None:
    network = network_of(parse_topology("leaf-spine:2x1x1", 4e7), 4e7, "embedded")
    network = with_addresses(network, ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"], "ech")
    save_network(network, tmp_path / "a.yaml")
    write_network_file(network, tmp_path / "b.yaml")
    assert load_network(tmp_path / "a.yaml") == network
    assert load_network(tmp_path / "b.yaml") == network


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("schema: echelon/network/v1", "schema: echelon/job/v1", "schema is 'echelon/job/v1'"),
        ("  port: 1", "  port: one", r"Expected `int`.*hosts\[0\]\.port"),
        ("  switch: s1", "  switch: s9", r"hosts\.h1: port 1 of s9"),
        ("  ipv4: 10.0.0.1", "  ipv4: 10.0.0.256", r"hosts\.h1: '10\.0\.0\.256'"),
        ("- a: h1", "- a: h9", r"links\[0\]: there is no host or switch 'h9'"),
        ("  rate_bps: 40000000.0", "  rate_bps: 0.0", r"links\[0\]\.rate_bps: 0\.0 is not a rate"),
        ("target: embedded", "target: embedded\ncolour: red", "unknown field `colour`"),
    ],
)
def test_a_bad_network_file_is_refused_with_file_and_key(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    path = tmp_path / "network.yaml"
    save_network(network_of(parse_topology("big-switch:2", 4e7), 4e7, "embedded"), path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=f"network.yaml: .*{complaint}"):
        load_network(path)
