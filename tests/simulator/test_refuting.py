"""What is refuted is above no schedule; what windows forbid, no schedule does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.experiments.suite import case
from controller.model import Fabric, Flow, Job, PlacedJob, Task, Workload
from controller.model.fabrics import big_switch
from controller.scheduling.policy import Floats
from controller.scheduling.registry import policy
from controller.simulator.critical import critical
from controller.simulator.refuting import Refuter
from controller.simulator.simulate import plans_of, simulate
from controller.simulator.windows import Unrolled, narrow, unroll
from tests.simulator.small_workloads import random_workload

RIVALS = ("fair", "fifo", "srpt", "varys", "echelon", "echelon-edf")
HOSTS = {"a": "h1", "b": "h2"}


def refuter(workload: Workload, fabric: Fabric) -> tuple[Refuter, float]:
    """Slowdowns over the jobs' least times; and so the least mean is 1."""
    plans = plans_of(workload, fabric)
    least = np.array([critical(plan, fabric).least for plan in plans])
    arrival = np.array([plan.arrival for plan in plans])
    return Refuter(unroll(plans, fabric), arrival, least, least), float(least.mean())


def graph_of(*jobs: Job) -> Unrolled:
    workload = Workload(tuple(PlacedJob(job, HOSTS) for job in jobs))
    fabric = big_switch(2, 8.0)
    return unroll(plans_of(workload, fabric), fabric)


def sending(name: str, *sizes: float) -> Job:
    """A job of flows from a to b, all ready at once; each takes as many seconds as it has bytes."""
    return Job(name, ("a", "b"), (), tuple(Flow(f"f{i}", "a", "b", s) for i, s in enumerate(sizes)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**20))
def test_no_policy_is_below_a_mean_that_is_refuted(seed: int) -> None:
    workload, fabric = random_workload(seed)
    plans = plans_of(workload, fabric)
    least = np.array([critical(plan, fabric).least for plan in plans])
    mean = refuter(workload, fabric)[0].climb(1.0, 10**7)
    for name in RIVALS:
        ends = [r.completion_s for r in simulate(workload, fabric, policy(name)).played.jobs]
        assert np.mean(np.array(ends) / least) >= mean * (1 - 1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**20), st.sampled_from(RIVALS))
def test_what_a_policy_plays_lies_within_the_windows_of_its_own_ends(seed: int, name: str) -> None:
    workload, fabric = random_workload(seed)
    plans = plans_of(workload, fabric)
    result = simulate(workload, fabric, policy(name))
    arrival = [plan.arrival for plan in plans]
    ends = np.array([r.completion_s for r in result.played.jobs]) + arrival
    graph = unroll(plans, fabric)
    head, _ = narrow(graph, ends * (1 + 1e-7))
    assert head is not None
    assert np.all(graph.ends(head, len(plans)) <= ends * (1 + 1e-6))
    starts = started(graph, workload, fabric)
    for flow in result.played.flows:
        assert head[starts[flow.job, flow.iteration, flow.flow]] <= flow.start * (1 + 1e-6) + 1e-6


def started(graph: Unrolled, workload: Workload, fabric: Fabric) -> dict[tuple[str, int, str], int]:
    """The node of each flow."""
    nodes, first = {}, 0
    for plan in plans_of(workload, fabric):
        for k in range(plan.job.iterations):
            for flow, row in plan.flow_row.items():
                nodes[plan.job.name, k, flow] = first + plan.tasks + row
            first += len(plan.needs) + len(plan.held)
    assert first == len(graph.job)
    return nodes


@pytest.mark.parametrize("jobs", [2, 3])
def test_equal_jobs_on_one_link_end_one_after_another(jobs: int) -> None:
    workload = Workload(tuple(PlacedJob(sending(f"j{i}", 1.0), HOSTS) for i in range(jobs)))
    found = refuter(workload, big_switch(2, 8.0))[0].climb(1.0, 10**8)
    assert (jobs + 1) / 2 * 0.99 <= found <= (jobs + 1) / 2


def test_more_effort_refutes_no_less() -> None:
    one = case("two-gpipe")
    found = [
        refuter(one.workload, one.fabric)[0].climb(1.0, effort)
        for effort in (0, 10**6, 10**7, 10**8)
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_deadlines_that_two_jobs_cannot_both_meet_are_seen() -> None:
    graph = graph_of(sending("j", 1.0), sending("k", 2.0))
    deadline: Floats = np.array([1.5, 3.0])
    assert narrow(graph, deadline)[0] is not None
    assert narrow(graph, deadline - 0.01)[0] is None


def test_what_does_not_fit_beside_a_deadline_ends_after_it() -> None:
    after = replace(sending("k", 2.0), tasks=(Task("t", "b", 1.0, ("f0",)),))
    head, _ = narrow(graph_of(sending("j", 1.0), after), np.array([2.0, 9.0]))
    assert head is not None
    assert head[3] == pytest.approx(3.0)  # the task, after the flow and two turns of j


def test_flows_that_one_task_waits_for_are_taken_together() -> None:
    # Either of the two alone fits before j must end; both do not.
    both = replace(sending("k", 1.0, 1.0), tasks=(Task("t", "b", 1.0, ("f0", "f1")),))
    head, _ = narrow(graph_of(sending("j", 1.0), both), np.array([2.5, 9.0]))
    assert head is not None
    assert head[3] == pytest.approx(3.0)
