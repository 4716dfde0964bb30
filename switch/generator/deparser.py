"""Deparser and checksums -> C: `deparse(p)`, `update_checksums(p)`, `verify_checksums(p)`."""

from __future__ import annotations

from typing import Any

from switch.generator.actions import Actions
from switch.generator.expressions import Expressions, Scope
from switch.generator.hashes import Hashes
from switch.generator.layout import Layout
from switch.program import unsupported

SCOPE = Scope()


class Deparser:
    """Translates the deparser of a program."""

    def __init__(
        self, layout: Layout, expressions: Expressions, actions: Actions, hashes: Hashes
    ) -> None:
        self.layout = layout
        self.expressions = expressions
        self.actions = actions
        self.hashes = hashes

    def headroom(self, deparser: dict[str, Any] | None) -> int:
        """The most bytes of header it can write."""
        names = deparser["order"] if deparser else []
        return sum(self.layout.headers[name].type.max_bytes for name in names)

    def function(self, deparser: dict[str, Any] | None) -> str:
        """`deparse(p)`: checksums, then the valid headers in front of the payload."""
        order = [self.layout.headers[name] for name in (deparser["order"] if deparser else [])]
        lines = [
            "static void deparse(struct packet *p) {",
            "    struct phv *H = (struct phv *)p->phv; struct state *S = p->sw->state; const uint8_t *P = NULL;",
            "    (void)H; (void)S; (void)P;",
            "    update_checksums(p);",
        ]
        for primitive in deparser.get("primitives", []) if deparser else []:
            lines += ["    " + line for line in self.actions.statement(primitive, SCOPE)]
        lines.append("    uint32_t size = 0;")
        lines += [f"    if ({h.valid}) size += {h.size};" for h in order]
        lines += ["    p->data -= size; p->len += size;", "    uint8_t *d = p->data;"]
        lines += [f"    if ({h.valid}) d += emit_{h.type.tag}(&{h.code}, d);" for h in order]
        return "\n".join([*lines, "    (void)d;", "}"])

    def checksums(self, checksums: list[dict[str, Any]]) -> str:
        """The two checksum functions, in the JSON's order."""
        verify, update = [], []
        for checksum in checksums:
            if checksum["type"] != "generic":
                raise unsupported(f"checksum of type {checksum['type']}", checksum)
            header, field = self.layout.field(checksum["target"])
            if field.bits > 64:
                raise unsupported(f"checksum of {field.bits} bits", checksum)
            function = self.hashes.names[checksum["calculation"]]
            guard = checksum.get("if_cond")
            condition = self.expressions.boolean(guard, SCOPE) if guard is not None else "1"
            value = f"({field.c_type})({function}(p) & {(1 << field.bits) - 1:#x}ull)"
            if checksum.get("verify", True):
                verify.append(
                    f"    if ({header.valid} && {condition} && {function}(p) != {header.at(field)}) "
                    "p->checksum_error = true;"
                )
            if checksum.get("update", True):
                update.append(f"    if ({condition}) {header.at(field)} = {value};")
        prologue = "    struct phv *H = (struct phv *)p->phv; struct state *S = p->sw->state; (void)H; (void)S;"
        return "\n".join(
            [
                "static void verify_checksums(struct packet *p) {",
                prologue,
                *verify,
                "}",
                "static void update_checksums(struct packet *p) {",
                prologue,
                *update,
                "}",
            ]
        )
