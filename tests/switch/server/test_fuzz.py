"""Hostile messages: whatever arrives, the server answers with a status and goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import p4r
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.switch.server.controller import Controller, exact_entry
from tests.switch.server.message_strategies import messages
from tests.switch.server.program import ACTION_ID, TABLE_ID, config

IDS = [
    *TABLE_ID.values(),
    *ACTION_ID.values(),
    0x11000001,
    0x11000002,
    0x12000001,
    0x14000001,
    0x16000001,
    0x17000001,
    0x03000001,
]
"""Ids that mean something to the test program, so that the fuzzer gets past the look-ups."""

fuzzing = settings(
    max_examples=int(os.environ.get("ECHELON_FUZZ_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def alive(primary: Controller) -> bool:
    """Whether the server still does its work."""
    primary.insert(table_entry=exact_entry(0xFEED))
    primary.delete(table_entry=exact_entry(0xFEED))
    return True


def status_of(call: Iterator[object] | object) -> grpc.StatusCode:
    """The status of a unary call's future or of a stream of responses."""
    try:
        for _ in call:  # type: ignore[union-attr]
            pass
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


UNEXPECTED = {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}


def write(
    primary: Controller, updates: list[p4r.Update], atomicity: int
) -> tuple[grpc.StatusCode, str]:
    request = p4r.WriteRequest(device_id=primary.device_id, updates=updates)
    request.election_id.low = 1
    request.atomicity = atomicity  # type: ignore[assignment]
    try:
        primary.stub.Write(request, timeout=10)
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ""


@pytest.mark.parametrize(
    "atomicity", [p4r.WriteRequest.CONTINUE_ON_ERROR, p4r.WriteRequest.ROLLBACK_ON_ERROR]
)
@fuzzing
@given(updates=st.lists(messages(p4r.Update, IDS), max_size=4))
def test_any_write_has_a_status(
    primary: Controller, atomicity: int, updates: list[p4r.Update]
) -> None:
    code, details = write(primary, updates, atomicity)
    assert code not in UNEXPECTED, details
    assert "Exception" not in details


@fuzzing
@given(entities=st.lists(messages(p4r.Entity, IDS), max_size=3))
def test_any_read_has_a_status(primary: Controller, entities: list[p4r.Entity]) -> None:
    request = p4r.ReadRequest(device_id=primary.device_id, entities=entities)
    try:
        list(primary.stub.Read(request, timeout=10))
    except grpc.RpcError as error:
        assert error.code() not in UNEXPECTED, error.details()
        assert "Exception" not in error.details()


@fuzzing
@given(messages=st.lists(messages(p4r.StreamMessageRequest, IDS), max_size=4))
def test_any_stream_message_leaves_the_stream_or_ends_it_with_a_status(
    primary: Controller, messages: list[p4r.StreamMessageRequest]
) -> None:
    first = p4r.StreamMessageRequest()
    first.arbitration.device_id = primary.device_id
    requests = [first, *messages]
    try:
        list(primary.stub.StreamChannel(iter(requests), timeout=10))
    except grpc.RpcError as error:
        assert error.code() not in UNEXPECTED, error.details()
        assert "Exception" not in error.details()


@fuzzing
@given(
    flips=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), max_size=6),
    act=st.integers(0, 6),
)
def test_any_pipeline_has_a_status(
    primary: Controller, flips: list[tuple[int, int]], act: int
) -> None:
    damaged = bytearray(config().SerializeToString())
    for position, flip in flips:
        damaged[position % len(damaged)] ^= flip
    try:
        message = p4r.ForwardingPipelineConfig.FromString(bytes(damaged))
    except DecodeError:
        reject()
    try:
        primary.set_pipeline(message, act)
    except grpc.RpcError as error:
        assert error.code() not in UNEXPECTED, error.details()
        assert "Exception" not in error.details()


@pytest.mark.parametrize(
    "method", ["Write", "Read", "SetForwardingPipelineConfig", "StreamChannel"]
)
def test_bytes_that_are_no_message_are_refused(primary: Controller, method: str) -> None:
    channel = primary._channel
    path = f"/p4.v1.P4Runtime/{method}"
    if method == "StreamChannel":
        call = channel.stream_stream(path)(iter([b"\xff\xff\xff"]), timeout=10)
    elif method == "Read":
        call = channel.unary_stream(path)(b"\xff\xff\xff", timeout=10)
    else:
        call = channel.unary_stream(path)(b"\xff\xff\xff", timeout=10)
    assert status_of(call) != grpc.StatusCode.OK
    assert alive(primary)
