"""`network.yaml` (`echelon/network/v1`): which hosts, switches and cables a live network has."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path as FilePath

import msgspec

from controller.model.errors import BadInput
from controller.model.network import Cable, Network, NetworkHost, NetworkSwitch

SCHEMA = "echelon/network/v1"


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    target: str
    link_rate_bps: float
    topology: str
    hosts: tuple[NetworkHost, ...]
    switches: tuple[NetworkSwitch, ...]
    links: tuple[Cable, ...]


def load_network(path: FilePath) -> Network:
    """Read a network description, YAML or JSON. Raises BadInput, which names the file and the key."""
    try:
        text = path.read_bytes()
        decode = msgspec.json.decode if text.startswith(b"{") else msgspec.yaml.decode
        document = decode(text, type=_Document)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise BadInput(f"{path}: {error}") from error
    if document.schema != SCHEMA:
        raise BadInput(f"{path}: schema is {document.schema!r}, expected {SCHEMA!r}")
    network = Network(
        document.target,
        document.link_rate_bps,
        document.topology,
        document.hosts,
        document.switches,
        document.links,
    )
    _check(path, network)
    return network


def save_network(network: Network, path: FilePath) -> None:
    """Write a network description as YAML."""
    fields = {name: getattr(network, name) for name in _Document.__struct_fields__[1:]}
    path.write_bytes(msgspec.yaml.encode(_Document(SCHEMA, **fields)))


def _check(path: FilePath, network: Network) -> None:
    def fail(key: str, problem: str) -> None:
        raise BadInput(f"{path}: {key}: {problem}")

    names = [host.name for host in network.hosts] + [switch.name for switch in network.switches]
    for name in names:
        if names.count(name) > 1:
            fail("hosts, switches", f"the name {name!r} is used twice")
    used: set[tuple[str, int]] = set()
    for index, cable in enumerate(network.links):
        if cable.rate_bps <= 0:
            fail(f"links[{index}].rate_bps", f"{cable.rate_bps} is not a rate: expected bit/s > 0")
        for node, port in ((cable.a, cable.a_port), (cable.b, cable.b_port)):
            if node not in names:
                fail(f"links[{index}]", f"there is no host or switch {node!r}")
            if (node, port) in used:
                fail(f"links[{index}]", f"port {port} of {node} has a cable already")
            used.add((node, port))
    switches = {switch.name: switch for switch in network.switches}
    for host in network.hosts:
        for address in (host.ipv4, host.ipv6):
            try:
                ip_address(address)
            except ValueError as error:
                fail(f"hosts.{host.name}", str(error))
        if host.switch not in switches or host.port not in switches[host.switch].host_ports:
            fail(
                f"hosts.{host.name}",
                f"port {host.port} of {host.switch} is not one of its host_ports",
            )
