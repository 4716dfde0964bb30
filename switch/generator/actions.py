"""Actions and their primitives -> C functions `action_ID_NAME(p, P)`; P is the entry's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from switch.generator.expressions import Expressions, Node, Scope, c_type, convert, unwrap
from switch.generator.hashes import Hashes
from switch.generator.layout import Header, Layout, Stack, c_name, c_string, comment
from switch.program import Parameter, Program, UnsupportedProgram, source_line, unsupported

Lines = list[str]
PROLOGUE = "    struct phv *H = (struct phv *)p->phv; struct state *S = p->sw->state; (void)H; (void)S; (void)P;"


class Actions:
    """Translates actions and the primitives that parsers and deparsers call."""

    def __init__(
        self, program: Program, layout: Layout, expressions: Expressions, hashes: Hashes
    ) -> None:
        self.layout = layout
        self.expressions = expressions
        self.hashes = hashes
        self.counters = {c.name: c for c in program.counters}
        self.meters = {m.name: m for m in program.meters}
        self.registers = {r.name: r for r in program.registers}
        self.primitives: dict[str, Callable[[list[Node], Scope, dict[str, Any]], Lines]] = {
            "assign": self._assign,
            "modify_field": self._assign,
            "assign_VL": self._assign_varbit,
            "assign_header": self._assign_header,
            "copy_header": self._assign_header,
            "assign_union": self._assign_union,
            "assign_header_stack": self._assign_stack,
            "assign_union_stack": self._assign_stack,
            "push": self._push,
            "pop": self._pop,
            "add_header": self._add_header,
            "add_header_fast": self._add_header_fast,
            "remove_header": self._remove_header,
            "no_op": lambda *_: [],
            "exit": lambda *_: ["p->exit = true;"],
            "drop": self._drop,
            "mark_to_drop": self._mark_to_drop,
            "add_to_field": self._accumulate("+"),
            "subtract_from_field": self._accumulate("-"),
            "add": self._binary("+"),
            "subtract": self._binary("-"),
            "bit_xor": self._binary("^"),
            "bit_or": self._binary("|"),
            "bit_and": self._binary("&"),
            "shift_left": self._binary("<<"),
            "shift_right": self._binary(">>"),
            "modify_field_rng_uniform": self._random,
            "modify_field_with_hash_based_offset": self._hash,
            "generate_digest": self._digest,
            "clone_ingress_pkt_to_egress": self._clone,
            "clone_egress_pkt_to_egress": self._clone,
            "resubmit": self._flag("resubmit_fields"),
            "recirculate": self._flag("recirculate_fields"),
            "truncate": self._truncate,
            "execute_meter": self._meter,
            "count": self._count,
            "register_read": self._register_read,
            "register_write": self._register_write,
            "log_msg": self._log,
            "assert": self._assertion("Assert"),
            "assume": self._assertion("Assume"),
        }

    @staticmethod
    def function_name(action: dict[str, Any]) -> str:
        return f"action_{action['id']}_{c_name(action['name'])}"

    def function(self, action: dict[str, Any]) -> str:
        """The C function of an action."""
        scope = Scope([Parameter(p["name"], p["bitwidth"]) for p in action.get("runtime_data", [])])
        primitives = action["primitives"]
        targets = {
            self._jump_target(p) for p in primitives if p["op"] in ("_jump", "_jump_if_zero")
        }
        body: Lines = []
        for index, primitive in enumerate(primitives):
            if index in targets:
                body.append(f"  at_{index}:;")
            body += ["    " + line for line in self._primitive_or_jump(primitive, scope)]
        if targets and max(targets) >= len(primitives):
            body.append(f"  at_{max(targets)}:;")
        return "\n".join(
            [
                f"/* {comment(action['name'])}, {comment(source_line(action))} */",
                f"static void {self.function_name(action)}(struct packet *p, const uint8_t *P) {{",
                PROLOGUE,
                *body,
                "}",
            ]
        )

    def statement(self, primitive: dict[str, Any], scope: Scope) -> Lines:
        """The C statements of one primitive."""
        build = self.primitives.get(primitive["op"])
        if build is None:
            raise unsupported(f"primitive {primitive['op']}", primitive)
        try:
            return build(primitive["parameters"], scope, primitive)
        except UnsupportedProgram as error:
            text = str(error)
            raise UnsupportedProgram(
                text if ":" in text.split(" ", 1)[0] else f"{source_line(primitive)}: {text}"
            ) from error

    @staticmethod
    def _jump_target(primitive: dict[str, Any]) -> int:
        return int(primitive["parameters"][-1]["value"], 16)

    def _primitive_or_jump(self, primitive: dict[str, Any], scope: Scope) -> Lines:
        if primitive["op"] == "_jump":
            return [f"goto at_{self._jump_target(primitive)};"]
        if primitive["op"] == "_jump_if_zero":
            condition = self.expressions.boolean(primitive["parameters"][0], scope)
            return [f"if (!({condition})) goto at_{self._jump_target(primitive)};"]
        return self.statement(primitive, scope)

    # -- assignment

    def _assign(self, parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
        target = self.expressions.place(parameters[0], scope)
        if target is None:
            if unwrap(parameters[0])["type"] == "register":
                register, index = unwrap(parameters[0])["value"]
                return self._write_register(register, index, parameters[1], scope)
            raise unsupported(f"assignment to {parameters[0]['type']}", where)
        if target[1].varbit:
            return self._assign_varbit(parameters, scope, where)
        return [self.expressions.store(*target, parameters[1], scope)]

    def _assign_varbit(self, parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
        target, source = (self.expressions.place(p, scope) for p in parameters)
        if not target or not source or not target[1].varbit or not source[1].varbit:
            raise unsupported("assignment between varbit and other fields", where)
        to, come = target[0].at(target[1]), source[0].at(source[1])
        return [f"{to}_bits = {come}_bits;", f"memmove({to}, {come}, {come}_bits / 8u);"]

    def _assign_header(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        return self._copy_header(
            self.expressions.header(parameters[0], scope),
            self.expressions.header(parameters[1], scope),
        )

    @staticmethod
    def _copy_header(to: Header, source: Header) -> Lines:
        if to.metadata and source.metadata:
            return [f"{to.code} = {source.code};"]
        # Copy first: `to` may be an element whose index the fields of another union member decide.
        return [
            f"if ({source.valid}) {{ {to.code} = {source.code}; {to.set_valid()} }} else {{ {to.set_invalid()} }}"
        ]

    def _assign_union(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        to, source = (self.expressions.union(p, scope) for p in parameters)
        return [f"{to.code} = {source.code};"]

    def _assign_stack(self, parameters: list[Node], _scope: Scope, _: dict[str, Any]) -> Lines:
        to, source = (self.expressions.stack(p) for p in parameters)
        return [
            f"memmove({to.code}, {source.code}, sizeof {to.code});",
            f"{to.count} = {source.count};",
        ]

    def _accumulate(self, op: str) -> Callable[[list[Node], Scope, dict[str, Any]], Lines]:
        def build(parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
            return self._assign(
                [parameters[0], _operation(op, parameters[0], parameters[1])], scope, where
            )

        return build

    def _binary(self, op: str) -> Callable[[list[Node], Scope, dict[str, Any]], Lines]:
        def build(parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
            return self._assign(
                [parameters[0], _operation(op, parameters[1], parameters[2])], scope, where
            )

        return build

    # -- headers and stacks

    def _add_header(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        header = self.expressions.header(parameters[0], scope)
        clear = f"memset(&{header.code}, 0, sizeof {header.code});"
        return [
            f"if (!{header.valid}) {{ {clear} {header.set_valid()} p->packet_length += {header.size}; }}"
        ]

    def _add_header_fast(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        return [self.expressions.header(parameters[0], scope).set_valid()]

    def _remove_header(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        header = self.expressions.header(parameters[0], scope)
        return [
            f"if ({header.valid}) {{ p->packet_length -= {header.size}; {header.set_invalid()} }}"
        ]

    def _push(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        stack, by = self._shift(parameters, scope)
        return [
            f"{{ uint64_t by = {by}; if (by > {stack.size}) by = {stack.size};",
            f"  memmove({stack.code} + by, {stack.code}, ({stack.size} - by) * sizeof {stack.code}[0]);",
            f"  memset({stack.code}, 0, by * sizeof {stack.code}[0]);",
            f"  {stack.count} = (uint32_t)({stack.count} + by > {stack.size} ? {stack.size} : {stack.count} + by); }}",
        ]

    def _pop(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        stack, by = self._shift(parameters, scope)
        return [
            f"{{ uint64_t by = {by}; if (by > {stack.size}) by = {stack.size};",
            f"  memmove({stack.code}, {stack.code} + by, ({stack.size} - by) * sizeof {stack.code}[0]);",
            f"  memset(&{stack.code}[{stack.size} - by], 0, by * sizeof {stack.code}[0]);",
            f"  {stack.count} = (uint32_t)({stack.count} < by ? 0 : {stack.count} - by); }}",
        ]

    def _shift(self, parameters: list[Node], scope: Scope) -> tuple[Stack, str]:
        return self.expressions.stack(parameters[0]), self._number(parameters[1], scope)

    # -- what the packet does next

    def _drop(self, *_: Any) -> Lines:
        lines = []
        spec = self.layout.has_field("standard_metadata.egress_spec")
        group = self.layout.has_field("intrinsic_metadata.mcast_grp") or self.layout.has_field(
            "standard_metadata.mcast_grp"
        )
        if spec:
            lines.append(f"{spec[0].at(spec[1])} = (uint16_t)p->sw->drop_port;")
        if group:
            lines.append(f"{group[0].at(group[1])} = 0;")
        return lines

    def _mark_to_drop(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        """Its parameter may be a copy of standard_metadata."""
        header = self.expressions.header(parameters[0], scope)
        values = {"egress_spec": "(uint16_t)p->sw->drop_port", "mcast_grp": "0"}
        return [
            f"{header.at(field)} = {values[field.name]};"
            for field in header.type.fields
            if field.name in values
        ]

    def _digest(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        return [f"p->digest = (uint16_t){self._number(parameters[1], scope)};"]

    def _clone(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        return [
            f"p->clone_session = (uint16_t)({self._number(parameters[0], scope)} | CLONE_REQUESTED);",
            f"p->clone_fields = (uint16_t){self._number(parameters[1], scope)};",
        ]

    def _flag(self, name: str) -> Callable[[list[Node], Scope, dict[str, Any]], Lines]:
        return lambda parameters, scope, _: [
            f"p->{name} = (uint16_t){self._number(parameters[0], scope)};"
        ]

    def _truncate(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        return [
            f"{{ uint64_t keep = {self._number(parameters[0], scope)};",
            "  if (keep < p->truncate) p->truncate = (uint32_t)keep; }",
        ]

    # -- externs

    def _number(self, node: Node, scope: Scope) -> str:
        return f"({self.expressions.modular(node, 64, scope)})"

    def _set(self, target: Node, value: str, scope: Scope, where: dict[str, Any]) -> str:
        """A statement that stores a uint64_t C expression in a field."""
        place = self.expressions.place(target, scope)
        if place is None:
            raise unsupported(f"result in {target['type']}", where)
        header, field = place
        if field.wide:
            self.expressions.big_bits = max(self.expressions.big_bits, field.bits)
            return f"big_store({header.at(field)}, {field.bits}, big_from_u({value}));"
        mask = f" & {(1 << field.bits) - 1:#x}ull" if field.bits < 64 else ""
        return f"{header.at(field)} = ({field.c_type})(({value}){mask});"

    def _random(self, parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
        low, high = self._number(parameters[1], scope), self._number(parameters[2], scope)
        return [
            f"{{ uint64_t low = {low}, high = {high};",
            f"  if (low <= high) {self._set(parameters[0], 'random_between(low, high)', scope, where)} }}",
        ]

    def _hash(self, parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
        base, size = self._number(parameters[1], scope), self._number(parameters[3], scope)
        function = self.hashes.names[parameters[2]["value"]]
        store = self._set(
            parameters[0], f"{function}(p) % (size ? size : 1) + {base}", scope, where
        )
        return [f"{{ uint64_t size = {size};", f"  {store} }}"]

    def _meter(self, parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
        meter = self.meters[parameters[0]["value"]]
        cell = f"&S->meters[{meter.id}].cells[at]"
        marked = f"(uint64_t)meter_mark({cell}, {str(meter.unit == 'bytes').lower()}, p)"
        return [
            f"{{ uint64_t at = {self._number(parameters[1], scope)};",
            f"  if (at < {meter.size}) {self._set(parameters[2], marked, scope, where)} }}",
        ]

    def _count(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        counter = self.counters[parameters[0]["value"]]
        return [f"counter_count(S, {counter.id}, {self._number(parameters[1], scope)}, p);"]

    def _register_read(self, parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
        register = self.registers[parameters[1]["value"]]
        index = parameters[2]
        inside = f"{self._number(index, scope)} < {register.size}"
        read: Node = {"type": "register", "value": [register.name, index]}
        return [
            f"if ({inside}) {{",
            *("  " + line for line in self._assign([parameters[0], read], scope, where)),
            "}",
        ]

    def _register_write(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        return self._write_register(parameters[0]["value"], parameters[1], parameters[2], scope)

    def _write_register(self, name: str, index: Node, value: Node, scope: Scope) -> Lines:
        register = self.registers[name]
        size = (register.bits + 7) // 8
        code = (
            self.expressions.boolean(value, scope)
            if self.expressions.kind(value) == "bool"
            else self.expressions.modular(value, register.bits, scope)
        )
        head = f"{{ uint64_t at = {self._number(index, scope)};"
        if register.bits > 128:
            cell = f"S->registers[{register.id}].cells + at * {size}"
            return [
                head,
                f"  if (at < {register.size}) big_store({cell}, {register.bits}, {code}); }}",
            ]
        kind = next(
            t
            for b, t in (
                (8, "uint8_t"),
                (16, "uint16_t"),
                (32, "uint32_t"),
                (64, "uint64_t"),
                (128, "u128"),
            )
            if register.bits <= b
        )
        mask = f"MASK64({register.bits})" if register.bits <= 64 else f"MASK128({register.bits})"
        cell = f"(({kind} *)(void *)S->registers[{register.id}].cells)[at]"
        return [head, f"  if (at < {register.size}) {cell} = ({kind})(({code}) & {mask}); }}"]

    def _log(self, parameters: list[Node], scope: Scope, _: dict[str, Any]) -> Lines:
        values = parameters[1]["value"] if len(parameters) > 1 else []
        lines = [
            f"char text[{max(len(values), 1)}][48]; const char *texts[{max(len(values), 1)}]; (void)text;"
        ]
        for index, value in enumerate(values):
            if self.expressions.kind(value) == "bool":
                code = f"(i128)({self.expressions.boolean(value, scope)})"
            else:
                kind = c_type(*self.expressions.bounds(value, scope))
                code = convert(self.expressions.exact(value, scope), kind, "i128")
            lines.append(f"texts[{index}] = decimal(text[{index}], {code});")
        call = f"log_message(p->sw, {c_string(parameters[0]['value'])}, {len(values)}, texts);"
        return ["{", *("  " + line for line in lines), "  " + call, "}"]

    def _assertion(self, name: str) -> Callable[[list[Node], Scope, dict[str, Any]], Lines]:
        def build(parameters: list[Node], scope: Scope, where: dict[str, Any]) -> Lines:
            text = c_string(f"{name} error at {source_line(where)}")
            return [
                f"if (!({self.expressions.boolean(parameters[0], scope)})) assertion_failed(p->sw, {text});"
            ]

        return build


def _operation(op: str, left: Node, right: Node) -> Node:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}
