"""Before a run: what is offered, what was measured, and when a run is refused with which reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.experiments import checks as module
from controller.experiments.calibration import Calibration, measure
from controller.experiments.checks import preflight
from controller.experiments.doctor import Finding, diagnose
from controller.experiments.load import peak_forwardings
from controller.experiments.scenarios import figure2, two_pipelines
from controller.model.errors import WorkFailed
from controller.model.fabrics import parse_topology
from controller.scheduling.fifo import Fifo
from controller.simulator.simulate import simulate


@pytest.fixture(autouse=True)
def healthy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "diagnose", list)


def measured(**figures: float) -> Callable[[str, float, int], Calibration]:
    usual = {
        "forwardings_per_s": 50_000.0,
        "top_class_share": 0.99,
        "port_use": 1.0,
        "wake_up_s": 0.001,
    }
    return lambda target, rate, hops: Calibration(target, rate, hops, **(usual | figures))


def test_one_flow_inside_a_leaf_asks_for_its_frames_and_acknowledgements_once() -> None:
    fabric = parse_topology("leaf-spine:2x2x4", 4e7)
    scenario = figure2(1.5, 4e7)
    played = simulate(scenario.workload, fabric, Fifo(), "ideal").played
    frames = 4e7 / 8 / 1514
    assert peak_forwardings(scenario.workload, played, fabric) == pytest.approx(frames * 1.5)


def test_two_senders_into_one_receiver_ask_for_no_more_than_its_link() -> None:
    fabric = parse_topology("leaf-spine:2x2x4", 4e7)
    scenario = two_pipelines(1.5, 4e7)
    played = simulate(scenario.workload, fabric, Fifo(), "ideal").played
    assert peak_forwardings(scenario.workload, played, fabric) == pytest.approx(
        4e7 / 8 / 1514 * 1.5
    )


def test_a_run_that_fits_is_admitted_with_the_figures() -> None:
    found = preflight("embedded", 4e7, 3, 25_000.0, measured())
    assert found.as_json()["load"] == 0.5
    assert "25,000 frames/s" in found.sentence()
    assert "99.0% of a full 40mbit port" in found.sentence()


@pytest.mark.parametrize(
    ("figures", "reason"),
    [
        (
            {"forwardings_per_s": 10_000.0},
            r"asks for 20,000 frames/s .* forwards 10,000 now: use --link-rate 20mbit",
        ),
        (
            {"top_class_share": 0.5},
            "priorities do not act: class 7 got 50% of a full 40mbit embedded port",
        ),
        ({"port_use": 0.6}, "a 40mbit port was used to 60% only"),
        ({"wake_up_s": 0.025}, "too busy: a process wakes up 25 ms late"),
    ],
)
def test_a_run_that_would_mean_nothing_is_refused_with_the_figures(
    figures: dict[str, float], reason: str
) -> None:
    with pytest.raises(WorkFailed, match=reason):
        preflight("embedded", 4e7, 3, 20_000.0, measured(**figures))


def test_a_machine_that_was_busy_for_a_moment_is_measured_again() -> None:
    answers = iter([0.5, 0.99])
    found = preflight(
        "embedded",
        4e7,
        3,
        1.0,
        lambda *asked: measured(top_class_share=next(answers))(*asked),
    )
    assert found.calibration.top_class_share == 0.99


def test_what_the_machine_lacks_is_the_reason_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking = Finding("tc htb", False, "not in this kernel", "modprobe sch_htb", blocks=True)
    monkeypatch.setattr(module, "diagnose", lambda: [lacking])
    with pytest.raises(WorkFailed, match="tc htb: not in this kernel; modprobe sch_htb"):
        preflight("embedded", 4e7, 3, 1.0)


def test_the_doctor_gives_a_remedy_for_all_that_blocks() -> None:
    found = diagnose()
    assert {"root", "Mininet", "C compiler", "tc htb", "cubic", "P4 target"} <= {
        f.name for f in found
    }
    assert all(finding.remedy for finding in found if finding.blocks)
    assert all(set(finding.as_json()) >= {"name", "ok", "says", "remedy"} for finding in found)


@pytest.mark.mininet
@pytest.mark.parametrize(
    ("target", "rate"), [("embedded", 4e7), pytest.param("bmv2", 1e7, marks=pytest.mark.bmv2)]
)
def test_calibration_measures_real_switches(
    target: str, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHELON_INSTANCE", "tcal")
    found = measure(target, rate, 2)  # on a machine that may be busy: real, not good
    assert found.forwardings_per_s > 100
    assert 0.1 < found.top_class_share <= 1
    assert found.port_use > 0.05
