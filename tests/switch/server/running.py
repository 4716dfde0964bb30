"""A switch process in a network namespace of its own, with veth ports, for end-to-end tests."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import grpc
from finsy.proto import p4r
from google.protobuf import text_format

from tests.switch.server.controller import Controller

ROOT = Path(__file__).resolve().parents[3]
COMPILED = Path(__file__).parent / "compiled"
CPU_PORT = 510
DEVICE_ID = 7
START_PATIENCE_S = 60.0
"""A first start compiles, on a machine that may be busy."""

_CLONE_NEWNET = 0x40000000

_T = TypeVar("_T")


def command(target: str) -> list[str]:
    """The program of a target: `embedded` or `bmv2`."""
    if target == "embedded":
        return [sys.executable, "-m", "switch"]
    found = shutil.which("simple_switch_grpc")
    assert found is not None
    return [found]


def pipeline(name: str, directory: Path = COMPILED) -> p4r.ForwardingPipelineConfig:
    """A compiled program."""
    config = p4r.ForwardingPipelineConfig(
        p4_device_config=(directory / f"{name}.json").read_bytes()
    )
    [info] = directory.glob(f"{name}.p4info.*")
    text_format.Parse(info.read_text(), config.p4info)
    return config


class Namespace:
    """A network namespace with a veth pair for each port: PREFIX<port> for the switch, PREFIX<port>h for the test."""

    def __init__(self, ports: int) -> None:
        self.name = f"esv-{os.getpid()}"
        _ip("netns", "add", self.name)
        for port in range(1, ports + 1):
            self.ip("link", "add", f"esv{port}", "type", "veth", "peer", "name", f"esv{port}h")
            for end in (f"esv{port}", f"esv{port}h"):
                self.run("sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
                self.ip("link", "set", end, "up")

    def ip(self, *arguments: str) -> None:
        _ip("-n", self.name, *arguments)

    def run(self, *arguments: str) -> None:
        subprocess.run(
            ["ip", "netns", "exec", self.name, *arguments], check=True, capture_output=True
        )

    def inside(self, call: Callable[[], _T]) -> _T:
        """What a call gives when it runs in the namespace (in a thread, which is then thrown away)."""
        result: list[_T] = []

        def enter() -> None:
            with Path("/run/netns", self.name).open() as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            result.append(call())

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return result[0]

    def remove(self) -> None:
        _ip("netns", "del", self.name)


class Wire:
    """The far end of one port."""

    def __init__(self, namespace: Namespace, port: int) -> None:
        def connect() -> socket.socket:
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            made.bind((f"esv{port}h", 0))
            return made

        self._socket = namespace.inside(connect)

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self, seconds: float = 10.0) -> bytes | None:
        """The next frame from the switch, None if none comes."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                frame, address = self._socket.recvfrom(65535)
            except TimeoutError:
                break
            if address[2] != socket.PACKET_OUTGOING:
                return frame
        return None

    def close(self) -> None:
        self._socket.close()


class Switch:
    """A running switch process."""

    def __init__(
        self,
        namespace: Namespace,
        target: str,
        ports: int,
        *extra: str,
        target_options: tuple[str, ...] = (),
    ) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.address = f"unix:{self._directory.name}/grpc.sock"
        interfaces = [word for port in range(1, ports + 1) for word in ("-i", f"{port}@esv{port}")]
        self.process = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                namespace.name,
                *command(target),
                *interfaces,
                "--device-id",
                str(DEVICE_ID),
                *extra,
                "--",
                "--grpc-server-addr",
                self.address,
                "--cpu-port",
                str(CPU_PORT),
                *target_options,
            ],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        with grpc.insecure_channel(self.address) as channel:
            grpc.channel_ready_future(channel).result(START_PATIENCE_S)

    def controller(self) -> Controller:
        return Controller(self.address, DEVICE_ID)

    def stop(self) -> int:
        """Exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=START_PATIENCE_S)
        self._directory.cleanup()
        return self.process.returncode


@contextmanager
def running(target: str, ports: int, *extra: str) -> Iterator[tuple[Switch, dict[int, Wire]]]:
    """A switch without program and the wires of its ports."""
    namespace = Namespace(ports)
    try:
        switch = Switch(namespace, target, ports, "--no-p4", *extra)
        wires = {port: Wire(namespace, port) for port in range(1, ports + 1)}
        try:
            yield switch, wires
        finally:
            for wire in wires.values():
                wire.close()
            switch.stop()
    finally:
        namespace.remove()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
