"""What a run leaves behind: nothing; and after `kill -9`, nothing that the next run or `make clean` does not remove."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controller.model.errors import WorkFailed
from tests.topologies.conftest import MakeNetwork
from topologies import runfile
from topologies.runfile import RunFile, clean, state_directory


def listening(self: object, ports: object) -> list[str]:
    """Command line of a switch that only listens: what is tested here is not the switch."""
    host, _, port = self.address.rpartition(":")  # type: ignore[attr-defined]
    code = f"import socket, time; s = socket.create_server(('{host}', {port})); time.sleep(600)"
    return [sys.executable, "-c", code]


HOLD = """
import signal, sys, time
from controller.model.fabrics import parse_topology
from tests.topologies.test_cleaning import listening
from topologies.emulation import EmulatedNetwork, EmbeddedSwitch
from topologies.layout import network_of
EmbeddedSwitch.command = listening
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs tests in the background
with EmulatedNetwork(network_of(parse_topology("leaf-spine:2x1x1", 1e7), 1e7, "embedded")) as network:
    network.spawn("h1", [sys.executable, "-c", "import time; time.sleep(600)"], "sleeper")
    print("up", flush=True)
    time.sleep(600)
"""


def traces(name: str) -> list[str]:
    """What an instance has on this machine: interfaces, processes, files."""
    found = [f"interface {p.name}" for p in Path("/sys/class/net").glob(f"{name}-*")]
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            marked = f"ECHELON_INSTANCE={name}".encode() in environ.read_bytes().split(b"\0")
        except OSError:
            continue
        if marked and environ.parent.name != str(os.getpid()):
            found.append(f"process {environ.parent.name}")
    return found + [str(p) for p in state_directory(name).glob("*")]


def hold() -> subprocess.Popen[str]:
    """A process that holds a network up."""
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.mininet
def test_kill_9_and_clean_leaves_nothing_and_clean_again_does_nothing(instance: str) -> None:
    process = hold()
    assert len(traces(instance)) > 10
    process.kill()
    process.wait()
    removed = clean()
    assert any("switch s1" in item for item in removed)
    assert any("interface" in item for item in removed)
    assert traces(instance) == []
    assert clean() == []
    assert not state_directory().exists()


@pytest.mark.mininet
def test_after_kill_9_the_next_run_just_works(instance: str) -> None:
    first = hold()
    first.kill()
    first.wait()
    second = hold()
    second.kill()
    second.wait()
    clean()
    assert traces(instance) == []


@pytest.mark.mininet
def test_two_runs_at_once_are_refused_with_the_process_that_holds_the_lock(instance: str) -> None:
    first = hold()
    try:
        with pytest.raises(WorkFailed, match=f"another run is active \\(process {first.pid}"):
            RunFile()
        with pytest.raises(WorkFailed, match="another run is active"):
            clean()
        assert len(traces(instance)) > 10
    finally:
        first.kill()
        first.wait()
        clean()


@pytest.mark.mininet
def test_a_run_that_ends_by_itself_leaves_nothing(instance: str) -> None:
    process = hold()
    process.send_signal(signal.SIGINT)
    process.wait(20)
    assert traces(instance) == []


@pytest.mark.mininet
def test_a_network_whose_shells_somebody_killed_still_comes_down(
    emulate: MakeNetwork, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from topologies.nodes import EmbeddedSwitch

    monkeypatch.setattr(EmbeddedSwitch, "command", listening)
    with emulate("big-switch:2", "embedded") as network:
        listed = json.loads((network.directory / "run.json").read_text())["processes"]
        shells = [pid for pid, _, what in listed if what == "shell of h1"]
        assert len(shells) == 1
        os.kill(shells[0], signal.SIGKILL)
    assert traces(instance) == []


@pytest.mark.mininet
def test_a_switch_that_does_not_start_is_named_and_nothing_is_left(
    emulate: MakeNetwork, instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from topologies.nodes import EmbeddedSwitch

    command = [sys.executable, "-c", "import sys; sys.exit('no such port')"]
    monkeypatch.setattr(EmbeddedSwitch, "command", lambda self, ports: command)
    with (
        pytest.raises(WorkFailed, match="switch s1 ended with code 1: no such port"),
        emulate("big-switch:2", "embedded"),
    ):
        pass
    assert traces(instance) == []


@pytest.mark.mininet
def test_an_interface_of_somebody_else_is_neither_used_nor_removed(
    emulate: MakeNetwork, instance: str
) -> None:
    name = f"{instance}-s1-1"
    subprocess.run(
        ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{instance}-x"], check=True
    )
    try:
        with pytest.raises(WorkFailed, match=f"{name} exists"), emulate("big-switch:2", "embedded"):
            pass
        assert Path("/sys/class/net", name).exists()
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True)


def test_a_listed_process_whose_number_was_given_to_another_is_left_alone(
    instance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFile()
    other = subprocess.Popen(["sleep", "60"], env={})
    try:
        with monkeypatch.context() as patch:
            patch.setattr(runfile, "_start_time", lambda pid: 1)
            run.add_process(other.pid, "something long gone")
        run.close()
        time.sleep(0.1)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.mininet
def test_a_sysctl_is_put_back_unless_somebody_changed_it_since(instance: str) -> None:
    path = Path("/proc/sys/net/core/wmem_default")
    before = path.read_text()
    run = RunFile()
    run.set_sysctl("net.core.wmem_default", "400000")
    assert path.read_text().strip() == "400000"
    run.close()
    assert path.read_text() == before
    run = RunFile()
    run.set_sysctl("net.core.wmem_default", "400000")
    path.write_text("300000")
    run.close()
    assert path.read_text().strip() == "300000"
    path.write_text(before)
