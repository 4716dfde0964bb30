"""Workers to hosts."""

from __future__ import annotations

import pytest

from controller.model import Fabric, Job, Link, PlacedJob, Workload
from controller.model.errors import BadInput
from controller.profiles.placement import place


def fabric() -> Fabric:
    hosts = tuple(f"h{i}" for i in range(1, 9))
    links = [Link(h, f"s{i // 4 + 1}", 1e9) for i, h in enumerate(hosts)]
    links += [Link(link.dst, link.src, link.rate) for link in links]
    return Fabric("two-leaves", hosts, ("s1", "s2"), tuple(links))


def workload(*sizes: int) -> Workload:
    return Workload(
        tuple(
            PlacedJob(Job(f"j{k}", tuple(f"w{i}" for i in range(n)))) for k, n in enumerate(sizes)
        )
    )


def hosts(placed: Workload) -> list[list[str]]:
    return [list(p.placement.values()) for p in placed.jobs]


def test_packed_fills_one_switch_before_the_next() -> None:
    assert hosts(place(workload(4, 2), fabric())) == [["h1", "h2", "h3", "h4"], ["h5", "h6"]]


def test_spread_alternates_between_switches() -> None:
    assert hosts(place(workload(4), fabric(), "spread")) == [["h1", "h5", "h2", "h6"]]


def test_random_is_a_function_of_the_seed_and_never_doubles_up_early() -> None:
    one = hosts(place(workload(5, 3), fabric(), "random", 7))
    assert one == hosts(place(workload(5, 3), fabric(), "random", 7))
    assert one != hosts(place(workload(5, 3), fabric(), "random", 8))
    assert len({h for job in one for h in job}) == 8


@pytest.mark.parametrize("policy", ["packed", "spread", "random"])
def test_more_workers_than_hosts_share_them_evenly(policy: str) -> None:
    (chosen,) = hosts(place(workload(20), fabric(), policy))
    assert sorted(chosen.count(h) for h in set(chosen)) == [2, 2, 2, 2, 3, 3, 3, 3]


def test_named_hosts_are_kept_and_avoided_by_the_others() -> None:
    first = PlacedJob(Job("a", ("w0",)), {"w0": "h1"})
    placed = place(Workload((first, *workload(2).jobs)), fabric())
    assert hosts(placed) == [["h1"], ["h2", "h3"]]


def test_unknown_policies_and_hosts_are_refused_by_name() -> None:
    with pytest.raises(BadInput, match="packed, spread, random"):
        place(workload(1), fabric(), "tight")
    with pytest.raises(BadInput, match="worker w0 is placed on 'h99'"):
        place(Workload((PlacedJob(Job("a", ("w0",)), {"w0": "h99"}),)), fabric())
