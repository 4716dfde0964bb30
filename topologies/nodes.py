"""Mininet nodes of a P4 network: hosts, and switches that are P4Runtime targets."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

from mininet.node import Host, Switch

from controller.model.errors import WorkFailed
from controller.model.network import CLASSES, CPU_PORT
from topologies.addresses import FIRST_PORT, free_address
from topologies.links import P4Interface
from topologies.runfile import current
from topologies.shaping import (
    PORT_HEADROOM,
    PORT_QUEUE_FRAMES,
    UPLINK_HEADROOM,
    class_tree,
    host_leaf,
    port_leaf,
)
from topologies.shell import run_lines, tc_lines

HOST_SYSCTLS = {
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv6.conf.all.accept_ra": "0",
}
"Set in a host's namespace: a connection starts alike whatever went before it, and does not forget in a pause."

WMEM_BYTES = 1 << 22
"Send buffer of BMv2's ports: all queues of a port must fit, or one full queue blocks BMv2's only transmit thread."

FORWARD_FIRST = ("nice", "-n", "-15")
"Switches go before other work: a port that waits 10 ms for a core drops what then comes at once."

START_SECONDS = 30.0
"How long a switch has to answer; it may have to compile first."

TERM_SECONDS = 3.0

_REPOSITORY = Path(__file__).resolve().parent.parent


class P4Host(Host):  # type: ignore[misc]
    """A host: addresses of both families, one shaped uplink."""

    def config(self, ip: str = "", mac: str = "", ipv6: str = "", **_: Any) -> dict[str, Any]:
        """Addresses as `ADDRESS/PREFIX`. Raises WorkFailed with what the tools said."""
        uplink = self.defaultIntf()
        uplink.ip, uplink.prefixLen = ip.split("/")
        uplink.mac = mac
        lines = [
            "ip link set lo up",
            f"ip link set {uplink} address {mac}",
            f"ip address add {ip} dev {uplink}",
            f"ip address add {ipv6} dev {uplink} nodad",
            *(f"sysctl -qw {name}={value}" for name, value in HOST_SYSCTLS.items()),
        ]
        run_lines(self, lines)
        return {}

    def link_setup(self, interface: P4Interface) -> list[str]:
        """The uplink carries a little more than the link's rate, classes in strict order."""
        tree = class_tree(interface.name, UPLINK_HEADROOM * interface.rate_bps, host_leaf())
        return [f"ip link set {interface} addrgenmode none", *tc_lines(tree)]


class P4Switch(Switch):  # type: ignore[misc]
    """A P4Runtime target in a process of its own, in the machine's namespace."""

    def __init__(self, name: str, *, device_id: int = 0, address: str = "", **params: Any) -> None:
        """`device_id` and `address` (127.0.0.1:PORT): of the P4Runtime server; from the name if not given."""
        super().__init__(name, **params)
        self.device_id = device_id or int(self.dpid, 16)
        self.address = address or free_address(self.device_id)
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, ports: dict[int, P4Interface]) -> list[str]:
        """The command line of the target."""
        raise NotImplementedError

    def link_setup(self, interface: P4Interface) -> list[str]:
        """Shell lines that prepare a port."""
        return [f"sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1"]

    def start(self, controllers: Sequence[Any]) -> None:
        """Start the process; `connected` tells when it serves."""
        ports = {port: interface for port, interface in self.intfs.items() if port > 0}
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*FORWARD_FIRST, *self.command(ports)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=current().directory,
            )
        current().add_process(self.process.pid, f"switch {self.name}")

    def connected(self) -> bool:
        """Whether the P4Runtime server answers. Raises WorkFailed when the process has died."""
        if self.process is None:
            return False
        if self.process.poll() is not None:
            raise WorkFailed(
                f"switch {self.name} ended with code {self.process.returncode}: {self.last_words()}"
            )
        host, _, port = self.address.rpartition(":")
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex((host, int(port))) == 0

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the process, then the interfaces."""
        if self.process is not None:
            end_processes([self.process])
            self.process = None
        super().stop(deleteIntfs)

    @property
    def log_path(self) -> Path:
        """What the process prints."""
        return current().file(f"{self.name}.log")

    def last_words(self) -> str:
        """The end of what the process printed."""
        lines = self.log_path.read_text(errors="replace").split("\n")
        return " / ".join(line for line in lines if line.strip())[-400:] or "it said nothing"

    def _options(self, ports: dict[int, P4Interface]) -> list[str]:
        """What all targets understand before `--`."""
        options = ["--no-p4", "--device-id", str(self.device_id)]
        for port, interface in sorted(ports.items()):
            options += ["-i", f"{port}@{interface.name}"]
        return options

    def _target_options(self) -> list[str]:
        """What all targets understand after `--`."""
        return [
            "--",
            *("--grpc-server-addr", self.address),
            *("--cpu-port", str(CPU_PORT)),
            *("--priority-queues", str(CLASSES)),
        ]


class EmbeddedSwitch(P4Switch):
    """`switch/`: its ports have queues and a shaper of their own."""

    def command(self, ports: dict[int, P4Interface]) -> list[str]:
        """`python -m switch`, each port at a little more than its link's rate."""
        rates = []
        for port, interface in sorted(ports.items()):
            rates += ["--port-rate", f"{port}={round(PORT_HEADROOM * interface.rate_bps)}bit"]
        return [
            environment_python(),
            *("-m", "switch"),
            *self._options(ports),
            *rates,
            *("--queue-limit", str(PORT_QUEUE_FRAMES)),
            *self._target_options(),
        ]


class Bmv2Switch(P4Switch):
    """`simple_switch_grpc`: tc shapes and orders what leaves its ports."""

    def command(self, ports: dict[int, P4Interface]) -> list[str]:
        """`simple_switch_grpc`, silent; builds differ in what they listen on besides gRPC."""
        extra = {
            "--notifications-addr": f"ipc://{current().file(f'{self.name}.ipc')}",
            "--thrift-port": free_address(9040 - FIRST_PORT + self.device_id).rpartition(":")[2],
        }
        known = bmv2_help()
        return [
            "simple_switch_grpc",
            *("--log-level", "off"),
            *(
                word
                for option, value in extra.items()
                if option in known
                for word in (option, value)
            ),
            *self._options(ports),
            *self._target_options(),
        ]

    def start(self, controllers: Sequence[Any]) -> None:
        """Start with large send buffers, which it takes when it opens its ports."""
        current().set_sysctl("net.core.wmem_default", str(WMEM_BYTES))
        try:
            super().start(controllers)
            wait_until_connected([self])
        finally:
            current().restore_sysctls()

    def link_setup(self, interface: P4Interface) -> list[str]:
        """The class tree stands at the port."""
        rate = PORT_HEADROOM * interface.rate_bps
        tree = class_tree(interface.name, rate, port_leaf())
        return [*super().link_setup(interface), *tc_lines(tree)]


@cache
def bmv2_help() -> str:
    """What `simple_switch_grpc --help` says; empty where it is not on PATH."""
    if which("simple_switch_grpc") is None:
        return ""
    done = subprocess.run(
        ["simple_switch_grpc", "--help"], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def bmv2_usable() -> bool:
    """Whether simple_switch_grpc is on PATH and knows --priority-queues."""
    return "--priority-queues" in bmv2_help()


def environment_python() -> str:
    """The interpreter of the project's environment, also when `mn` runs under the system's.

    Raises WorkFailed when there is none yet.
    """
    if sys.prefix != sys.base_prefix:
        return sys.executable
    python = _REPOSITORY / ".venv/bin/python"
    if not python.exists():
        raise WorkFailed(f"{python} is missing: run `make setup`")
    return str(python)


def wait_until_connected(switches: Sequence[P4Switch]) -> None:
    """Wait for the P4Runtime servers. Raises WorkFailed naming the first that does not answer."""
    deadline = time.monotonic() + START_SECONDS
    for switch in switches:
        while not switch.connected():
            if time.monotonic() > deadline:
                raise WorkFailed(
                    f"switch {switch.name} does not answer at {switch.address} after {START_SECONDS:g} s; "
                    f"its log: {switch.last_words()}"
                )
            time.sleep(0.02)


def end_processes(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask all to end, then make them."""
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        try:
            process.wait(TERM_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
