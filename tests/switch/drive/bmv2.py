"""BMv2's simple_switch_grpc, fed over its own gRPC data plane: no interfaces, no root, frames of any length.

That data plane answers each frame with the request's id and ends its stream only when every packet has been
processed, so nothing here waits for a time-out, save for packet-ins and digests, which come another way.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.switch.drive.commands import CannotDo, Command, Frame, Outcome, Refused
from tests.switch.drive.p4runtime import DEVICE, Session

BATCH = 16
"""Frames between two pauses: no more than echelon.p4's ECN threshold, and BMv2's queues hold 64."""


def _stream_messages() -> tuple[type[Any], type[Any]]:
    """p4.bm.PacketStreamRequest and ...Response of BMv2's dataplane_interface."""
    file = descriptor_pb2.FileDescriptorProto(
        name="tests/bmv2_packets.proto", package="p4.bm", syntax="proto3"
    )
    field = descriptor_pb2.FieldDescriptorProto
    for name in ("PacketStreamRequest", "PacketStreamResponse"):
        message = file.message_type.add(name=name)
        for number, (what, kind) in enumerate(
            [
                ("id", field.TYPE_UINT64),
                ("device_id", field.TYPE_UINT64),
                ("port", field.TYPE_UINT32),
                ("packet", field.TYPE_BYTES),
            ],
            1,
        ):
            message.field.add(name=what, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    request, response = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"p4.bm.{name}"))
        for name in ("PacketStreamRequest", "PacketStreamResponse")
    )
    return request, response


Request, Response = _stream_messages()


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Bmv2:
    """BMv2 with a program; without a p4info it takes frames but no commands."""

    target = "bmv2"

    def __init__(
        self,
        json: Path,
        p4info: Path | None,
        *,
        cpu_port: int = 510,
        queues: int = 8,
        batch: int = BATCH,
    ) -> None:
        """`batch`: frames fed between two pauses."""
        program = shutil.which("simple_switch_grpc")
        if program is None:
            raise CannotDo("simple_switch_grpc is not on PATH")
        self.cpu_port = cpu_port
        self._batch = batch
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the switch runs
        self._session: Session | None = None
        runtime, packets = (f"127.0.0.1:{_free_port()}" for _ in range(2))
        self._process = subprocess.Popen(
            [program, "--device-id", str(DEVICE), "--thrift-port", str(_free_port())]
            + (["--no-p4"] if p4info else [str(json)])
            + ["--", "--grpc-server-addr", runtime, "--dp-grpc-server-addr", packets]
            + ["--cpu-port", str(cpu_port), "--priority-queues", str(queues)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._channel = grpc.insecure_channel(packets)
        self._stream = self._channel.stream_stream(
            "/p4.bm.DataplaneInterface/PacketStream",
            request_serializer=Request.SerializeToString,
            response_deserializer=Response.FromString,
        )
        try:
            self._wait_for_start()
            if p4info:
                self._session = Session(runtime, json, p4info)
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
                if self._process.poll() is not None:
                    break
        raise Refused(f"it did not start: {self.log()[-800:]}")

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def tell(self, command: Command) -> None:
        if self._session is None:
            raise CannotDo("a command without p4info")
        self._session.tell(command)

    def play(self, frames: list[Frame]) -> Outcome:
        outcome = Outcome([[] for _ in frames])
        for start in range(0, len(frames), self._batch):
            batch = [
                Request(id=start + i + 1, device_id=DEVICE, port=port, packet=frame)
                for i, (port, frame) in enumerate(frames[start : start + self._batch])
            ]
            for answer in self._exchange(batch):
                outcome.frames[answer.id - 1].append((answer.port, answer.packet))
        for each in outcome.frames:
            each.sort(key=lambda frame: frame[0])
        if self._session is not None:
            self._collect(self._session, outcome)
        return outcome

    def _exchange(self, batch: list[Any]) -> list[Any]:
        end = time.monotonic() + 20
        while True:
            try:
                return list(self._stream(iter(batch), timeout=20))
            except grpc.RpcError as error:
                # It listens before it takes frames.
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > end:
                    state = self._process.poll()
                    raise Refused(f"frames: {error.details()}; exit status {state}") from error
                time.sleep(0.05)

    def _collect(self, session: Session, outcome: Outcome) -> None:
        """Packet-ins and digests come on another connection: take them until none comes."""
        if not (session.info.controller_packet_metadata or session.info.digests):
            return
        quiet = time.monotonic()
        while time.monotonic() - quiet < 0.05:
            if session.packet_ins.empty() and session.digests.empty():
                time.sleep(0.005)
                continue
            quiet = time.monotonic()
            while not session.packet_ins.empty():
                outcome.packet_ins.append(session.packet_ins.get())
            while not session.digests.empty():
                outcome.digests.add(session.digests.get())

    def counter(self, name: str) -> list[tuple[int, int]]:
        assert self._session is not None
        return self._session.counter(name)

    def direct_counters(self, table: str) -> dict[tuple[int, ...], tuple[int, int]]:
        assert self._session is not None
        return self._session.direct_counters(table)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._channel.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
