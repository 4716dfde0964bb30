"""Sizes scale with the link rate, times stay, and with them the ratio of the two."""

from __future__ import annotations

import pytest

from controller.model import Collective, Flow, Job, PlacedJob, Task, Workload
from controller.model.errors import BadInput
from controller.profiles.scaling import communication_ratio, scale

JOB = Job(
    "j",
    ("a", "b"),
    (Task("t", "a", 0.5),),
    (Flow("f", "a", "b", 1e9, ("t",)),),
    (Collective("c", "all_reduce", "ring", ("a", "b"), 2e9),),
    reference_rate=100e9,
)


def test_sizes_scale_and_times_stay() -> None:
    scaled = scale(Workload((PlacedJob(JOB),)), 40e6)
    job = scaled.workload.jobs[0].job
    assert job.flows[0].bytes == pytest.approx(1e9 * 4e-4)
    assert job.collectives[0].bytes == pytest.approx(2e9 * 4e-4)
    assert job.tasks == JOB.tasks
    assert job.reference_rate == 40e6
    assert scaled.factors == {"j": pytest.approx(4e-4)}


def test_the_ratio_of_communication_to_computation_is_kept_and_said() -> None:
    scaled = scale(Workload((PlacedJob(JOB),)), 40e6)
    # 1 GB + 2 GB leave worker a: 24 Gbit at 100 Gbit/s, beside half a second of computing
    assert communication_ratio(JOB, 100e9) == pytest.approx(0.24 / 0.5)
    assert scaled.ratios["j"] == pytest.approx(0.48)
    assert scaled.lines() == ["j: sizes x 0.0004, communication / computation 0.48"]


def test_jobs_without_a_reference_rate_are_left_alone() -> None:
    plain = Job("p", ("a", "b"), flows=(Flow("f", "a", "b", 5.0),))
    assert scale(Workload((PlacedJob(plain),)), 40e6).workload.jobs[0].job.flows == plain.flows


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="expected more than 0"):
        scale(Workload((PlacedJob(JOB),)), 0.0)
