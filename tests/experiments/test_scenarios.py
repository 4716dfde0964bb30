"""The built-in scenarios mean what the paper's figures say."""

from __future__ import annotations

from statistics import fmean

import pytest

from controller.experiments import scenarios
from controller.scheduling.registry import policy
from controller.simulator.simulate import simulate
from tests.experiments.played import FABRIC, RATE, UNIT_S


@pytest.mark.parametrize("name", ["figure2", "two_pipelines"])
def test_model_gives_the_completions_the_paper_expects(name: str) -> None:
    scenario = getattr(scenarios, name)(UNIT_S, RATE)
    assert scenario.expected_units
    for rival, units in scenario.expected_units.items():
        for model in ("ideal", "enforced"):
            played = simulate(scenario.workload, FABRIC, policy(rival), model).played
            mean = fmean(job.completion_s for job in played.jobs) / UNIT_S
            late = scenario.workload.jobs[-1].arrival / UNIT_S
            assert mean == pytest.approx(units, abs=late + 1e-9), (rival, model)
