"""Bounds are never above what a policy achieves, and as tight as they are said to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.experiments.scenarios import pipeline
from controller.experiments.suite import case as suite_case
from controller.model import Flow, Job, PlacedJob, Task, Workload
from controller.model.fabric import DisconnectedFabric
from controller.model.fabrics import big_switch, leaf_spine
from controller.scheduling.echelon_search import RULES, FixedOrder
from controller.scheduling.registry import POLICIES, policy
from controller.simulator.alone import alone_times
from controller.simulator.bounds import job_bound, workload_bound
from controller.simulator.critical import most_done, preemptive
from controller.simulator.exact import Released, least_tardiness, least_weighted_completion
from controller.simulator.simulate import plans_of, simulate
from tests.scheduling.instances import instances
from tests.scheduling.player import Transfer, play
from tests.simulator.small_workloads import random_workload

RIVALS = ("fair", "fifo", "srpt", "varys", "echelon", "echelon-edf")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20))
def test_no_policy_is_below_the_bounds(seed: int) -> None:
    workload, fabric = random_workload(seed)
    alone = {placed.job.name: 1.0 for placed in workload.jobs}
    bound = workload_bound(workload, fabric, alone, growths=(1.3,))
    for name in RIVALS:
        result = simulate(workload, fabric, policy(name))
        assert result.mean_slowdown(alone) >= bound.mean_slowdown * (1 - 1e-6)
        for record in result.played.jobs:
            assert record.completion_s >= bound.completion_s[record.job] * (1 - 1e-9)


def test_a_pipeline_of_three_stages_has_a_bound_that_is_reached() -> None:
    def stage(k: int) -> list[Task]:
        return [Task(f"t{k}{i}", f"w{k}", 1.0, (f"a{k}{i}",) if k else ()) for i in range(4)]

    flows = [
        Flow(f"a{k}{i}", f"w{k - 1}", f"w{k}", 2.0, (f"t{k - 1}{i}",))
        for k in (1, 2)
        for i in range(4)
    ]
    job = Job("p", ("w0", "w1", "w2"), tuple(stage(0) + stage(1) + stage(2)), tuple(flows))
    workload = Workload((PlacedJob(job, {f"w{k}": f"h{k + 1}" for k in range(3)}),))
    fabric = big_switch(3, 8.0)
    least = job_bound(plans_of(workload, fabric)[0], fabric)
    assert least == pytest.approx(13.0)
    assert simulate(workload, fabric, policy("fifo")).played.jobs[0].completion_s == least


@pytest.mark.parametrize("growth, ratio", [(2.0, 1.52), (1.2, 1.11)])
def test_sixty_four_unit_jobs_on_one_link(growth: float, ratio: float) -> None:
    jobs = [
        PlacedJob(Job(f"j{i}", ("a", "b"), (), (Flow("f", "a", "b", 1.0),)), {"a": "h1", "b": "h2"})
        for i in range(64)
    ]
    alone = {f"j{i}": 1.0 for i in range(64)}
    bound = workload_bound(
        Workload(tuple(jobs)), big_switch(2, 8.0), alone, growths=(growth,), effort=0
    )
    assert bound.by_programme
    assert 32.5 / bound.mean_slowdown == pytest.approx(ratio, abs=0.01)


def test_figure_2_and_two_pipelines() -> None:
    fabric = big_switch(2, 8.0)
    one = PlacedJob(pipeline("A", 1.0, 8.0), {"w0": "h1", "w1": "h2"})
    assert job_bound(plans_of(Workload((one,)), fabric)[0], fabric) == pytest.approx(8.0)
    two = Workload((one, replace(one, job=replace(one.job, name="B"))))
    bound = workload_bound(two, fabric, {"A": 8.0, "B": 8.0})
    assert 11 / 8 / 1.1 <= bound.mean_slowdown <= 11 / 8


def test_refuting_raises_what_the_programme_leaves_open() -> None:
    one = suite_case("two-gpipe")
    alone = alone_times(one.workload, one.fabric)
    programme = workload_bound(one.workload, one.fabric, alone, (1.1,), effort=0)
    raised = workload_bound(one.workload, one.fabric, alone, (1.1,))
    assert raised.method == "interval-indexed LP, growth 1.1, raised by refuting"
    assert raised.mean_slowdown > 1.05 * programme.mean_slowdown


def test_a_workload_too_large_is_bounded_by_its_jobs_alone() -> None:
    workload, fabric = random_workload(5)
    alone = {placed.job.name: 1.0 for placed in workload.jobs}
    bound = workload_bound(workload, fabric, alone, largest=0, effort=0)
    assert bound.method == "each job alone"
    assert bound.mean_slowdown <= workload_bound(workload, fabric, alone, (1.2,)).mean_slowdown


def released(flows: list[Transfer]) -> list[Released]:
    return [Released(t.bits / 8, t.path, t.offset) for t in flows]


@settings(max_examples=50, deadline=None)
@given(instances())
def test_no_policy_is_below_the_least_tardiness(
    instance: tuple[list[Transfer], list[float]],
) -> None:
    flows, capacity = instance
    flows = [replace(t, group=0, release=0.0) for t in flows]
    least = least_tardiness(released(flows), np.array(capacity), 0.0)
    for name in ("echelon", "echelon-edf", "varys"):
        finish = play(policy(name), flows, capacity).finish
        assert max(f - t.offset for f, t in zip(finish, flows, strict=True)) >= least - 1e-6


@settings(max_examples=15, deadline=None)
@given(instances(coflow=True))
def test_no_policy_is_below_the_exact_optimum(instance: tuple[list[Transfer], list[float]]) -> None:
    flows, capacity = instance
    flows = [replace(t, release=0.0) for t in flows]
    groups = sorted({t.group for t in flows})
    coflows = [released([t for t in flows if t.group == g]) for g in groups]
    least = least_weighted_completion(coflows, [1.0] * len(groups), np.array(capacity))
    for name in POLICIES:
        finish = play(policy(name), flows, capacity).finish
        total = sum(
            max(f for f, t in zip(finish, flows, strict=True) if t.group == g) for g in groups
        )
        assert total >= least * (1 - 1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**20))
def test_the_programme_is_never_above_the_exact_optimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    fabric = big_switch(3, 8.0)
    jobs = []
    for j in range(int(random.integers(2, 5))):
        flows = []
        for f in range(int(random.integers(1, 4))):
            src, dst = random.choice(["a", "b", "c"], 2, replace=False)
            flows.append(Flow(f"f{f}", str(src), str(dst), float(random.uniform(0.1, 3))))
        placement = {"a": "h1", "b": "h2", "c": "h3"}
        jobs.append(PlacedJob(Job(f"j{j}", ("a", "b", "c"), (), tuple(flows)), placement))
    weight = {placed.job.name: float(random.uniform(0.5, 2)) for placed in jobs}
    alone = {name: 1 / w for name, w in weight.items()}
    bound = workload_bound(Workload(tuple(jobs)), fabric, alone, effort=10**8)
    coflows = [
        [
            Released(f.bytes, fabric.paths(placed.placement[f.src], placed.placement[f.dst])[0])
            for f in placed.job.flows
        ]
        for placed in jobs
    ]
    weights = [weight[placed.job.name] for placed in jobs]
    exact = least_weighted_completion(coflows, weights, np.array(fabric.capacities()))
    assert bound.mean_slowdown <= exact / len(jobs) * (1 + 1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**20))
def test_no_chosen_order_and_paths_are_below_the_bounds(seed: int) -> None:
    workload, fabric = random_workload(2 * seed)  # even: two spines
    random = np.random.default_rng(seed)
    bound = workload_bound(workload, fabric, {p.job.name: 1.0 for p in workload.jobs}, (1.3,))
    for rule in RULES:
        level = {(p.job.name, -1): int(random.integers(4)) for p in workload.jobs}
        paths = {
            (p.placement[f.src], p.placement[f.dst], f.id): int(random.integers(2))
            for p in workload.jobs
            for f in p.job.flows
        }
        result = simulate(workload, fabric, FixedOrder(level, rule, paths), "enforced")
        for record in result.played.jobs:
            assert record.completion_s >= bound.completion_s[record.job] * (1 - 1e-9)
        mean = np.mean(
            [
                record.completion_s / placed.job.iterations
                for record, placed in zip(result.played.jobs, workload.jobs, strict=True)
            ]
        )
        assert mean >= bound.mean_slowdown * (1 - 1e-6)


def test_a_long_chain_of_coflows_is_seen_to_its_end() -> None:
    # Each round, two flows to one worker: one after another on its link, however deep the chain.
    tasks = [Task("t0", "w2", 1.0)]
    flows: list[Flow] = []
    for k in range(1, 21):
        src = ("w0", "w1") if k % 2 == 0 else ("w2", "w2")
        dst = ("w2", "w2") if k % 2 == 0 else ("w0", "w1")
        for i in range(2):
            after = tuple(
                t.id for t in tasks if t.id.startswith(f"t{k - 1}") and t.worker == src[i]
            )
            flows.append(Flow(f"f{k}{i}", src[i], dst[i], 1.0, after))
        for i, w in enumerate(sorted(set(dst))):
            needs = tuple(f.id for f in flows if f.id.startswith(f"f{k}") and f.dst == w)
            tasks.append(Task(f"t{k}.{i}", w, 1.0, needs))
    job = Job("chain", ("w0", "w1", "w2"), tuple(tasks), tuple(flows), iterations=3)
    workload = Workload((PlacedJob(job, {f"w{k}": f"h{k + 1}" for k in range(3)}),))
    fabric = big_switch(3, 8.0)
    least = job_bound(plans_of(workload, fabric)[0], fabric)
    assert least == pytest.approx(
        simulate(workload, fabric, policy("fifo")).played.jobs[0].completion_s
    )


def test_what_the_next_iteration_waits_for_passes_a_link_one_after_another() -> None:
    # Two flows, released together, into one worker; its next iteration needs both.
    tasks = (Task("a", "w0", 1.0), Task("b", "w1", 1.0))
    flows = (Flow("f", "w0", "w1", 2.0, ("a",)), Flow("g", "w0", "w1", 3.0, ("a",)))
    job = Job("j", ("w0", "w1"), tasks, flows, iterations=3)
    workload = Workload((PlacedJob(job, {"w0": "h1", "w1": "h2"}),))
    fabric = big_switch(2, 8.0)
    least = job_bound(plans_of(workload, fabric)[0], fabric)
    assert least == simulate(workload, fabric, policy("fifo")).played.jobs[0].completion_s


def test_the_exact_optimum_of_a_small_instance_is_known() -> None:
    # Two short coflows on two links beat the one that needs both.
    coflows = [
        [Released(2 / 8, (0,)), Released(2 / 8, (1,))],
        [Released(1.9 / 8, (0,))],
        [Released(1.9 / 8, (1,))],
    ]
    least = least_weighted_completion(coflows, [1.0, 1.0, 1.0], np.ones(2))
    assert least == pytest.approx(1.9 + 1.9 + 3.9)


def test_one_machine_with_heads_and_tails() -> None:
    assert preemptive(np.array([0.0, 0, 2]), np.array([3.0, 2, 1]), np.array([0.0, 1, 5])) == 8
    done = most_done(np.array([0.0, 5]), np.array([2.0, 2]), np.array([1.0, 3, 5.5, 9]))
    assert done.tolist() == [1, 2, 2.5, 4]


def test_a_job_that_cannot_reach_its_peer_is_refused_before_anything_is_played() -> None:
    late = PlacedJob(
        Job("late", ("a", "b"), (), (Flow("f", "a", "b", 1.0),)), {"a": "h1", "b": "h3"}, 9.0
    )
    fabric = leaf_spine(2, 1, 2, 8.0)
    uplink = next(i for i, link in enumerate(fabric.links) if (link.src, link.dst) == ("s1", "s3"))
    with pytest.raises(DisconnectedFabric, match="h1 to h3"):
        plans_of(Workload((late,)), fabric.without([uplink]))
