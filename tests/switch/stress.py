"""Changes everything that can change while frames flow, under the sanitizers.

    python -m tests.switch.stress [SECONDS] [SEED]

Needs root (veth interfaces, in a network namespace of its own). Starts itself again with the address sanitizer's
runtime preloaded; any report of the sanitizers, a hang or an unexpected error ends it with a non-zero status.
"""

from __future__ import annotations

import ctypes
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from switch.dataplane import Dataplane, DataplaneError, MeterConfig, Target, TargetKind
from tests.switch.differential import frames as f
from tests.switch.differential.scenarios import FLOWS, Scenario, echelon

PORTS = (1, 2, 3, 4)
HOT = FLOWS[:4]
"""Most frames belong to these flows and most changes touch their entries, so that the two meet."""
MANY = 100
"""Changes of one kind in a row, as fast as they go."""


def own_network() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000):
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET): needs root")
    for port in PORTS:
        names = [f"h{port}", f"s{port}"]
        subprocess.run(
            ["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]], check=True
        )
        for name in names:
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
            subprocess.run(["ip", "link", "set", name, "up"], check=True)


def feed(scenario: Scenario, stop: threading.Event, seed: int) -> int:
    """Send frames into all ports until told to stop; how many."""
    frames = [
        (p, frame)
        for p, frame in scenario.frames(500, seed)
        if p in PORTS and 14 < len(frame) <= 1514
    ]
    frames += [
        (
            1 + i % 2,
            f.ethernet(f.IPV4, f.ipv4("10.0.0.1", "10.0.7.7", protocol, f.ports(sport, dport))),
        )
        for sport, dport, protocol in HOT
        for i in range(200)
    ]
    random.Random(seed).shuffle(frames)
    sockets = {}
    for port in PORTS:
        sockets[port] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sockets[port].bind((f"h{port}", 0))
    sent = 0
    while not stop.is_set():
        for port, frame in frames:
            try:
                sockets[port].send(frame)
            except OSError:
                continue  # the link is down, or its buffer full
            sent += 1
            if sent % 64 == 0:
                time.sleep(0.001)
                if stop.is_set():
                    break
    return sent


class Changes:
    """Random changes of one running data plane."""

    def __init__(self, plane: Dataplane, scenario: Scenario, source: random.Random) -> None:
        self.plane, self.scenario, self.source = plane, scenario, source
        self.json = scenario.json.read_bytes()
        self.handles: list[int] = []
        self.refused = self.done = 0
        self.names()

    def names(self) -> None:
        plane = self.plane
        self.policy = plane.table("EchelonIngress.classify.flow_policy")
        self.set_policy = plane.action(self.policy, "EchelonIngress.classify.set_policy")
        self.routes = plane.table("EchelonIngress.forward.ipv4_forward")
        self.to_port = plane.action(self.routes, "EchelonIngress.forward.to_port")
        self.profile = plane.action_profile("EchelonIngress.forward.ecmp_selector")
        self.member = plane.profile_action(self.profile, "EchelonIngress.forward.to_port")
        self.counter = plane.counter("EchelonEgress.class_counter")
        self.digest = plane.digest("flow_digest_t")

    def policy_key(self) -> bytes:
        mapped = bytes(10) + b"\xff\xff"
        sport, dport, protocol = self.source.choice(HOT)
        return (
            mapped + bytes((10, 0, 0, 1)) + mapped + bytes((10, 0, 7, 7))
            + struct.pack("!BHH", protocol, sport, dport)
        )  # fmt: skip

    def policy_target(self) -> Target:
        params = bytes((self.source.randrange(8),)) + self.source.randrange(6).to_bytes(2, "big")
        return Target(TargetKind.ACTION, self.set_policy, params)

    # -- one change each

    def insert(self) -> None:
        self.handles.append(
            self.plane.insert(self.policy, self.policy_key(), 0, self.policy_target())
        )

    def insert_many(self) -> None:
        entries = [(self.policy_key(), 0, self.policy_target()) for _ in range(20)]
        results = self.plane.insert_many(self.policy, entries)
        self.handles += [r for r in results if isinstance(r, int)]

    def modify(self) -> None:
        for _ in range(MANY):
            if self.handles:
                self.plane.modify(self.source.choice(self.handles), self.policy_target())

    def delete(self) -> None:
        while self.handles:
            self.plane.delete(self.handles.pop())

    def route(self) -> None:
        length = self.source.randrange(33)
        mask = (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF
        value = int.from_bytes(
            bytes((10, 0, self.source.randrange(8), self.source.randrange(9))), "big"
        )
        key = (value & mask).to_bytes(4, "big") + length.to_bytes(2, "big")
        if (handle := self.plane.find(self.routes, key, 0)) is not None:
            self.plane.delete(handle)
        else:
            port = self.source.randrange(1, 5).to_bytes(2, "big")
            self.plane.insert(self.routes, key, 0, Target(TargetKind.ACTION, self.to_port, port))

    def group(self) -> None:
        for _ in range(MANY):
            members = self.source.sample((3, 4, 6), self.source.randrange(1, 4))
            self.plane.set_group(
                self.profile, 1, [(m, self.source.randrange(1, 5)) for m in members]
            )

    def change_member(self) -> None:
        for _ in range(MANY):
            port = self.source.randrange(1, 5).to_bytes(2, "big")
            self.plane.modify_member(self.profile, self.source.choice((3, 4, 6)), self.member, port)

    def replicas(self) -> None:
        replicas = [(self.source.randrange(1, 5), i) for i in range(self.source.randrange(4))]
        self.plane.set_multicast(self.source.randrange(1, 9), replicas)
        self.plane.set_clone_session(self.source.randrange(1, 9), replicas, packet_length=60)

    def shaper(self) -> None:
        port = self.source.choice(PORTS)
        self.plane.set_port_rate(port, self.source.choice((None, 100_000, 5_000_000)))
        self.plane.set_queue_limits(
            self.source.choice((1, 64)), self.source.choice((None, 3000)), port=port
        )

    def port(self) -> None:
        port = self.source.choice(PORTS)
        self.plane.remove_port(port)
        self.plane.add_port(port, f"s{port}")

    def link(self) -> None:
        name = f"h{self.source.choice(PORTS)}"
        for state in ("down", "up"):
            subprocess.run(["ip", "link", "set", name, state], check=True)

    def meters(self) -> None:
        config = self.source.choice((None, MeterConfig(1000, 200, 2000, 400)))
        if self.handles:
            self.plane.set_direct_meter(self.source.choice(self.handles), config)
        meter = self.plane.meter("EchelonIngress.punt_meter")
        self.plane.meter_write(meter, self.source.randrange(512), config)

    def read(self) -> None:
        self.plane.counter_read_all(self.counter)
        self.plane.entries(self.policy)
        for handle in self.handles[:5]:
            self.plane.direct_counter(handle)
            self.plane.last_hit(handle)
        for port in PORTS:
            self.plane.port_counters(port)
            self.plane.queue_counters(port, self.source.randrange(8))

    def events(self) -> None:
        self.plane.read_events()
        self.plane.forget_digests(self.digest)

    def packet_out(self) -> None:
        frame = self.source.choice(self.scenario.frames(1, self.source.randrange(100)))[1]
        self.plane.packet_out(self.source.randbytes(2) + frame)

    def reload(self) -> None:
        self.plane.load(self.json)
        self.handles.clear()
        set_up(self.plane, self.scenario)

    def run(self, seconds: float) -> None:
        often: list[Callable[[], None]] = [
            self.insert, self.insert_many, self.modify, self.delete, self.route, self.group,
            self.change_member, self.replicas, self.shaper, self.meters, self.read, self.events, self.packet_out,
        ]  # fmt: skip
        rarely = [self.port, self.link, self.reload]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            change = self.source.choice(rarely if self.source.random() < 0.005 else often)
            try:
                change()
                self.done += 1
            except DataplaneError:
                self.refused += 1  # a key twice, a table full: what a controller sees too


def set_up(plane: Dataplane, scenario: Scenario) -> None:
    from tests.switch.drive.embedded import Embedded

    switch = object.__new__(Embedded)
    switch.cpu_port, switch.dataplane = 510, plane
    for digest in switch.program.digests:
        switch.dataplane.enable_digest(digest.id, True)
    for command in scenario.commands:
        switch.tell(command)


def stress(seconds: float, seed: int) -> None:
    own_network()
    scenario = echelon()
    with Dataplane(queues=8, cpu_port=510, sanitize=True) as plane:
        plane.load(scenario.json.read_bytes())
        set_up(plane, scenario)
        for port in PORTS:
            plane.add_port(port, f"s{port}")
        plane.start()
        stop = threading.Event()
        counts: list[int] = []
        feeder = threading.Thread(target=lambda: counts.append(feed(scenario, stop, seed)))
        feeder.start()
        changes = Changes(plane, scenario, random.Random(seed))
        try:
            changes.run(seconds)
        finally:
            stop.set()
            feeder.join()
    print(f"{counts[0]} frames, {changes.done} changes, {changes.refused} refused", flush=True)


def sanitized(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests with the sanitizers' runtime loaded first (Python itself has none)."""
    library = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "SANITIZED": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", module, *arguments], env=environment, check=False,
        capture_output=True, text=True, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip


def main(arguments: list[str]) -> int:
    seconds, seed = (arguments + ["10", "1"][len(arguments) :])[:2]
    if "SANITIZED" in os.environ:
        stress(float(seconds), int(seed))
        return 0
    done = sanitized("tests.switch.stress", seconds, seed)
    print(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
