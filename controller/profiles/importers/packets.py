"""The TCP and UDP packets of a capture (pcap or pcapng), one after another."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO, NamedTuple

from controller.profiles.errors import ProfileError

PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6), b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9), b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}  # fmt: skip
"First bytes -> (byte order, seconds of the fraction)."
PCAPNG = b"\x0a\x0d\x0d\x0a"
"First bytes of a pcapng."

_ETHERNET, _RAW, _COOKED, _COOKED2, _LOOPBACK = 1, 101, 113, 276, 0
_LINKS = (_ETHERNET, _RAW, _COOKED, _COOKED2, _LOOPBACK, 12, 228, 229)
_LARGEST = 1 << 20


class FiveTuple(NamedTuple):
    """One direction of a connection."""

    src: str
    dst: str
    protocol: int
    sport: int
    dport: int


class Packet(NamedTuple):
    """A TCP or UDP packet."""

    time: float
    "Seconds."
    flow: FiveTuple
    "Whose it is."
    length: int
    "Bytes on the wire."
    payload: int
    "Bytes behind the TCP or UDP header."


def read(path: Path) -> Iterator[Packet]:
    """The packets of a capture in its order. Raises `ProfileError` naming the packet."""
    count = 0
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            if magic == PCAPNG:
                frames = _pcapng(file)
            elif magic in PCAP:
                frames = _pcap(file, *PCAP[magic])
            else:
                raise ProfileError(str(path), "is no capture: expected pcap or pcapng")
            for time, link, length, data in frames:
                count += 1
                packet = _parse(time, link, length, data)
                if packet is not None:
                    yield packet
    except OSError as error:
        raise ProfileError(str(path), f"cannot be read: {error.strerror or error}") from None
    except (struct.error, ValueError, OverflowError) as error:
        if isinstance(error, ProfileError):
            raise
        raise ProfileError(str(path), f"behind packet {count}: {error}") from None


_Frame = tuple[float, int, int, bytes]
"(seconds, link type, length on the wire, data)"


def _exactly(file: BinaryIO, size: int) -> bytes:
    if not 0 <= size <= _LARGEST:
        raise ValueError(f"a block of {size} bytes: expected at most {_LARGEST}")
    data = file.read(size)
    if len(data) < size:
        raise ValueError(f"ends {size - len(data)} bytes early: is it truncated?")
    return data


def _pcap(file: BinaryIO, order: str, unit: float) -> Iterator[_Frame]:
    link = struct.unpack(order + "I", _exactly(file, 20)[16:])[0] & 0xFFFF
    _known(link)
    while first := file.read(1):
        seconds, fraction, kept, length = struct.unpack(order + "IIII", first + _exactly(file, 15))
        yield seconds + fraction * unit, link, length, _exactly(file, kept)


def _pcapng(file: BinaryIO) -> Iterator[_Frame]:
    order = "<"
    links: list[tuple[int, float]] = []
    magic = PCAPNG
    while magic:
        kind = struct.unpack(order + "I", magic)[0]
        size = _exactly(file, 4)
        if magic == PCAPNG:
            mark = _exactly(file, 4)
            if mark not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
                raise ValueError("a section without its byte-order mark")
            order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
            body = _exactly(file, struct.unpack(order + "I", size)[0] - 12)[:-4]
        else:
            length = struct.unpack(order + "I", size)[0]
            body = _exactly(file, length - 8)[:-4]
            if length % 4:
                raise ValueError(f"a block of {length} bytes: expected a multiple of 4")
        if kind == 1:
            link = struct.unpack(order + "H", body[:2])[0]
            _known(link)
            links.append((link, _resolution(body[8:], order)))
        elif kind == 6:
            which, high, low, kept, wire = struct.unpack(order + "IIIII", body[:20])
            if which >= len(links):
                raise ValueError(f"interface {which} was not described")
            link, unit = links[which]
            yield ((high << 32) | low) * unit, link, wire, body[20 : 20 + kept]
        elif kind == 3:
            raise ValueError("simple packet blocks have no times")
        magic = file.read(4)
        if magic and len(magic) < 4:
            raise ValueError("ends within a block: is it truncated?")


def _resolution(options: bytes, order: str) -> float:
    """Seconds of a timestamp's unit (option 9), microseconds unless said."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack(order + "HH", options[at : at + 4])
        if code == 9 and length == 1 and at + 4 < len(options):
            value = options[at + 4]
            return 2.0 ** -(value & 0x7F) if value & 0x80 else 10.0**-value
        if code == 0:
            break
        at += 4 + (length + 3) // 4 * 4
    return 1e-6


def _known(link: int) -> None:
    if link not in _LINKS:
        raise ValueError(
            f"link type {link}: expected Ethernet (1), raw IP (101) or cooked (113, 276)"
        )


def _parse(time: float, link: int, length: int, data: bytes) -> Packet | None:
    """The packet, or None where it is neither TCP nor UDP over IP, or cut too short."""
    at, kind = _network(link, data)
    if kind == 0x0800 and len(data) >= at + 20:
        header = (data[at] & 15) * 4
        total = int.from_bytes(data[at + 2 : at + 4], "big") or length - at
        protocol = data[at + 9]
        if int.from_bytes(data[at + 6 : at + 8], "big") & 0x1FFF:
            return None  # later fragments have no ports
        ends = data[at + 12 : at + 16], data[at + 16 : at + 20]
    elif kind == 0x86DD and len(data) >= at + 40:
        header, protocol = 40, data[at + 6]
        total = 40 + int.from_bytes(data[at + 4 : at + 6], "big")
        ends = data[at + 8 : at + 24], data[at + 24 : at + 40]
    else:
        return None
    body = at + header
    if protocol not in (6, 17) or len(data) < body + (13 if protocol == 6 else 8):
        return None
    sport, dport = struct.unpack(">HH", data[body : body + 4])
    own = (data[body + 12] >> 4) * 4 if protocol == 6 else 8
    src, dst = str(ip_address(ends[0])), str(ip_address(ends[1]))
    flow = FiveTuple(src, dst, protocol, sport, dport)
    return Packet(time, flow, length, max(0, total - header - own))


def _network(link: int, data: bytes) -> tuple[int, int]:
    """(where the network header stands, EtherType)."""
    if link == _ETHERNET:
        at = 12
        while data[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        return at + 2, int.from_bytes(data[at : at + 2], "big")
    if link == _COOKED:
        return 16, int.from_bytes(data[14:16], "big")
    if link == _COOKED2:
        return 20, int.from_bytes(data[:2], "big")
    at = 4 if link == _LOOPBACK else 0
    version = data[at] >> 4 if len(data) > at else 0
    return at, {4: 0x0800, 6: 0x86DD}.get(version, 0)
