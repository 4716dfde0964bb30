"""For Mininet's own command: a network of P4 switches under `mn`, driven by the controller in another terminal.

    mn --custom topologies/mn.py --topo leaf-spine,2,2,4 --controller none

Then `.venv/bin/echelon controller --config FILE` with `network: /run/echelon/ech/network.yaml` in FILE, and `pingall`
at the mininet prompt. `rate=10mbit` and `target=embedded` may follow the sizes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_HERE = Path(sys._getframe().f_code.co_filename).resolve()  # `mn` runs this text without __file__
sys.path.insert(0, str(_HERE.parent.parent))

from controller.model.fabrics import parse_topology
from controller.model.units import parse_rate
from topologies.addresses import free_address
from topologies.emulation import FabricTopo, best_target, write_network_file
from topologies.layout import network_of, with_addresses
from topologies.runfile import current


class NamedTopo(FabricTopo):
    """A topology by its kind and sizes."""

    kind = ""

    def build(  # type: ignore[override]
        self, *sizes: int, rate: str = "40mbit", target: str = ""
    ) -> None:
        """Lay out, choose addresses, write the network file, and say where it is."""
        rate_bps = parse_rate(rate)
        fabric = parse_topology(f"{self.kind}:{'x'.join(map(str, sizes))}", rate_bps)
        network = network_of(fabric, rate_bps, target or best_target())
        addresses = [free_address(switch.device_id) for switch in network.switches]
        network = with_addresses(network, addresses, current().instance)
        write_network_file(network, current().file("network.yaml"))
        print(f"network description: {current().file('network.yaml')}")
        super().build(network)


def _topo(kind: str) -> type[NamedTopo]:
    return type(f"{kind}-topo", (NamedTopo,), {"kind": kind})


topos: dict[str, Any] = {kind: _topo(kind) for kind in ("big-switch", "leaf-spine", "fat-tree")}
