"""What the data plane does to packets, on whichever switch runs it."""

from __future__ import annotations

import ipaddress
import time
from typing import Any

import finsy as fy
import pytest
from conftest import CPU_PORT, UPLINKS, Fabric, entry
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6ND_NS,
    IPv6,
    IPv6ExtHdrDestOpt,
)
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

MAC = {1: "02:00:00:00:00:01", 2: "02:00:00:00:00:02"}
FAR_MAC = "02:00:00:00:01:07"


def tcp4(dst: str = "10.0.1.7", sport: int = 4000, src: str = "10.0.0.1", **ip: Any) -> Packet:
    frame = (
        Ether(src=MAC[1], dst=FAR_MAC) / IP(src=src, dst=dst, **ip) / TCP(sport=sport, dport=5000)
    )
    return frame / Raw(b"echelon" * 10)


def tcp6(dst: str = "fd00::107", sport: int = 4000, src: str = "fd00::1", **ip: Any) -> Packet:
    frame = (
        Ether(src=MAC[1], dst=FAR_MAC) / IPv6(src=src, dst=dst, **ip) / TCP(sport=sport, dport=5000)
    )
    return frame / Raw(b"echelon" * 10)


def policy(packet: Packet, traffic_class: int, path: int = 0) -> fy.P4TableEntry:
    """The flow_policy entry of a packet's flow."""
    l3 = packet[IP] if IP in packet else packet[IPv6]
    mapped = "::ffff:" if IP in packet else ""
    l4 = packet[TCP] if TCP in packet else packet[UDP]
    match = {
        "src": mapped + l3.src,
        "dst": mapped + l3.dst,
        "protocol": 6 if TCP in packet else 17,
        "sport": l4.sport,
        "dport": l4.dport,
    }
    return entry("flow_policy", match, "set_policy", traffic_class=traffic_class, path=path)


def only(out: dict[int, list[bytes]]) -> tuple[int, Packet]:
    """The one frame that came out, and where."""
    [(port, frame)] = [(p, f) for p, frames in out.items() for f in frames]
    return port, Ether(frame)


def silent(out: dict[int, list[bytes]]) -> bool:
    return not any(out.values())


def as_forwarded(sent: Packet, **changes: int) -> bytes:
    """The frame we expect: one hop further, checksum anew."""
    packet = sent.copy()
    if IP in packet:
        packet[IP].ttl -= 1
        packet[IP].chksum = None
    else:
        packet[IPv6].hlim -= 1
    for field, value in changes.items():
        setattr(packet[IP] if IP in packet else packet[IPv6], field, value)
    return bytes(packet)


# --- forwarding


@pytest.mark.parametrize("make", [tcp4, tcp6])
def test_forwards_to_a_host(fabric: Fabric, make: Any) -> None:
    packet = make(dst="10.0.0.2" if make is tcp4 else "fd00::2")
    out = fabric.exchange(1, [bytes(packet)], expect=1)
    assert out == {1: [], 2: [as_forwarded(Ether(bytes(packet)))], 3: [], 4: []}


@pytest.mark.parametrize("make", [tcp4, tcp6])
def test_ecmp_spreads_flows_and_keeps_each_on_one_path(fabric: Fabric, make: Any) -> None:
    flows = [bytes(make(sport=s)) for s in range(4000, 4064)]
    out = fabric.exchange(1, flows * 2, expect=128)
    ports = [{Ether(f)[TCP].sport for f in out[p]} for p in UPLINKS]
    assert len(out[3]) + len(out[4]) == 128
    assert not ports[0] & ports[1]
    assert min(map(len, ports)) >= 16


@pytest.mark.parametrize("make", [tcp4, tcp6])
@pytest.mark.parametrize("hops", [0, 1])
def test_used_up_ttl_is_dropped_and_counted(fabric: Fabric, make: Any, hops: int) -> None:
    packet = make(**{"ttl" if make is tcp4 else "hlim": hops})
    before = fabric.counter("ttl_expired", 1)
    assert silent(fabric.exchange(1, [bytes(packet)], expect=0))
    assert fabric.counter("ttl_expired", 1) == before + 1


@pytest.mark.parametrize("packet", [tcp4(dst="192.0.2.1"), tcp6(dst="2001:db8::1")])
def test_no_route_is_dropped_and_counted(fabric: Fabric, packet: Packet) -> None:
    before = fabric.counter("no_routes", 1)
    assert silent(fabric.exchange(1, [bytes(packet)], expect=0))
    assert fabric.counter("no_routes", 1) == before + 1


def test_route_to_a_missing_group_is_no_route(fabric: Fabric) -> None:
    fabric.add(entry("ipv4_forward", {"dst": "10.9.0.0/16"}, "to_group", group=9))
    before = fabric.counter("no_routes", 1)
    assert silent(fabric.exchange(1, [bytes(tcp4(dst="10.9.0.1"))], expect=0))
    assert fabric.counter("no_routes", 1) == before + 1


@pytest.mark.parametrize(
    "frame",
    [
        bytes(tcp4(chksum=0x1234)),
        bytes(tcp4(options=[b"\x01\x01\x01\x00"])),
        bytes(tcp4())[:30],
        bytes(tcp6())[:50],
        bytes(Ether(src=MAC[1], dst=FAR_MAC, type=0x88CC) / Raw(b"x" * 60)),
        bytes(Ether(src=MAC[1], dst=FAR_MAC, type=0x86DD) / bytes(tcp4()[IP])),
    ],
    ids=["checksum", "options", "short ipv4", "short ipv6", "neither ip nor arp", "wrong version"],
)
def test_bad_packets_are_dropped_and_counted(fabric: Fabric, frame: bytes) -> None:
    before = fabric.counter("bad_packets", 1)
    assert silent(fabric.exchange(1, [frame], expect=0))
    assert fabric.counter("bad_packets", 1) == before + 1


# --- classes


@pytest.mark.parametrize("make", [tcp4, tcp6])
@pytest.mark.parametrize("traffic_class", [0, 5, 7])
@pytest.mark.parametrize("ecn", [0, 1, 2, 3])
def test_edge_sets_the_class_whatever_arrived(
    fabric: Fabric, make: Any, traffic_class: int, ecn: int
) -> None:
    field = "tos" if make is tcp4 else "tc"
    packet = make(**{field: 3 << 5 | ecn})
    fabric.add(policy(packet, traffic_class, path=3))
    mismatches = fabric.counter("class_mismatches", 1)
    carried = fabric.counter("class_counter", 3 * 8 + traffic_class)
    port, got = only(fabric.exchange(1, [bytes(packet)], expect=1))
    assert port == 3
    assert bytes(got) == as_forwarded(Ether(bytes(packet)), **{field: traffic_class << 5 | ecn})
    assert fabric.counter("class_mismatches", 1) == mismatches + 1
    assert fabric.counter("class_counter", 3 * 8 + traffic_class) == carried + 1


def test_right_tag_is_no_mismatch(fabric: Fabric) -> None:
    packet = tcp4(tos=5 << 5)
    fabric.add(policy(packet, 5))
    before = fabric.counter("class_mismatches", 1)
    only(fabric.exchange(1, [bytes(packet)], expect=1))
    assert fabric.counter("class_mismatches", 1) == before


def test_flow_counter_counts_the_flow(fabric: Fabric) -> None:
    packet = tcp4()
    fabric.add(policy(packet, 4))
    fabric.exchange(1, [bytes(packet)] * 5, expect=5)
    data = fabric.read(fy.P4DirectCounterEntry("flow_counter", table_entry=policy(packet, 4))).data
    assert (data.packet_count, data.byte_count) == (5, 5 * len(packet))


def test_core_believes_the_tag(fabric: Fabric) -> None:
    packet = tcp4(dst="10.0.0.2", tos=6 << 5 | 1)
    fabric.add(policy(packet, 2))  # on a port that faces a switch an entry only pins the path
    before = fabric.counter("class_counter", 2 * 8 + 6)
    port, got = only(fabric.exchange(3, [bytes(packet)], expect=1))
    assert port == 2
    assert got[IP].tos == 6 << 5 | 1
    assert fabric.counter("class_counter", 2 * 8 + 6) == before + 1


def test_undescribed_port_is_not_believed(fabric: Fabric) -> None:
    fabric.remove(entry("port_role", {"port": 3}, "face_switch"))
    _, got = only(fabric.exchange(3, [bytes(tcp4(dst="10.0.0.2", tos=6 << 5))], expect=1))
    assert got[IP].tos == 0


# --- flows without an entry


@pytest.mark.parametrize(
    ("packet", "src", "protocol"),
    [
        (tcp4(tos=5 << 5, sport=4101), "::ffff:10.0.0.1", 6),
        (tcp6(tc=5 << 5, sport=4102), "fd00::1", 6),
        (
            Ether(src=MAC[1], dst=FAR_MAC)
            / IP(src="10.0.0.1", dst="10.0.1.7", tos=5 << 5)
            / UDP(sport=4103, dport=5000)
            / b"x",
            "::ffff:10.0.0.1",
            17,
        ),
    ],
    ids=["tcp4", "tcp6", "udp4"],
)
def test_unknown_flow_is_class_0_and_reported_once(
    fabric: Fabric, packet: Packet, src: str, protocol: int
) -> None:
    time.sleep(1.1)  # the flow may have been reported a second ago, by the run on another target
    before = fabric.counter("unknown_flows", 1)
    out = fabric.exchange(1, [bytes(packet)] * 10, expect=10)
    frames = [Ether(f) for frames in out.values() for f in frames]
    assert len(frames) == 10
    assert all((f[IP].tos if IP in f else f[IPv6].tc) == 0 for f in frames)
    assert fabric.counter("unknown_flows", 1) == before + 10
    digest = fabric.digests.get(timeout=3)
    l4 = packet[TCP] if TCP in packet else packet[UDP]
    assert ipaddress.IPv6Address(digest["src"]) == ipaddress.IPv6Address(src)
    assert (digest["protocol"], digest["sport"], digest["dport"]) == (protocol, l4.sport, 5000)
    assert (digest["port"], digest["reason"]) == (1, 1)
    time.sleep(0.2)
    assert fabric.digests.empty()


def test_ping_is_class_0_and_not_reported(fabric: Fabric) -> None:
    packet = Ether(src=MAC[1], dst=FAR_MAC) / IP(src="10.0.0.1", dst="10.0.0.2", tos=0xE0) / ICMP()
    _, got = only(fabric.exchange(1, [bytes(packet)], expect=1))
    assert got[IP].tos == 0
    assert fabric.digests.empty()


def test_later_fragments_are_class_0_and_counted(fabric: Fabric) -> None:
    first = tcp4(tos=5 << 5, flags="MF")
    later = tcp4(tos=5 << 5, frag=10)
    fabric.add(policy(first, 5))
    before = fabric.counter("fragments", 1)
    _, got = only(fabric.exchange(1, [bytes(first)], expect=1))
    assert got[IP].tos == 5 << 5
    _, got = only(fabric.exchange(1, [bytes(later)], expect=1))
    assert got[IP].tos == 0
    assert fabric.counter("fragments", 1) == before + 1
    assert fabric.digests.empty()


def test_ipv6_extension_headers_are_class_0(fabric: Fabric) -> None:
    packet = tcp6(tc=5 << 5)
    fabric.add(policy(packet, 5))
    extended = (
        Ether(src=MAC[1], dst=FAR_MAC)
        / IPv6(src="fd00::1", dst="fd00::107", tc=5 << 5)
        / IPv6ExtHdrDestOpt()
        / packet[TCP]
    )
    _, got = only(fabric.exchange(1, [bytes(extended)], expect=1))
    assert got[IPv6].tc == 0


# --- paths


@pytest.mark.parametrize("make", [tcp4, tcp6])
@pytest.mark.parametrize("path", UPLINKS)
def test_pinned_path(fabric: Fabric, make: Any, path: int) -> None:
    packets = [make(sport=s) for s in range(4200, 4208)]
    fabric.add(*(policy(p, 3, path) for p in packets))
    out = fabric.exchange(1, [bytes(p) for p in packets], expect=8)
    assert len(out[path]) == 8


def test_pin_in_the_fabric_keeps_the_tag(fabric: Fabric) -> None:
    packet = tcp4(tos=6 << 5)
    fabric.add(policy(packet, 0, path=4))
    port, got = only(fabric.exchange(3, [bytes(packet)], expect=1))
    assert (port, got[IP].tos) == (4, 6 << 5)


def test_pin_does_not_misdirect_local_traffic(fabric: Fabric) -> None:
    packet = tcp4(dst="10.0.0.2")
    fabric.add(policy(packet, 3, path=4))
    port, _ = only(fabric.exchange(1, [bytes(packet)], expect=1))
    assert port == 2


def test_dead_path_falls_back_and_is_reported(fabric: Fabric) -> None:
    packet = tcp4(sport=4301)
    fabric.add(policy(packet, 3, path=4))
    fabric.remove(entry("live_port", {"port": 4}, "port_is_live"))
    before = fabric.counter("dead_paths", 1)
    time.sleep(1.1)
    port, got = only(fabric.exchange(1, [bytes(packet)], expect=1))
    assert port in UPLINKS
    assert got[IP].tos == 3 << 5
    assert fabric.counter("dead_paths", 1) == before + 1
    digest = fabric.digests.get(timeout=3)
    assert (digest["sport"], digest["reason"]) == (4301, 2)


# --- meters


def test_policed_flow_is_dropped_and_counted(fabric: Fabric) -> None:
    packet = tcp4()
    entry_ = policy(packet, 3, path=3)
    fabric.add(entry_)
    size = len(packet)
    config = fy.P4MeterConfig(cir=1, cburst=3 * size, pir=1, pburst=3 * size)
    fabric.write("MODIFY", fy.P4DirectMeterEntry(config=config, table_entry=entry_))
    before = fabric.counter("policed", 1)
    out = fabric.exchange(1, [bytes(packet)] * 10, expect=3)
    assert len(out[3]) == 3
    assert fabric.counter("policed", 1) == before + 7


def test_punts_and_digests_are_limited(fabric: Fabric) -> None:
    one = fy.P4MeterConfig(cir=1, cburst=2, pir=1, pburst=2)
    many = fy.P4MeterConfig(cir=10**6, cburst=10**6, pir=10**6, pburst=10**6)
    for meter in ("punt_meter", "digest_meter"):
        fabric.modify(
            fy.P4MeterEntry(meter, index=1, config=one),
            fy.P4MeterEntry(meter, index=1, config=many),
        )
    limited = fabric.counter("punts_limited", 1)
    arp = Ether(src=MAC[1], dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="10.0.0.1", pdst="10.0.0.2")
    fabric.send(1, *[bytes(arp)] * 20)
    fabric.exchange(1, [bytes(tcp4(sport=s)) for s in range(4400, 4420)], expect=20)
    assert 1 <= fabric.packet_ins.qsize() <= 3
    assert fabric.counter("punts_limited", 1) == limited + 20 - fabric.packet_ins.qsize()
    assert 1 <= fabric.digests.qsize() <= 3


# --- the controller's packets


def solicitation() -> Packet:
    return (
        Ether(src=MAC[1], dst="33:33:ff:00:00:02")
        / IPv6(src="fd00::1", dst="ff02::1:ff00:2", hlim=255)
        / ICMPv6ND_NS(tgt="fd00::2")
    )


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (Ether(src=MAC[1], dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="10.0.0.1", pdst="10.0.0.2"), 1),
        (solicitation(), 2),
    ],
    ids=["arp", "solicitation"],
)
def test_packet_in(fabric: Fabric, packet: Packet, reason: int) -> None:
    assert silent(fabric.exchange(2, [bytes(packet)], expect=0))
    got = fabric.packet_ins.get(timeout=3)
    assert got.payload == bytes(packet)
    assert got.metadata == {"ingress_port": 2, "reason": reason}


def test_arp_from_a_switch_is_dropped(fabric: Fabric) -> None:
    packet = Ether(src=MAC[1], dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="10.0.0.1", pdst="10.0.0.2")
    assert silent(fabric.exchange(3, [bytes(packet)], expect=0))
    assert fabric.packet_ins.empty()


@pytest.mark.parametrize("port", [1, 2, 3, 4])
def test_packet_out(fabric: Fabric, port: int) -> None:
    packet = bytes(solicitation())
    before = fabric.counter("class_counter", port * 8 + 7)
    fabric.exchange(port, [], expect=0)
    fabric.packet_out(packet, port)
    out = fabric.exchange(port, [], expect=1)
    assert out == {p: [packet] if p == port else [] for p in out}
    assert fabric.counter("class_counter", port * 8 + 7) == before + 1


def test_hosts_cannot_reach_the_controller_by_address(fabric: Fabric) -> None:
    fabric.exchange(1, [bytes(tcp4()), bytes(tcp6())], expect=2)
    assert fabric.packet_ins.empty()
    assert fabric.counter("class_counter", CPU_PORT * 8) == 0


# --- ECN


def ecn_threshold(packets: int) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "ecn_threshold",
        action=fy.P4TableAction("set_ecn_threshold", packets=packets),
        is_default_action=True,
    )


@pytest.mark.parametrize("make", [tcp4, tcp6])
@pytest.mark.parametrize(("ecn", "marked"), [(0, 0), (1, 3), (2, 3), (3, 3)])
def test_long_queue_marks_only_capable_packets(
    fabric: Fabric, make: Any, ecn: int, marked: int
) -> None:
    fabric.modify(ecn_threshold(0), ecn_threshold(16))  # every queue is long now
    field = "tos" if make is tcp4 else "tc"
    packet = make(**{field: ecn})
    _, got = only(fabric.exchange(1, [bytes(packet)], expect=1))
    assert bytes(got) == as_forwarded(Ether(bytes(packet)), **{field: marked})


def congested(fabric: Fabric, packets: list[Packet]) -> list[bool]:
    """Which of the packets, sent to host 2 in a row, were marked."""
    frames = fabric.exchange(1, [bytes(packet) for packet in packets], expect=len(packets))[2]
    return [(Ether(f)[IP].tos if IP in Ether(f) else Ether(f)[IPv6].tc) & 3 == 3 for f in frames]


@pytest.mark.parametrize("make", [tcp4, tcp6])
def test_a_phantom_queue_fills_with_capable_packets_and_drains_at_the_links_rate(
    fabric: Fabric, make: Any
) -> None:
    field, dst = ("tos", "10.0.0.2") if make is tcp4 else ("tc", "fd00::2")
    capable = make(dst=dst, **{field: 2}) / Raw(bytes(1200))
    other = make(dst=dst) / Raw(bytes(1200))
    fabric.modify(ecn_threshold(3), ecn_threshold(16))  # 3 * 1514 bytes, of which four go in
    frame_s = 0.15
    time_a_byte = round(frame_s / len(capable) * 1e6 * 65536)
    fabric.add(entry("phantom_queue", {"port": 2}, "drain", time_a_byte=time_a_byte))
    time.sleep(frame_s * 8)  # what an earlier test left there
    assert not any(congested(fabric, [other] * 8))
    marked = congested(fabric, [capable] * 8)
    assert not any(marked[:4]) and all(marked[-2:])
    time.sleep(frame_s * 8)
    assert not any(congested(fabric, [capable] * 3))


def test_a_phantom_queue_is_one_class_of_one_port(fabric: Fabric) -> None:
    capable = tcp4(dst="10.0.0.2", tos=2) / Raw(bytes(1200))
    above = tcp4(dst="10.0.0.2", tos=2, sport=4001) / Raw(bytes(1200))
    fabric.add(policy(above, 5), policy(capable, 4))
    fabric.modify(ecn_threshold(3), ecn_threshold(16))
    fabric.add(entry("phantom_queue", {"port": 2}, "drain", time_a_byte=2**31))
    assert all(congested(fabric, [capable] * 6)[5:])
    assert not any(congested(fabric, [above] * 3))
