"""Runs p4/compiled/echelon.json on a switch with veth ports, for the tests of the data plane.

Every test that takes the `fabric` fixture runs twice: on the embedded switch and on BMv2 (marked `bmv2`).

    host side  p4t1h   p4t2h   p4t3h   p4t4h
    port           1       2       3       4
    role        host    host  switch  switch

Ports 3 and 4 are equal uplinks (ECMP group 1).
"""

from __future__ import annotations

import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
import pytest
from finsy.proto import U128, p4r, p4r_grpc

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ROOT / "p4" / "compiled"
CPU_PORT = 510
HOST_PORTS = (1, 2)
UPLINKS = (3, 4)
PORTS = HOST_PORTS + UPLINKS


def switch_command(target: str) -> list[str]:
    """The program and the options that only it needs; skips where it is not installed."""
    if target == "bmv2":
        path = shutil.which("simple_switch_grpc")
        if path is None:
            pytest.skip("simple_switch_grpc is not on PATH")
        return [path, "--thrift-port", str(free_port())]
    path = shutil.which(
        "echelon-switch", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    if path is None:
        pytest.skip("echelon-switch is not installed: run `make setup`")
    return [path]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True)


class Wire:
    """The host's end of one switch port."""

    def __init__(self, port: int) -> None:
        self.host, self.switch = f"p4t{port}h", f"p4t{port}s"
        self.delete()
        ip("link", "add", self.host, "type", "veth", "peer", "name", self.switch)
        for interface in (self.host, self.switch):
            # The kernel's own neighbour discovery would mix with the tests' frames.
            Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
            ip("link", "set", interface, "up")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((self.host, 0))
        self.socket.settimeout(0)

    def send(self, frame: bytes) -> None:
        self.socket.send(frame)

    def received(self) -> list[bytes]:
        """The frames that arrived since the last call."""
        frames: list[bytes] = []
        while True:
            try:
                frame, address = self.socket.recvfrom(65535)
            except BlockingIOError:
                return frames
            if address[2] != socket.PACKET_OUTGOING:
                frames.append(frame)

    def delete(self) -> None:
        subprocess.run(["ip", "link", "delete", self.host], check=False, capture_output=True)

    def close(self) -> None:
        self.socket.close()
        self.delete()


class Fabric:
    """One running switch, its ports, and a P4Runtime session that is its primary controller."""

    def __init__(self, target: str, queues: int = 8) -> None:
        command = switch_command(target)
        self.target = target
        self.wires = {port: Wire(port) for port in PORTS}
        self.packet_ins: queue.Queue[fy.P4PacketIn] = queue.Queue()
        self.digests: queue.Queue[dict[str, Any]] = queue.Queue()
        self.schema = fy.P4Schema(COMPILED / "echelon.p4info.txtpb", COMPILED / "echelon.json")
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._primary = threading.Event()
        self._undo: list[tuple[str, Any]] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the switch runs
        address = f"127.0.0.1:{free_port()}"
        interfaces = [x for p, w in self.wires.items() for x in ("-i", f"{p}@{w.switch}")]
        self.process = subprocess.Popen(
            [*command, "--device-id", "1", *interfaces, "--no-p4", "--"]
            + ["--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)]
            + ["--priority-queues", str(queues)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._channel = grpc.insecure_channel(address)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        try:
            self._wait_for_start()
            self._connect()
            self._configure()
        except BaseException:
            self.close()
            raise

    def _wait_for_start(self) -> None:
        ready = grpc.channel_ready_future(self._channel)
        for _ in range(100):
            try:
                ready.result(timeout=0.2)
                return
            except grpc.FutureTimeoutError:
                if self.process.poll() is not None:
                    break
        self._log.seek(0)
        raise RuntimeError(f"the switch did not start: {self._log.read()[-2000:].decode()}")

    # --- the P4Runtime session

    def _connect(self) -> None:
        hello = p4r.StreamMessageRequest()
        hello.arbitration.device_id = 1
        hello.arbitration.election_id.low = 1
        self._requests.put(hello)
        threading.Thread(target=self._read_stream, daemon=True).start()
        assert self._primary.wait(10), "the switch did not answer the arbitration"

    def _read_stream(self) -> None:
        try:
            for message in self._stub.StreamChannel(iter(self._requests.get, None)):
                kind = message.WhichOneof("update")
                if kind == "arbitration":
                    self._primary.set()
                elif kind == "packet":
                    self.packet_ins.put(fy.P4PacketIn.decode(message, self.schema))
                elif kind == "digest":
                    digest = fy.P4DigestList.decode(message, self.schema)
                    for data in digest.data:
                        self.digests.put(dict(data))
                    ack = fy.P4DigestListAck("flow_digest_t", digest.list_id)
                    self._requests.put(ack.encode_update(self.schema))
        except grpc.RpcError:
            pass  # the switch was stopped

    def _configure(self) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=1,
            election_id=U128.encode(1),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self.schema.get_pipeline_config(),
        )
        self._stub.SetForwardingPipelineConfig(request, timeout=60)
        everything = [
            *(entry("port_role", {"port": p}, "face_host") for p in HOST_PORTS),
            *(entry("port_role", {"port": p}, "face_switch") for p in UPLINKS),
            *(entry("live_port", {"port": p}, "port_is_live") for p in UPLINKS),
            *(
                fy.P4ActionProfileMember(
                    "ecmp_selector", member_id=p, action=fy.P4TableAction("to_port", port=p)
                )
                for p in UPLINKS
            ),
            fy.P4ActionProfileGroup(
                "ecmp_selector",
                group_id=1,
                max_size=8,
                members=[fy.P4Member(p, weight=1) for p in UPLINKS],
            ),
            fy.P4TableEntry(
                "ecmp_group",
                match=fy.P4TableMatch(group=1),
                action=fy.P4IndirectAction(group_id=1),
            ),
            # Hosts 1 and 2 are behind ports 1 and 2, all other addresses behind the uplinks.
            *(
                entry("ipv4_forward", {"dst": f"10.0.0.{p}/32"}, "to_port", port=p)
                for p in HOST_PORTS
            ),
            entry("ipv4_forward", {"dst": "10.0.0.0/16"}, "to_group", group=1),
            *(
                entry("ipv6_forward", {"dst": f"fd00::{p}/128"}, "to_port", port=p)
                for p in HOST_PORTS
            ),
            entry("ipv6_forward", {"dst": "fd00::/64"}, "to_group", group=1),
            fy.P4DigestEntry("flow_digest_t", max_list_size=1, ack_timeout_ns=10**9),
        ]
        for entity in everything:
            self.write("INSERT", entity)

    def write(self, kind: str, entity: Any) -> None:
        """kind: INSERT, MODIFY or DELETE."""
        update = p4r.Update(type=p4r.Update.Type.Value(kind), entity=entity.encode(self.schema))
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1), updates=[update])
        self._stub.Write(request, timeout=10)

    def add(self, *entities: Any) -> None:
        """Insert until the test ends."""
        for each in entities:
            self.write("INSERT", each)
            self._undo.append(("DELETE", each))

    def remove(self, *entities: Any) -> None:
        """Delete until the test ends."""
        for each in entities:
            self.write("DELETE", each)
            self._undo.append(("INSERT", each))

    def modify(self, after: Any, before: Any) -> None:
        """Change until the test ends."""
        self.write("MODIFY", after)
        self._undo.append(("MODIFY", before))

    def undo(self) -> None:
        while self._undo:
            self.write(*self._undo.pop())

    def read(self, entity: Any) -> Any:
        request = p4r.ReadRequest(device_id=1)
        request.entities.append(entity.encode(self.schema))
        [answer] = [e for r in self._stub.Read(request, timeout=10) for e in r.entities]
        return type(entity).decode(answer, self.schema)

    def counter(self, name: str, index: int) -> int:
        """Packets counted so far."""
        data = self.read(fy.P4CounterEntry(name, index=index)).data
        return 0 if data is None else data.packet_count

    def packet_out(self, payload: bytes, port: int) -> None:
        message = fy.P4PacketOut(payload, egress_port=port, pad=0)
        self._requests.put(message.encode_update(self.schema))

    # --- frames

    def send(self, port: int, *frames: bytes) -> None:
        for frame in frames:
            self.wires[port].send(frame)
            time.sleep(0.001)  # BMv2 loses bursts; these tests are not about speed

    def exchange(self, port: int, frames: Iterable[bytes], expect: int) -> dict[int, list[bytes]]:
        """Send into a port; what came out of each, once `expect` frames did (or 3 s passed)."""
        frames = list(frames)
        for wire in self.wires.values():
            wire.received()
        self.send(port, *frames)
        out: dict[int, list[bytes]] = {p: [] for p in PORTS}
        for _ in self.waiting(lambda: sum(map(len, out.values())) >= expect):
            for p, wire in self.wires.items():
                out[p] += wire.received()
        time.sleep(0.2)  # for what should not come
        for p, wire in self.wires.items():
            out[p] += wire.received()
        return out

    @staticmethod
    def waiting(done: Callable[[], bool], seconds: float = 3) -> Iterator[None]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            yield
            if done():
                return
            time.sleep(0.01)

    def drain(self) -> None:
        for q in (self.packet_ins, self.digests):
            while not q.empty():
                q.get_nowait()

    def close(self) -> None:
        self._requests.put(None)
        self._channel.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for wire in self.wires.values():
            wire.close()
        self._log.close()


def entry(table: str, match: dict[str, Any], action: str, **args: Any) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        table, match=fy.P4TableMatch(match), action=fy.P4TableAction(action, **args)
    )


TARGETS = ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)]


@pytest.fixture(scope="session", params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    if os.geteuid() != 0:
        pytest.skip("needs root: makes veth interfaces")
    return str(request.param)


@pytest.fixture(scope="module")
def module_fabric(target: str) -> Iterator[Fabric]:
    fabric = Fabric(target)
    yield fabric
    fabric.close()


@pytest.fixture
def fabric(module_fabric: Fabric) -> Iterator[Fabric]:
    module_fabric.drain()
    yield module_fabric
    module_fabric.undo()
