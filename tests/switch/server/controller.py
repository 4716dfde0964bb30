"""A raw P4Runtime client for the tests: the generated stubs, an inbox, and short ways to write entities."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_status

from tests.switch.server.program import ACTION_ID, FORWARD, TABLE_ID

DEVICE_ID = 7
PATIENCE_S = 10.0


class BatchError(Exception):
    """A write or read of which something failed."""

    def __init__(self, errors: list[p4r.Error]) -> None:
        super().__init__([(e.canonical_code, e.message) for e in errors])
        self.errors = errors
        self.codes = [e.canonical_code for e in errors]


class Controller(AbstractContextManager["Controller"]):
    """One client: a channel and a stream."""

    def __init__(self, address: str, device_id: int) -> None:
        self.device_id = device_id
        self.role = ""
        self.election_id: int | None = None
        self._channel = grpc.insecure_channel(
            address, options=[("grpc.max_metadata_size", 1 << 20)]
        )
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._responses: queue.SimpleQueue[p4r.StreamMessageResponse | grpc.RpcError | None] = (
            queue.SimpleQueue()
        )
        self._stream = self.stub.StreamChannel(iter(self._requests.get, None))
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            for response in self._stream:
                self._responses.put(response)
            self._responses.put(None)
        except grpc.RpcError as error:
            self._responses.put(error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream and the channel."""
        self._requests.put(None)
        self._channel.close()

    # -- stream

    def send(self, request: p4r.StreamMessageRequest) -> None:
        self._requests.put(request)

    def receive(self, timeout: float = PATIENCE_S) -> p4r.StreamMessageResponse:
        """The next message. Raises queue.Empty, or the error with which the stream ended."""
        response = self._responses.get(timeout=timeout)
        if isinstance(response, grpc.RpcError):
            raise response
        assert response is not None, "the stream ended"
        return response

    def nothing_for(self, seconds: float) -> bool:
        """Whether no message comes for so long."""
        try:
            self.receive(seconds)
        except queue.Empty:
            return True
        return False

    def arbitrate(
        self, election_id: int | None, *, role: p4r.Role | None = None, device_id: int | None = None
    ) -> None:
        self.election_id = election_id
        message = p4r.MasterArbitrationUpdate(
            device_id=self.device_id if device_id is None else device_id
        )
        if election_id is not None:
            message.election_id.high, message.election_id.low = (
                election_id >> 64,
                election_id & (1 << 64) - 1,
            )
        if role is not None:
            self.role = role.name
            message.role.CopyFrom(role)
        self.send(p4r.StreamMessageRequest(arbitration=message))

    def arbitration(self) -> p4r.MasterArbitrationUpdate:
        response = self.receive()
        assert response.HasField("arbitration"), response
        return response.arbitration

    # -- unary

    def write(
        self, *updates: p4r.Update, atomicity: int = p4r.WriteRequest.CONTINUE_ON_ERROR
    ) -> None:
        request = p4r.WriteRequest(device_id=self.device_id, updates=updates, role=self.role)
        request.atomicity = atomicity  # type: ignore[assignment]
        self._identify(request)
        try:
            self.stub.Write(request)
        except grpc.RpcError as error:
            raise_batch_error(error)

    def insert(self, **entity: object) -> None:
        self.write(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(**entity)))  # type: ignore[arg-type]

    def modify(self, **entity: object) -> None:
        self.write(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(**entity)))  # type: ignore[arg-type]

    def delete(self, **entity: object) -> None:
        self.write(p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(**entity)))  # type: ignore[arg-type]

    def read(self, **entity: object) -> list[p4r.Entity]:
        return self.read_all(p4r.Entity(**entity))  # type: ignore[arg-type]

    def read_all(self, *entities: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self.device_id, entities=entities, role=self.role)
        try:
            return [entity for response in self.stub.Read(request) for entity in response.entities]
        except grpc.RpcError as error:
            raise_batch_error(error)
            raise

    def read_tables(self, **fields: object) -> list[p4r.TableEntry]:
        return [e.table_entry for e in self.read(table_entry=p4r.TableEntry(**fields))]  # type: ignore[arg-type]

    def set_pipeline(
        self,
        config: p4r.ForwardingPipelineConfig | None,
        action: int = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
    ) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id, role=self.role, config=config
        )
        request.action = action  # type: ignore[assignment]
        self._identify(request)
        self.stub.SetForwardingPipelineConfig(request)

    def get_pipeline(self, response_type: int = 0) -> p4r.ForwardingPipelineConfig:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.response_type = response_type  # type: ignore[assignment]
        return self.stub.GetForwardingPipelineConfig(request).config

    def _identify(self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest) -> None:
        if self.election_id is not None:
            request.election_id.high = self.election_id >> 64
            request.election_id.low = self.election_id & (1 << 64) - 1


def raise_batch_error(error: grpc.RpcError) -> None:
    """The per-element errors inside a gRPC error as BatchError; the error itself if it has none."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            raise BatchError(list(unpack(rpc_status.Status.FromString(value)))) from None
    raise error


def unpack(status: rpc_status.Status) -> Iterator[p4r.Error]:
    for detail in status.details:
        error = p4r.Error()
        assert detail.Unpack(error)
        yield error


# -- entities of the test program ------------------------------------------------------------------------------


def action(kind: int = FORWARD, port: int = 1, mac: int = 2) -> p4r.Action:
    message = p4r.Action(action_id=ACTION_ID[kind])
    if kind == FORWARD:
        message.params.add(param_id=1, value=number(port))
        message.params.add(param_id=2, value=number(mac))
    return message


def number(value: int) -> bytes:
    """The shortest binary string."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def exact(field_id: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field_id, exact=p4r.FieldMatch.Exact(value=number(value)))


def entry(
    table: str, *match: p4r.FieldMatch, act: p4r.Action | None = None, **fields: object
) -> p4r.TableEntry:
    """An entry of a table with direct actions."""
    message = p4r.TableEntry(table_id=TABLE_ID[table], match=match, **fields)  # type: ignore[arg-type]
    message.action.action.CopyFrom(action() if act is None else act)
    return message


def exact_entry(a: int, b: int = 1, **fields: object) -> p4r.TableEntry:
    """An entry of table `exact`."""
    return entry("exact", exact(1, a), exact(2, b), **fields)  # type: ignore[arg-type]


def insert(message: p4r.TableEntry) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=message))
