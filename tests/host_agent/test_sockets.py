"""What the host agent asks of the kernel, read back from the kernel."""

from __future__ import annotations

import math
import socket
import time

import pytest

from host_agent import kernel
from host_agent.connection import MIN_UNSENT, Connection
from host_agent.pacing import SocketPacer
from host_agent.tagging import tag

WIRE_PER_PAYLOAD = 1514 / 1448


@pytest.mark.parametrize("class_", [0, 1, 7])
def test_the_class_is_the_upper_bits_of_dscp_in_both_families(class_: int) -> None:
    with socket.socket(socket.AF_INET) as v4:
        tag(v4, class_)
        assert v4.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == class_ << 5
    with socket.socket(socket.AF_INET6) as v6:
        tag(v6, class_)
        assert v6.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) == class_ << 5


def test_a_class_that_does_not_exist_is_refused() -> None:
    with socket.socket() as sock, pytest.raises(ValueError, match="0..7"):
        tag(sock, 8)


def test_a_wire_rate_is_told_to_the_kernel_in_payload_bytes() -> None:
    pacer = SocketPacer(WIRE_PER_PAYLOAD)
    with socket.socket() as sock:
        pacer.set_rate(sock, 40e6)
        assert kernel.tcp_info(sock).max_pacing_rate == round(5e6 * 1448 / 1514)
        pacer.set_rate(sock, math.inf)
        assert kernel.tcp_info(sock).max_pacing_rate == 2**64 - 2


async def test_no_more_stands_unsent_than_leaves_in_a_moment() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = Connection(
            "127.0.0.1", server.getsockname(), "cubic", SocketPacer(WIRE_PER_PAYLOAD)
        )
        connection.set(0, 1e6)
        await connection.connect()
        data = memoryview(bytes(1_000_000))
        while connection.try_send(data):
            assert connection.info().unsent <= MIN_UNSENT
        connection.close()


def test_congestion_control_is_pinned_or_refused_by_name() -> None:
    with socket.socket() as sock:
        assert kernel.pin_congestion_control(sock, "cubic") == "cubic"
        with pytest.raises(OSError, match="nonesuch"):
            kernel.pin_congestion_control(sock, "nonesuch")


def test_tcp_info_counts_what_was_acknowledged() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sender,
    ):
        receiver, _ = server.accept()
        before = kernel.tcp_info(sender).acked
        sender.sendall(b"x" * 50_000)
        with receiver:
            left = 50_000
            while left:
                left -= len(receiver.recv(left))
            deadline = time.monotonic() + 5
            while kernel.tcp_info(sender).acked - before < 50_000:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        info = kernel.tcp_info(sender)
    assert info.acked - before == 50_000
    assert info.retransmits == 0
    assert info.segments >= 1
    assert 0 < info.smoothed_rtt < 1


def test_sysctls_are_recorded_by_name() -> None:
    recorded = kernel.recorded_sysctls()
    assert recorded["net.ipv4.tcp_slow_start_after_idle"] in ("0", "1")
