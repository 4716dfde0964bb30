"""The tag: a flow's class, written as DSCP on its packets."""

from __future__ import annotations

import socket


def tag(sock: socket.socket, class_: int) -> None:
    """Writes class 0..7 as DSCP = class << 3; the ECN bits stay the kernel's.

    Set before connect, or the SYN travels unmarked.
    """
    if not 0 <= class_ <= 7:
        raise ValueError(f"class {class_} is not one of 0..7")
    traffic_class = (class_ << 3) << 2  # DSCP is the upper six of the byte's eight bits
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, traffic_class)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class)
