"""Collectives become the flows their algorithms send."""

from __future__ import annotations

import itertools

import pytest

from controller.model import Collective, Flow, Job, Task, dag
from controller.model.check import job_problems
from controller.model.collectives import ALGORITHMS, KINDS, expand, schedule, supported
from controller.model.errors import BadInput

PAIRS = [(k, a) for k in KINDS for a in ALGORITHMS if supported(k, a)]


def job_with(kind: str, algorithm: str, n: int, size: float = 1200.0) -> Job:
    workers = tuple(f"w{i}" for i in range(n))
    return Job(
        "j",
        workers,
        tasks=(
            *(Task(f"g{w}", w, 1.0) for w in workers),
            *(Task(f"o{w}", w, 1.0, ("r",)) for w in workers),
        ),
        collectives=(
            Collective("r", kind, algorithm, workers, size, tuple(f"g{w}" for w in workers)),
        ),
    )


@pytest.mark.parametrize(("kind", "algorithm"), PAIRS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 13])
def test_expansion_is_a_valid_job_that_moves_every_share(kind: str, algorithm: str, n: int) -> None:
    """Simulates who knows which contribution, and asks for what the collective promises."""
    job = expand(job_with(kind, algorithm, n))
    assert not job.collectives
    assert not list(job_problems(job))
    # what each worker can know: contributions (source worker) x; a transfer carries all of it
    known = {w: {w} for w in job.workers}
    flows = {f.id: f for f in job.flows}
    sent_by_step: dict[int, list[Flow]] = {}
    for flow in job.flows:
        sent_by_step.setdefault(int(flow.id.split("/")[1]), []).append(flow)
    for step in sorted(sent_by_step):
        carried = [(f.dst, set(known[f.src])) for f in sent_by_step[step]]
        for dst, what in carried:
            known[dst] |= what
    for worker in job.workers:
        expected = {job.workers[0]} if kind == "broadcast" else set(job.workers)
        assert expected <= known[worker]
    assert len(flows) == len(job.flows)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_total_bytes_are_those_of_the_table(n: int) -> None:
    size = 1200.0
    log = n.bit_length() - 1

    def total(kind: str, algorithm: str) -> float:
        return sum(f.bytes for f in expand(job_with(kind, algorithm, n, size)).flows)

    for algorithm in ALGORITHMS:
        assert total("all_reduce", algorithm) == pytest.approx(2 * (n - 1) * size)
        assert total("all_gather", algorithm) == pytest.approx((n - 1) * size) or (
            algorithm == "tree"
        )
        if algorithm in ("ring", "direct", "halving_doubling"):
            assert total("reduce_scatter", algorithm) == pytest.approx((n - 1) * size)
        if algorithm != "halving_doubling":
            assert total("broadcast", algorithm) == pytest.approx((n - 1) * size)
    assert total("reduce_scatter", "parameter_server") == pytest.approx(
        (n - 1) * (1 + 1 / n) * size
    )
    assert total("all_to_all", "ring") == pytest.approx((n - 1) * size)
    assert total("all_to_all", "halving_doubling") == pytest.approx(n / 2 * log * size)


def test_each_worker_of_a_ring_sends_and_receives_the_same() -> None:
    job = expand(job_with("all_reduce", "ring", 5))
    for worker in job.workers:
        out = sum(f.bytes for f in job.flows if f.src == worker)
        into = sum(f.bytes for f in job.flows if f.dst == worker)
        assert out == pytest.approx(2 * 4 / 5 * 1200)
        assert into == pytest.approx(out)


def test_ring_ids_and_dependencies_between_steps() -> None:
    job = expand(job_with("all_reduce", "ring", 3))
    flows = {f.id: f for f in job.flows}
    assert flows["r/0/w0-w1"].after == ("gw0", "gw1", "gw2")
    assert set(flows["r/1/w1-w2"].after) == {"r/0/w0-w1", "r/0/w1-w2"}
    assert len(flows) == 2 * 2 * 3


def test_a_worker_waits_for_the_flows_that_reach_it_only() -> None:
    job = expand(job_with("all_reduce", "ring", 4))
    for task in job.tasks:
        if task.id.startswith("o"):
            assert {id_.rsplit("-", 1)[1] for id_ in task.after} == {task.worker}
            assert len(task.after) == 6


def test_the_root_of_a_broadcast_waits_for_what_the_broadcast_waited_for() -> None:
    job = expand(job_with("broadcast", "tree", 4))
    root = next(t for t in job.tasks if t.id == "ow0")
    assert root.after == ("gw0", "gw1", "gw2", "gw3")


def test_a_chain_of_collectives_is_joined_worker_by_worker() -> None:
    workers = ("a", "b", "c")
    job = Job(
        "j",
        workers,
        collectives=(  # listed against their order
            Collective("second", "all_gather", "ring", workers, 3.0, ("first",)),
            Collective("first", "reduce_scatter", "ring", workers, 3.0),
        ),
    )
    flows = {f.id: f for f in expand(job).flows}
    assert set(flows["second/0/a-b"].after) == {"first/0/c-a", "first/1/c-a"}


def test_a_collective_of_one_worker_passes_its_dependencies_on() -> None:
    job = Job(
        "j",
        ("a",),
        tasks=(Task("t", "a", 1.0), Task("u", "a", 1.0, ("c",))),
        collectives=(Collective("c", "all_reduce", "ring", ("a",), 8.0, ("t",)),),
    )
    assert expand(job).tasks[1].after == ("t",)


def test_interior_nodes_of_a_tree_wait_for_all_their_children() -> None:
    job = expand(job_with("all_reduce", "tree", 8))
    flows = {f.id: f for f in job.flows}
    down = next(f for f in job.flows if f.src == "w0")
    assert {id_ for id_ in down.after if id_.startswith("r/")} >= {
        "r/0/w1-w0",
        "r/1/w2-w0",
        "r/2/w4-w0",
    }
    assert "r/0/w5-w4" in flows["r/2/w4-w0"].after


def test_an_echelonflow_of_collectives_stands_for_all_their_flows() -> None:
    workers = ("a", "b")
    tasks = tuple(Task(f"{k}{w}", w, 1.0, (f"g{k}",)) for w in workers for k in range(3))
    job = expand(
        Job(
            "fsdp",
            workers,
            tasks=tasks,
            collectives=tuple(
                Collective(f"g{k}", "all_gather", "ring", workers, 8.0) for k in range(3)
            ),
        )
    )
    (group,) = job.echelonflows
    assert group.arrangement == (0.0, 0.0, 1.0, 1.0, 2.0, 2.0)
    assert set(group.flows) == {f.id for f in job.flows}


def test_unknown_combinations_name_what_there_is() -> None:
    with pytest.raises(BadInput, match="ring, halving_doubling, direct"):
        schedule("all_to_all", "tree", 4)
    with pytest.raises(BadInput, match="all_reduce, reduce_scatter"):
        schedule("gather", "ring", 4)


def test_circles_are_named() -> None:
    job = Job(
        "j", ("a", "b"), flows=(Flow("x", "a", "b", 1, ("y",)), Flow("y", "b", "a", 1, ("x",)))
    )
    with pytest.raises(dag.CircularJob, match=r"x -> y -> x|y -> x -> y"):
        expand(job)


def test_order_puts_everything_behind_what_it_waits_for() -> None:
    job = expand(job_with("all_reduce", "halving_doubling", 6))
    at = {id_: i for i, id_ in enumerate(dag.order(job))}
    for id_, before in dag.predecessors(job).items():
        assert all(at[b] < at[id_] for b in before)
    assert all(a != b for a, b in itertools.pairwise(dag.order(job)))
