"""`echelon controller --config FILE`: what is accepted, what is refused, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controller.coordinator.client import CoordinatorClient
from controller.coordinator.config import load_config
from controller.coordinator.daemon import main
from controller.model.errors import BadInput
from controller.profiles.network_file import save_network
from tests.coordinator.conftest import star


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "controller.yaml"
    path.write_text(text)
    return path


def test_the_network_is_found_beside_the_file(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "network: net.yaml\npolicy: varys\n"))
    assert config.network == str(tmp_path / "net.yaml")
    assert (config.policy, config.switches) == ("varys", True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("network: n.yaml\npolcy: fair\n", "polcy"),
        ("network: n.yaml\npolicy: best\n", "best"),
        ("network: n.yaml\ndebounce_s: -1\n", "debounce_s"),
        ("network: n.yaml\nswitches: maybe\n", "switches"),
        ("policy: fair\n", "network"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, named: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        load_config(path)
    assert named in str(caught.value) and str(path) in str(caught.value)


def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tmp_path / "none.yaml") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_taken_port_is_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_network(star(2), tmp_path / "network.yaml")
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        text = f"network: network.yaml\nswitches: false\nlisten: {address}\n"
        assert main(write(tmp_path, text)) == 1
    error = capsys.readouterr().err
    assert address in error and len(error.splitlines()) == 1


def test_the_daemon_serves_until_sigterm_and_removes_its_socket(tmp_path: Path) -> None:
    save_network(star(2), tmp_path / "network.yaml")
    sock = tmp_path / "c.sock"
    config = write(tmp_path, f"network: network.yaml\nswitches: false\nlisten: unix:{sock}\n")
    code = "import sys; from pathlib import Path; from controller.coordinator.daemon import main; "
    daemon = subprocess.Popen(
        [sys.executable, "-c", code + "sys.exit(main(Path(sys.argv[1])))", str(config)],
        stdout=subprocess.PIPE,
        text=True,
    )
    agent = None
    try:
        assert daemon.stdout is not None and "listening" in daemon.stdout.readline()
        assert main(config) == 1  # a second one refuses to take the socket
        agent = subprocess.Popen(
            [sys.executable, "-m", "host_agent", "--host", "h1", "--coordinator", f"unix:{sock}"],
            stderr=subprocess.PIPE,
            text=True,
        )
        _wait_until_attached(sock)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(10) == 0
        assert agent.wait(10) == 0  # agents end with their controller
        assert not sock.exists()
    finally:
        for process in (daemon, agent):
            if process is not None and process.poll() is None:
                process.kill()


def test_an_agent_without_a_coordinator_says_so_in_one_line() -> None:
    code = (
        "import host_agent.agent as a; a._ATTACH_TIMEOUT = 0.2; "
        "import sys; from host_agent.__main__ import main; "
        "sys.exit(main(['--host', 'h1', '--coordinator', 'unix:/nowhere.sock']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 1
    assert "unix:/nowhere.sock" in done.stderr and len(done.stderr.splitlines()) == 1


def _wait_until_attached(sock: Path) -> None:
    client = CoordinatorClient(f"unix:{sock}")
    deadline = time.monotonic() + 10
    while not any(host.attached for host in client.status().hosts):
        assert time.monotonic() < deadline, "the agent did not attach"
        time.sleep(0.05)
    client.close()
