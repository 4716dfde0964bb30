"""The P4Runtime gRPC service: from RPCs to the device and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_status

from switch.server.device import Device
from switch.server.errors import Outcome, RequestError, batch_status
from switch.server.stream import Stream

API_VERSION = "1.5.0"
"""Of the P4Runtime protocol whose messages this server understands."""

MAX_REQUEST_BYTES = 256 << 20
MAX_THREADS = 256
"""For streams and reads; made only as needed."""
WRITE_THREADS = 8

_CODES = {code.value[0]: code for code in grpc.StatusCode}

_Q = TypeVar("_Q")
_A = TypeVar("_A")


class _OwnThreads:
    """A handler with a few threads of its own. Writes are done one at a time, but threads that wait their turn keep
    gRPC's poller from waking up for each: with 32 outstanding and one thread it is 0.6 of the rate, and 0.8 with the
    many of streams and reads."""

    def __init__(self, handler: Callable[[Any, grpc.ServicerContext], Any]) -> None:
        self._handler = handler
        self.experimental_thread_pool = ThreadPoolExecutor(WRITE_THREADS, "write")

    def __call__(self, request: Any, context: grpc.ServicerContext) -> Any:
        return self._handler(request, context)


class Service(p4r_grpc.P4RuntimeServicer):
    """P4Runtime on one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        # shadows the method: gRPC looks for the pool on what it is given
        self.Write = _OwnThreads(self.Write)  # type: ignore[method-assign]

    def Write(self, request: p4r.WriteRequest, context: grpc.ServicerContext) -> p4r.WriteResponse:
        """Do a batch of updates."""
        outcomes = _answer(self._device.write, request, context)
        if any(outcomes):
            _abort_batch(outcomes, context)
        return p4r.WriteResponse()

    def Read(
        self, request: p4r.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[p4r.ReadResponse]:
        """Stream what the request selects."""
        try:
            for response in self._device.read(request):
                if isinstance(response, list):
                    _abort_batch(response, context)
                yield response
        except RequestError as error:
            _abort(error, context)

    def SetForwardingPipelineConfig(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save or commit a pipeline."""
        _answer(self._device.set_pipeline, request, context)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """The pipeline now addressed."""
        return _answer(self._device.get_pipeline, request, context)

    def StreamChannel(
        self, requests: Iterator[p4r.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4r.StreamMessageResponse]:
        """Arbitration, packets, digests and notifications of one client."""
        stream = Stream(self._device)
        stream.start(requests)
        yield from stream.responses()
        if not context.is_active():
            # gRPC has ended the RPC itself (bytes that are no message); a handler that merely returned now would
            # send a second status, after which gRPC never considers the RPC finished
            yield p4r.StreamMessageResponse()
        if stream.error is not None:
            _abort(stream.error, context)

    def Capabilities(
        self, request: p4r.CapabilitiesRequest, context: grpc.ServicerContext
    ) -> p4r.CapabilitiesResponse:
        """The version of the protocol."""
        if request.device_id:
            _answer(self._device.check_device, request.device_id, context)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)


def serve(
    device: Device, address: str, credentials: grpc.ServerCredentials | None
) -> tuple[grpc.Server, int]:
    """Start to serve; the server and its TCP port (address port 0 lets the system choose one). Raises OSError if the
    address cannot be bound."""
    options = [
        ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
        ("grpc.so_reuseport", 0),  # or a second switch would silently share the port
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),  # clients keep idle streams alive
        ("grpc.keepalive_permit_without_calls", 1),
    ]
    server = grpc.server(ThreadPoolExecutor(MAX_THREADS, "rpc"), options=options)
    p4r_grpc.add_P4RuntimeServicer_to_server(Service(device), server)
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError:
        raise OSError(f"cannot listen on {address}: is another switch running there?") from None
    server.start()
    return server, port


def _answer(call: Callable[[_Q], _A], request: _Q, context: grpc.ServicerContext) -> _A:
    try:
        return call(request)
    except RequestError as error:
        _abort(error, context)


def _abort(error: RequestError, context: grpc.ServicerContext) -> NoReturn:
    context.abort(_CODES[error.code], error.message)
    raise AssertionError("context.abort always raises")


def _abort_batch(outcomes: Sequence[Outcome], context: grpc.ServicerContext) -> NoReturn:
    failed = [outcome for outcome in outcomes if outcome is not None]
    message = f"{len(failed)} of {len(outcomes)} failed: {failed[0].message}"
    context.abort_with_status(_Status(batch_status(outcomes, message)))
    raise AssertionError("context.abort_with_status always raises")


class _Status(grpc.Status):
    """A google.rpc.Status as gRPC wants it."""

    def __init__(self, status: rpc_status.Status) -> None:
        self.code = _CODES[status.code]
        self.details = status.message
        self.trailing_metadata = (("grpc-status-details-bin", status.SerializeToString()),)
