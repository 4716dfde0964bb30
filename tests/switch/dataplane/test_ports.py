"""On real interfaces: frames pass unchanged, rates hold, priorities are strict, a congested port holds nobody up."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from switch.dataplane import Dataplane, PortStatus
from tests.switch.dataplane.programs import Source, assign, ref, to_port

pytestmark = pytest.mark.mininet

STD = "standard_metadata"
LINKS = 3
ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING, SO_TIMESTAMPNS, SO_RCVBUFFORCE = 3, 263, 23, 35, 33
ETHERNET = [("dst", 48), ("src", 48), ("kind", 16), ("out", 16), ("queue", 8)]


def run(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)


class Wire:
    """Our end of a veth whose other end is a port of the switch."""

    def __init__(self, index: int) -> None:
        self.ours, self.theirs = (
            f"dpt{os.getpid() % 100000}h{index}",
            f"dpt{os.getpid() % 100000}s{index}",
        )
        run(f"ip link add {self.ours} type veth peer name {self.theirs}")
        for name in (self.ours, self.theirs):
            run(f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1")
            run(f"ip link set {name} up")
        # Protocol 0 until it is bound: it must not hear the other interfaces.
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 25)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((self.ours, ETH_P_ALL))
        self.socket.settimeout(10)

    def close(self) -> None:
        self.socket.close()
        with suppress(subprocess.CalledProcessError):
            run(f"ip link del {self.ours}")

    def take(self, count: int) -> list[tuple[float, bytes]]:
        """So many frames, with the kernel's time of arrival (our own may be late to look)."""
        frames = []
        for _ in range(count):
            data, control, _, _ = self.socket.recvmsg(65536, 64)
            seconds, nanoseconds = struct.unpack("qq", control[0][2])
            frames.append((seconds + nanoseconds * 1e-9, data))
        return frames


@pytest.fixture
def wires() -> Iterator[list[Wire]]:
    made: list[Wire] = []
    try:
        for index in range(LINKS):
            made.append(Wire(index))
        yield made
    finally:
        for wire in made:
            wire.close()


@pytest.fixture
def switch(wires: list[Wire]) -> Iterator[Dataplane]:
    program = Source(
        [*ETHERNET],
        body=[to_port(ref("h", "out")), assign(ref(STD, "priority"), ref("h", "queue"))],
    )
    with Dataplane(queues=8) as dataplane:
        dataplane.load(program.json())
        for index, wire in enumerate(wires):
            dataplane.add_port(index, wire.theirs)
        dataplane.start()
        yield dataplane


def frame(out: int, queue: int = 0, size: int = 1000, mark: int = 0) -> bytes:
    head = bytes(11) + b"\1" + b"\x88\xb5" + struct.pack("!HBI", out, queue, mark)
    return head + bytes(size - len(head))


def test_frames_of_every_length_pass_unchanged(switch: Dataplane, wires: list[Wire]) -> None:
    sent = [frame(1, size=size, mark=size) for size in (*range(60, 200), 1513, 1514)]
    for each in sent:
        wires[0].socket.send(each)
        assert wires[1].socket.recv(65536) == each
    assert switch.port_counters(0).rx_packets == switch.port_counters(1).tx_packets == len(sent)


def test_vlan_tags_are_seen(switch: Dataplane, wires: list[Wire]) -> None:
    """The kernel strips them into the ring's descriptor."""
    program = Source([("dst", 48), ("src", 48), ("tag", 32), ("rest", 16)], body=[to_port(1)])
    switch.load(program.json())
    tagged = bytes(11) + b"\1" + b"\x81\x00\x20\x07" + b"\x88\xb5" + bytes(50)
    wires[0].socket.send(tagged)
    until(lambda: switch.port_counters(1).tx_packets == 1)
    assert switch.port_counters(0).rx_bytes == switch.port_counters(1).tx_bytes == len(tagged)


def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    """Waits for a condition that must come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize(("mbit", "frames"), [(5, 300), (40, 900)])
def test_a_port_sends_at_its_rate(
    switch: Dataplane, wires: list[Wire], mbit: int, frames: int
) -> None:
    """A backlog drains in the time it takes on the wire (never faster; the machine may be slower at times)."""
    switch.set_queue_limits(packets=frames)
    switch.set_port_rate(1, mbit * 1_000_000)
    expected = (frames - 1) * 8000 / (mbit * 1e6)
    spent = []
    while not spent or (min(spent) > 1.05 * expected and len(spent) < 5):
        for _ in range(frames):
            wires[0].socket.send(frame(1))
        times = [moment for moment, _ in wires[1].take(frames)]
        spent.append(times[-1] - times[0])
    assert (
        0.95 * expected < min(spent) < 2 * expected
    )  # `make bench-switch` holds it to 2 % on a quiet machine


def test_the_higher_class_goes_first(switch: Dataplane, wires: list[Wire]) -> None:
    switch.set_queue_limits(packets=200)
    switch.set_port_rate(1, 20_000_000)
    for queue in (0, 7):
        for _ in range(100):
            wires[0].socket.send(frame(1, queue))
    classes = [data[16] for _, data in wires[1].take(200)]
    assert classes.count(7) == classes.count(0) == 100
    first = classes.index(7)
    assert (
        classes[first : first + 110].count(7) == 100
    )  # a few frames of 0 leave while the last of 7 arrive


def test_a_congested_port_holds_nobody_up(switch: Dataplane, wires: list[Wire]) -> None:
    switch.set_port_rate(1, 100_000)
    for _ in range(200):
        wires[0].socket.send(frame(1))
    for mark in range(200):
        wires[0].socket.send(frame(2, mark=mark))
        assert wires[2].socket.recv(65536) == frame(2, mark=mark)
    assert switch.queue_counters(1, 0).depth_packets > 0


def test_queues_are_limited_in_packets_and_bytes(switch: Dataplane, wires: list[Wire]) -> None:
    switch.set_port_rate(1, 8_000)  # one frame a second
    switch.set_queue_limits(packets=10)
    switch.set_queue_limits(octets=3000, queue=3)
    for _ in range(50):
        wires[0].socket.send(frame(1, 0))
        wires[0].socket.send(frame(1, 3))
    until(lambda: switch.port_counters(0).rx_packets == 100)
    assert switch.queue_counters(1, 0).depth_packets == 10
    assert switch.queue_counters(1, 3).depth_bytes <= 3000
    counters = switch.queue_counters(1, 0)
    assert counters.enqueued_packets + counters.dropped_packets == 50


def test_a_link_that_goes_down_is_an_event(switch: Dataplane, wires: list[Wire]) -> None:
    until(lambda: switch.port_up(2))
    run(f"ip link set {wires[2].ours} down")
    wait_for(switch, PortStatus(2, False))
    assert not switch.port_up(2)
    wires[0].socket.send(frame(2))  # must not disturb the others
    run(f"ip link set {wires[2].ours} up")
    wait_for(switch, PortStatus(2, True))
    with suppress(OSError):
        wires[2].socket.recv(65536)  # our own socket's "network is down"
    wires[0].socket.send(frame(2, mark=5))
    assert wires[2].socket.recv(65536) == frame(2, mark=5)


def wait_for(switch: Dataplane, event: PortStatus) -> None:
    seen: list[object] = []

    def arrived() -> bool:
        seen.extend(switch.read_events())
        return event in seen

    until(arrived)


def test_an_interface_that_is_deleted_costs_no_cpu(switch: Dataplane, wires: list[Wire]) -> None:
    run(f"ip link del {wires[2].ours}")
    time.sleep(0.3)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1
    switch.remove_port(2)
    wires[0].socket.send(frame(1))
    assert wires[1].socket.recv(65536) == frame(1)


def test_no_such_interface_is_said(switch: Dataplane) -> None:
    with pytest.raises(OSError, match="port 9 on interface dpt-none"):
        switch.add_port(9, "dpt-none")
