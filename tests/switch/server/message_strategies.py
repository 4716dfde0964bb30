"""Hypothesis strategies for protobuf messages: any field set or not, values near what the program understands."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

_M = TypeVar("_M", bound=Message)

_INTEGERS = {
    FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.TYPE_UINT64: (0, (1 << 64) - 1),
}


def messages(kind: type[_M], ids: list[int], depth: int = 7) -> st.SearchStrategy[_M]:
    """Messages of a type, nested to a depth; integers are often one of `ids`, or small."""
    return _message(kind.DESCRIPTOR, tuple(ids), depth)  # type: ignore[return-value]


@st.composite
def _message(draw: st.DrawFn, descriptor: Descriptor, ids: tuple[int, ...], depth: int) -> Message:
    message = GetMessageClass(descriptor)()
    if descriptor.full_name == "google.protobuf.Any":
        message.type_url = draw(st.sampled_from(["", "type.googleapis.com/p4.v1.Uint128", "x"]))  # type: ignore[attr-defined]
        message.value = draw(st.binary(max_size=4))  # type: ignore[attr-defined]
        return message
    oneofs = {
        oneof.name: draw(st.sampled_from([f.name for f in oneof.fields]))
        for oneof in descriptor.oneofs
    }
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and oneofs[oneof.name] != field.name:
            continue
        if depth == 0 or draw(st.integers(0, 4)) == 0:
            continue
        _fill(draw, message, field, ids, depth)
    return message


def _fill(
    draw: st.DrawFn, message: Message, field: FieldDescriptor, ids: tuple[int, ...], depth: int
) -> None:
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    if is_map:
        return
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        nested = _message(field.message_type, ids, depth - 1)
        if field.is_repeated:
            getattr(message, field.name).extend(draw(st.lists(nested, max_size=3)))
        else:
            getattr(message, field.name).CopyFrom(draw(nested))
    elif field.is_repeated:
        getattr(message, field.name).extend(draw(st.lists(_scalar(field, ids), max_size=3)))
    else:
        setattr(message, field.name, draw(_scalar(field, ids)))


def _scalar(field: FieldDescriptor, ids: tuple[int, ...]) -> st.SearchStrategy[object]:
    if field.type in _INTEGERS:
        low, high = _INTEGERS[field.type]
        return st.one_of(st.sampled_from(ids), st.integers(0, 8), st.integers(low, high))
    if field.type == FieldDescriptor.TYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.one_of(
            st.binary(max_size=8), st.integers(0, 600).map(lambda n: n.to_bytes(2, "big"))
        )
    return st.text(max_size=4)
