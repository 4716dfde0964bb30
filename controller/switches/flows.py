"""From a flow's rule to table entries: class and pin at the edge, pins on the way, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address

import finsy as fy

from controller.model.fabric import Path
from controller.model.network import ACK_CLASS, back
from controller.model.rule import FlowKey, FlowRule
from controller.switches.routes import Routes

ACK_SHARE = 0.05
"What acknowledgements may use of a link; they need 2 to 4 % of what they acknowledge."

METER_SLACK = 1.05
"The edge polices this much above the rate that the host is told."

UNPACED = 2.0
"""The edge polices an unpaced flow above this part of its path's rate, so never. It has a meter all the same: on BMv2 an
entry that is modified without one keeps the one it had."""

BURST_BYTES = 65536
"Less has cost retransmissions."

NO_PIN = 0


def rule_entries(routes: Routes, rule: FlowRule) -> list[tuple[str, fy.P4TableEntry]]:
    """(switch, entry) for every switch that must know of the flow; empty when it stays on its host.

    A switch is told the port only where it has a choice. A path with a dead link is not pinned.
    """
    if not rule.path:
        return []
    line_rate = min(routes.network.links[link >> 1].rate_bps for link in rule.path)
    policed = UNPACED * line_rate if rule.meter_rate is None else METER_SLACK * rule.meter_rate
    return [
        *_way(routes, rule.key, rule.class_, rule.path, rule.dst_host, meter(policed)),
        *_way(
            routes,
            rule.key.reversed(),
            ACK_CLASS,
            back(rule.path),
            rule.src_host,
            meter(ACK_SHARE * line_rate),
        ),
    ]


def meter(rate_bps: float) -> fy.P4MeterConfig:
    """A meter that is red above a rate in bit/s."""
    rate = max(1, round(rate_bps / 8))
    return fy.P4MeterConfig(cir=rate, cburst=BURST_BYTES, pir=rate, pburst=BURST_BYTES)


def match_of(key: FlowKey) -> fy.P4TableMatch:
    """`flow_policy`'s key; IPv4 is written ::ffff:a.b.c.d."""
    return fy.P4TableMatch(
        src=_to_128(key.src_ip),
        dst=_to_128(key.dst_ip),
        protocol=key.protocol,
        sport=key.src_port,
        dport=key.dst_port,
    )


def flow_key(src: int, dst: int, protocol: int, sport: int, dport: int) -> FlowKey:
    """The 5-tuple behind `flow_policy`'s key or a digest."""
    return FlowKey(_to_text(src), _to_text(dst), protocol, sport, dport)


def _way(
    routes: Routes,
    key: FlowKey,
    class_: int,
    path: Path,
    dst_host: str,
    policed: fy.P4MeterConfig,
) -> Iterator[tuple[str, fy.P4TableEntry]]:
    alive = not routes.failed & set(path)
    for hop, link in enumerate(path[1:]):
        switch, port = routes.network.egress(link)
        choice = len(routes.uplinks(switch, dst_host)) > 1
        if hop > 0 and not choice:
            continue
        pin = port if choice and alive else NO_PIN
        yield (
            switch,
            fy.P4TableEntry(
                "flow_policy",
                match=match_of(key),
                action=fy.P4TableAction("set_policy", traffic_class=class_, path=pin),
                meter_config=policed if hop == 0 else None,
            ),
        )


def _to_128(address: str) -> int:
    parsed = ip_address(address)
    return int(parsed) if parsed.version == 6 else 0xFFFF << 32 | int(parsed)


def _to_text(address: int) -> str:
    parsed = IPv6Address(address)
    return str(parsed.ipv4_mapped or parsed)
