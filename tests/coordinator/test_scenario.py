"""Scenarios played by real agents over real TCP, on loopback addresses."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import grpc
import pytest

from controller.model import Flow, Job, PlacedJob, Task, Workload
from controller.model.network import DATA_CLASSES
from tests.coordinator.conftest import RATE, RecordingEnforcer, live, pipeline, placed

TOP = DATA_CLASSES - 1
"The class that is served first among data; acknowledgements have class 7."


@pytest.mark.parametrize("policy", ["fair", "fifo", "varys", "echelon"])
async def test_every_task_and_flow_is_played_and_recorded(tmp_path: Path, policy: str) -> None:
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(pipeline(), "h1", "h2"), policy)
    played = result.played
    assert [flow.flow for flow in played.flows] == ["a0", "a1", "a2"]
    assert sorted(task.task for task in played.tasks) == ["f0", "f1", "f2", "g0", "g1", "g2"]
    for flow in played.flows:
        assert flow.ready <= flow.start <= flow.finish
        assert flow.bytes == 2e6
    assert result.raw.flows[0].bytes == round(2e6 * 1448 / 1514)
    assert not [note for note in result.raw.notes if "overloaded" not in note]
    assert {flow.congestion_control for flow in result.raw.flows} == {"cubic"}


async def test_a_task_waits_for_its_flow_and_its_turn(tmp_path: Path) -> None:
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(pipeline(), "h1", "h2"), "fifo")
    finish = {flow.flow: flow.finish for flow in result.played.flows}
    tasks = {task.task: task for task in result.played.tasks}
    for k in range(3):
        turn = tasks[f"g{k - 1}"].finish if k else 0.0
        assert tasks[f"g{k}"].start == pytest.approx(max(finish[f"a{k}"], turn), abs=1e-6)
        assert tasks[f"g{k}"].finish - tasks[f"g{k}"].start == pytest.approx(0.02, abs=1e-6)


async def test_in_order_flows_wait_without_sending_and_paced_ones_keep_their_pace(
    tmp_path: Path,
) -> None:
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(pipeline(), "h1", "h2"), "fifo")
    flows = list(result.raw.flows)
    assert [flow.classes[0].pace for flow in flows] == [RATE, 0.0, 0.0]
    for earlier, later in itertools.pairwise(flows):
        # Its successor is granted shortly before a flow's end, so that the link is never idle.
        assert later.start >= earlier.finish - 0.02
        assert later.start > earlier.start + 0.02
    assert all(0 < flow.pace_ratio < 1.25 for flow in flows)


async def test_fair_is_one_class_and_nobody_is_paced(tmp_path: Path) -> None:
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(pipeline(), "h1", "h2"), "fair")
    settings = {(c.class_, c.pace) for flow in result.raw.flows for c in flow.classes}
    assert settings == {(TOP, float("inf"))}
    assert all(flow.pace_ratio == 0 for flow in result.raw.flows)


async def test_rules_cover_every_flow_and_are_gone_afterwards(tmp_path: Path) -> None:
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(pipeline(), "h1", "h2"), "echelon")
        keys = {
            tuple(rule.key)
            for call in system.enforcer.calls
            for rule in call
            if hasattr(rule, "key")
        }
        assert keys == {
            (f.key.src_ip, f.key.dst_ip, f.key.protocol, f.key.src_port, f.key.dst_port)
            for f in result.raw.flows
        }
        assert not system.enforcer.installed
    assert result.counters_before == {"calls": 0}
    assert result.counters_after["calls"] > 0


async def test_iterations_reuse_connections_and_overlap_as_the_rule_says(tmp_path: Path) -> None:
    job = pipeline(size=2e5, seconds=0.005)
    job = Job(job.name, job.workers, job.tasks, job.flows, iterations=4)
    async with live(tmp_path) as system:
        result, events = await system.play(placed(job, "h1", "h2"), "echelon")
    assert len(result.played.flows) == 12
    ends = result.played.jobs[0].iteration_ends
    assert len(ends) == 4 and list(ends) == sorted(ends)
    assert any(flow.reused for flow in result.raw.flows)
    done = [e.iteration_done.iteration for e in events if e.WhichOneof("kind") == "iteration_done"]
    assert done == [0, 1, 2, 3]
    # The producer does not wait for the consumer: it begins an iteration when its own tasks are done.
    begins = [t.start for t in result.played.tasks if t.task == "f0"]
    assert begins[1] == pytest.approx(begins[0] + 3 * 0.005, abs=1e-6)


async def test_items_on_other_hosts_are_waited_for(tmp_path: Path) -> None:
    job = Job(
        "J",
        ("w0", "w1", "w2"),
        (Task("t0", "w0", 0.02), Task("t1", "w1", 0.01, ("t0",)), Task("t2", "w0", 0.01, ("x",))),
        (Flow("x", "w1", "w2", 1e5, ("t1",)),),
    )
    async with live(tmp_path, hosts=3) as system:
        result, _ = await system.play(placed(job, "h1", "h2", "h3"), "fifo")
    tasks = {task.task: task for task in result.played.tasks}
    assert tasks["t1"].start == pytest.approx(tasks["t0"].finish, abs=1e-6)
    assert tasks["t2"].start == pytest.approx(result.played.flows[0].finish, abs=1e-6)


async def test_workers_on_one_host_exchange_without_the_network(tmp_path: Path) -> None:
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(pipeline(), "h1", "h1"), "echelon")
        assert not system.enforcer.calls
    for flow in result.played.flows:
        assert flow.finish == flow.ready


async def test_arrivals_and_scales_stretch_time_and_sizes(tmp_path: Path) -> None:
    job = pipeline(size=1e6, seconds=0.01)
    workload = Workload((PlacedJob(job, {"w0": "h1", "w1": "h2"}, arrival=0.1),))
    async with live(tmp_path) as system:
        result, _ = await system.play(workload, "fifo", size_scale=0.5, time_scale=2.0)
    first = min(result.played.tasks, key=lambda task: task.start)
    assert first.start == pytest.approx(0.2, abs=1e-6)
    assert first.finish - first.start == pytest.approx(0.02, abs=1e-6)
    assert {flow.bytes for flow in result.played.flows} == {5e5}


async def test_a_reference_rate_scales_sizes_as_in_the_simulator(tmp_path: Path) -> None:
    job = pipeline(size=2e6)
    job = Job(job.name, job.workers, job.tasks, job.flows, reference_rate=RATE * 4)
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(job, "h1", "h2"), "fifo")
    assert {flow.bytes for flow in result.played.flows} == {5e5}


async def test_a_refused_rule_leaves_its_flow_in_class_0_and_is_told(tmp_path: Path) -> None:
    async with live(tmp_path, enforcer=RecordingEnforcer(refuse=1)) as system:
        result, events = await system.play(placed(pipeline(), "h1", "h2"), "fair")
    assert result.raw.flows[0].classes[-1].class_ == 0
    assert result.raw.flows[1].classes[-1].class_ == TOP
    assert result.raw.decisions.rules_refused == 1
    assert "table full" in result.raw.notes[0]
    assert any(event.WhichOneof("kind") == "note" for event in events)


async def test_a_missing_grant_times_out_into_class_0_and_is_told(tmp_path: Path) -> None:
    slow = RecordingEnforcer(delay=0.3)
    async with live(tmp_path, enforcer=slow, grant_timeout=0.05) as system:
        result, _ = await system.play(placed(pipeline(size=2e5), "h1", "h2"), "fair")
    assert result.raw.flows[0].grant_timed_out
    assert result.raw.decisions.grants_timed_out >= 1
    assert any("class 0" in note for note in result.raw.notes)


@pytest.mark.parametrize(
    ("workload", "fields", "message"),
    [
        (placed(pipeline(), "h1", "h9"), {}, "h9"),
        (placed(pipeline(), "h1", "h2"), {"policy": "best"}, "best"),
        (placed(pipeline(), "h1", "h2"), {"workload_json": "{"}, "workload"),
        (placed(pipeline(), "h1", "h2"), {"time_scale": -1.0}, "time_scale"),
    ],
)
async def test_bad_input_is_one_line_that_names_it(
    tmp_path: Path, workload: Workload, fields: dict[str, object], message: str
) -> None:
    async with live(tmp_path) as system:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await system.play(workload, **{"policy": "fifo", **fields})
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert message in (caught.value.details() or "") and "\n" not in (caught.value.details() or "")


async def test_a_scenario_that_takes_too_long_is_given_up_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    async with live(tmp_path) as system:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await system.play(placed(pipeline(seconds=5.0), "h1", "h2"), "fifo", timeout=0.2)
        assert caught.value.code() == grpc.StatusCode.ABORTED
        result, _ = await system.play(placed(pipeline(), "h1", "h2"), "fifo")
    assert len(result.played.flows) == 3


async def test_an_agent_that_goes_ends_the_scenario_with_its_name(tmp_path: Path) -> None:
    async with live(tmp_path) as system:

        async def leave() -> None:
            while not system.coordinator.tracker.flows:
                await asyncio.sleep(0.01)
            system.coordinator.agents()["h2"].close()

        leaving = asyncio.ensure_future(leave())
        with pytest.raises(grpc.aio.AioRpcError, match="h2"):
            await system.play(placed(pipeline(size=1e8), "h1", "h2"), "fifo")
        await leaving


async def test_without_agents_a_scenario_names_the_hosts_that_lack_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.coordinator.scenario._AGENT_TIMEOUT", 0.1)
    async with live(tmp_path, agents=False) as system:
        with pytest.raises(grpc.aio.AioRpcError, match="h1, h2"):
            await system.play(placed(pipeline(), "h1", "h2"), "fifo")


async def test_flows_slower_than_their_pace_are_not_passed_over_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.coordinator.scenario.KEPT_PACE", 2.0)
    monkeypatch.setattr("controller.coordinator.scenario._LONG", 0.0)
    async with live(tmp_path) as system:
        result, _ = await system.play(placed(pipeline(), "h1", "h2"), "fifo")
    (note,) = result.raw.notes
    assert "3 of 3 paced flows" in note and "overloaded" in note
