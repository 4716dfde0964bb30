"""What the two switches are set up with and fed: our own program, and p4lang's tutorials where they are at hand."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.switch.differential import frames as f
from tests.switch.drive.commands import (
    Call,
    CloneSession,
    Command,
    Default,
    Entry,
    Frame,
    Group,
    Match,
    Multicast,
)
from tests.switch.drive.program import tables

ROOT = Path(__file__).resolve().parents[3]
CPU = 510

Template = Callable[[Random], bytes]


@dataclass(frozen=True)
class Scenario:
    """A program, its set-up and the frames to try."""

    name: str
    json: Path
    p4info: Path | None
    """Binary p4info; None where it is made from the JSON's folder by the caller."""
    commands: list[Command]
    templates: list[Template]
    ports: tuple[int, ...]
    """Ports that frames enter by."""
    counters: tuple[str, ...] = ()
    """Indirect counters to compare."""
    direct: tuple[str, ...] = ()
    """Tables whose direct counters to compare."""
    masked: tuple[tuple[int, int], ...] = ()
    """Byte ranges that hold times in a frame of ethertype `masked_type`."""
    masked_type: bytes = b""
    undefined: Callable[[bytes], bool] = lambda frame: False
    """Frames in for which P4 leaves the result open (fields of an invalid header are read: BMv2 then
    gives what an earlier packet left there)."""
    alone: bool = False
    """One frame at a time, because the program shows queue depths."""

    def frames(self, count: int, seed: int = 1) -> list[Frame]:
        return f.stream(self.templates, self.ports, count, seed)

    def comparable(self, frame: bytes) -> bytes:
        """The frame without what may differ between two runs."""
        if self.masked_type and frame[12:14] == self.masked_type:
            for start, end in self.masked:
                frame = frame[:start] + bytes(len(frame[start:end])) + frame[end:]
        return frame


# -- echelon.p4

FLOWS = [(1000 + i, 5000 + i % 7, (f.TCP, f.UDP)[i % 2]) for i in range(40)]
"""(source port, destination port, protocol): the first half have entries in flow_policy."""


def _mapped(address: str) -> int:
    return int(ipaddress.IPv6Address(f"::ffff:{address}"))


def echelon() -> Scenario:
    """Ports 1 and 2 face hosts, 3 and 4 are uplinks, 5 is a dead one."""
    ingress = "EchelonIngress."
    forward, classify = ingress + "forward.", ingress + "classify."

    def entry(table: str, match: dict[str, Match], action: str, **params: int) -> Entry:
        return Entry(table, match, Call(action, params))

    to_port, to_group = forward + "to_port", forward + "to_group"
    commands: list[Command] = [
        *(entry(ingress + "port_role", {"port": Match(p)}, ingress + "face_host") for p in (1, 2)),
        *(entry(ingress + "port_role", {"port": Match(p)}, ingress + "face_switch") for p in (3, 4)),
        *(entry(forward + "live_port", {"port": Match(p)}, forward + "port_is_live") for p in (3, 4)),
        Group(forward + "ecmp_selector", 1, tuple((p, Call(to_port, {"port": p})) for p in (3, 4, 6))),
        Entry(forward + "ecmp_group", {"group": Match(1)}, 1),
    ]  # fmt: skip
    for p in (1, 2):
        v4, v6 = int(ipaddress.IPv4Address(f"10.0.0.{p}")), int(ipaddress.IPv6Address(f"fd00::{p}"))
        commands.append(
            entry(forward + "ipv4_forward", {"dst": Match(v4, prefix=32)}, to_port, port=p)
        )
        commands.append(
            entry(forward + "ipv6_forward", {"dst": Match(v6, prefix=128)}, to_port, port=p)
        )
    net4, net6 = int(ipaddress.IPv4Address("10.0.0.0")), int(ipaddress.IPv6Address("fd00::"))
    commands += [
        entry(forward + "ipv4_forward", {"dst": Match(net4, prefix=16)}, to_group, group=1),
        entry(
            forward + "ipv4_forward", {"dst": Match(net4 + (9 << 16), prefix=17)}, to_group, group=2
        ),
        entry(forward + "ipv6_forward", {"dst": Match(net6, prefix=64)}, to_group, group=1),
    ]
    for number, (sport, dport, protocol) in enumerate(FLOWS[: len(FLOWS) // 2]):
        pairs = [
            (_mapped("10.0.0.1"), _mapped("10.0.7.7")),
            (int(ipaddress.IPv6Address("fd00::1")), int(ipaddress.IPv6Address("fd00::77"))),
        ]
        for src, dst in pairs:
            key = {"src": src, "dst": dst, "protocol": protocol, "sport": sport, "dport": dport}
            commands.append(
                entry(
                    classify + "flow_policy",
                    {name: Match(value) for name, value in key.items()},
                    classify + "set_policy",
                    traffic_class=number % 8,
                    path=(0, 3, 4, 5)[number % 4],
                )
            )
    counters = [ingress + c for c in ("punts_limited", "bad_packets", "ttl_expired", "policed")]
    counters += [classify + c for c in ("class_mismatches", "unknown_flows", "fragments")]
    counters += [forward + "no_routes", forward + "dead_paths", "EchelonEgress.class_counter"]
    return Scenario(
        "echelon",
        ROOT / "p4/compiled/echelon.json",
        None,
        commands,
        [_echelon_ipv4, _echelon_ipv4, _echelon_ipv6, _echelon_punt, _echelon_fragment],
        (1, 2, 3, 4, 7, CPU),
        tuple(counters),
        (classify + "flow_policy",),
    )


def _echelon_ipv4(random: Random) -> bytes:
    sport, dport, protocol = random.choice(FLOWS)
    dst = random.choice(("10.0.7.7", "10.0.7.7", "10.0.0.2", "10.0.0.1", "10.9.0.1", "192.0.2.1"))
    return f.ethernet(
        f.IPV4,
        f.ipv4("10.0.0.1", dst, protocol, f.ports(sport, dport),
               tos=random.choice((0, 0xE0, 0x21, 0x3C)), ttl=random.choice((64, 64, 2, 1))),
    )  # fmt: skip


def _echelon_ipv6(random: Random) -> bytes:
    sport, dport, protocol = random.choice(FLOWS)
    dst = random.choice(("fd00::77", "fd00::77", "fd00::2", "2001:db8::1"))
    header = random.choice((protocol, protocol, f.ICMPV6, 0))
    return f.ethernet(
        f.IPV6,
        f.ipv6("fd00::1", dst, header, f.ports(sport, dport),
               tos=random.choice((0, 0xE0, 0x21)), ttl=random.choice((64, 64, 1))),
    )  # fmt: skip


def _echelon_punt(random: Random) -> bytes:
    if random.random() < 0.5:
        return f.ethernet(f.ARP, bytes.fromhex("0001080006040001") + random.randbytes(20))
    return f.ethernet(f.IPV6, f.ipv6("fd00::1", "ff02::1", f.ICMPV6, b"\x87" + bytes(23), ttl=255))


def _echelon_fragment(random: Random) -> bytes:
    return f.ethernet(f.IPV4, f.ipv4("10.0.0.1", "10.0.0.2", f.UDP, bytes(24), fragment=185))


# -- p4lang's tutorials: exercises/NAME/solution/NAME.p4 with the entries of their own sN-runtime.json


def _hosts_ipv4(random: Random) -> bytes:
    dst = random.choice(("10.0.1.1", "10.0.2.2", "10.0.3.3", "10.0.4.4", "10.0.0.1", "10.9.9.9"))
    mac = random.choice(
        ("080000000111", "080000000222", "080000000333", "080000000444", "ffffffffffff")
    )
    payload = f.ports(random.choice((80, 1234)), random.choice((80, 4321)), random.randbytes(16))
    protocol = random.choice((f.TCP, f.UDP, f.ICMP))
    tos = random.choice((0, 1, 2, 0xB8))
    return f.ethernet(f.IPV4, f.ipv4("10.0.1.1", dst, protocol, payload, tos=tos), mac)


def _tunnel(random: Random) -> bytes:
    inner = _hosts_ipv4(random)[14:]
    dst = random.randrange(5).to_bytes(2, "big")
    return f.ethernet(0x1212, random.choice((b"\x08\x00", b"\x86\xdd")) + dst + inner)


def _calc(random: Random) -> bytes:
    op = random.choice(b"+-&|^x").to_bytes(1, "big")
    version = random.choice((b"\x01", b"\x01", b"\x02"))
    return f.ethernet(0x1234, b"P4" + version + op + random.randbytes(8) + bytes(4))


def _source_route(random: Random) -> bytes:
    hops = random.randrange(1, 12)
    stack = [(random.randrange(5) | (0x8000 if i == hops - 1 else 0)) for i in range(hops)]
    return f.ethernet(
        0x1234, b"".join(s.to_bytes(2, "big") for s in stack) + _hosts_ipv4(random)[14:]
    )


def _mri(random: Random) -> bytes:
    count = random.choice((0, 0, 1, 2, 8, 9))
    options = bytes([0x9F, 4 + 8 * count]) + count.to_bytes(2, "big") + random.randbytes(8 * count)
    options = options[:40]
    dst = random.choice(("10.0.1.1", "10.0.2.2", "10.0.3.3"))
    return f.ethernet(f.IPV4, f.ipv4("10.0.1.1", dst, f.UDP, f.ports(1, 4321), options=options))


def _probe(random: Random) -> bytes:
    hops = random.randrange(1, 5)
    ports = [random.randrange(1, 5) for _ in range(hops)]
    return f.ethernet(0x0812, b"\x00" + bytes(ports) + random.randbytes(8))


TUTORIALS: dict[str, tuple[str, list[Template]]] = {
    "basic": ("pod-topo/s1-runtime.json", [_hosts_ipv4]),
    "basic_tunnel": ("s1-runtime.json", [_hosts_ipv4, _tunnel]),
    "calc": ("s1-runtime.json", [_calc]),
    "ecn": ("s1-runtime.json", [_hosts_ipv4]),
    "firewall": ("pod-topo/s1-runtime.json", [_hosts_ipv4]),
    "flowcache": ("", [_hosts_ipv4]),
    "link_monitor": ("pod-topo/s1-runtime.json", [_hosts_ipv4, _probe]),
    "load_balance": ("s1-runtime.json", [_hosts_ipv4]),
    "mri": ("s1-runtime.json", [_hosts_ipv4, _mri, _mri]),
    "multicast": ("sig-topo/s1-runtime.json", [_hosts_ipv4]),
    "p4runtime": ("", [_hosts_ipv4, _tunnel]),
    "qos": ("s1-runtime.json", [_hosts_ipv4]),
    "source_routing": ("s1-runtime.json", [_source_route, _hosts_ipv4]),
}


def tutorial_source(exercises: Path, name: str) -> Path:
    """The P4 source of a tutorial's solution."""
    if name == "p4runtime":
        return exercises / "p4runtime/advanced_tunnel.p4"
    return exercises / name / "solution" / f"{name}.p4"


def tutorial(exercises: Path, name: str, json: Path, p4info: Path) -> Scenario:
    """A tutorial's compiled solution with the entries its own runner would install."""
    runtime, templates = TUTORIALS[name]
    commands = runtime_commands(exercises / name / runtime, json) if runtime else _EXTRA[name]
    timed = name == "link_monitor"
    undefined = _without_tcp if name == "load_balance" else (lambda frame: False)
    return Scenario(
        name, json, p4info, commands, templates, (1, 2, 3, 4),
        masked=((21, 33),) if timed else (), masked_type=b"\x08\x12" if timed else b"",
        undefined=undefined, alone=name == "mri",
    )  # fmt: skip


def _without_tcp(frame: bytes) -> bool:
    """IPv4 without a whole TCP header: load_balance hashes its ports all the same."""
    is_ipv4 = frame[12:14] == b"\x08\x00" and len(frame) >= 34
    return is_ipv4 and (frame[23] != f.TCP or len(frame) < 54)


_EXTRA: dict[str, list[Command]] = {
    "flowcache": [CloneSession(57, ((CPU, 0),))],
    "p4runtime": [
        Entry("MyIngress.ipv4_lpm", {"hdr.ipv4.dstAddr": Match(0x0A000202, prefix=32)},
              Call("MyIngress.myTunnel_ingress", {"dst_id": 100})),
        Entry("MyIngress.myTunnel_exact", {"hdr.myTunnel.dst_id": Match(1)},
              Call("MyIngress.myTunnel_forward", {"port": 2})),
        Entry("MyIngress.myTunnel_exact", {"hdr.myTunnel.dst_id": Match(2)},
              Call("MyIngress.myTunnel_egress", {"dstAddr": 0x080000000111, "port": 1})),
    ],
}  # fmt: skip


def runtime_commands(path: Path, program: Path) -> list[Command]:
    """The commands of a tutorial's sN-runtime.json."""
    root = json.loads(path.read_text())
    known = tables(program)
    commands: list[Command] = []
    for each in root.get("table_entries", []):
        table = known[each["table"]]
        params = {k: _value(v) for k, v in each.get("action_params", {}).items()}
        call = Call(each["action_name"], params)
        if each.get("default_action"):
            commands.append(Default(table.name, call))
            continue
        match = {k: _match(v, table.key[k][0]) for k, v in each.get("match", {}).items()}
        commands.append(Entry(table.name, match, call, each.get("priority") or 1))
    for each in root.get("multicast_group_entries", []):
        replicas = tuple((r["egress_port"], r["instance"]) for r in each["replicas"])
        commands.append(Multicast(each["multicast_group_id"], replicas))
    for each in root.get("clone_session_entries", []):
        replicas = tuple((r["egress_port"], r["instance"]) for r in each["replicas"])
        commands.append(CloneSession(each["clone_session_id"], replicas))
    return commands


def _value(value: Any) -> int:
    if isinstance(value, int):
        return value
    if value.count(":") == 5:
        return int(value.replace(":", ""), 16)
    if value.count(".") == 3:
        return int(ipaddress.IPv4Address(value))
    return int(value, 0)


def _match(value: Any, kind: str) -> Match:
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else value
    if not isinstance(value, list):
        return Match(_value(value))
    first, second = _value(value[0]), _value(value[1])
    if kind == "lpm":
        return Match(first, prefix=second)
    if kind == "range":
        return Match(first, high=second)
    return Match(first, mask=second)
