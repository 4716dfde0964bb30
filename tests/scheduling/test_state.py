"""The state a policy sees follows what flows do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controller.model import EchelonFlow, Flow, Job, PlacedJob, Task
from controller.model.check import InvalidJob
from controller.model.errors import BadInput
from controller.model.fabric import DisconnectedFabric
from controller.model.fabrics import leaf_spine
from controller.scheduling.plan import compile_job
from controller.scheduling.state import LOCAL, StateBuilder

FABRIC = leaf_spine(2, 2, 2, 8.0)
JOB = Job(
    "J",
    ("w0", "w1"),
    (Task("t", "w0", 1.0),),
    (
        Flow("a", "w0", "w1", 4.0, ("t",)),
        Flow("b", "w0", "w1", 6.0, ("t",)),
        Flow("c", "w1", "w0", 2.0),
    ),
    (),
    (EchelonFlow("ab", ("a", "b"), (0.0, 2.0)), EchelonFlow("c", ("c",), (0.0,))),
    iterations=2,
)
PLACED = PlacedJob(JOB, {"w0": "h1", "w1": "h3"}, weight=3.0)


def builder() -> tuple[StateBuilder, int]:
    made = StateBuilder(FABRIC)
    return made, made.add_job(compile_job(PLACED, FABRIC))


def test_a_flow_from_ready_to_finished() -> None:
    state_builder, job = builder()
    first = state_builder.start(job, 0, 0, 5.0)
    second = state_builder.start(job, 1, 0, 6.0)
    state_builder.set_remaining(first, 1.0)
    state = state_builder.state(7.0)
    assert state_builder.rows.tolist() == [first, second]
    assert state.remaining.tolist() == [1.0, 6.0]
    assert state.release.tolist() == [5.0, 6.0]
    assert state.ideal_finish.tolist() == [5.0, 7.0]
    assert state.group.tolist() == [0, 0]
    assert state.group_reference.tolist() == [5.0]
    assert state.group_weight.tolist() == [3.0]
    assert state.group_sent.tolist() == [3.0]
    assert [job.name for job in state.jobs] == ["J"]
    assert tuple(state.path_links[: state.path_start[1]]) == state_builder.paths[first]
    state_builder.finish(first)
    state = state_builder.state(8.0)
    assert state.flows == 1 and state.group_sent.tolist() == [4.0]
    assert state.group_reference.tolist() == [5.0]
    state_builder.finish(second)
    assert state_builder.state(9.0).flows == 0


def test_the_next_iteration_has_a_reference_time_of_its_own() -> None:
    state_builder, job = builder()
    state_builder.start(job, 0, 0, 1.0)
    state_builder.start(job, 0, 1, 4.0)
    state = state_builder.state(4.0)
    assert state.group_reference.tolist() == [1.0, 4.0]
    assert state.group_index.tolist() == [0, 0]
    assert len(set(state.group_tie.tolist())) == 2


def test_two_flows_to_one_host_take_different_spines() -> None:
    state_builder, job = builder()
    slots = [state_builder.start(job, row, 0, 0.0) for row in (0, 1)]
    assert state_builder.paths[slots[0]] != state_builder.paths[slots[1]]


def test_within_one_host_nothing_enters_the_network_but_the_reference_time_counts() -> None:
    state_builder = StateBuilder(FABRIC)
    placed = replace(PLACED, placement={"w0": "h1", "w1": "h1"})
    job = state_builder.add_job(compile_job(placed, FABRIC))
    assert state_builder.start(job, 0, 0, 1.0) == LOCAL
    assert state_builder.pass_by(job, 1, 0, 2.5) == 3.0  # r = 1, offset 2
    assert state_builder.state(3.0).flows == 0


def test_a_dead_link_moves_its_flows() -> None:
    state_builder, job = builder()
    slot = state_builder.start(job, 0, 0, 0.0)
    old = state_builder.paths[slot]
    failed = FABRIC.without([old[1]])
    assert state_builder.reroute(failed) == [slot]
    assert old[1] not in state_builder.paths[slot]
    assert state_builder.state(1.0).capacity[old[1]] == 0.0
    with pytest.raises(DisconnectedFabric):
        state_builder.reroute(failed.without([state_builder.paths[slot][1]]))


def test_a_job_that_departs_takes_its_flows_along() -> None:
    state_builder, job = builder()
    other = state_builder.add_job(compile_job(PLACED, FABRIC))
    state_builder.start(job, 0, 0, 0.0)
    kept = state_builder.start(other, 0, 0, 0.0)
    state_builder.remove_job(job)
    assert state_builder.active().tolist() == [kept]


def test_hundreds_of_flows_come_and_go() -> None:
    """Slots are used again; rows agree with what was started."""
    state_builder, job = builder()
    random = np.random.default_rng(0)
    active: dict[int, tuple[int, float]] = {}
    for step in range(1500):
        if active and random.random() < 0.45:
            slot = list(active)[int(random.integers(len(active)))]
            state_builder.finish(slot)
            del active[slot]
        else:
            row = int(random.integers(3))
            active[state_builder.start(job, row, step, float(step))] = (row, float(step))
    state = state_builder.state(2000.0)
    sizes = [4.0, 6.0, 2.0]
    expected = {slot: (sizes[row], time) for slot, (row, time) in active.items()}
    found = {
        slot: (size, release)
        for slot, size, release in zip(
            state_builder.rows.tolist(), state.size.tolist(), state.release.tolist(), strict=True
        )
    }
    assert found == expected


@pytest.mark.parametrize(
    ("placed", "says"),
    [
        (replace(PLACED, placement={"w0": "h1"}), "w1 has no host"),
        (replace(PLACED, placement={"w0": "h1", "w1": "h9"}), r"h9.*h1\.\.h4"),
    ],
)
def test_a_placement_that_does_not_fit_is_refused(placed: PlacedJob, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        compile_job(placed, FABRIC)


def test_a_profile_that_cannot_be_played_is_refused() -> None:
    looped = replace(JOB, tasks=(Task("t", "w0", 1.0, ("a",)),))
    with pytest.raises(InvalidJob, match="never finish"):
        compile_job(replace(PLACED, job=looped), FABRIC)
    with pytest.raises(InvalidJob, match="bytes > 0"):
        compile_job(replace(PLACED, job=replace(JOB, flows=(Flow("a", "w0", "w1", -1.0),))), FABRIC)
