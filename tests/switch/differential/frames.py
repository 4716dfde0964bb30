"""Frames for the comparison of two switches: valid ones, damaged ones, garbage, and every length of one."""

from __future__ import annotations

import ipaddress
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from random import Random

IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58


def internet_checksum(data: bytes) -> int:
    """RFC 1071, over 16-bit words."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ethernet(kind: int, payload: bytes, dst: str = "080000000111") -> bytes:
    return bytes.fromhex(dst) + bytes.fromhex("080000000222") + kind.to_bytes(2, "big") + payload


def ipv4(
    src: str, dst: str, protocol: int, payload: bytes, *,
    tos: int = 0, ttl: int = 64, fragment: int = 0, options: bytes = b"",
) -> bytes:  # fmt: skip
    """An IPv4 packet with a right checksum."""
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45 + len(options) // 4, tos, 20 + len(options) + len(payload), 7,
        fragment, ttl, protocol, 0,
        ipaddress.IPv4Address(src).packed, ipaddress.IPv4Address(dst).packed,
    )  # fmt: skip
    header += options
    checksum = internet_checksum(header)
    return header[:10] + checksum.to_bytes(2, "big") + header[12:] + payload


def ipv6(src: str, dst: str, header: int, payload: bytes, *, tos: int = 0, ttl: int = 64) -> bytes:
    first = 6 << 28 | tos << 20 | 0x12345
    return (
        struct.pack("!IHBB", first, len(payload), header, ttl)
        + ipaddress.IPv6Address(src).packed
        + ipaddress.IPv6Address(dst).packed
        + payload
    )


def ports(src: int, dst: int, rest: bytes = bytes(16)) -> bytes:
    return struct.pack("!HH", src, dst) + rest


def with_checksum(frame: bytes) -> bytes:
    """The frame with its IPv4 header checksum put right, where it has an IPv4 header."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00":
        return frame
    end = 14 + (frame[14] & 15) * 4
    if not 34 <= end <= len(frame):
        return frame
    header = frame[14:24] + bytes(2) + frame[26:end]
    return frame[:24] + internet_checksum(header).to_bytes(2, "big") + frame[26:]


def damaged(frame: bytes, random: Random) -> bytes:
    """Some bytes of the headers changed; the IPv4 checksum mostly right, or all would be dropped."""
    changed = bytearray(frame)
    for _ in range(random.choice((1, 1, 2, 4))):
        if changed:
            place = random.randrange(min(len(changed), 80))
            changed[place] = random.choice((0, 1, 2, 255, random.randrange(256)))
    return with_checksum(bytes(changed)) if random.random() < 0.8 else bytes(changed)


def stream(
    templates: Sequence[Callable[[Random], bytes]], in_ports: Sequence[int], count: int, seed: int
) -> list[tuple[int, bytes]]:
    """`count` frames (port, frame): half valid, the others damaged, cut, lengthened or garbage; then every
    length of one frame of each template."""
    random = Random(seed)
    frames = [(random.choice(in_ports), _one(templates, random)) for _ in range(count)]
    for template in templates:
        whole = template(random)
        port = random.choice(in_ports)
        frames += [(port, whole[:length]) for length in range(1, min(len(whole), 120) + 1)]
    return frames


def _one(templates: Sequence[Callable[[Random], bytes]], random: Random) -> bytes:
    frame = random.choice(templates)(random)
    kind = random.random()
    if kind < 0.5:
        return frame
    if kind < 0.75:
        return damaged(frame, random)
    if kind < 0.85:
        return frame[: random.randrange(1, len(frame) + 1)]
    if kind < 0.95:
        return frame + (bytes(range(256)) * 6)[: random.choice((1, 46, 700, 1400))]
    return random.randbytes(random.randrange(1, 200))


def digest_bucket(fields: tuple[int, ...]) -> int:
    """echelon.p4's register cell of a digest (src, dst, protocol, sport, dport, port, reason)."""
    src, dst, protocol, sport, dport, _, reason = fields
    data = (
        src.to_bytes(16, "big") + dst.to_bytes(16, "big")
        + struct.pack("!BHHB", protocol, sport, dport, reason)
    )  # fmt: skip
    return zlib.crc32(data) % 4096


def flows(random: Random, count: int) -> Iterator[tuple[int, int]]:
    """(source port, destination port) pairs."""
    for _ in range(count):
        yield random.randrange(1, 65536), random.randrange(1, 65536)
