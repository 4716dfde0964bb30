"""The paper's Figure 2 with real TCP over a shaped link, in namespaces of our own, without P4."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from controller.coordinator.client import CoordinatorClient, LiveResult
from controller.experiments.scenarios import figure2
from controller.profiles.network_file import save_network
from tests.coordinator.plain_network import PlainNetwork

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and tc"),
]

RATE = 40e6
UNIT = 0.4
"Seconds of one unit of the figure; `make run` takes 1.5."

_DAEMON = (
    "import sys; from pathlib import Path; from controller.coordinator.daemon import main; "
    "sys.exit(main(Path(sys.argv[1])))"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorClient]:
    """A coordinator over two plain hosts."""
    folder = tmp_path_factory.mktemp("figure2")
    address = f"unix:{folder / 'c.sock'}"
    with PlainNetwork(2, RATE) as network:
        save_network(network.description, folder / "network.yaml")
        config = folder / "controller.yaml"
        config.write_text(f"network: network.yaml\nswitches: false\nlisten: {address}\n")
        daemon = subprocess.Popen([sys.executable, "-c", _DAEMON, str(config)])
        client = CoordinatorClient(address)
        try:
            client.wait_ready(20)
            with network.agents(address):
                yield client
        finally:
            client.close()
            daemon.terminate()
            daemon.wait(10)


def play(client: CoordinatorClient, policy: str) -> tuple[LiveResult, float]:
    """The result, and the completion in units; again where this machine was too busy to tell."""
    for _ in range(3):
        result = client.play("figure2", figure2(UNIT, RATE).workload, policy, timeout=60.0)
        if not any("overloaded" in note for note in result.raw.notes):
            break
    return result, result.played.jobs[0].completion_s / UNIT


@pytest.mark.parametrize(
    ("policy", "completion", "finishes"),
    [("fifo", 8.0, (3, 5, 7)), ("varys", 10.0, (7, 7, 7)), ("echelon", 8.0, (5, 6, 7))],
)
def test_paced_policies_land_where_the_paper_says(
    client: CoordinatorClient, policy: str, completion: float, finishes: tuple[float, ...]
) -> None:
    result, measured = play(client, policy)
    # A flow takes some milliseconds to be granted, which count for more in a short unit.
    assert measured == pytest.approx(completion, rel=0.06)
    for flow, finish in zip(result.played.flows, finishes, strict=True):
        assert flow.finish / UNIT == pytest.approx(finish, rel=0.08)
    assert all(0.9 < flow.pace_ratio < 1.02 for flow in result.raw.flows)
    assert not result.raw.notes


def test_fair_shares_the_link_through_tcp_alone(client: CoordinatorClient) -> None:
    result, measured = play(client, "fair")
    assert measured == pytest.approx(8.5, rel=0.15)
    assert {flow.congestion_control for flow in result.raw.flows} == {"cubic"}
    assert all(flow.pace_ratio == 0 for flow in result.raw.flows)
    # The link is never idle, so the last flow ends when 6 units' worth has been carried.
    assert max(flow.finish for flow in result.played.flows) / UNIT == pytest.approx(7, rel=0.05)
