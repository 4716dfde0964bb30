"""BMv2 expressions -> C.

BMv2 computes with unbounded integers; p4c writes every truncation out. So two ways to translate a node:
`exact` gives its mathematical value in a C type that its bounds fit, `modular` gives it modulo 2^n, which is all that a
mask or a store of n bits needs and nearly always plain uint64_t arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from switch.generator.layout import Field, Header, Layout, Stack, Union
from switch.program import Parameter, RegisterArray, UnsupportedProgram

Node = dict[str, Any]

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
BOOLEAN_OPS = (*COMPARISONS, "and", "or", "not", "valid", "valid_union", "d2b")
MAX_BITS = 8192


def bounds_of_bits(bits: int, signed: bool = False) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed and bits else (0, (1 << bits) - 1)


def c_type(low: int, high: int) -> str:
    """The narrowest C type that holds every value of the interval."""
    if low >= 0:
        return "uint64_t" if high < 1 << 64 else "u128" if high < 1 << 128 else "struct big"
    if low >= -(1 << 63) and high < 1 << 63:
        return "int64_t"
    return "i128" if low >= -(1 << 127) and high < 1 << 127 else "struct big"


def modular_type(bits: int) -> str:
    return "uint64_t" if bits <= 64 else "u128" if bits <= 128 else "struct big"


def literal(value: int, kind: str) -> str:
    """A constant of a C type."""
    if kind == "struct big":
        size = (abs(value).bit_length() + 7) // 8 or 1
        body = "".join(f"\\x{b:02x}" for b in abs(value).to_bytes(size, "big"))
        positive = f'big_load((const uint8_t *)"{body}", {size})'
        return positive if value >= 0 else f"big_sub(big_from(0), {positive})"
    if kind in ("u128", "i128"):
        value &= (1 << 128) - 1
        text = f"U128({value >> 64:#x}ull, {value & (1 << 64) - 1:#x}ull)"
        return f"(i128){text}" if kind == "i128" else text
    if kind == "int64_t":
        return f"(int64_t){value & (1 << 64) - 1:#x}ull"
    return f"{value}ull" if value < 1 << 16 else f"{value:#x}ull"


def convert(code: str, have: str, want: str) -> str:
    """C code of type `have` as type `want` (modulo 2^n when it narrows)."""
    if have == want:
        return code
    if want == "struct big":
        return f"big_from_u({code})" if have in ("uint64_t", "u128") else f"big_from({code})"
    if have == "struct big":
        code = f"big_low({code})"
    return f"({want})({code})"


@dataclass(frozen=True)
class Scope:
    """Where action parameters come from (`P`), and which."""

    parameters: Sequence[Parameter] = ()

    def offset(self, index: int) -> int:
        return sum((p.bits + 7) // 8 for p in self.parameters[:index])


def unwrap(node: Node) -> Node:
    """Strips the JSON's nested `expression` wrappers."""
    while node["type"] == "expression" and "op" not in node["value"]:
        node = node["value"]
    return node


class Expressions:
    """Translates the expressions of one program."""

    def __init__(self, layout: Layout, registers: dict[str, RegisterArray]) -> None:
        self.layout = layout
        self.registers = registers
        self.big_bits = 0
        """Bits that `struct big` must hold; 0 while nothing is wider than 128 bits."""

    # -- what kind of thing a node is

    def kind(self, node: Node) -> str:
        node = unwrap(node)
        if node["type"] == "bool":
            return "bool"
        if node["type"] in ("header", "header_union", "header_stack", "header_union_stack"):
            return {"header": "header", "header_union": "union"}.get(node["type"], "stack")
        if node["type"] != "expression":
            return "data"
        op = node["value"]["op"]
        if op == "?":
            return self.kind(node["value"]["left"])
        if op in BOOLEAN_OPS:
            return "bool"
        if op in ("dereference_header_stack", "access_union_header"):
            return "header"
        return "union" if op == "dereference_union_stack" else "data"

    # -- headers

    def header(self, node: Node, scope: Scope) -> Header:
        node = unwrap(node)
        value = node["value"]
        if node["type"] == "header":
            return self.layout.headers[value]
        if node["type"] != "expression":
            raise UnsupportedProgram(f"a header given as {node['type']} {value} is not supported")
        if value["op"] == "access_union_header":
            return self.union(value["left"], scope).member(value["right"])
        if value["op"] == "?":
            one, two = self.header(value["left"], scope), self.header(value["right"], scope)
            return Header(
                f"(*({self.boolean(value['cond'], scope)} ? &{one.code} : &{two.code}))", one.type
            )
        stack = self.stack(value["left"])
        assert stack.header is not None
        return Header(stack.element(self._index(stack, value["right"], scope)), stack.header)

    def union(self, node: Node, scope: Scope) -> Union:
        node = unwrap(node)
        value = node["value"]
        if node["type"] == "header_union":
            return self.layout.unions[value]
        stack = self.stack(value["left"])
        assert stack.union is not None
        return Union(stack.element(self._index(stack, value["right"], scope)), stack.union)

    def stack(self, node: Node) -> Stack:
        node = unwrap(node)
        tables = self.layout.stacks if node["type"] == "header_stack" else self.layout.union_stacks
        return tables[node["value"]]

    def last(self, stack: Stack) -> str:
        """Index of the last element extracted; beyond the end when there is none."""
        return f"({stack.count} ? {stack.count} - 1 : {stack.size})"

    def _index(self, stack: Stack, node: Node, scope: Scope) -> str:
        low, high = self.bounds(node, scope)
        if low == high:
            return str(low if 0 <= low < stack.size else stack.size)
        code = self.modular(node, 64, scope)
        return f"({{ uint64_t at = {code}; at < {stack.size} ? at : {stack.size}; }})"

    # -- fields

    def place(self, node: Node, scope: Scope) -> tuple[Header, Field] | None:
        """The field a node names, if it names one."""
        node = unwrap(node)
        value = node["value"]
        if node["type"] == "field" and value[1] != "$valid$":
            return self.layout.field(value)
        if node["type"] == "stack_field":
            stack = self.layout.stacks[value[0]]
            assert stack.header is not None
            return Header(stack.element(self.last(stack)), stack.header), stack.header.field(
                value[1]
            )
        if node["type"] == "expression" and value["op"] == "access_field":
            header = self.header(value["left"], scope)
            return header, header.type.fields[value["right"]]
        return None

    def load(self, header: Header, field: Field) -> str:
        """The value of a field, in c_type of its bounds."""
        if field.varbit:
            raise UnsupportedProgram(
                f"arithmetic on varbit field {header.type.name}.{field.name} is not supported"
            )
        code = header.at(field)
        if field.wide:
            self._need(field.bits)
            loaded = f"big_load({code}, {field.bytes})"
            return f"big_sext({loaded}, {field.bits})" if field.signed else loaded
        if not field.signed:
            return f"(uint64_t){code}" if field.bits <= 64 else code
        return (
            f"sext64({code}, {field.bits})"
            if field.bits <= 64
            else f"sext128({code}, {field.bits})"
        )

    def store(self, header: Header, field: Field, node: Node, scope: Scope) -> str:
        """A statement that assigns an expression to a field."""
        if self.kind(node) == "bool":
            return f"{header.at(field)} = {self.boolean(node, scope)};"
        source = self.place(node, scope)
        if field.wide:
            if source and source[1].wide and source[1].bits == field.bits and not source[1].varbit:
                return f"memmove({header.at(field)}, {source[0].at(source[1])}, {field.bytes});"
            return f"big_store({header.at(field)}, {field.bits}, {self.modular(node, field.bits, scope)});"
        if source and not source[1].wide and not source[1].signed and source[1].bits <= field.bits:
            return f"{header.at(field)} = {source[0].at(source[1])};"
        low, high = self.bounds(node, scope)
        if low >= 0 and high < 1 << field.bits:
            return f"{header.at(field)} = ({field.c_type})({self.exact(node, scope)});"
        mask = literal((1 << field.bits) - 1, modular_type(field.bits))
        return f"{header.at(field)} = ({field.c_type})(({self.modular(node, field.bits, scope)}) & {mask});"

    # -- bounds

    def bounds(self, node: Node, scope: Scope) -> tuple[int, int]:
        """The interval a data node's value is certainly in."""
        node = unwrap(node)
        kind, value = node["type"], node["value"]
        if kind == "hexstr":
            return (int(value, 16),) * 2
        if kind == "bool" or (kind == "field" and value[1] == "$valid$"):
            return 0, 1
        place = self.place(node, scope)
        if place:
            return bounds_of_bits(place[1].bits, place[1].signed)
        if kind in ("local", "runtime_data"):
            return bounds_of_bits(scope.parameters[value].bits)
        if kind == "register":
            return bounds_of_bits(self.registers[value[0]].bits)
        if kind != "expression":
            raise UnsupportedProgram(f"expression of type {kind} is not supported")
        return self._op_bounds(value, scope)

    def _op_bounds(self, value: Node, scope: Scope) -> tuple[int, int]:
        op = value["op"]
        if op in ("b2d", *BOOLEAN_OPS):
            return 0, 1
        if op == "last_stack_index":
            return bounds_of_bits(64)
        if op == "size_stack":
            return bounds_of_bits(32)
        right = self.bounds(value["right"], scope)
        if op == "~":
            return -right[1] - 1, -right[0] - 1
        left = (0, 0) if value.get("left") is None else self.bounds(value["left"], scope)
        if op in ("two_comp_mod", "sat_cast"):
            low, high = bounds_of_bits(right[1], True)
            return (
                (max(low, min(left[0], high)), min(high, max(left[1], low)))
                if op == "sat_cast" or (low <= left[0] and left[1] <= high)
                else (low, high)
            )
        if op == "usat_cast":
            high = (1 << right[1]) - 1
            return max(0, min(left[0], high)), min(high, max(left[1], 0))
        return _arithmetic_bounds(op, left, right)

    # -- exact

    def exact(self, node: Node, scope: Scope) -> str:
        """C code of the node's value in the type `c_type(*bounds(node))`."""
        node = unwrap(node)
        low, high = self.bounds(node, scope)
        self._check(low, high)
        if low == high and node["type"] == "hexstr":
            return literal(low, c_type(low, high))
        if node["type"] == "bool":
            return "1ull" if node["value"] else "0ull"
        place = self.place(node, scope)
        if place:
            return self.load(*place)
        kind, value = node["type"], node["value"]
        if kind == "field":
            owner = value[0]  # a header's name, or an element of a stack
            header = (
                self.header({"type": "expression", "value": owner}, scope)
                if isinstance(owner, dict)
                else self.layout.headers[owner]
            )
            return f"(uint64_t){header.valid}"
        if kind in ("local", "runtime_data"):
            size = (scope.parameters[value].bits + 7) // 8
            name = "load_be" if size <= 8 else "load_be128" if size <= 16 else "big_load"
            return f"{name}(P + {scope.offset(value)}, {size})"
        if kind == "register":
            return self._register(value, scope)
        return self._op(value, c_type(low, high), scope)

    def as_type(self, node: Node, want: str, scope: Scope) -> str:
        """`exact`, converted to a type that holds it."""
        bounds = self.bounds(node, scope)
        unwrapped = unwrap(node)
        if unwrapped["type"] == "hexstr":
            return literal(bounds[0], want)
        return convert(self.exact(node, scope), c_type(*bounds), want)

    def _op(self, value: Node, want: str, scope: Scope) -> str:
        op = value["op"]
        left: Any = value.get("left")
        right: Any = value.get("right")
        if op == "?":
            return (
                f"({self.boolean(value['cond'], scope)} ? {self.as_type(left, want, scope)}"
                f" : {self.as_type(right, want, scope)})"
            )
        if op == "b2d":
            return f"(uint64_t)({self.boolean(right, scope)})"
        if op in BOOLEAN_OPS:
            return f"(uint64_t)({self._boolean_op(value, scope)})"
        if op == "last_stack_index":
            return f"((uint64_t){self.stack(right).count} - 1)"
        if op == "size_stack":
            return f"(uint64_t){self.stack(right).count}"
        if op == "&":
            return self._and(left, right, want, scope)
        if op == "two_comp_mod":
            return self._two_comp_mod(left, right, want, scope)
        if op in ("sat_cast", "usat_cast"):
            return self._saturate(value, want, scope)
        if op in ("<<", ">>"):
            return self._shift(value, want, scope)
        if op == "~":
            code = self.as_type(right, want, scope)
            return f"big_not({code})" if want == "struct big" else f"(~{code})"
        return self._arithmetic(value, want, scope)

    def _arithmetic(self, value: Node, want: str, scope: Scope) -> str:
        """+ - * / % | ^ on a type that holds the operands and the result."""
        op, left, right = value["op"], value.get("left"), value["right"]
        intervals = [self.bounds(right, scope), self._op_bounds(value, scope)]
        if left is not None:
            intervals.append(self.bounds(left, scope))
        low, high = min(i[0] for i in intervals), max(i[1] for i in intervals)
        self._check(low, high)
        work = c_type(low, high)
        a = literal(0, work) if left is None else self.as_type(left, work, scope)
        b = self.as_type(right, work, scope)
        if work == "struct big":
            names = {"+": "add", "-": "sub", "*": "mul", "|": "or", "^": "xor"}
            if op not in names:
                raise UnsupportedProgram(f"operator {op} on more than 128 bits is not supported")
            return convert(f"big_{names[op]}({a}, {b})", work, want)
        if op in ("/", "%"):
            return convert(f"({{ {work} by = {b}; by ? ({a}) {op} by : 0; }})", work, want)
        return convert(f"({a} {op} {b})", work, want)

    def _and(self, left: Node, right: Node, want: str, scope: Scope) -> str:
        a, b = self.bounds(left, scope), self.bounds(right, scope)
        if a[0] < 0 and b[0] < 0:
            work = c_type(min(a[0], b[0]), max(a[1], b[1]))
            one, two = self.as_type(left, work, scope), self.as_type(right, work, scope)
            return convert(
                f"big_and({one}, {two})" if work == "struct big" else f"({one} & {two})", work, want
            )
        if b[0] < 0 or (a[0] >= 0 and a[1] < b[1]):
            left, right, a, b = right, left, b, a
        bits = max(b[1].bit_length(), 1)
        work = modular_type(bits)
        if a[0] >= 0 and a[1] <= b[1] and b[0] == b[1] and b[1] & (b[1] + 1) == 0:
            return self.as_type(left, want, scope)  # the mask covers every value there can be
        one, two = self.modular(left, bits, scope), self.as_type(right, work, scope)
        return convert(
            f"big_and({one}, {two})" if work == "struct big" else f"({one} & {two})", work, want
        )

    def _two_comp_mod(self, left: Node, right: Node, want: str, scope: Scope) -> str:
        width = self.bounds(right, scope)[1]
        low, high = self.bounds(left, scope)
        limit_low, limit_high = bounds_of_bits(width, True)
        if limit_low <= low and high <= limit_high:
            return self.as_type(left, want, scope)
        code = self.modular(left, width, scope)
        if width <= 64:
            return convert(f"sext64({code}, {width})", "int64_t", want)
        if width <= 128:
            return convert(f"sext128({code}, {width})", "i128", want)
        self._need(width + 64)
        return f"big_sext({code}, {width})"

    def _saturate(self, value: Node, want: str, scope: Scope) -> str:
        width = self.bounds(value["right"], scope)[1]
        low, high = bounds_of_bits(width, value["op"] == "sat_cast")
        have = self.bounds(value["left"], scope)
        work = c_type(min(low, have[0]), max(high, have[1]))
        self._check(min(low, have[0]), max(high, have[1]))
        code, bottom, top = (
            self.as_type(value["left"], work, scope),
            literal(low, work),
            literal(high, work),
        )
        if work == "struct big":
            chosen = (
                f"({{ struct big v = {code}, top = {top}, bottom = {bottom}; "
                "big_compare(v, top) > 0 ? top : big_compare(v, bottom) < 0 ? bottom : v; })"
            )
        else:
            chosen = f"({{ {work} v = {code}; v > {top} ? {top} : v < {bottom} ? {bottom} : v; }})"
        return convert(chosen, work, want)

    def _shift(self, value: Node, want: str, scope: Scope) -> str:
        left, right = value["left"], value["right"]
        have = self.bounds(left, scope)
        by = self._distance(right, scope)
        if value["op"] == ">>":
            work = c_type(*have)
            names = {
                "uint64_t": "shr64",
                "int64_t": "sar64",
                "u128": "shr128",
                "i128": "sar128",
                "struct big": "big_shr",
            }
            return convert(f"{names[work]}({self.exact(left, scope)}, {by})", work, want)
        low, high = self._op_bounds(value, scope)
        bits = max(high.bit_length(), (-low).bit_length() + 1)
        work = modular_type(bits)
        self._check(low, high)
        names = {"uint64_t": "shl64", "u128": "shl128", "struct big": "big_shl"}
        return convert(f"{names[work]}({self.modular(left, bits, scope)}, {by})", work, want)

    def _distance(self, node: Node, scope: Scope) -> str:
        if self.bounds(node, scope)[1] >= 1 << 64:
            raise UnsupportedProgram("a shift by a value of more than 64 bits is not supported")
        return self.as_type(node, "uint64_t", scope)

    def _register(self, value: Any, scope: Scope) -> str:
        register = self.registers[value[0]]
        index = self.modular(value[1], 64, scope)
        size = (register.bits + 7) // 8
        if register.bits > 128:
            self._need(register.bits)
            return (
                f"({{ uint64_t at = {index}; at < {register.size} ? "
                f"big_load(S->registers[{register.id}].cells + at * {size}, {size}) : big_from(0); }})"
            )
        kind = Field("", "", register.bits, False, False).c_type
        want = c_type(*bounds_of_bits(register.bits))
        return (
            f"({{ uint64_t at = {index}; at < {register.size} ? "
            f"({want})(({kind} *)(void *)S->registers[{register.id}].cells)[at] : 0; }})"
        )

    # -- modular

    def modular(self, node: Node, bits: int, scope: Scope) -> str:
        """C code whose low `bits` bits are the node's, in the type `modular_type(bits)`; the bits above are anything."""
        node = unwrap(node)
        want = modular_type(bits)
        self._need(bits if bits > 128 else 0)
        if node["type"] == "hexstr":
            return literal(int(node["value"], 16) & ((1 << bits) - 1), want)
        if node["type"] != "expression":
            return convert(self.exact(node, scope), c_type(*self.bounds(node, scope)), want)
        value = node["value"]
        op = value["op"]
        left: Any = value.get("left")
        right: Any = value.get("right")
        if op == "&":
            low, high = self.bounds(right, scope)
            if low == high >= 0:
                needed = max(min(bits, high.bit_length()), 1)
                work = modular_type(needed)
                masked = (
                    self._and(left, right, work, scope)
                    if high < 1 << needed
                    else self.modular(left, needed, scope)
                )
                return convert(masked, work, want)
        if op in ("+", "-", "*", "|", "^", "&") and left is not None:
            a, b = self.modular(left, bits, scope), self.modular(right, bits, scope)
            names = {"+": "add", "-": "sub", "*": "mul", "|": "or", "^": "xor", "&": "and"}
            return f"big_{names[op]}({a}, {b})" if want == "struct big" else f"({a} {op} {b})"
        if op == "~":
            code = self.modular(right, bits, scope)
            return f"big_not({code})" if want == "struct big" else f"(~{code})"
        if op == "<<":
            names = {"uint64_t": "shl64", "u128": "shl128", "struct big": "big_shl"}
            return (
                f"{names[want]}({self.modular(left, bits, scope)}, {self._distance(right, scope)})"
            )
        if op == "two_comp_mod" and bits <= self.bounds(right, scope)[1]:
            return self.modular(left, bits, scope)
        if op == "?":
            return (
                f"({self.boolean(value['cond'], scope)} ? {self.modular(left, bits, scope)}"
                f" : {self.modular(right, bits, scope)})"
            )
        return convert(self.exact(node, scope), c_type(*self.bounds(node, scope)), want)

    # -- booleans

    def boolean(self, node: Node, scope: Scope) -> str:
        """C code of a condition."""
        node = unwrap(node)
        if node["type"] == "bool":
            return "1" if node["value"] else "0"
        if node["type"] == "expression" and node["value"]["op"] == "?":
            value = node["value"]
            return (
                f"({self.boolean(value['cond'], scope)} ? {self.boolean(value['left'], scope)}"
                f" : {self.boolean(value['right'], scope)})"
            )
        if node["type"] == "expression" and node["value"]["op"] in BOOLEAN_OPS:
            return self._boolean_op(node["value"], scope)
        return self._compare("!=", node, {"type": "hexstr", "value": "0x0"}, scope)

    def _boolean_op(self, value: Node, scope: Scope) -> str:
        op, right = value["op"], value["right"]
        left: Any = value.get("left")
        if op == "not":
            return f"!({self.boolean(right, scope)})"
        if op in ("and", "or"):
            return f"({self.boolean(left, scope)} {'&&' if op == 'and' else '||'} {self.boolean(right, scope)})"
        if op == "d2b":
            return self._compare("!=", right, {"type": "hexstr", "value": "0x0"}, scope)
        if op == "valid":
            return self.header(right, scope).valid
        if op == "valid_union":
            union = self.union(right, scope)
            return (
                "(" + " || ".join(f"{union.code}.{m}.valid" for _, m, _ in union.type.members) + ")"
            )
        kind = self.kind(left)
        if kind == "bool":
            return f"(!({self.boolean(left, scope)}) {op} !({self.boolean(right, scope)}))"
        if kind == "header":
            same = equal_headers(self.header(left, scope), self.header(right, scope))
            return same if op == "==" else f"!{same}"
        if kind == "union":
            one, two = self.union(left, scope), self.union(right, scope)
            same = (
                "("
                + " || ".join(
                    equal_headers(one.member(i), two.member(i))
                    for i in range(len(one.type.members))
                )
                + ")"
            )
            return same if op == "==" else f"!{same}"
        return self._compare(op, left, right, scope)

    def _compare(self, op: str, left: Node, right: Node, scope: Scope) -> str:
        places = [self.place(node, scope) for node in (left, right)]
        if all(place and place[1].varbit for place in places):
            one, two = (place[0].at(place[1]) for place in places if place)
            return f"(same_number({one}, {one}_bits / 8u, {two}, {two}_bits / 8u) {op} 1)"
        a, b = self.bounds(left, scope), self.bounds(right, scope)
        work = c_type(min(a[0], b[0]), max(a[1], b[1]))
        self._check(min(a[0], b[0]), max(a[1], b[1]))
        one, two = self.as_type(left, work, scope), self.as_type(right, work, scope)
        return (
            f"(big_compare({one}, {two}) {op} 0)" if work == "struct big" else f"({one} {op} {two})"
        )

    # -- width of struct big

    def _need(self, bits: int) -> None:
        if bits > MAX_BITS:
            raise UnsupportedProgram(
                f"an expression of {bits} bits is not supported (at most {MAX_BITS})"
            )
        self.big_bits = max(self.big_bits, bits)

    def _check(self, low: int, high: int) -> None:
        if c_type(low, high) == "struct big":
            self._need(max(high.bit_length(), low.bit_length()) + 1)


def equal_headers(a: Header, b: Header) -> str:
    """C condition: both valid and equal field by field."""
    if a.type.name != b.type.name:
        return "0"
    tests = [a.valid, b.valid]
    for field in a.type.fields:
        one, two = a.at(field), b.at(field)
        if field.varbit:
            tests.append(f"{one}_bits == {two}_bits && !memcmp({one}, {two}, {one}_bits / 8u)")
        else:
            tests.append(
                f"!memcmp({one}, {two}, {field.bytes})" if field.wide else f"{one} == {two}"
            )
    return "(" + " && ".join(tests) + ")"


def _arithmetic_bounds(op: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    if op == "?":
        return min(left[0], right[0]), max(left[1], right[1])
    if op == "+":
        return left[0] + right[0], left[1] + right[1]
    if op == "-":
        return left[0] - right[1], left[1] - right[0]
    if op == "*":
        products = [a * b for a in left for b in right]
        return min(products), max(products)
    if op in ("<<", ">>"):
        shortest, longest = max(right[0], 0), min(max(right[1], 0), MAX_BITS // 2)
        if op == ">>":
            values = [a >> b for a in left for b in (shortest, longest)]
        else:
            values = [a << b for a in left for b in (min(shortest, longest), longest)]
        return min(values), max(values)
    if op in ("/", "%"):
        return (0, left[1]) if op == "/" else (0, max(min(left[1], right[1] - 1), 0))
    nonnegative = left[0] >= 0 and right[0] >= 0
    if op == "&":
        if left[0] >= 0 or right[0] >= 0:
            return 0, min(i[1] for i in (left, right) if i[0] >= 0)
    elif op not in ("|", "^"):
        raise UnsupportedProgram(f"operator {op} is not supported")
    bits = max(i.bit_length() for i in (*left, *right))
    return (0, (1 << bits) - 1) if nonnegative else (-(1 << bits), (1 << bits) - 1)
