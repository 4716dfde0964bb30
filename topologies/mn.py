"""For Mininet's own command: a network of P4 switches under `mn`, driven by the controller in another terminal.

    mn --custom topologies/mn.py --topo leaf-spine,2,2,4 --switch p4 --host p4 --link p4 --controller none

Then `.venv/bin/echelon controller --config /run/echelon/ech/network.yaml`, and `pingall` at the mininet prompt.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `mn --custom` runs this file by path

from controller.model.fabrics import parse_topology  # noqa: E402
from controller.model.units import parse_rate  # noqa: E402
from topologies.emulation import TARGETS, FabricTopo, best_target, write_network_file  # noqa: E402
from topologies.layout import network_of, with_addresses  # noqa: E402
from topologies.links import P4Link  # noqa: E402
from topologies.nodes import P4Host, free_address  # noqa: E402
from topologies.runfile import current  # noqa: E402


class NamedTopo(FabricTopo):
    """A topology by name and numbers: `leaf-spine,2,2,4`; `rate=10mbit` sets the link rate."""

    kind = ""

    def build(self, *sizes: int, rate: str = "40mbit") -> None:
        """Lay out, choose addresses, write the network file, and say where it is."""
        rate_bps = parse_rate(rate)
        fabric = parse_topology(f"{self.kind}:{'x'.join(map(str, sizes))}", rate_bps)
        network = network_of(fabric, rate_bps, best_target())
        addresses = [free_address(switch.device_id) for switch in network.switches]
        network = with_addresses(network, addresses, current().instance)
        write_network_file(network, current().file("network.yaml"))
        print(f"network description: {current().file('network.yaml')}")
        super().build(network)


def _topo(kind: str) -> type[NamedTopo]:
    return type(f"{kind}-topo", (NamedTopo,), {"kind": kind})


topos: dict[str, Any] = {kind: _topo(kind) for kind in ("big-switch", "leaf-spine", "fat-tree")}
switches = {"p4": TARGETS[best_target()], **TARGETS}
hosts = {"p4": P4Host}
links = {"p4": P4Link}
