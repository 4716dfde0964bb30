"""A running Mininet network of P4 switches: build it from a `Network`, run things in its hosts, take it down."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.topo import Topo

from controller.model.errors import WorkFailed
from controller.model.network import Network
from topologies.addresses import free_address
from topologies.layout import IPV4_PREFIX, IPV6_PREFIX, with_addresses
from topologies.links import P4Link
from topologies.nodes import (
    Bmv2Switch,
    EmbeddedSwitch,
    P4Host,
    P4Switch,
    bmv2_usable,
    end_processes,
    wait_until_connected,
)
from topologies.runfile import RunFile, current
from topologies.shaping import require_qdiscs
from topologies.shell import run_lines

if TYPE_CHECKING:
    from typing_extensions import Self

TARGETS: dict[str, type[P4Switch]] = {"embedded": EmbeddedSwitch, "bmv2": Bmv2Switch}


def best_target() -> str:
    """`bmv2` where it is installed with priority queues, otherwise `embedded`."""
    return "bmv2" if bmv2_usable() else "embedded"


class FabricTopo(Topo):  # type: ignore[misc]
    """Mininet's description of a `Network` whose addresses are filled in."""

    def build(self, network: Network) -> None:
        """Nodes, then cables, with the network's port numbers."""
        target = TARGETS[network.target]
        for host in network.hosts:
            self.addHost(
                host.name,
                cls=P4Host,
                ip=f"{host.ipv4}/{IPV4_PREFIX}",
                mac=host.mac,
                ipv6=f"{host.ipv6}/{IPV6_PREFIX}",
            )
        for switch in network.switches:
            self.addSwitch(
                switch.name, cls=target, device_id=switch.device_id, address=switch.address
            )
        for cable in network.links:
            self.addLink(
                cable.a,
                cable.b,
                cls=P4Link,
                port1=cable.a_port,
                port2=cable.b_port,
                rate_bps=cable.rate_bps,
            )


class _QuietMininet(Mininet):  # type: ignore[misc]
    """Mininet without its changes to a dozen settings of the whole machine, which it never takes back."""

    inited = True


class EmulatedNetwork:
    """A network that carries packets; use as a context manager.

    Everything made is in the run file of this process and goes when the context ends.
    """

    def __init__(self, network: Network) -> None:
        """Prepare `network` (from `topologies.layout.network_of`); nothing is started yet."""
        self._plan = network
        self._mininet: Any = None
        self._run: RunFile | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self.network = network

    def __enter__(self) -> Self:
        """Build and start. Raises WorkFailed (not root, another run, a switch that does not start)."""
        if os.geteuid() != 0:
            raise WorkFailed("a Mininet network needs root: run with sudo")
        require_qdiscs("htb", "u32")
        setLogLevel("critical")
        self._run = current()
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take everything down."""
        self.close()

    @property
    def directory(self) -> Path:
        """Where sockets and logs of this run belong; removed at the end."""
        return current().directory

    @property
    def network_file(self) -> Path:
        """The network description (`echelon/network/v1`) that the controller reads."""
        return current().file("network.yaml")

    def spawn(self, host: str | None, command: Sequence[str], log: str) -> subprocess.Popen[bytes]:
        """Start a process in a host's namespace (None: the machine's); its output goes to `log`.log."""
        prefix = [] if host is None else ["mnexec", "-a", str(self._mininet[host].pid)]
        with current().file(f"{log}.log").open("ab") as out:
            process = subprocess.Popen(
                [*prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        current().add_process(process.pid, f"{log} ({command[0]})")
        self._processes.append(process)
        return process

    def run(
        self, host: str, command: Sequence[str], timeout: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a host's namespace to its end and give back what it said."""
        return subprocess.run(
            ["mnexec", "-a", str(self._mininet[host].pid), *command],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def set_link(self, a: str, b: str, up: bool) -> None:
        """Pull or plug the cable between two nodes, at b's end: a's end loses or gets its carrier.

        A BMv2 at b's end hears nothing more on any port: it stops receiving when an interface goes down.
        """
        for link in self._mininet.linksBetween(self._mininet[a], self._mininet[b]):
            end = link.intf1 if link.intf1.node.name == b else link.intf2
            run_lines(end.node, [f"ip link set {end} {'up' if up else 'down'}"])

    def close(self) -> None:
        """End processes, switches, links and hosts; remove the run file (idempotent)."""
        switches = [] if self._mininet is None else self._mininet.switches
        nodes = [] if self._mininet is None else [*self._mininet.hosts, *switches]
        processes = [*self._processes, *(s.process for s in switches if s.process is not None)]
        end_processes(processes)
        for (
            node
        ) in nodes:  # not Mininet.stop(): it waits for ever for a shell that somebody has killed
            node.terminate()
        self._processes.clear()
        self._mininet = None
        if self._run is not None:
            self._run.close()

    def _start(self) -> None:
        addresses = [free_address(switch.device_id) for switch in self._plan.switches]
        self.network = with_addresses(self._plan, addresses, current().instance)
        write_network_file(self.network, self.network_file)
        self._mininet = _QuietMininet(topo=FabricTopo(self.network), controller=None, build=False)
        self._mininet.build()
        for host in self._mininet.hosts:
            current().add_process(host.pid, f"shell of {host.name}")
        self._mininet.start()
        wait_until_connected(self._mininet.switches)


def write_network_file(network: Network, path: Path) -> None:
    """Write `echelon/network/v1` as JSON, which is YAML too and needs nothing but Python."""
    path.write_text(json.dumps({"schema": "echelon/network/v1", **asdict(network)}, indent=1))
