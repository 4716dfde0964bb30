"""Expressions compute what unbounded integers would, for every operator and width."""

from __future__ import annotations

import random

import pytest

from switch.dataplane import Dataplane
from tests.switch.dataplane.programs import Node, Source, assign, const, op, ref, to_port, wrapped

WIDTHS = [1, 3, 8, 13, 32, 48, 63, 64, 65, 100, 128, 129, 200, 256]


class Oracle:
    """Random expressions with their value by Python's integers."""

    def __init__(
        self, seed: int, fields: dict[str, tuple[int, bool]], values: dict[str, int]
    ) -> None:
        self.random = random.Random(seed)
        self.fields = fields
        self.values = values

    def signed(self, value: int, bits: int) -> int:
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value

    def leaf(self) -> tuple[Node, int]:
        if self.random.random() < 0.3:
            value = self.random.choice([0, 1, 7, 255, 2**31, 2**63, 2**64 - 1, 2**100 + 5])
            return const(value), value
        name = self.random.choice(list(self.fields))
        bits, signed = self.fields[name]
        value = self.values[name]
        return ref("h", name), self.signed(value, bits) if signed else value

    def make(self, depth: int) -> tuple[Node, int]:
        """An expression and its value; wide intermediates are masked, as p4c does."""
        if depth == 0:
            return self.leaf()
        kind = self.random.choice(
            ["+", "-", "*", "&", "|", "^", "~", "<<", ">>", "mod", "sat", "usat", "?", "b2d"]
        )
        left, a = self.make(depth - 1)
        right, b = self.make(depth - 1)
        bits = self.random.choice(WIDTHS)
        mask = (1 << bits) - 1
        if kind in ("+", "-", "*", "&", "|", "^"):
            value = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[kind]
            node = wrapped(op(kind, left, right))
        elif kind == "~":
            value, node = ~a, op("~", None, left)
        elif kind in ("<<", ">>"):
            by = self.random.choice([0, 1, 7, 31, 63, 64, 65, 127, 130])
            value = a << by if kind == "<<" else a >> by
            node = op(kind, left, const(by))
        elif kind == "mod":
            bits = max(bits, 2)
            return op("two_comp_mod", left, const(bits)), self.signed(a, bits)
        elif kind == "sat":
            bits = max(bits, 2)
            low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
            return op("sat_cast", left, const(bits)), max(low, min(a, high))
        elif kind == "usat":
            return op("usat_cast", left, const(bits)), max(0, min(a, mask))
        elif kind == "?":
            return op("?", left, right, cond=op("<", left, right)), min(b, a)
        else:
            test = self.random.choice(["==", "!=", "<", "<=", ">", ">="])
            truth = {
                "==": a == b,
                "!=": a != b,
                "<": a < b,
                "<=": a <= b,
                ">": a > b,
                ">=": a >= b,
            }[test]
            return op("b2d", None, op(test, left, right)), int(truth)
        return op("&", node, const(mask)), value & mask


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_equal_unbounded_integers(seed: int) -> None:
    source = random.Random(seed)
    fields = {f"u{w}": (w, False) for w in WIDTHS} | {f"s{w}": (w, True) for w in WIDTHS if w > 1}
    values = {
        name: source.choice([0, (1 << bits) - 1, 1 << (bits - 1), source.getrandbits(bits)])
        for name, (bits, _) in fields.items()
    }
    pad = -sum(bits for bits, _ in fields.values()) % 8
    oracle = Oracle(seed, fields, values)
    results = [(width, *oracle.make(source.randrange(1, 4))) for width in WIDTHS for _ in range(4)]
    out = [(f"r{i}", width) for i, (width, _, _) in enumerate(results)]
    out_pad = -sum(width for _, width in out) % 8
    program = Source(
        fields=[(name, bits, signed) for name, (bits, signed) in fields.items()]
        + ([("pad", pad)] if pad else []),
        body=[
            to_port(1),
            *(assign(ref("o", f"r{i}"), wrapped(node)) for i, (_, node, _) in enumerate(results)),
            {"op": "add_header_fast", "parameters": [{"type": "header", "value": "o"}]},
        ],
        more_types=[
            {
                "name": "o_t",
                "id": 9,
                "fields": [[*f, False] for f in out]
                + ([["pad", out_pad, False]] if out_pad else []),
            }
        ],
        more_headers=[{"name": "o", "id": 9, "header_type": "o_t", "metadata": False}],
        order=["o"],
    )
    number, total = 0, 0
    for name, (bits, _) in fields.items():
        number, total = number << bits | values[name], total + bits
    frame = (number << pad).to_bytes((total + pad) // 8, "big")
    with Dataplane() as switch:
        switch.load(program.json())
        [(port, sent)] = switch.process(0, frame)
    assert port == 1
    left = int.from_bytes(sent, "big") >> out_pad
    for (width, node, value), _ in reversed(list(zip(results, out, strict=True))):
        assert left & ((1 << width) - 1) == value & ((1 << width) - 1), (width, node)
        left >>= width
