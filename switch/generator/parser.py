"""The parser -> one C function of labelled states.

A failed check sets the program's number for the error and leaves the function; what was extracted stays. Loops in the
state graph are the program's own; a frame that never ends one is stopped as ParserTimeout.
"""

from __future__ import annotations

from typing import Any

from switch.generator.actions import Actions
from switch.generator.expressions import Expressions, Node, Scope
from switch.generator.layout import Field, Header, Layout, unique_names
from switch.program import Program, unsupported

MAX_STATES = 4096
SCOPE = Scope()


class Parser:
    """Translates the parser of a program."""

    def __init__(
        self, program: Program, layout: Layout, expressions: Expressions, actions: Actions
    ) -> None:
        self.layout = layout
        self.expressions = expressions
        self.actions = actions
        self.labels: dict[str, str] = {}
        self.value_sets = {v.name: v for v in program.value_sets}

    def function(self, parser: dict[str, Any] | None) -> str:
        """`parse(p)`: everything up to the verification of checksums, which it calls."""
        lines = [
            "static void parse(struct packet *p) {",
            "    struct phv *H = (struct phv *)p->phv; struct state *S = p->sw->state; const uint8_t *P = NULL;",
            "    const uint8_t *d = p->data; uint32_t at = 0, n = p->len, states = 0;",
            "    (void)H; (void)S; (void)P; (void)d; (void)n; (void)states;",
            "    p->parser_error = PROGRAM.errors[NO_ERROR]; p->checksum_error = false;",
        ]
        if parser and parser.get("init_state"):
            names = [s["name"] for s in parser["parse_states"]]
            self.labels = dict(zip(names, unique_names(names, "state_"), strict=True))
            lines.append(f"    goto {self._label(parser['init_state'])};")
            for state in parser["parse_states"]:
                lines += self._state(state)
        lines += ["done:", "    p->data += at; p->len -= at;", "    verify_checksums(p);", "}"]
        return "\n".join(lines)

    def _label(self, name: str | None) -> str:
        return self.labels[name] if name else "done"

    def _state(self, state: dict[str, Any]) -> list[str]:
        lines = [
            f"{self._label(state['name'])}:",
            f"    if (++states > {MAX_STATES}) FAIL(PARSER_TIMEOUT);",
        ]
        for op in state["parser_ops"]:
            lines += ["    " + line for line in self._op(op, state)]
        lines += ["    " + line for line in self._select(state)]
        return lines

    # -- operations

    def _op(self, op: dict[str, Any], state: dict[str, Any]) -> list[str]:
        kind, parameters = op["op"], op["parameters"]
        if kind in ("extract", "extract_VL"):
            return self._extract(parameters, op, state)
        if kind == "set":
            return self._set(parameters)
        if kind == "verify":
            return self._verify(parameters)
        if kind == "primitive":
            return self.actions.statement(parameters[0], SCOPE)
        if kind == "shift":
            return [
                f"if (n - at < {parameters[0]}) FAIL(PACKET_TOO_SHORT);",
                f"at += {parameters[0]};",
            ]
        if kind == "advance":
            return [
                f"{{ uint64_t bits = {self.expressions.modular(parameters[0], 64, SCOPE)};",
                "  if (bits % 8) FAIL(PARSER_INVALID_ARGUMENT);",
                "  if (n - at < bits / 8) FAIL(PACKET_TOO_SHORT);",
                "  at += (uint32_t)(bits / 8); }",
            ]
        raise unsupported(f"parser operation {kind} in state {state['name']}", op)

    def _extract(
        self, parameters: list[Node], op: dict[str, Any], state: dict[str, Any]
    ) -> list[str]:
        target, value = parameters[0]["type"], parameters[0]["value"]
        before: list[str] = []
        after: list[str] = []
        if isinstance(value, dict):
            raise unsupported(
                f"extract to a header found at run time, in state {state['name']},", op
            )
        if target == "regular":
            header = self.layout.headers[value]
        elif target in ("stack", "union_stack"):
            stack = (
                self.layout.stacks[value]
                if target == "stack"
                else self.layout.union_stacks[value[0]]
            )
            before = [f"if ({stack.count} >= {stack.size}) FAIL(STACK_OUT_OF_BOUNDS);"]
            after = [f"{stack.count}++;"]
            if stack.header:
                header = Header(stack.element(stack.count), stack.header)
            else:
                assert stack.union is not None
                names = [name for name, _, _ in stack.union.members]
                index = names.index(value[1])
                _, member, kind = stack.union.members[index]
                element = stack.element(stack.count)
                others = " ".join(
                    f"{element}.{m}.valid = 0;" for _, m, _ in stack.union.members if m != member
                )
                header = Header(f"{element}.{member}", kind)
                after = [others, *after]
        else:
            raise unsupported(f"extract to {target} in state {state['name']}", op)
        body = (
            self._extract_varbit(header, parameters[1])
            if op["op"] == "extract_VL"
            else self._extract_fixed(header, op)
        )
        return [*before, *body, header.set_valid(), *after]

    @staticmethod
    def _extract_fixed(header: Header, op: dict[str, Any]) -> list[str]:
        if header.type.varbit:
            raise unsupported(
                f"extract of header {header.type.name} with a varbit but no length", op
            )
        size = header.type.bytes
        return [
            f"if (n - at < {size}) FAIL(PACKET_TOO_SHORT);",
            f"extract_{header.type.tag}(&{header.code}, d + at);",
            f"at += {size};",
        ]

    def _extract_varbit(self, header: Header, length: Node) -> list[str]:
        size = header.type.bytes
        code = self.expressions.modular(length, 32, SCOPE)
        return [
            f"{{ uint32_t bits = (uint32_t)({code});",
            "  if (bits % 8) FAIL(PARSER_INVALID_ARGUMENT);",
            f"  if (n - at < (uint64_t){size} + bits / 8) FAIL(PACKET_TOO_SHORT);",
            f"  if ({size} + bits / 8 > {header.type.max_bytes}) FAIL(HEADER_TOO_SHORT);",
            f"  extract_{header.type.tag}(&{header.code}, d + at, bits); at += {size} + bits / 8; }}",
        ]

    def _set(self, parameters: list[Node]) -> list[str]:
        target = self.expressions.place(parameters[0], SCOPE)
        assert target is not None
        header, field = target
        if parameters[1]["type"] != "lookahead":
            if field.varbit:
                return self.actions.statement({"op": "assign_VL", "parameters": parameters}, SCOPE)
            return [self.expressions.store(header, field, parameters[1], SCOPE)]
        offset, bits = parameters[1]["value"]
        lines = [f"if ((n - at) * 8 < {offset + bits}) FAIL(PACKET_TOO_SHORT);"]
        if field.wide:
            shorter = min(bits, field.bits)
            lines.append(
                f"memset({header.at(field)}, 0, {field.bytes}); put_wide({header.at(field)}, {field.bits}, "
                f"d + at, {offset + bits - shorter}, {shorter});"
            )
        elif bits > field.bits:
            lines.append(
                f"{header.at(field)} = ({field.c_type})get_bits(d + at, {offset + bits - field.bits}, {field.bits});"
            )
        else:
            lines.append(
                f"{header.at(field)} = ({field.c_type})get_bits(d + at, {offset}, {bits});"
            )
        return lines

    def _verify(self, parameters: list[Any]) -> list[str]:
        condition = self.expressions.boolean(parameters[0], SCOPE)
        error = (
            str(parameters[1])
            if isinstance(parameters[1], int)
            else self.expressions.modular(parameters[1], 64, SCOPE)
        )
        return [f"if (!({condition})) {{ p->parser_error = (uint32_t)({error}); goto done; }}"]

    # -- select

    def _select(self, state: dict[str, Any]) -> list[str]:
        key = state["transition_key"]
        default: str | None = None
        cases = []
        for transition in state["transitions"]:
            kind = transition.get("type", "hexstr")
            if kind == "default" or transition["value"] == "default":
                default = transition["next_state"]
            else:
                cases.append((kind, transition))
        lines, sizes = self._key(key)
        for kind, transition in cases if key else []:
            if kind == "parse_vset":
                condition = self._value_set(transition, sizes)
            else:
                condition = self._case(transition, sizes)
            lines.append(f"if ({condition}) goto {self._label(transition['next_state'])};")
        if not lines:
            return [f"goto {self._label(default)};"]
        return ["{", *("    " + line for line in [*lines, f"goto {self._label(default)};"]), "}"]

    def _key(self, key: list[Node]) -> tuple[list[str], list[int]]:
        """Statements that define k0, k1 ... (integers, or byte arrays where a field is wide), and their bits."""
        lines, sizes = [], []
        for index, part in enumerate(key):
            value = part["value"]
            if part["type"] == "lookahead":
                offset, bits = value
                lines.append(f"if ((n - at) * 8 < {offset + bits}) FAIL(PACKET_TOO_SHORT);")
                if bits > 128:
                    lines.append(
                        f"uint8_t k{index}[{(bits + 7) // 8}]; wide_get(k{index}, {bits}, d + at, {offset});"
                    )
                else:
                    lines.append(
                        f"{_key_type(bits)} k{index} = ({_key_type(bits)})get_bits(d + at, {offset}, {bits});"
                    )
                sizes.append(bits)
                continue
            check, header, field = self._key_field(part)
            lines += check
            if field is None:
                lines.append(f"uint64_t k{index} = {header.valid};")
                sizes.append(1)
            elif field.wide:
                lines.append(f"const uint8_t *k{index} = {header.at(field)};")
                sizes.append(field.bits)
            else:
                lines.append(f"{_key_type(field.bits)} k{index} = {header.at(field)};")
                sizes.append(field.bits)
        return lines, sizes

    def _key_field(self, part: Node) -> tuple[list[str], Header, Field | None]:
        value = part["value"]
        if part["type"] == "field":
            if value[1] == "$valid$":
                return [], self.layout.headers[value[0]], None
            return [], *self.layout.field(value)
        if part["type"] == "stack_field":
            stack = self.layout.stacks[value[0]]
            assert stack.header is not None
            header = Header(stack.element(f"{stack.count} - 1"), stack.header)
            return (
                [f"if (!{stack.count}) FAIL(STACK_OUT_OF_BOUNDS);"],
                header,
                stack.header.field(value[1]),
            )
        if part["type"] == "union_stack_field":
            stack = self.layout.union_stacks[value[0]]
            assert stack.union is not None
            _, member, kind = next(m for m in stack.union.members if m[0] == value[1])
            header = Header(f"{stack.element(f'{stack.count} - 1')}.{member}", kind)
            return [f"if (!{stack.count}) FAIL(STACK_OUT_OF_BOUNDS);"], header, kind.field(value[2])
        raise unsupported(f"select on {part['type']}", part)

    @staticmethod
    def _split(text: str, sizes: list[int]) -> list[int]:
        """A value of byte-padded fields -> the fields."""
        number, result = int(text, 16), []
        for bits in reversed(sizes):
            width = (bits + 7) // 8 * 8
            result.append(number & ((1 << width) - 1))
            number >>= width
        return result[::-1]

    def _case(self, transition: dict[str, Any], sizes: list[int]) -> str:
        values = self._split(transition["value"], sizes)
        mask = transition.get("mask")
        masks = (
            [(1 << (bits + 7) // 8 * 8) - 1 for bits in sizes]
            if mask is None
            else self._split(mask, sizes)
        )
        tests = []
        for index, (bits, value, ternary) in enumerate(zip(sizes, values, masks, strict=True)):
            full = (1 << bits) - 1
            ternary &= full
            value &= ternary
            if bits > 128:
                size = (bits + 7) // 8
                tests.append(
                    f"same_masked(k{index}, {_bytes(value, size)}, {_bytes(ternary, size)}, {size})"
                )
            elif ternary == full:
                tests.append(f"k{index} == {_number(value, bits)}")
            elif ternary:
                tests.append(f"(k{index} & {_number(ternary, bits)}) == {_number(value, bits)}")
        return " && ".join(tests) or "1"

    def _value_set(self, transition: dict[str, Any], sizes: list[int]) -> str:
        value_set = self.value_sets[transition["value"]]
        total = sum((bits + 7) // 8 for bits in sizes)
        stores, offset = [], 0
        for index, bits in enumerate(sizes):
            size = (bits + 7) // 8
            if bits > 128:
                stores.append(f"memcpy(key + {offset}, k{index}, {size});")
            else:
                stores.append(
                    f"store_be{'128' if bits > 64 else ''}(key + {offset}, {size}, k{index});"
                )
            offset += size
        mask = transition.get("mask")
        mask_code = "NULL" if mask is None else _bytes(int(mask, 16), total)
        return f"({{ uint8_t key[{total}]; {' '.join(stores)} vset_match(S, {value_set.id}, key, {mask_code}); }})"


def _key_type(bits: int) -> str:
    return "uint64_t" if bits <= 64 else "u128"


def _number(value: int, bits: int) -> str:
    if bits > 64:
        return f"U128({value >> 64:#x}ull, {value & (1 << 64) - 1:#x}ull)"
    return f"{value:#x}" if value < 1 << 31 else f"{value:#x}ull"


def _bytes(value: int, size: int) -> str:
    return '(const uint8_t *)"' + "".join(f"\\x{b:02x}" for b in value.to_bytes(size, "big")) + '"'
