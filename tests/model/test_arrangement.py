"""EchelonFlows and their offsets follow from what a consumer computes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from controller.model import Collective, EchelonFlow, Flow, Job, Task
from controller.model.arrangement import derive, fsdp_offsets
from controller.model.errors import BadInput


def figure2(n: int = 3, consume: float = 1.0, produce: float = 1.0) -> Job:
    return Job(
        "figure2",
        ("w0", "w1"),
        tasks=(
            *(Task(f"p{k}", "w0", produce) for k in range(n)),
            *(Task(f"c{k}", "w1", consume, (f"f{k}",)) for k in range(n)),
        ),
        flows=tuple(Flow(f"f{k}", "w0", "w1", 2.0, (f"p{k}",)) for k in range(n)),
    )


def one_f_one_b(stages: int, m: int, forward: float, backward: float) -> Job:
    tasks: list[Task] = []
    flows: list[Flow] = []
    for s in range(stages):
        warm = min(stages - s - 1, m)
        order = [("F", k) for k in range(warm)]
        for k in range(m - warm):
            order += [("F", warm + k), ("B", k)]
        order += [("B", k) for k in range(m - warm, m)]
        for what, k in order:
            after: tuple[str, ...] = ()
            if what == "F" and s > 0:
                after = (f"a{s}.{k}",)
            if what == "B" and s < stages - 1:
                after = (f"g{s}.{k}",)
            tasks.append(
                Task(f"{what}{s}.{k}", f"w{s}", forward if what == "F" else backward, after)
            )
    for k in range(m):
        for s in range(stages - 1):
            flows.append(Flow(f"a{s + 1}.{k}", f"w{s}", f"w{s + 1}", 5.0, (f"F{s}.{k}",)))
            flows.append(Flow(f"g{s}.{k}", f"w{s + 1}", f"w{s}", 5.0, (f"B{s + 1}.{k}",)))
    return Job("1f1b", tuple(f"w{s}" for s in range(stages)), tuple(tasks), tuple(flows))


def by_first(groups: Sequence[EchelonFlow]) -> dict[str, EchelonFlow]:
    return {group.flows[0]: group for group in groups}


def test_figure_2_is_staggered_by_the_consumers_time() -> None:
    (group,) = derive(figure2())
    assert group.flows == ("f0", "f1", "f2")
    assert group.arrangement == (0.0, 1.0, 2.0)


def test_a_slow_producer_does_not_stretch_the_arrangement() -> None:
    (group,) = derive(figure2(produce=2.0))
    assert group.arrangement == (0.0, 1.0, 2.0)


@pytest.mark.parametrize(("stages", "m"), [(2, 1), (2, 4), (3, 3), (4, 8), (4, 2), (5, 9)])
def test_one_f_one_b_gives_the_closed_forms(stages: int, m: int) -> None:
    tf, tb = 1.0, 2.5
    groups = by_first(derive(one_f_one_b(stages, m, tf, tb)))
    assert len(groups) == 2 * (stages - 1)
    for s in range(1, stages):  # activations into stage s
        w = min(stages - s - 1, m)
        expected = [0.0]
        for j in range(1, m):
            expected.append(expected[-1] + (tf if j <= w else tf + tb))
        assert groups[f"a{s}.0"].arrangement == pytest.approx(expected)
    for s in range(stages - 1):  # gradients into stage s
        w = min(stages - s - 1, m)
        expected = [0.0]
        for j in range(1, m):
            expected.append(expected[-1] + (tf + tb if j <= m - 1 - w else tb))
        assert groups[f"g{s}.0"].arrangement == pytest.approx(expected)


def fsdp(n: int, forward: float, backward: float) -> Job:
    workers = ("w0", "w1", "w2")
    order = [*(("F", k) for k in range(n)), *(("B", k) for k in reversed(range(n)))]
    tasks = [
        Task(f"{what}{k}{w}", w, forward if what == "F" else backward, (f"{what}gather{k}",))
        for w in workers
        for what, k in order
    ]
    gathers = []
    for i, (what, k) in enumerate(order):
        after = (gathers[i - 1].id,) if i else ()
        gathers.append(Collective(f"{what}gather{k}", "all_gather", "ring", workers, 9.0, after))
    scatters = [
        Collective(
            f"scatter{k}",
            "reduce_scatter",
            "ring",
            workers,
            9.0,
            tuple(f"B{k}{w}" for w in workers),
        )
        for k in reversed(range(n))
    ]
    return Job("fsdp", workers, tuple(tasks), collectives=(*gathers, *scatters))


def test_fsdp_all_gathers_are_one_echelonflow_and_reduce_scatters_coflows() -> None:
    n = 4
    groups = by_first(derive(fsdp(n, 1.0, 2.0)))
    gathers = groups["Fgather0"]
    assert len(gathers.flows) == 2 * n
    assert gathers.arrangement == pytest.approx(fsdp_offsets([1.0] * n, [2.0] * n, "exact"))
    for k in range(n):
        assert groups[f"scatter{k}"].flows == (f"scatter{k}",)
        assert groups[f"scatter{k}"].is_coflow


def test_the_papers_fsdp_arrangement_differs_in_one_step() -> None:
    exact = fsdp_offsets([1.0] * 3, [2.0] * 3, "exact")
    paper = fsdp_offsets([1.0] * 3, [2.0] * 3, "paper")
    assert exact == [0, 1, 2, 3, 5, 7]
    assert paper == [0, 1, 2, 4, 6, 8]
    with pytest.raises(BadInput, match="paper or exact"):
        fsdp_offsets([1.0], [1.0], "printed")


def test_data_parallel_buckets_are_a_coflow_each() -> None:
    workers = ("a", "b")
    job = Job(
        "dp",
        workers,
        tasks=(
            *(Task(f"b{k}{w}", w, 1.0) for w in workers for k in range(3)),
            *(Task(f"o{w}", w, 1.0, ("r0", "r1", "r2")) for w in workers),
        ),
        collectives=tuple(
            Collective(f"r{k}", "all_reduce", "ring", workers, 8.0, (f"b{k}a", f"b{k}b"))
            for k in range(3)
        ),
    )
    groups = derive(job)
    assert [g.flows for g in groups] == [("r0",), ("r1",), ("r2",)]
    assert all(g.is_coflow for g in groups)


def test_tensor_parallel_layers_are_a_coflow_each() -> None:
    workers = ("a", "b")
    tasks, collectives = [], []
    for k in range(3):
        for w in workers:
            tasks.append(Task(f"t{k}{w}", w, 1.0, (f"r{k - 1}",) if k else ()))
        after = tuple(f"t{k}{w}" for w in workers)
        collectives.append(Collective(f"r{k}", "all_reduce", "ring", workers, 8.0, after))
    tasks += [Task(f"o{w}", w, 1.0, ("r2",)) for w in workers]
    groups = derive(Job("tp", workers, tuple(tasks), collectives=tuple(collectives)))
    assert [g.flows for g in groups] == [("r0",), ("r1",), ("r2",)]


def test_parameter_server_push_and_pull_are_a_coflow_each() -> None:
    workers = ("ps", "a", "b")
    job = Job(
        "ps",
        workers,
        tasks=(
            Task("ga", "a", 1.0),
            Task("gb", "b", 2.0),
            Task("u", "ps", 0.5, ("pa", "pb")),
            Task("oa", "a", 0.1, ("la",)),
            Task("ob", "b", 0.1, ("lb",)),
        ),
        flows=(
            Flow("pa", "a", "ps", 8.0, ("ga",)),
            Flow("pb", "b", "ps", 8.0, ("gb",)),
            Flow("la", "ps", "a", 8.0, ("u",)),
            Flow("lb", "ps", "b", 8.0, ("u",)),
        ),
    )
    groups = derive(job)
    assert [set(g.flows) for g in groups] == [{"pa", "pb"}, {"la", "lb"}]
    assert all(g.is_coflow for g in groups)


def test_flows_nobody_consumes_are_one_coflow() -> None:
    job = Job(
        "shuffle", ("a", "b", "c"), flows=(Flow("x", "a", "c", 1.0), Flow("y", "b", "c", 2.0))
    )
    (group,) = derive(job)
    assert set(group.flows) == {"x", "y"}
    assert group.is_coflow


def test_declared_echelonflows_are_kept_and_the_rest_derived() -> None:
    declared = EchelonFlow("mine", ("f0", "f1"), (0.0, 9.0))
    job = figure2()
    job = Job(job.name, job.workers, job.tasks, job.flows, (), (declared,))
    groups = derive(job)
    assert groups[0] == declared
    assert groups[1].flows == ("f2",)


@pytest.mark.parametrize("seed", range(20))
def test_completion_is_tardiness_plus_a_constant_whatever_the_finishes(seed: int) -> None:
    """The identity the one rule stands on."""
    rng = random.Random(seed)
    n = rng.randint(1, 8)
    durations = [rng.random() for _ in range(n)]
    job = Job(
        "j",
        ("p", "c"),
        tasks=(
            *(Task(f"p{k}", "p", 1.0) for k in range(n)),
            *(Task(f"c{k}", "c", durations[k], (f"f{k}",)) for k in range(n)),
        ),
        flows=tuple(Flow(f"f{k}", "p", "c", 1.0, (f"p{k}",)) for k in range(n)),
    )
    (group,) = derive(job)
    reference = 1.0
    finish = [reference + rng.random() * 5 for _ in range(n)]
    clock = 0.0
    for k in range(n):
        clock = max(clock, finish[k]) + durations[k]
    tardiness = max(finish[k] - (reference + a) for k, a in enumerate(group.arrangement))
    assert clock == pytest.approx(tardiness + reference + sum(durations))
