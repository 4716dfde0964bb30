"""The simulator plays jobs exactly: the paper's vectors, the rules of time, and what must always hold."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import EchelonFlow, Flow, Job, PlacedJob, Task, Workload
from controller.model.errors import BadInput, WorkFailed
from controller.model.fabrics import big_switch, leaf_spine
from controller.model.record import Played
from controller.scheduling.policy import Decision, NetworkState
from controller.scheduling.registry import policy
from controller.scheduling.routing import EcmpHash
from controller.simulator.allocation import feasible
from controller.simulator.simulate import simulate

RATE = 8.0
"Bit/s of every link: a byte a second."

VECTORS = {
    "fair": ([8.5], [14.5, 14.5]),
    "fifo": ([8.0], [12.0, 14.0]),
    "edf": ([8.0], [12.0, 14.0]),
    "varys": ([10.0], [10.0, 16.0]),
    "echelon": ([8.0], [8.0, 14.0]),
    "echelon-edf": ([8.0], [8.0, 14.0]),
}


def pipeline(name: str, batches: int = 3, size: float = 2.0, iterations: int = 1) -> Job:
    """Figure 2: computing 1 a micro-batch on both sides, transfers of `size`."""
    steps = range(batches)
    flows = tuple(Flow(f"a{k}", "w0", "w1", size, (f"f{k}",)) for k in steps)
    return Job(
        name,
        ("w0", "w1"),
        (
            *(Task(f"f{k}", "w0", 1.0) for k in steps),
            *(Task(f"g{k}", "w1", 1.0, (f"a{k}",)) for k in steps),
        ),
        flows,
        (),
        (EchelonFlow("fwd", tuple(f.id for f in flows), tuple(map(float, steps))),),
        iterations,
    )


def coflow_job(name: str, ends: list[tuple[str, str, float]], arrival: float = 0.0) -> PlacedJob:
    """One coflow; workers are named as their hosts."""
    workers = tuple(dict.fromkeys(w for src, dst, _ in ends for w in (src, dst)))
    flows = tuple(Flow(f"f{i}", src, dst, size) for i, (src, dst, size) in enumerate(ends))
    group = EchelonFlow("c", tuple(f.id for f in flows), (0.0,) * len(flows))
    job = Job(name, workers, (), flows, (), (group,))
    return PlacedJob(job, {w: w for w in workers}, arrival)


def finishes(played: Played) -> dict[tuple[str, int, str], float]:
    return {(f.job, f.iteration, f.flow): f.finish for f in played.flows}


@pytest.mark.parametrize("name", VECTORS)
def test_figure_2_and_two_pipelines_to_1e_9(name: str) -> None:
    one, two = VECTORS[name]
    fabric = big_switch(2, RATE)
    places = {"w0": "h1", "w1": "h2"}
    for jobs, expected in ((["A"], one), (["A", "B"], two)):
        workload = Workload(tuple(PlacedJob(pipeline(job), places) for job in jobs))
        result = simulate(workload, fabric, policy(name))
        assert [job.completion_s for job in result.played.jobs] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "finish", "tardiness"),
    [
        ("fair", [4.5, 6.5, 7], [3.5, 4.5, 4]),
        ("varys", [7, 7, 7], [6, 5, 4]),
        ("echelon", [5, 6, 7], [4, 4, 4]),
        ("echelon-edf", [3, 5, 7], [2, 3, 4]),
    ],
)
def test_every_flow_of_figure_2(name: str, finish: list[float], tardiness: list[float]) -> None:
    workload = Workload((PlacedJob(pipeline("A"), {"w0": "h1", "w1": "h2"}),))
    result = simulate(workload, big_switch(2, RATE), policy(name))
    flows = sorted(result.played.flows, key=lambda flow: flow.flow)
    assert [flow.finish for flow in flows] == pytest.approx(finish, abs=1e-9)
    assert [flow.tardiness for flow in flows] == pytest.approx(tardiness, abs=1e-9)
    assert result.total_tardiness_s == pytest.approx(max(tardiness), abs=1e-9)
    assert result.total_tardiness_s == pytest.approx(result.played.total_tardiness(), abs=1e-12)


def test_closed_form_of_four_micro_batches() -> None:
    workload = Workload((PlacedJob(pipeline("A", 4), {"w0": "h1", "w1": "h2"}),))
    for name, expected in (("fair", 32 / 3), ("varys", 13.0), ("echelon", 10.0)):
        result = simulate(workload, big_switch(2, RATE), policy(name))
        assert result.played.jobs[0].completion_s == pytest.approx(expected, abs=1e-9)


def test_a_worker_runs_its_tasks_in_the_order_listed_one_at_a_time() -> None:
    job = Job("J", ("w",), (Task("b", "w", 2.0), Task("a", "w", 1.0), Task("c", "w", 0.0, ("a",))))
    result = simulate(Workload((PlacedJob(job, {"w": "h1"}),)), big_switch(2, RATE), policy("fair"))
    spans = [(task.task, task.start, task.finish) for task in result.played.tasks]
    assert spans == [("b", 0.0, 2.0), ("a", 2.0, 3.0), ("c", 3.0, 3.0)]


def test_workers_begin_the_next_iteration_one_by_one() -> None:
    """The producer goes on while its transfers are under way; the consumer waits for them."""
    workload = Workload((PlacedJob(pipeline("A", 1, 2.0, 3), {"w0": "h1", "w1": "h2"}),))
    result = simulate(workload, big_switch(2, RATE), policy("fifo"))
    begun = {(t.iteration, t.task): t.start for t in result.played.tasks}
    assert [begun[k, "f0"] for k in range(3)] == [0.0, 1.0, 2.0]
    assert [begun[k, "g0"] for k in range(3)] == pytest.approx([3.0, 5.0, 7.0])
    assert result.played.jobs[0].iteration_times() == pytest.approx([4.0, 2.0, 2.0])


def test_an_iteration_waits_for_flows_into_the_worker_that_no_task_needs() -> None:
    """A trailing all-reduce: the next iteration computes with what it brought."""
    job = Job(
        "J",
        ("w0", "w1"),
        (Task("b0", "w0", 1.0), Task("b1", "w1", 1.0)),
        (Flow("x", "w0", "w1", 4.0, ("b0",)), Flow("y", "w1", "w0", 4.0, ("b1",))),
        iterations=2,
    )
    workload = Workload((PlacedJob(job, {"w0": "h1", "w1": "h2"}),))
    result = simulate(workload, big_switch(2, RATE), policy("fair"))
    assert [t.start for t in result.played.tasks if t.iteration == 1] == pytest.approx([5.0, 5.0])


def test_thousands_of_iterations_may_be_open_at_once_and_all_are_recorded() -> None:
    """A producer that never waits runs ahead of its transfers: the tables grow as it does."""
    workload = Workload((PlacedJob(pipeline("A", 1, 2.0, 3000), {"w0": "h1", "w1": "h2"}),))
    result = simulate(workload, big_switch(2, RATE), policy("fifo"), "enforced")
    flows = {(flow.iteration, flow.flow): flow for flow in result.played.flows}
    assert len(flows) == len(result.played.flows) == 3000
    assert len(result.played.tasks) == 6000
    last = flows[2999, "a0"]
    assert (last.ready, last.start, last.finish) == pytest.approx((3000.0, 5999.0, 6001.0))
    assert last.classes[-1] == 7
    assert result.played.jobs[0].iteration_ends[-1] == pytest.approx(6002.0)


def test_a_job_that_computes_nothing_repeats_its_transfers_one_after_another() -> None:
    placed = coflow_job("C", [("h1", "h2", 3.0)])
    workload = Workload((replace(placed, job=replace(placed.job, iterations=3)),))
    result = simulate(workload, big_switch(2, RATE), policy("fair"))
    assert [f.finish for f in result.played.flows] == pytest.approx([3.0, 6.0, 9.0])
    assert result.mean_coflow_completion_s == pytest.approx(3.0)


def test_each_iteration_has_a_fresh_reference_time() -> None:
    workload = Workload((PlacedJob(pipeline("A", 3, 0.5, 2), {"w0": "h1", "w1": "h2"}),))
    result = simulate(workload, big_switch(2, RATE), policy("echelon"))
    ideal = [f.ideal_finish for f in sorted(result.played.flows, key=lambda f: f.ready)]
    assert ideal == pytest.approx([1, 2, 3, 4, 5, 6])


def test_workers_on_one_host_exchange_data_in_no_time() -> None:
    workload = Workload((PlacedJob(pipeline("A"), {"w0": "h1", "w1": "h1"}),))
    result = simulate(workload, big_switch(2, RATE), policy("echelon"))
    assert result.played.jobs[0].completion_s == pytest.approx(4.0)
    assert all(f.ready == f.start == f.finish for f in result.played.flows)
    assert result.total_tardiness_s == pytest.approx(0.0)


def test_a_job_arrives_when_it_says() -> None:
    late = coflow_job("late", [("h1", "h2", 4.0)], arrival=3.0)
    workload = Workload((late, coflow_job("early", [("h1", "h2", 4.0)])))
    result = simulate(workload, big_switch(2, RATE), policy("fair"))
    assert [job.completion_s for job in result.played.jobs] == pytest.approx([5.0, 5.0])


def test_sizes_scale_with_the_link_rate_over_the_reference_rate() -> None:
    placed = coflow_job("C", [("h1", "h2", 100.0)])
    placed = replace(placed, job=replace(placed.job, reference_rate=10 * RATE))
    result = simulate(Workload((placed,)), big_switch(2, RATE), policy("fair"))
    assert result.played.flows[0].bytes == pytest.approx(10.0)


def test_a_policy_is_asked_again_when_it_wants_to_be() -> None:
    class Alternating:
        """Serves nothing in odd seconds."""

        name, local = "alternating", False

        def decide(self, state: NetworkState) -> Decision:
            serving = int(state.time + 1e-9) % 2 == 0
            rate = np.full(state.flows, RATE if serving else 0.0)
            until = float(int(state.time + 1e-9) + 1)
            return Decision(np.zeros(state.flows, np.int64), rate, rate, until)

    workload = Workload((coflow_job("C", [("h1", "h2", 3.0)]),))
    result = simulate(workload, big_switch(2, RATE), Alternating())
    assert result.played.flows[0].finish == pytest.approx(5.0)


def test_a_policy_that_wants_to_be_asked_at_the_same_instant_again_is_asked_after_it() -> None:
    class Hasty:
        """Up to and at 1 s it wants to be asked at 1 s; then it does not care."""

        name, local = "hasty", True

        def decide(self, state: NetworkState) -> Decision:
            decision = policy("fifo").decide(state)
            decision.valid_until = 1.0 if state.time <= 1.0 else float("inf")
            return decision

    workload = Workload((coflow_job("C", [("h1", "h2", 3.0)] * 2),))
    result = simulate(workload, big_switch(2, RATE), Hasty())
    assert [flow.finish for flow in result.played.flows] == pytest.approx([3.0, 6.0])


def test_a_flow_that_never_gets_a_rate_is_named() -> None:
    class Lazy:
        name, local = "lazy", False

        def decide(self, state: NetworkState) -> Decision:
            nothing = np.zeros(state.flows)
            return Decision(np.zeros(state.flows, np.int64), nothing, nothing)

    workload = Workload((coflow_job("C", [("h1", "h2", 3.0)]),))
    with pytest.raises(WorkFailed, match=r"C never finishes.*f0"):
        simulate(workload, big_switch(2, RATE), Lazy())


NO_NUMBERS = [float("nan"), float("inf"), -1.0]


@pytest.mark.parametrize("bad", [*NO_NUMBERS, 0.0])
def test_sizes_weights_and_rates_that_are_no_numbers_above_0_are_refused(bad: float) -> None:
    placed, fabric = coflow_job("C", [("h1", "h2", 3.0)]), big_switch(2, RATE)
    with pytest.raises(BadInput, match=r"flows\[0\]\.bytes"):
        simulate(Workload((coflow_job("C", [("h1", "h2", bad)]),)), fabric, policy("fair"))
    with pytest.raises(BadInput, match="weight"):
        simulate(Workload((replace(placed, weight=bad),)), fabric, policy("fair"))
    with pytest.raises(BadInput, match="rate"):
        big_switch(2, bad)
    with pytest.raises(BadInput, match="rate"):
        fabric.degraded(0, bad)


@pytest.mark.parametrize("bad", NO_NUMBERS)
def test_times_that_are_no_numbers_are_refused(bad: float) -> None:
    placed, fabric = coflow_job("C", [("h1", "h2", 3.0)]), big_switch(2, RATE)
    with pytest.raises(BadInput, match="arrival"):
        simulate(Workload((replace(placed, arrival=bad),)), fabric, policy("fair"))
    computing = replace(placed, job=replace(placed.job, tasks=(Task("t", "h1", bad),)))
    with pytest.raises(BadInput, match=r"tasks\[0\]\.seconds"):
        simulate(Workload((computing,)), fabric, policy("fair"))


def test_enforced_is_ideal_where_hosts_keep_to_the_rates_of_the_policy() -> None:
    workload = Workload(
        tuple(PlacedJob(pipeline(job), {"w0": "h1", "w1": "h2"}) for job in ("A", "B"))
    )
    for name in ("fifo", "echelon"):
        ideal, enforced = (
            simulate(workload, big_switch(2, RATE), policy(name), model)
            for model in ("ideal", "enforced")
        )
        assert finishes(enforced.played) == pytest.approx(finishes(ideal.played), abs=1e-9)
    assert {c for flow in enforced.played.flows for c in flow.classes} <= set(range(8))
    assert all(flow.classes for flow in enforced.played.flows)


# What must hold in every run


class Watched:
    """A policy whose decisions are checked as they are made."""

    def __init__(self, name: str, work_conserving: bool = True) -> None:
        self.name, self._policy = name, policy(name)
        self.local = self._policy.local
        self._work_conserving = work_conserving

    def decide(self, state: NetworkState) -> Decision:
        decision = self._policy.decide(state)
        assert feasible(state, decision.rate)
        if self._work_conserving:
            load = np.zeros(len(state.capacity))
            np.add.at(load, state.path_links, np.repeat(decision.rate, np.diff(state.path_start)))
            full = load >= state.capacity * (1 - 1e-9)
            for a, b in zip(state.path_start, state.path_start[1:], strict=False):
                assert full[state.path_links[a:b]].any(), "a flow could be faster"
        return decision


def random_job(random: np.random.Generator, name: str, hosts: int) -> PlacedJob:
    """A random DAG on three workers, some flows without a consumer, up to two iterations."""
    workers = ("w0", "w1", "w2")
    ids: list[str] = []
    tasks, flows = [], []
    for i in range(int(random.integers(2, 9))):
        after = tuple(sorted({str(x) for x in random.choice(ids, 2)})) if ids else ()
        if random.random() < 0.4:
            seconds = float(random.choice([0, 0.5, 1]))
            tasks.append(Task(f"t{i}", str(random.choice(workers)), seconds, after))
            ids.append(f"t{i}")
        else:
            src, dst = random.choice(workers, 2, replace=False)
            flows.append(Flow(f"x{i}", str(src), str(dst), random.uniform(0.5, 4), after))
            ids.append(f"x{i}")
    placement = {w: f"h{1 + int(random.integers(hosts))}" for w in workers}
    job = Job(name, workers, tuple(tasks), tuple(flows), iterations=int(random.integers(1, 3)))
    return PlacedJob(job, placement, float(random.integers(0, 3)), random.uniform(0.5, 2))


def random_workload(seed: int) -> Workload:
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 5))
    return Workload(tuple(random_job(generator, f"j{i}", 6) for i in range(count)))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(["fair", "fifo", "srpt", "varys", "sincronia", "echelon", "echelon-edf"]),
)
def test_links_are_never_over_capacity_nor_idle_for_no_reason(seed: int, name: str) -> None:
    workload = random_workload(seed)
    fabric = leaf_spine(2, 2, 3, RATE)
    result = simulate(workload, fabric, Watched(name))
    expected = sum(p.job.iterations * len(p.job.flows) for p in workload.jobs)
    assert len(result.played.flows) == expected
    for flow in result.played.flows:
        assert flow.ready <= flow.start <= flow.finish
        assert flow.finish - flow.start >= flow.bytes * 8 / RATE * (1 - 1e-9) or (
            flow.finish == flow.ready
        )


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["fair", "varys", "sincronia", "echelon"]))
def test_parts_decided_apart_give_what_the_whole_would(seed: int, name: str) -> None:
    workload, fabric = random_workload(seed), leaf_spine(2, 2, 3, RATE)
    whole = policy(name)
    whole_policy = Watched(name)
    whole_policy.local = False
    apart = simulate(workload, fabric, whole)
    together = simulate(workload, fabric, whole_policy)
    assert finishes(apart.played) == pytest.approx(finishes(together.played), abs=1e-7)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["fair", "echelon", "echelon-edf", "varys"]))
def test_names_change_nothing(seed: int, name: str) -> None:
    """Workers, tasks and flows under other names, hosts under other numbers: the same times."""
    workload, fabric = random_workload(seed), big_switch(6, RATE)
    shuffled = [f"h{i + 1}" for i in range(6)]
    random.Random(seed).shuffle(shuffled)
    host = {f"h{i + 1}": shuffled[i] for i in range(6)}
    rename = {f"{kind}{i}": f"n{97 - i}{kind}" for kind in "wtx" for i in range(20)}
    jobs = tuple(
        replace(
            placed,
            placement={rename[w]: host[h] for w, h in placed.placement.items()},
            job=replace(
                placed.job,
                workers=tuple(rename[w] for w in placed.job.workers),
                tasks=tuple(
                    Task(rename[t.id], rename[t.worker], t.seconds, tuple(rename[a] for a in t.after))
                    for t in placed.job.tasks
                ),
                flows=tuple(
                    Flow(rename[f.id], rename[f.src], rename[f.dst], f.bytes,
                         tuple(rename[a] for a in f.after))
                    for f in placed.job.flows
                ),
            ),
        )
        for placed in workload.jobs
    )  # fmt: skip
    ours = finishes(simulate(workload, fabric, policy(name)).played)
    theirs = finishes(simulate(Workload(jobs), fabric, policy(name)).played)
    renamed = {(job, k, rename[flow]): finish for (job, k, flow), finish in ours.items()}
    assert theirs == pytest.approx(renamed, abs=1e-7)


def test_every_run_is_the_same_run() -> None:
    workload, fabric = random_workload(5), leaf_spine(2, 2, 3, RATE)
    runs = [simulate(workload, fabric, policy("echelon"), routing=EcmpHash(3)) for _ in range(2)]
    assert runs[0].played == runs[1].played


def test_an_event_asks_the_policy_about_what_it_touches_only() -> None:
    """A hundred pairs of hosts, a coflow each: no decision sees more than its own pair.
    Flows that contend with nobody need none."""
    seen: dict[str, list[int]] = defaultdict(list)

    class Counting:
        name, local = "counting", True

        def decide(self, state: NetworkState) -> Decision:
            seen["flows"].append(state.flows)
            return policy("fair").decide(state)

    jobs = tuple(
        coflow_job(f"j{i}", [(f"h{2 * i + 1}", f"h{2 * i + 2}", 1.0 + i)] * 2) for i in range(100)
    )
    alone = coflow_job("alone", [("h201", "h202", 1.0), ("h202", "h201", 2.0)])
    simulate(Workload((*jobs, alone)), big_switch(202, RATE), Counting())
    assert seen["flows"] == [2] * 100
