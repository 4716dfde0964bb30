"""What happens around the program is what simple_switch does: copies, second passes, externs, the traffic manager."""

from __future__ import annotations

import binascii
import os
import select
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from switch.dataplane import Dataplane, Digest, InvalidArgument, MeterConfig, PacketIn
from switch.program import UnsupportedProgram
from tests.switch.dataplane.programs import (
    Node,
    Source,
    assign,
    call,
    const,
    extract,
    header,
    op,
    ref,
    state,
    to_port,
    wrapped,
)

FIELDS: list[tuple[Any, ...]] = [("kind", 8), ("a", 32), ("b", 16), ("pad", 8)]
STD = "standard_metadata"


@pytest.fixture
def switch() -> Iterator[Dataplane]:
    with Dataplane(queues=8, cpu_port=255) as dataplane:
        yield dataplane


def frame(kind: int = 0, a: int = 0, b: int = 0, payload: bytes = b"payload") -> bytes:
    return struct.pack("!BIHx", kind, a, b) + payload


def when(condition: Node, *body: Node) -> list[Node]:
    """`if (condition) body` as the primitives of an action; jump targets are filled in by `jumps`."""
    return [call("_jump_if_zero", condition, const(len(body))), *body]


def jumps(primitives: list[Node]) -> list[Node]:
    """Relative jumps -> the absolute ones of the JSON."""
    for index, primitive in enumerate(primitives):
        if primitive["op"] == "_jump_if_zero":
            distance = int(primitive["parameters"][1]["value"], 16)
            primitive["parameters"][1] = const(index + 1 + distance)
    return primitives


def is_type(kind: int) -> Node:
    return op("==", ref(STD, "instance_type"), const(kind))


def fields_list(number: int, *fields: tuple[str, str]) -> Node:
    return {
        "id": number,
        "name": f"fl{number}",
        "elements": [{"type": "field", "value": list(f)} for f in fields],
    }


def test_ingress_clone_is_parsed_again_from_the_original_frame(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            metadata=[("m", 16)],
            body=[
                assign(ref("h", "a"), const(99)),
                assign(ref("scalars", "m"), const(0xBEEF)),
                call("clone_ingress_pkt_to_egress", const(5), const(1)),
                to_port(1),
            ],
            egress=jumps(when(is_type(1), assign(ref("h", "b"), ref("scalars", "m")))),
            extra={"field_lists": [fields_list(1, ("scalars", "m"))]},
        ).json()
    )
    switch.set_clone_session(5, [(7, 3)])
    assert sorted(switch.process(0, frame(a=1))) == [(1, frame(a=99)), (7, frame(a=1, b=0xBEEF))]


def test_a_clone_session_truncates(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS, body=[call("clone_ingress_pkt_to_egress", const(5), const(0)), to_port(511)]
        ).json()
    )
    switch.set_clone_session(5, [(7, 0)], packet_length=10)
    assert switch.process(0, frame()) == [(7, frame()[:10])]
    switch.set_clone_session(5, [])
    assert switch.process(0, frame()) == []


def test_egress_clone_takes_the_changed_headers(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            body=[to_port(1)],
            egress=jumps(
                when(
                    is_type(0),
                    assign(ref("h", "a"), const(5)),
                    call("clone_egress_pkt_to_egress", const(9), const(0)),
                )
            ),
        ).json()
    )
    switch.set_clone_session(9, [(2, 0)])
    assert sorted(switch.process(0, frame())) == [(1, frame(a=5)), (2, frame(a=5))]


def test_resubmit_starts_over_with_the_fields_it_keeps(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            metadata=[("m", 16)],
            body=jumps(
                [
                    *when(
                        is_type(0),
                        assign(ref("scalars", "m"), const(77)),
                        assign(ref("h", "a"), const(1)),
                        call("resubmit", const(2)),
                    ),
                    assign(ref("h", "b"), ref("scalars", "m")),
                    to_port(4),
                ]
            ),
            extra={"field_lists": [fields_list(2, ("scalars", "m"))]},
        ).json()
    )
    assert switch.process(0, frame()) == [(4, frame(b=77))]


def test_recirculate_keeps_what_egress_did(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            body=[assign(ref("h", "b"), ref(STD, "packet_length")), to_port(4)],
            egress=jumps(
                when(
                    op("<", ref("h", "a"), const(3)),
                    assign(ref("h", "a"), op("+", ref("h", "a"), const(1))),
                    call("recirculate", const(1)),
                )
            ),
            extra={"field_lists": [fields_list(1)]},
        ).json()
    )
    assert switch.process(0, frame()) == [(4, frame(a=3, b=15))]


def test_multicast_tells_copies_apart_by_replication_id(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            body=[assign(ref(STD, "mcast_grp"), const(8))],
            egress=[
                assign(ref("h", "b"), ref(STD, "egress_rid")),
                assign(ref("h", "a"), ref(STD, "instance_type")),
            ],
        ).json()
    )
    assert switch.process(0, frame()) == []
    switch.set_multicast(8, [(1, 10), (2, 20), (1, 30)])
    assert sorted(switch.process(0, frame())) == [
        (1, frame(a=5, b=10)),
        (1, frame(a=5, b=30)),
        (2, frame(a=5, b=20)),
    ]


def test_digests_are_reported_once_until_forgotten(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            body=[call("generate_digest", const(1), const(1)), to_port(1)],
            extra={
                "learn_lists": [
                    {
                        "id": 1,
                        "name": "learn",
                        "elements": [
                            {"type": "field", "value": ["h", "a"]},
                            {"type": "field", "value": ["h", "b"]},
                        ],
                    }
                ]
            },
        ).json()
    )
    digest = switch.digest("learn")
    switch.process(0, frame(a=1))
    assert switch.read_events() == []
    switch.enable_digest(digest, True)
    for a in (1, 1, 2):
        switch.process(0, frame(a=a, b=3))
    samples = [struct.pack("!IH", a, 3) for a in (1, 2)]
    assert select.select([switch.events_fd], [], [], 0)[0]
    assert switch.read_events() == [Digest(digest, samples)]
    assert not select.select([switch.events_fd], [], [], 0)[0]
    switch.process(0, frame(a=1, b=3))
    assert switch.read_events() == []
    switch.forget_digests(digest, samples[:1])
    for a in (1, 2):
        switch.process(0, frame(a=a, b=3))
    assert switch.read_events() == [Digest(digest, samples[:1])]


def test_registers_and_counters_are_per_index(switch: Dataplane) -> None:
    index = ref("h", "kind")
    read: Node = {"type": "register_array", "value": "wide"}
    switch.load(
        Source(
            FIELDS,
            body=[
                call("count", {"type": "counter_array", "value": "c"}, index),
                call(
                    "register_read", ref("h", "b"), {"type": "register_array", "value": "r"}, index
                ),
                call(
                    "register_write", {"type": "register_array", "value": "r"}, index, ref("h", "a")
                ),
                call("register_write", read, index, wrapped(op("<<", ref("h", "a"), const(150)))),
                to_port(1),
            ],
            extra={
                "counter_arrays": [{"name": "c", "id": 0, "size": 4, "is_direct": False}],
                "register_arrays": [
                    {"name": "r", "id": 0, "size": 4, "bitwidth": 12},
                    {"name": "wide", "id": 1, "size": 4, "bitwidth": 200},
                ],
            },
        ).json()
    )
    r, c, wide = switch.register("r"), switch.counter("c"), switch.register("wide")
    switch.register_write(r, 2, 0xFFFF)
    assert switch.process(0, frame(2, a=0x12345)) == [(1, frame(2, a=0x12345, b=0xFFF))]
    assert switch.register_read(r, 2) == 0x345
    assert switch.register_read(wide, 2) == 0x12345 << 150
    switch.process(0, frame(200, a=1))  # outside every array: nothing happens
    assert switch.counter_read_all(c) == [(0, 0), (0, 0), (1, 15), (0, 0)]
    switch.counter_write(c, 2, 5, 6)
    assert switch.counter_read(c, 2) == (5, 6)


def test_a_meter_colours_by_two_rates(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            body=[
                call(
                    "execute_meter", {"type": "meter_array", "value": "m"}, const(1), ref("h", "b")
                ),
                to_port(1),
            ],
            extra={
                "meter_arrays": [
                    {
                        "name": "m",
                        "id": 0,
                        "is_direct": False,
                        "rate_count": 2,
                        "type": "bytes",
                        "size": 2,
                    }
                ]
            },
        ).json()
    )
    meter = switch.meter("m")

    def colours(count: int) -> list[int]:
        return [
            struct.unpack("!H", switch.process(0, frame(b=9))[0][1][5:7])[0] for _ in range(count)
        ]

    assert colours(3) == [0, 0, 0]
    switch.meter_write(meter, 1, MeterConfig(cir=1, cburst=30, pir=1, pburst=60))
    assert switch.meter_read(meter, 1) == MeterConfig(1, 30, 1, 60)
    assert colours(6) == [0, 0, 1, 1, 2, 2]
    switch.meter_write(meter, 1, MeterConfig(cir=15_000, cburst=15, pir=30_000, pburst=30))
    assert colours(3) == [0, 1, 2]
    time.sleep(0.02)
    assert colours(1) == [0]
    switch.meter_write(meter, 1, None)
    assert colours(3) == [0, 0, 0]
    assert switch.meter_read(meter, 1) is None


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("crc32", lambda data: binascii.crc32(data)),
        ("crc16", lambda data: _reflected_crc(data, 0xA001)),
        ("xor16", lambda data: 0x0001 ^ 0x0203 ^ 0x0405),
        ("identity", lambda data: 0x000102030405),
        ("csum16", lambda data: 0xFFFF - (0x0001 + 0x0203 + 0x0405)),
        ("crc_ccitt_false", lambda data: binascii.crc_hqx(data, 0xFFFF)),
        ("xmodem", lambda data: binascii.crc_hqx(data, 0)),
        ("poly_0x104c11db7_init_0xffffffff_xout_0xffffffff", lambda data: binascii.crc32(data)),
    ],
)
def test_hashes_have_their_published_values(
    switch: Dataplane, algorithm: str, expected: Callable[[bytes], int]
) -> None:
    switch.load(
        Source(
            [("data", 48), ("out", 64)],
            body=[
                call(
                    "modify_field_with_hash_based_offset",
                    ref("h", "out"),
                    const(0),
                    {"type": "calculation", "value": "c"},
                    const((1 << 64) - 1),
                ),
                to_port(1),
            ],
            extra={
                "calculations": [
                    {
                        "name": "c",
                        "id": 0,
                        "algo": algorithm,
                        "input": [{"type": "field", "value": ["h", "data"]}],
                    }
                ]
            },
        ).json()
    )
    data = bytes(range(6))
    out = switch.process(0, data + bytes(8))[0][1]
    assert int.from_bytes(out[6:], "big") == expected(data)


def _reflected_crc(data: bytes, polynomial: int) -> int:
    """Bit by bit, as the definition says."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
    return crc


def test_checksums_are_verified_and_updated(switch: Dataplane) -> None:
    checksum = {
        "name": "cs",
        "id": 0,
        "type": "generic",
        "calculation": "c",
        "target": ["h", "b"],
        "verify": True,
        "update": True,
        "if_cond": op("==", ref("h", "kind"), const(0)),
    }
    switch.load(
        Source(
            FIELDS,
            body=[assign(ref("h", "pad"), ref(STD, "checksum_error")), to_port(1)],
            extra={
                "checksums": [checksum],
                "calculations": [
                    {
                        "name": "c",
                        "id": 0,
                        "algo": "csum16",
                        "input": [{"type": "field", "value": ["h", "a"]}, {"type": "payload"}],
                    }
                ],
            },
        ).json()
    )
    right = 0xFFFF - (0x1234 + 0x0041)
    good = struct.pack("!BIHx", 0, 0x1234, right) + b"\x00\x41"
    assert switch.process(0, good) == [(1, good)]
    bad = struct.pack("!BIHB", 0, 0x1234, 7, 0) + b"\x00\x41"
    assert switch.process(0, bad) == [(1, good[:7] + b"\1" + good[8:])]
    ignored = struct.pack("!BIHx", 1, 0x1234, 7) + b"\x00\x41"
    assert switch.process(0, ignored) == [(1, ignored)]


def test_parser_errors_reach_the_program(switch: Dataplane) -> None:
    switch.load(
        Source(
            FIELDS,
            body=[
                assign(ref("h", "b"), ref(STD, "parser_error")),
                call("add_header", header("h")),
                to_port(1),
            ],
        ).json()
    )
    assert switch.process(0, bytes(7)) == [
        (1, bytes(8) + bytes(7))
    ]  # added header is zeroed: b was too
    switch.load(
        Source(
            FIELDS,
            body=[
                call("add_header", header("h")),
                assign(ref("h", "b"), ref(STD, "parser_error")),
                to_port(1),
            ],
        ).json()
    )
    assert switch.process(0, bytes(7)) == [(1, bytes(5) + b"\0\1\0" + bytes(7))]


def test_varbits_keep_their_length(switch: Dataplane) -> None:
    length = wrapped(op("*", {"type": "field", "value": ["h0", "n"]}, const(8)))
    switch.load(
        Source(
            [("v", "*"), ("tail", 8)],
            body=[assign(ref("h", "tail"), const(0xEE)), to_port(1)],
            more_types=[{"name": "h0_t", "id": 5, "fields": [["n", 8, False]]}],
            more_headers=[{"name": "h0", "id": 5, "header_type": "h0_t", "metadata": False}],
            states=[
                state(
                    "start",
                    extract("h0"),
                    {"op": "extract_VL", "parameters": [{"type": "regular", "value": "h"}, length]},
                )
            ],
            order=["h0", "h"],
        ).json()
    )
    assert switch.process(0, b"\x03abcT" + b"rest") == [(1, b"\x03abc\xeerest")]
    assert switch.process(0, b"\x00T" + b"rest") == [(1, b"\x00\xeerest")]
    assert switch.process(0, b"\xc8" + bytes(300)) == [
        (1, b"\xc8" + bytes(300))
    ]  # HeaderTooShort: h stays invalid


def test_stacks_push_and_pop(switch: Dataplane) -> None:
    elements = [
        {"name": f"s[{i}]", "id": 10 + i, "header_type": "e_t", "metadata": False} for i in range(3)
    ]
    stack: Node = {"type": "header_stack", "value": "s"}
    last: Node = {"type": "stack_field", "value": ["s", "bottom"]}
    states = [
        state("start", extract("h"), default="next"),
        state(
            "next",
            {"op": "extract", "parameters": [{"type": "stack", "value": "s"}]},
            key=[last],
            cases=[{"type": "hexstr", "value": "0x00", "mask": None, "next_state": "next"}],
        ),
    ]
    common: dict[str, Any] = {
        "more_types": [{"name": "e_t", "id": 5, "fields": [["v", 7, False], ["bottom", 1, False]]}],
        "more_headers": elements,
        "states": states,
        "order": ["h", "s[0]", "s[1]", "s[2]"],
        "extra": {
            "header_stacks": [
                {"name": "s", "id": 0, "header_type": "e_t", "size": 3, "header_ids": [10, 11, 12]}
            ]
        },
    }
    switch.load(Source(FIELDS, body=[call("pop", stack, const(1)), to_port(1)], **common).json())
    assert switch.process(0, frame(payload=b"\x02\x05rest")) == [(1, frame(payload=b"\x05rest"))]
    switch.load(
        Source(
            FIELDS,
            body=[
                call("push", stack, const(1)),
                call("add_header", header("s[0]")),
                assign(ref("s[0]", "v"), const(9)),
                to_port(1),
            ],
            **common,
        ).json()
    )
    assert switch.process(0, frame(payload=b"\x02\x05rest")) == [
        (1, frame(payload=b"\x12\x02\x05rest"))
    ]
    # a fourth element does not fit: StackOutOfBounds, what was extracted stays
    assert switch.process(0, frame(payload=b"\x02\x04\x06\x05")) == [
        (1, frame(payload=b"\x12\x02\x04\x05"))
    ]


def test_log_messages_and_their_values(switch: Dataplane) -> None:
    readable, writable = os.pipe()
    with Dataplane(log_fd=writable) as loud:
        loud.load(
            Source(
                FIELDS,
                body=[
                    call(
                        "log_msg",
                        {"type": "string", "value": "a={} b={} \\{x\\}"},
                        {
                            "type": "parameters_vector",
                            "value": [ref("h", "a"), wrapped(op("-", const(0), const(5)))],
                        },
                    )
                ],
            ).json()
        )
        loud.process(0, frame(a=1234))
    assert os.read(readable, 100) == b"a=1234 b=-5 {x}\n"
    os.close(readable)
    os.close(writable)


def test_priority_out_of_range_is_dropped_and_counted(switch: Dataplane) -> None:
    with Dataplane(queues=2) as two:
        two.load(
            Source(FIELDS, body=[assign(ref(STD, "priority"), ref("h", "kind")), to_port(1)]).json()
        )
        assert two.process(0, frame(1)) == [(1, frame(1))]
        assert two.process(0, frame(2)) == []
        assert two.priority_drops == 1


def test_packets_to_the_cpu_port_are_events_and_packet_outs_come_in_on_it(
    switch: Dataplane,
) -> None:
    switch.load(
        Source(FIELDS, body=[assign(ref("h", "b"), ref(STD, "ingress_port")), to_port(255)]).json()
    )
    switch.start()
    switch.packet_out(frame(a=7))
    assert select.select([switch.events_fd], [], [], 5)[0]
    assert switch.read_events() == [PacketIn(frame(a=7, b=255))]
    switch.stop()
    with Dataplane() as without, pytest.raises(InvalidArgument, match="CPU port"):
        without.packet_out(b"")


def test_loading_again_starts_afresh(switch: Dataplane) -> None:
    first = Source(FIELDS, body=[to_port(1)]).json()
    switch.load(first)
    switch.set_multicast(1, [(1, 1)])
    assert switch.process(0, frame()) == [(1, frame())]
    switch.load(Source(FIELDS, body=[assign(ref(STD, "mcast_grp"), const(1))]).json())
    assert switch.process(0, frame()) == []
    with pytest.raises(UnsupportedProgram):
        switch.load(Source(FIELDS, body=[call("teleport")]).json())
    switch.set_multicast(1, [(2, 0)])
    assert switch.process(0, frame()) == [
        (2, frame())
    ]  # the program before the refused one runs on


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Source(FIELDS, body=[call("teleport", const(1))]), ["test.p4:42", "teleport"]),
        (
            Source(FIELDS, extra={"extern_instances": [{"name": "x", "type": "Magic", "id": 0}]}),
            ["Magic"],
        ),
        (
            Source(
                FIELDS,
                extra={"calculations": [{"name": "c", "id": 0, "algo": "sha256", "input": []}]},
            ),
            ["sha256"],
        ),
        (
            Source(FIELDS, states=[state("start", {"op": "teleport", "parameters": []})]),
            ["teleport", "start"],
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    switch: Dataplane, source: Source, words: list[str]
) -> None:
    with pytest.raises(UnsupportedProgram) as caught:
        switch.check(source.json())
    assert all(word in str(caught.value) for word in words)


def test_a_key_that_is_an_expression_is_refused_by_name(switch: Dataplane) -> None:
    """An element of a stack at an index that only the packet tells: BMv2 ends on it."""
    source = Source(FIELDS, body=[to_port(1)])
    key = {"match_type": "exact", "name": "h[m.i].a", "target": op("dereference", None, const(1))}
    where = {"filename": "test.p4", "line": 93, "column": 1, "source_fragment": "stub"}
    source.table("stub", [], [0], source_info=where)
    source.tables[0]["key"] = [key]
    with pytest.raises(UnsupportedProgram, match=r"test.p4:93: .*h\[m.i\].a of table stub"):
        switch.check(source.json())


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", b'{"pipelines": 1, "header_types": 2}', b"\xff"]
)
def test_what_is_no_program_is_a_value_error(switch: Dataplane, text: bytes) -> None:
    with pytest.raises(ValueError):
        switch.load(text)


def test_names_cannot_write_c(switch: Dataplane) -> None:
    """Whoever sets a pipeline runs P4, not C."""
    evil = '*/ "); abort(); /*\n#error'
    source = Source(
        FIELDS,
        body=[to_port(1)],
        actions=[{"name": evil, "primitives": []}],
        extra={
            "program": evil,
            "counter_arrays": [{"name": evil, "id": 0, "size": 1, "is_direct": False}],
        },
    )
    source.table(evil, [(ref("h", "a"), "exact")], [2])
    switch.load(source.json())
    assert switch.process(0, frame()) == [(1, frame())]
    switch.counter(evil)


@pytest.mark.parametrize("size", ["1}; void f(void) {", 1.5, True, -1, 1 << 40])
def test_numbers_must_be_numbers(switch: Dataplane, size: object) -> None:
    arrays = {"counter_arrays": [{"name": "c", "id": 0, "size": size, "is_direct": False}]}
    with pytest.raises((ValueError, UnsupportedProgram), match=r"size"):
        switch.load(Source(FIELDS, extra=arrays).json())
