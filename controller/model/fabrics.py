"""Builders of the usual fabrics: big switch, leaf-spine, fat-tree, and their names on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from controller.model.errors import BadInput
from controller.model.fabric import Fabric, Link

FORMS = "big-switch:HOSTS, leaf-spine:LEAVESxSPINESxHOSTS_PER_LEAF or fat-tree:K"
"The names `parse_topology` knows."


def big_switch(hosts: int, rate: float) -> Fabric:
    """`hosts` hosts on one switch that never blocks; host links of `rate` bit/s."""
    _refuse_below(1, hosts=hosts)
    names = _names("h", hosts)
    return _fabric(f"big-switch:{hosts}", names, ["s1"], [(h, "s1", rate) for h in names], rate)


def leaf_spine(
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    rate: float,
    oversubscription: float | None = None,
) -> Fabric:
    """Every leaf switch connected to every spine switch.

    Leaves are s1..sL, spines s(L+1)..s(L+S); leaf i has the hosts after those of leaf i-1.
    Host links carry `rate` bit/s; uplinks too, unless `oversubscription` fixes the ratio of a
    leaf's host capacity to its uplink capacity (1: full bisection).
    """
    _refuse_below(1, leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf)
    uplink = rate
    if oversubscription is not None:
        if not 0 < oversubscription < float("inf"):
            raise BadInput(f"oversubscription is {oversubscription}, expected a number > 0")
        uplink = rate * hosts_per_leaf / spines / oversubscription
    switches = _names("s", leaves + spines)
    hosts = _names("h", leaves * hosts_per_leaf)
    cables = [(host, switches[i // hosts_per_leaf], rate) for i, host in enumerate(hosts)]
    cables += [(leaf, spine, uplink) for leaf in switches[:leaves] for spine in switches[leaves:]]
    return _fabric(f"leaf-spine:{leaves}x{spines}x{hosts_per_leaf}", hosts, switches, cables, rate)


def fat_tree(k: int, rate: float) -> Fabric:
    """The k-ary fat-tree: k pods, k^3/4 hosts, all links of `rate` bit/s.

    Switches s1.. are the edges of all pods, then the aggregations, then the cores. Source:
    Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture",
    SIGCOMM 2008.
    """
    _refuse_below(2, k=k)
    if k % 2:
        raise BadInput(f"fat-tree:{k}: K is the ports of a switch and must be even")
    half = k // 2
    switches = _names("s", 2 * k * half + half * half)
    edges, aggregations = switches[: k * half], switches[k * half : 2 * k * half]
    cores = switches[2 * k * half :]
    hosts = _names("h", k * half * half)
    cables = [(host, edges[i // half], rate) for i, host in enumerate(hosts)]
    for pod in range(k):
        for e in range(half):
            cables += [
                (edges[pod * half + e], aggregations[pod * half + a], rate) for a in range(half)
            ]
        for a in range(half):
            cables += [
                (aggregations[pod * half + a], cores[a * half + c], rate) for c in range(half)
            ]
    return _fabric(f"fat-tree:{k}", hosts, switches, cables, rate)


def parse_topology(text: str, rate: float, oversubscription: float | None = None) -> Fabric:
    """The fabric that a `--topology` name asks for. Raises `BadInput` naming the known forms."""
    if not 0 < rate < float("inf"):
        raise BadInput(f"link rate is {rate}, expected a number > 0")
    kind, _, shape = text.partition(":")
    counts = shape.split("x")
    if all(count.isdigit() for count in counts):
        numbers = [int(count) for count in counts]
        if kind == "leaf-spine" and len(numbers) == 3:
            return leaf_spine(numbers[0], numbers[1], numbers[2], rate, oversubscription)
        if oversubscription is None and kind == "big-switch" and len(numbers) == 1:
            return big_switch(numbers[0], rate)
        if oversubscription is None and kind == "fat-tree" and len(numbers) == 1:
            return fat_tree(numbers[0], rate)
    also = "" if oversubscription is None else " (oversubscription is for leaf-spine)"
    raise BadInput(f"topology {text!r} is unknown: expected {FORMS}{also}")


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i + 1}" for i in range(count)]


def _fabric(
    name: str,
    hosts: list[str],
    switches: list[str],
    cables: Iterable[tuple[str, str, float]],
    rate: float,
) -> Fabric:
    if not 0 < rate < float("inf"):
        raise BadInput(f"{name}: link rate is {rate}, expected a number > 0")
    links = [link for a, b, r in cables for link in (Link(a, b, r), Link(b, a, r))]
    return Fabric(name, tuple(hosts), tuple(switches), tuple(links))


def _refuse_below(least: int, **counts: int) -> None:
    for what, count in counts.items():
        if count < least:
            raise BadInput(f"{what} is {count}, expected at least {least}")
