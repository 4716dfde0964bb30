"""A live network to play on: Mininet with P4 switches, the controller, an agent in every host."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from controller.coordinator.client import CoordinatorClient, LiveResult
from controller.model import Fabric, Workload
from controller.model.errors import WorkFailed
from controller.model.network import Network
from topologies.emulation import EmulatedNetwork
from topologies.layout import network_of
from topologies.nodes import environment_python

READY_S = 30.0
"Seconds the controller has to connect to the switches, fill their tables and listen."
SLACK_S = 30.0
"Seconds a scenario may take beyond twice its prediction before it is given up."
NICE = -10
"Priority of controller and agents: other work on this machine must not delay what is measured."


class LiveNetwork:
    """Use as a context manager: everything started is ended when the context ends."""

    def __init__(self, fabric: Fabric, target: str) -> None:
        """`fabric` is realised with its own rates; `target`: embedded or bmv2."""
        self._emulation = EmulatedNetwork(network_of(fabric, fabric.host_rate, target))
        self._client: CoordinatorClient | None = None
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def network(self) -> Network:
        """Addresses, ports and cables as they were made."""
        return self._emulation.network

    def __enter__(self) -> LiveNetwork:
        """Starts everything. Raises WorkFailed with the last words of what did not start."""
        self._emulation.__enter__()
        try:
            self._start_controller()
            self._start_agents()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends everything, also when a part has already died."""
        if self._client is not None:
            self._client.close()
            self._client = None
        self._emulation.__exit__(kind, error, trace)

    def play(
        self,
        name: str,
        workload: Workload,
        policy: str,
        predicted_s: float,
        seed: int = 0,
        on_event: Callable[[Any], None] = lambda event: None,
    ) -> LiveResult:
        """Plays a workload under a policy; `predicted_s` bounds the wait.

        Raises BadInput, WorkFailed; a process that died is named with its last words.
        """
        assert self._client is not None, "use the network as a context manager"
        try:
            return self._client.play(
                name,
                workload,
                policy,
                seed=seed,
                timeout=2 * predicted_s + SLACK_S,
                on_event=on_event,
            )
        except WorkFailed:
            self._complain_about_the_dead()
            raise

    def _start_controller(self) -> None:
        directory = self._emulation.directory
        address = f"unix:{directory / 'controller.sock'}"
        config = {"network": self._emulation.network_file.name, "listen": address}
        path = directory / "controller.yaml"
        path.write_bytes(msgspec.yaml.encode(config))
        self._spawn(None, "controller", "controller.cli.main", "controller", "--config", str(path))
        self._client = CoordinatorClient(address)
        deadline = time.monotonic() + READY_S
        while True:
            self._complain_about_the_dead()
            try:
                self._client.wait_ready(0.5)
                return
            except WorkFailed:
                if time.monotonic() > deadline:
                    raise

    def _start_agents(self) -> None:
        address = f"unix:{self._emulation.directory / 'controller.sock'}"
        for host in self.network.hosts:
            arguments = ("--host", host.name, "--coordinator", address)
            self._spawn(host.name, f"agent-{host.name}", "host_agent", *arguments, "--pin-sysctls")

    def _spawn(self, host: str | None, log: str, module: str, *arguments: str) -> None:
        command = ["nice", "-n", str(NICE), environment_python(), "-m", module, *arguments]
        self._processes[log] = self._emulation.spawn(host, command, log)

    def _complain_about_the_dead(self) -> None:
        for log, process in self._processes.items():
            if process.poll() is not None:
                words = _last_line(self._emulation.directory / f"{log}.log")
                raise WorkFailed(f"{log} ended with code {process.returncode}: {words}")


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "it said nothing"
