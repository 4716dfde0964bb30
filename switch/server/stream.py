"""One StreamChannel: a client's requests in, and an outbox that a slow client cannot fill."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from queue import SimpleQueue

import grpc
from finsy.proto import p4r

from switch.dataplane import DataplaneError
from switch.server.arbitration import Client
from switch.server.device import Device
from switch.server.errors import SPACE, Code, RequestError, from_dataplane

OUTBOX = 4096
"""Messages that wait for a client at most; more packet-ins, digests and notifications are lost, as the
specification allows. Arbitration is never dropped."""

_LOG = logging.getLogger(__name__)


class Stream:
    """The server's end of a stream. `read` runs in its own thread, `responses` in gRPC's."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._client = Client(self.send)
        self._outbox: SimpleQueue[p4r.StreamMessageResponse | None] = SimpleQueue()
        self.lost = 0
        """Messages dropped because the client did not keep up."""
        self.error: RequestError | None = None
        """Why the stream ends, if it is the server that ends it."""

    def send(self, response: p4r.StreamMessageResponse) -> None:
        """Queue a message for the client; never blocks."""
        if self._outbox.qsize() >= OUTBOX and not response.HasField("arbitration"):
            self.lost += 1
            return
        self._outbox.put(response)

    def start(self, requests: Iterator[p4r.StreamMessageRequest]) -> None:
        """Handle the requests in a thread of their own until the client closes or goes."""
        threading.Thread(target=self._read, args=(requests,), name="stream", daemon=True).start()

    def responses(self) -> Iterator[p4r.StreamMessageResponse]:
        """The messages for the client, until the stream ends."""
        while (response := self._outbox.get()) is not None:
            yield response

    def _read(self, requests: Iterator[p4r.StreamMessageRequest]) -> None:
        try:
            for request in requests:
                self._handle(request)
        except RequestError as error:
            self.error = error
        except grpc.RpcError:
            pass  # the client has gone
        finally:
            self._device.leave(self._client)
            self._outbox.put(None)
            if self.lost:
                _LOG.warning(
                    "%d messages were lost on a stream whose client did not keep up", self.lost
                )

    def _handle(self, request: p4r.StreamMessageRequest) -> None:
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            self._device.arbitrate(self._client, request.arbitration)
            return
        try:
            if not self._device.is_primary(self._client):
                raise RequestError(Code.PERMISSION_DENIED, "Not primary")
            if kind == "packet":
                self._device.packet_out(request.packet)
            elif kind == "digest_ack":
                self._device.acknowledge(request.digest_ack)
            else:
                raise RequestError(Code.UNIMPLEMENTED, "no such stream message is known")
        except RequestError as error:
            self.send(_stream_error(error, request))
        except DataplaneError as error:
            self.send(_stream_error(from_dataplane(error), request))


def _stream_error(
    error: RequestError, request: p4r.StreamMessageRequest
) -> p4r.StreamMessageResponse:
    """The message that tells a client which of its messages failed, with that message inside."""
    response = p4r.StreamMessageResponse()
    response.error.canonical_code = error.code
    response.error.message = error.message
    response.error.space = SPACE
    kind = request.WhichOneof("update")
    if kind == "packet":
        response.error.packet_out.packet_out.CopyFrom(request.packet)
    elif kind == "digest_ack":
        response.error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
    else:
        response.error.other.SetInParent()
        if kind == "other":
            response.error.other.other.CopyFrom(request.other)
    return response
