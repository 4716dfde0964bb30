"""What the kernel does with our TCP connections: pinned where it matters, read back for reports."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

_SYSCTLS = Path("/proc/sys/net/ipv4")

PINNED_SYSCTLS = {
    "tcp_slow_start_after_idle": "0",
    "tcp_no_metrics_save": "1",
    "tcp_ecn": "1",
}
"""Set in a host's own network namespace. A connection that waited must not start slowly; one
scenario must not inherit the windows of another; and where TCP itself has to find the shares, it
finds them by marks (`docs/live.md` has what they are worth)."""

RECORDED_SYSCTLS = (*PINNED_SYSCTLS, "tcp_wmem", "tcp_rmem", "tcp_congestion_control")

_NOT_SENT = 25  # TCP_NOTSENT_LOWAT, unnamed in Debian's Python 3.11
_TCP_INFO = struct.Struct("=8B24I4Q3I")


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """The part of the kernel's tcp_info that reports need."""

    acked: int
    "Payload bytes acknowledged over the connection's life."
    unsent: int
    "Payload bytes handed over but not sent yet."
    unacked: int
    "Segments under way."
    retransmits: int
    "Segments sent again over the connection's life."
    segments: int
    "Segments sent over the connection's life."
    smoothed_rtt: float
    "Seconds."
    max_pacing_rate: int
    "Payload bytes/s the socket may send at; from 2**64 - 2 on it is unlimited."


def tcp_info(sock: socket.socket) -> TcpInfo:
    """Reads TCP_INFO (linux/tcp.h, struct tcp_info) of a connection."""
    fields = _TCP_INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))
    words = fields[8:32]
    _pacing_rate, max_pacing_rate, acked, _received = fields[32:36]
    return TcpInfo(
        # The SYN counts as a byte until the first data are acknowledged: the kernel starts at 1
        # on some versions, so callers take differences.
        acked=acked,
        unsent=fields[38],
        unacked=words[4],
        retransmits=words[23],
        segments=fields[36],
        smoothed_rtt=words[15] * 1e-6,
        max_pacing_rate=max_pacing_rate,
    )


def pin_congestion_control(sock: socket.socket, name: str) -> str:
    """Sets a socket's congestion control and returns what the kernel then says it is.

    Raises OSError naming the algorithm where the kernel lacks it.
    """
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except OSError as error:
        raise OSError(
            error.errno,
            f"congestion control {name!r} is not available: "
            "see net.ipv4.tcp_available_congestion_control, or load its module",
        ) from error
    said = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return said.split(b"\0", 1)[0].decode()


def ack_at_once(sock: socket.socket) -> None:
    """The next segments are acknowledged one by one, however small they are."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def limit_unsent(sock: socket.socket, size: int) -> None:
    """Keeps at most about `size` bytes in the socket that were not yet sent."""
    sock.setsockopt(socket.IPPROTO_TCP, _NOT_SENT, size)


def pin_sysctls() -> None:
    """Sets `PINNED_SYSCTLS` in this network namespace. Raises OSError."""
    for name, value in PINNED_SYSCTLS.items():
        (_SYSCTLS / name).write_text(value)


def recorded_sysctls() -> dict[str, str]:
    """The sysctls a report should show, as this network namespace has them."""
    return {
        f"net.ipv4.{name}": " ".join((_SYSCTLS / name).read_text().split())
        for name in RECORDED_SYSCTLS
        if (_SYSCTLS / name).exists()
    }
