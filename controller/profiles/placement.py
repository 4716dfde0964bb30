"""Workers to hosts: packed, spread, or at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from controller.model import Fabric, Workload
from controller.model.errors import BadInput

POLICIES = ("packed", "spread", "random")
"Names of the ways to place workers."


def place(workload: Workload, fabric: Fabric, policy: str = "packed", seed: int = 0) -> Workload:
    """The workload with every job placed; jobs that name their hosts keep them.

    A job's workers get different hosts as long as the fabric has enough; jobs share hosts (not
    GPUs) once all are taken, the least used hosts first.
    - packed: hosts in the fabric's order, so a job fills one edge switch before the next.
    - spread: edge switches in turn, so neighbours in a job sit behind different switches.
    - random: a shuffle of the hosts for every job, from `seed`.
    Raises `BadInput` on another policy, or a placement on a host that the fabric lacks.
    """
    if policy not in POLICIES:
        raise BadInput(f"placement {policy!r}: expected one of {', '.join(POLICIES)}")
    known = set(fabric.hosts)
    used = dict.fromkeys(fabric.hosts, 0)
    for placed in workload.jobs:
        for worker, host in placed.placement.items():
            if host not in known:
                raise BadInput(
                    f"job {placed.job.name}: worker {worker} is placed on {host!r}, "
                    f"but {fabric.name} has only {fabric.hosts[0]}..{fabric.hosts[-1]}"
                )
            used[host] += 1
    choose = _chooser(fabric, policy, seed)
    jobs = []
    for placed in workload.jobs:
        if not placed.placement:
            hosts = choose(used, len(placed.job.workers))
            placed = replace(placed, placement=dict(zip(placed.job.workers, hosts, strict=True)))
        jobs.append(placed)
    return replace(workload, jobs=tuple(jobs))


def _chooser(fabric: Fabric, policy: str, seed: int) -> Callable[[dict[str, int], int], list[str]]:
    rng = random.Random(seed)
    in_turn = _by_edge_in_turn(fabric)

    def choose(used: dict[str, int], count: int) -> list[str]:
        """Hosts for a job's workers, marked in `used`."""
        order: Sequence[str] = fabric.hosts
        if policy == "spread":
            order = in_turn
        elif policy == "random":
            order = rng.sample(fabric.hosts, len(fabric.hosts))
        chosen: list[str] = []
        while len(chosen) < count:
            least = sorted(order, key=used.__getitem__)  # stable: the order breaks ties
            for host in least[: count - len(chosen)]:
                chosen.append(host)
                used[host] += 1
        return chosen

    return choose


def _by_edge_in_turn(fabric: Fabric) -> list[str]:
    hosts = set(fabric.hosts)
    behind: dict[str, list[str]] = {}
    for link in fabric.links:
        if link.src in hosts:
            behind.setdefault(link.dst, []).append(link.src)
    queues = list(behind.values())
    turns = max(map(len, queues), default=0)
    order = [queue[turn] for turn in range(turns) for queue in queues if turn < len(queue)]
    return list(dict.fromkeys([*order, *fabric.hosts]))
