"""The library for frameworks: announce a flow, wait until it may go, send it at its rate.

    client = FlowClient("h1", "10.0.0.254:50550")
    with client.open(("job", 0, "a0"), "10.0.0.1", ("10.0.0.2", 9000)) as flow:
        flow.sendall(data)                 # sends nothing while the flow is on hold
    ...
    client.received(("job", 0, "a0"), len(data))     # at the receiver, with its own client

The job must be known to the coordinator (`controller.coordinator.client.CoordinatorClient.add_jobs`).
Scheduling must never cost a job its traffic: where the coordinator does not answer in time, or goes
away, flows are sent in class 0, unpaced, and `FlowClient.unscheduled` counts them.
"""

from __future__ import annotations

import math
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType

import grpc

from controller.api import PROTOCOL
from controller.api import coordinator_pb2 as api
from controller.api.boot import boot_id
from controller.api.coordinator_pb2_grpc import CoordinatorStub
from controller.model.errors import WorkFailed
from host_agent.clock import Clock
from host_agent.kernel import limit_unsent, pin_congestion_control
from host_agent.pacing import SocketPacer
from host_agent.tagging import tag

FlowName = tuple[str, int, str]
"Job, iteration, id."

_WIRE_PER_PAYLOAD = {socket.AF_INET: 1514 / 1448, socket.AF_INET6: 1514 / 1428}
_CHUNK = 65_536
_ATTACH_TIMEOUT = 10.0
_PINGS = 8


class ClientFlow:
    """A flow of a framework; use as a context manager, which ends it."""

    def __init__(self, client: FlowClient, name: FlowName, sock: socket.socket) -> None:
        self.sock = sock
        "The connection; send through `sendall`, which respects holds."
        self._client = client
        self._name = name
        self._pacer = SocketPacer(_WIRE_PER_PAYLOAD[socket.AddressFamily(sock.family)])
        self._answered = threading.Event()
        self._open = threading.Event()

    def sendall(self, data: bytes | memoryview) -> None:
        """Sends all of `data`, pausing while the flow is on hold. Raises OSError."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _CHUNK):
            self._open.wait()
            self.sock.sendall(view[start : start + _CHUNK])

    def set(self, class_: int, pace: float) -> None:
        """Class and pace (bit/s on the wire; 0 holds, inf is unpaced) from now on."""
        if pace > 0:
            with suppress(OSError):  # the framework has closed its socket
                tag(self.sock, class_)
                self._pacer.set_rate(self.sock, pace)
            self._open.set()
        else:
            self._open.clear()
        self._answered.set()

    def wait(self, timeout: float) -> bool:
        """Waits for the grant; without any answer in `timeout` s the flow is let go in class 0.

        Returns whether the coordinator answered.
        """
        answered = self._answered.wait(timeout)
        if not answered:
            self.set(0, math.inf)
        self._open.wait()
        return answered

    def __enter__(self) -> ClientFlow:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close_flow(self._name)
        self.sock.close()


class FlowClient:
    """One framework process on one host, attached to the coordinator. Thread-safe."""

    def __init__(self, host: str, coordinator: str) -> None:
        """`coordinator`: `unix:PATH` or `HOST:PORT`. Raises WorkFailed in one line."""
        self.unscheduled = 0
        "Flows that went in class 0 because nobody answered in time."
        self._clock = Clock()
        self._out: queue.SimpleQueue[api.FromHost | None] = queue.SimpleQueue()
        self._flows: dict[FlowName, ClientFlow] = {}
        self._lock = threading.Lock()
        self._welcomed = threading.Event()
        self._grant_timeout = 0.0
        self._lost: str | None = None
        self._channel = grpc.insecure_channel(coordinator)
        hello = api.Hello(host=host, role="client", protocol=PROTOCOL, boot_id=boot_id())
        self._out.put(api.FromHost(hello=hello))
        self._stream = CoordinatorStub(self._channel).Attach(self._outgoing())
        self._listener = threading.Thread(target=self._listen, daemon=True, name="echelon-client")
        self._listener.start()
        if not self._welcomed.wait(_ATTACH_TIMEOUT) or self._lost is not None:
            self._channel.close()
            raise WorkFailed(
                f"client of host {host}: coordinator at {coordinator}: "
                f"{self._lost or 'no answer; start `echelon controller` first'}"
            )

    def open(self, name: FlowName, source: str, target: tuple[str, int]) -> ClientFlow:
        """Bind, report the 5-tuple, wait for the grant, connect. Raises OSError.

        `source` is the address of this host to send from.
        """
        family = socket.AF_INET6 if ":" in source else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            pin_congestion_control(sock, "cubic")
            sock.bind((source, 0))
            flow = self.adopt(name, sock, target)
            sock.connect(target)
        except BaseException:
            self.close_flow(name)
            sock.close()
            raise
        return flow

    def adopt(self, name: FlowName, sock: socket.socket, target: tuple[str, int]) -> ClientFlow:
        """A flow on a socket that is bound, connected to `target` or not yet; waits for the grant."""
        limit_unsent(sock, _CHUNK)
        flow = ClientFlow(self, name, sock)
        with self._lock:
            lost = self._lost
            self._flows[name] = flow
        source, port = sock.getsockname()[:2]
        key = api.FiveTuple(
            src_ip=source,
            dst_ip=target[0],
            protocol=socket.IPPROTO_TCP,
            src_port=port,
            dst_port=target[1],
        )
        ready = api.FlowReady(id=_id(name), key=key, at=self._clock.now())
        self._out.put(api.FromHost(flow_ready=ready))
        if not flow.wait(0.0 if lost is not None else self._grant_timeout):
            self.unscheduled += 1
        return flow

    def received(self, name: FlowName, size: int) -> None:
        """Tells, at the receiver, that a flow's last byte arrived; `size` in payload bytes."""
        message = api.FlowReceived(id=_id(name), at=self._clock.now(), bytes=size)
        self._out.put(api.FromHost(flow_received=message))

    def close_flow(self, name: FlowName) -> None:
        """The flow will send nothing more; without effect on one that is not open."""
        with self._lock:
            flow = self._flows.pop(name, None)
        if flow is not None:
            self._out.put(api.FromHost(flow_closed=api.FlowClosed(id=_id(name))))

    def close(self) -> None:
        """Detaches; flows still open go on in class 0."""
        self._out.put(None)
        self._listener.join(_ATTACH_TIMEOUT)
        self._channel.close()

    def _outgoing(self) -> Iterator[api.FromHost]:
        while (message := self._out.get()) is not None:
            yield message

    def _listen(self) -> None:
        reason = "the coordinator ended the connection"
        try:
            for message in self._stream:
                self._handle(message)
        except grpc.RpcError as error:
            reason = error.details() or str(error.code())
        with self._lock:
            self._lost = reason
            flows = list(self._flows.values())
        for flow in flows:
            flow.set(0, math.inf)
        self._welcomed.set()

    def _handle(self, message: api.ToHost) -> None:
        kind = message.WhichOneof("kind")
        if kind == "settings":
            for setting in message.settings.flows:
                self._set(setting)
        elif kind == "welcome":
            self._grant_timeout = message.welcome.grant_timeout
            if message.welcome.boot_id != boot_id():
                for _ in range(_PINGS):
                    self._out.put(api.FromHost(ping=api.Ping(sent=time.monotonic())))
            self._welcomed.set()
        elif kind == "pong":
            self._clock.learn(message.pong.sent, message.pong.now, time.monotonic())

    def _set(self, setting: api.FlowSetting) -> None:
        name = (setting.id.job, setting.id.iteration, setting.id.flow)
        with self._lock:
            flow = self._flows.get(name)
        if flow is not None:
            flow.set(setting.class_, setting.pace)


def _id(name: FlowName) -> api.FlowId:
    job, iteration, flow = name
    return api.FlowId(job=job, iteration=iteration, flow=flow)
