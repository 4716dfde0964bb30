"""A network without P4 for tests: hosts in namespaces of our own, joined by a bridge, links shaped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from controller.model.network import Cable, Network, NetworkHost, NetworkSwitch

QUEUE_FRAMES = 30
OPTIONS = ("--pin-sysctls", "--nice", "-10")
"What agents are started with, as a run starts them: other tests must not delay them."


def run(command: str) -> None:
    """Runs an `ip` or `tc` command; raises with what it printed."""
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")


class PlainNetwork:
    """Hosts h1..hN on one bridge; the links to the hosts are shaped, one queue per class.

    Every name starts with a prefix that no other process has.
    """

    def __init__(self, hosts: int, rate: float) -> None:
        self._prefix = f"ect{os.getpid() % 100000}"
        self._bridge = f"{self._prefix}s"
        self._names = [f"h{i + 1}" for i in range(hosts)]
        self._rate = rate
        self._children: list[subprocess.Popen[str]] = []
        self.description = Network(
            target="plain",
            link_rate_bps=rate,
            topology=f"big-switch:{hosts}",
            hosts=tuple(
                NetworkHost(h, f"02:00:00:00:00:{i:02x}", f"10.0.0.{i}", f"fd00::{i}", "s1", i)
                for i, h in enumerate(self._names, 1)
            ),
            switches=(
                NetworkSwitch("s1", 1, "127.0.0.1:1", host_ports=tuple(range(1, hosts + 1))),
            ),
            links=tuple(Cable(h, 0, "s1", i, rate) for i, h in enumerate(self._names, 1)),
        )

    def __enter__(self) -> PlainNetwork:
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def namespace(self, host: str) -> str:
        """The network namespace of a host."""
        return f"{self._prefix}{host}"

    def start(self, host: str | None, module: str, *arguments: str) -> subprocess.Popen[str]:
        """Starts `python -m module` in a host's namespace (None: in ours); it ends with us."""
        inside = [] if host is None else ["ip", "netns", "exec", self.namespace(host)]
        child = subprocess.Popen(
            [*inside, sys.executable, "-m", module, *arguments],
            cwd=Path(__file__).parents[2],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._children.append(child)
        return child

    @contextmanager
    def agents(self, coordinator: str) -> Iterator[None]:
        """A host agent on every host."""
        for host in self._names:
            self.start(host, "host_agent", "--host", host, "--coordinator", coordinator, *OPTIONS)
        try:
            yield
        finally:
            self.end_children()

    def end_children(self) -> None:
        """SIGTERM to all that was started, and waits."""
        for child in self._children:
            child.terminate()
        for child in self._children:
            child.communicate(timeout=10)
        self._children.clear()

    def _build(self) -> None:
        run(f"ip netns add {self._bridge}")
        run(f"ip -n {self._bridge} link add name br0 type bridge")
        run(f"ip -n {self._bridge} link set br0 up")
        for host in self.description.hosts:
            self._add_host(host)

    def _add_host(self, host: NetworkHost) -> None:
        space, port = self.namespace(host.name), f"p{host.port}"
        run(f"ip netns add {space}")
        run(f"ip -n {space} link add eth0 type veth peer name {port} netns {self._bridge}")
        run(f"ip -n {space} addr add {host.ipv4}/16 dev eth0")
        run(f"ip -n {space} addr add {host.ipv6}/64 dev eth0 nodad")
        for where, device in ((space, "eth0"), (self._bridge, port)):
            run(
                f"ip netns exec {where} ethtool -K {device} tx off rx off tso off gso off gro off sg off"
            )
            run(f"ip -n {where} link set {device} up")
        run(f"ip -n {space} link set lo up")
        run(f"ip -n {self._bridge} link set {port} master br0")
        self._shape(self._bridge, port)

    def _shape(self, space: str, device: str) -> None:
        """The link's rate, a leaf per class served by priority, chosen by DSCP."""
        tc = f"tc -n {space}"
        rate = f"{self._rate:.0f}bit"
        run(f"{tc} qdisc add dev {device} root handle 1: htb default 10")
        run(
            f"{tc} class add dev {device} parent 1: classid 1:1 htb rate {rate} burst 1600 cburst 1600"
        )
        for class_ in range(8):
            run(
                f"{tc} class add dev {device} parent 1:1 classid 1:1{class_} htb "
                f"rate 8kbit ceil {rate} burst 1600 cburst 1600 prio {7 - class_}"
            )
            run(f"{tc} qdisc add dev {device} parent 1:1{class_} pfifo limit {QUEUE_FRAMES}")
            tos = class_ << 5
            run(
                f"{tc} filter add dev {device} parent 1: protocol ip prio 1 u32 "
                f"match ip tos {tos:#x} 0xfc flowid 1:1{class_}"
            )

    def _remove(self) -> None:
        self.end_children()
        for name in [self._bridge, *map(self.namespace, self._names)]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
