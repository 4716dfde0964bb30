"""What is measured: the embedded switch, BMv2 where it is installed, and the bare forwarder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

from bench.switch.controller import COMPILED, DEVICE, Controller, ready
from bench.switch.network import compiled

JSON = COMPILED / "echelon.json"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def on_first_core(command: list[str]) -> list[str]:
    return ["taskset", "-c", "0", *command]


class Forwarder(Protocol):
    """Something that takes frames from port 1 (sw1) to port 2 (sw2)."""

    name: str
    process: subprocess.Popen[bytes]

    def close(self) -> None:
        """Stop it."""


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """What all threads of a process have run, from the scheduler (nanosecond steps)."""
    total = 0
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            pass  # the thread ended meanwhile
    return total / 1e9


def memory_mb(process: subprocess.Popen[bytes]) -> float:
    """Resident memory."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise KeyError("VmRSS")


class Bare:
    """No switch at all: a ring read, the same frames sent."""

    name = "bare forwarder"

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            on_first_core([compiled("bare"), "sw1", "sw2"]), stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


class P4Switch:
    """A P4Runtime switch that runs echelon.json from its start."""

    name = ""

    def __init__(self, *options: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        ports = ["-i", "1@sw1", "-i", "2@sw2"]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the switch runs
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [*self.program(), "--device-id", str(DEVICE), *ports, *options, str(JSON)]
            + ["--", "--grpc-server-addr", self.address, "--cpu-port", "510"]
            + ["--priority-queues", "8"],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            self.start_s = ready(self.address, self.process) - begun
        except RuntimeError as error:
            self._log.seek(0)
            raise RuntimeError(f"{error}: {self._log.read()[-2000:].decode()}") from error

    def program(self) -> list[str]:
        raise NotImplementedError

    def controller(self) -> Controller:
        controller = Controller(self.address)
        controller.configure()
        return controller

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._log.close()


class Embedded(P4Switch):
    """The embedded switch."""

    name = "embedded switch"

    def program(self) -> list[str]:
        return on_first_core([sys.executable, "-m", "switch"])


class Bmv2(P4Switch):
    """simple_switch_grpc, as it is installed, without logging."""

    name = "simple_switch_grpc"

    @staticmethod
    def installed() -> bool:
        return shutil.which("simple_switch_grpc") is not None

    def program(self) -> list[str]:
        # On both cores: its threads are several. Without a log it still formats every message, unless told.
        return ["simple_switch_grpc", "--log-level", "off", "--thrift-port", str(free_port())]
