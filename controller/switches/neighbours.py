"""Who has this address? The controller answers ARP and IPv6 neighbour solicitations for all hosts.

The answer is the asked host's own MAC address, so that the switches need not rewrite frames.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import ip_address

from controller.model.network import NetworkHost

_TYPE_ARP = b"\x08\x06"
_TYPE_IPV6 = b"\x86\xdd"
_ARP_ETHERNET_IPV4 = b"\x00\x01\x08\x00\x06\x04"
_ARP_REQUEST = b"\x00\x01"
_ARP_REPLY = b"\x00\x02"
_PROTO_ICMPV6 = 58
_SOLICITATION = 135
_ADVERTISEMENT = 136
_SOLICITED_OVERRIDE = 0x60000000
_TARGET_LINK_LAYER_ADDRESS = b"\x02\x01"


class Neighbours:
    """The addresses of all hosts."""

    def __init__(self, hosts: Iterable[NetworkHost]) -> None:
        """Learn the hosts' addresses of both families."""
        self._mac_of: dict[bytes, bytes] = {}
        for host in hosts:
            mac = bytes.fromhex(host.mac.replace(":", ""))
            self._mac_of[ip_address(host.ipv4).packed] = mac
            self._mac_of[ip_address(host.ipv6).packed] = mac

    def answer(self, frame: bytes) -> bytes | None:
        """The frame to send back where the question came from; None if it is not one we can answer.

        Frames are whole, from the Ethernet header. A host that asks for its own address (duplicate
        address detection) gets no answer.
        """
        kind = frame[12:14]
        if kind == _TYPE_ARP:
            return self._answer_arp(frame)
        if kind == _TYPE_IPV6:
            return self._answer_solicitation(frame)
        return None

    def _answer_arp(self, frame: bytes) -> bytes | None:
        if len(frame) < 42 or frame[14:20] != _ARP_ETHERNET_IPV4 or frame[20:22] != _ARP_REQUEST:
            return None
        asker_mac, asker_ip, asked_ip = frame[22:28], frame[28:32], frame[38:42]
        mac = self._mac_of.get(asked_ip)
        if mac is None or mac == asker_mac:
            return None
        ethernet = asker_mac + mac + _TYPE_ARP
        return ethernet + _ARP_ETHERNET_IPV4 + _ARP_REPLY + mac + asked_ip + asker_mac + asker_ip

    def _answer_solicitation(self, frame: bytes) -> bytes | None:
        if len(frame) < 78 or frame[20] != _PROTO_ICMPV6 or frame[54] != _SOLICITATION:
            return None
        asker_mac, asker_ip, asked_ip = frame[6:12], frame[22:38], frame[62:78]
        mac = self._mac_of.get(asked_ip)
        if mac is None or mac == asker_mac or not any(asker_ip):
            return None
        body = struct.pack("!I", _SOLICITED_OVERRIDE) + asked_ip + _TARGET_LINK_LAYER_ADDRESS + mac
        pseudo = asked_ip + asker_ip + struct.pack("!II", 4 + len(body), _PROTO_ICMPV6)
        head = struct.pack("!BB", _ADVERTISEMENT, 0)
        icmp = head + struct.pack("!H", _checksum(pseudo + head + b"\0\0" + body)) + body
        ipv6 = struct.pack("!IHBB", 6 << 28, len(icmp), _PROTO_ICMPV6, 255) + asked_ip + asker_ip
        return asker_mac + mac + _TYPE_IPV6 + ipv6 + icmp


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
