"""Tables and control flow -> C: `apply_N_NAME(p)` per table, `ingress(p)` and `egress(p)`."""

from __future__ import annotations

from typing import Any

from switch.generator.actions import Actions
from switch.generator.expressions import Expressions, Scope
from switch.generator.layout import Layout, c_name, c_string, comment, unique_names
from switch.program import Program, Table, unsupported

SCOPE = Scope()
MATCHES = {
    "exact": "MATCH_EXACT",
    "valid": "MATCH_EXACT",
    "lpm": "MATCH_LPM",
    "ternary": "MATCH_TERNARY",
    "optional": "MATCH_TERNARY",
    "range": "MATCH_RANGE",
}


class Tables:
    """Translates the tables and pipelines of a program."""

    def __init__(
        self,
        program: Program,
        root: dict[str, Any],
        layout: Layout,
        expressions: Expressions,
        actions: Actions,
    ) -> None:
        self.program = program
        self.layout = layout
        self.expressions = expressions
        self.actions = actions
        self.by_id = {a["id"]: a for a in root["actions"]}
        self.tables = {t.name: t for t in program.tables}
        self.labels: dict[str, str] = {}
        """Node -> C label, in the pipeline being written."""
        self.meters = {m["name"]: m for m in root.get("meter_arrays", [])}

    # -- tables

    def function(self, source: dict[str, Any]) -> str:
        """Looks the key up, runs the action and returns its id (-1: none); `hit` says whether there was an entry."""
        table = self.tables[source["name"]]
        lines = [
            f"/* {comment(table.name)}, {comment(table.source)} */",
            f"static int32_t {self.name(table)}(struct packet *p, bool *hit) {{",
            "    struct phv *H = (struct phv *)p->phv; struct state *S = p->sw->state; (void)H; (void)S;",
        ]
        lines += [f"    {line}" for line in self._lookup(table, source)]
        lines.append("    switch (t->action) {")
        for action in table.actions:
            lines.append(
                f"    case {action}: {self.actions.function_name(self.by_id[action])}(p, t->params); break;"
            )
        return "\n".join(
            [*lines, "    default: break;", "    }", "    return (int32_t)t->action;", "}"]
        )

    @staticmethod
    def name(table: Table) -> str:
        return f"apply_{table.id}_{c_name(table.name)}"

    def is_call(self, source: dict[str, Any]) -> bool:
        """A table that p4c made of a bare call: no key, and a default action nobody may change. It needs no lookup."""
        table = self.tables[source["name"]]
        default = source.get("default_entry")
        return (
            not table.key
            and table.profile is None
            and bool(default and default.get("action_entry_const"))
        )

    def _call_node(self, table: Table, source: dict[str, Any]) -> list[str]:
        default = source["default_entry"]
        action = self.by_id[default["action_id"]]
        params = "".join(f"\\x{b:02x}" for b in default_params(self.program, default))
        following = source["next_tables"]
        target = following["__MISS__"] if "__MISS__" in following else following.get(action["name"])
        return [
            f"{self._label(table.name)}:",
            f'    {self.actions.function_name(action)}(p, (const uint8_t *)"{params}");',
            *self._leave(target),
        ]

    def _lookup(self, table: Table, source: dict[str, Any]) -> list[str]:
        words = (sum((f.bits + 7) // 8 for f in table.key) + 7) // 8
        lines = [f"uint64_t words[{max(words, 1)}];", "uint8_t *k = (uint8_t *)words; (void)k;"]
        if words:
            lines.append(f"words[{words - 1}] = 0;")
        offset = 0
        for field, part in zip(table.key, source["key"], strict=True):
            size = (field.bits + 7) // 8
            lines.append(self._store_key(part, offset, size))
            offset += size
        lines += [
            f"struct entry *e = table_lookup(S->tables[{table.id}], k, p);",
            "*hit = e != NULL;",
        ]
        if table.meter:
            lines.append(self._direct_meter(table.meter))
        lines.append(
            f"const struct target *t = e ? LOAD(e->target) : table_default(S->tables[{table.id}]);"
        )
        if table.profile is not None:
            lines.append(f"t = resolve_target(t, p, {table.profile});")
        lines.append("if (!t) return -1;")
        return lines

    def _store_key(self, part: dict[str, Any], offset: int, size: int) -> str:
        target = part["target"]
        if part["match_type"] == "valid" or target[1] == "$valid$":
            header = self.layout.headers[target if part["match_type"] == "valid" else target[0]]
            return f"k[{offset}] = {header.valid};"
        header, field = self.layout.field(target)
        if field.varbit:
            raise unsupported(f"varbit {field.name} in a table key", part)
        if field.wide:
            guarded = f"memcpy(k + {offset}, {header.at(field)}, {size});"
            return (
                guarded
                if header.metadata
                else f"if ({header.valid}) {guarded} else memset(k + {offset}, 0, {size});"
            )
        value = header.at(field) if header.metadata else f"{header.valid} ? {header.at(field)} : 0"
        return f"store_be{'128' if size > 8 else ''}(k + {offset}, {size}, {value});"

    def _direct_meter(self, name: str) -> str:
        meter = self.meters[name]
        header, field = self.layout.field(meter["result_target"])
        counts_bytes = str(meter["type"] == "bytes").lower()
        return (
            f"if (e) {header.at(field)} = ({field.c_type})meter_mark(&e->meter, {counts_bytes}, p);"
        )

    # -- control flow

    def pipeline(self, name: str, pipeline: dict[str, Any] | None) -> str:
        """A control as labelled nodes."""
        lines = [
            f"static void {name}(struct packet *p) {{",
            "    struct phv *H = (struct phv *)p->phv; struct state *S = p->sw->state; bool hit; int32_t action;",
            "    (void)H; (void)S; (void)hit; (void)action;",
        ]
        if pipeline:
            nodes = [
                n["name"]
                for kind in ("tables", "conditionals", "action_calls")
                for n in pipeline.get(kind, [])
            ]
            self.labels = dict(zip(nodes, unique_names(nodes, "node_"), strict=True))
            lines.append(f"    {self._goto(pipeline['init_table'])}")
            for table in pipeline["tables"]:
                lines += self._table_node(table)
            for conditional in pipeline["conditionals"]:
                lines += self._conditional_node(conditional)
            for call in pipeline.get("action_calls", []):
                function = self.actions.function_name(self.by_id[call["action_id"]])
                lines += [
                    f"{self._label(call['name'])}:",
                    f"    {function}(p, NULL);",
                    *self._leave(call.get("next_node")),
                ]
        return "\n".join([*lines, "done:;", "}"])

    def _label(self, name: str) -> str:
        return self.labels[name]

    def _goto(self, name: str | None) -> str:
        return f"goto {self._label(name)};" if name else "goto done;"

    def _leave(self, name: str | None) -> list[str]:
        """To the next node, unless an action said `exit`."""
        return (
            ["    if (p->exit) goto done;", f"    {self._goto(name)}"]
            if name
            else ["    goto done;"]
        )

    def _table_node(self, source: dict[str, Any]) -> list[str]:
        table = self.tables[source["name"]]
        if self.is_call(source):
            return self._call_node(table, source)
        lines = [f"{self._label(table.name)}:", f"    action = {self.name(table)}(p, &hit);"]
        following = source["next_tables"]
        miss = source.get("base_default_next")
        if "__HIT__" in following or "__MISS__" in following:
            lines.append("    if (p->exit) goto done;")
            lines.append(f"    if (hit) {self._goto(following.get('__HIT__'))}")
            return [*lines, f"    {self._goto(following.get('__MISS__'))}"]
        targets = {a: following.get(self.by_id[a]["name"]) for a in table.actions}
        if set(targets.values()) | {miss} == {miss} or (
            len(set(targets.values())) == 1
            and table.profile is None
            and source.get("default_entry")
        ):
            return [*lines, *self._leave(next(iter(targets.values()), miss))]
        lines += ["    if (p->exit) goto done;", "    switch (action) {"]
        lines += [f"    case {a}: {self._goto(n)}" for a, n in targets.items()]
        return [*lines, f"    default: {self._goto(miss)}", "    }"]

    def _conditional_node(self, source: dict[str, Any]) -> list[str]:
        condition = self.expressions.boolean(source["expression"], SCOPE)
        return [
            f"{self._label(source['name'])}:",
            f"    if ({condition}) {self._goto(source.get('true_next'))}",
            f"    {self._goto(source.get('false_next'))}",
        ]

    # -- descriptions for the runtime

    def specs(self, sources: list[dict[str, Any]]) -> list[str]:
        """C initialisers of table_spec and profile_spec."""
        lines = []
        for source in sources:
            lines += self._table_spec(self.tables[source["name"]], source)
        lines += ["static const struct table_spec TABLES[] = {"]
        for table in self.program.tables:
            size = sum((f.bits + 7) // 8 for f in table.key)
            meter = -1 if table.meter is None else int(self.meters[table.meter]["type"] == "bytes")
            mask = (
                f"MASK_{table.id}"
                if f"static const uint8_t MASK_{table.id}[]" in "\n".join(lines)
                else "NULL"
            )
            actions = [] if table.profile is not None else list(table.actions)
            lines.append(
                f"    {{{c_string(table.name)}, KEY_{table.id}, {mask}, {len(table.key)}, {size}, {table.size}, "
                f"ACTIONS_{table.id}, {len(actions)}, {-1 if table.profile is None else table.profile}, "
                f"{str(source_counters(sources, table)).lower()}, {str(table.needs_priority).lower()}, {meter}}},"
            )
        lines += ["    {0}", "};"]
        lines.append("static const struct profile_spec PROFILES[] = {")
        for profile in self.program.profiles:
            users = [t for t in self.program.tables if t.profile == profile.id]
            first = users[0].id if users else None
            count = len(users[0].actions) if users else 0
            lines.append(
                f"    {{{c_string(profile.name)}, {profile.size}, {f'ACTIONS_{first}' if users else 'NULL'}, {count}}},"
            )
        return [*lines, "    {0}", "};"]

    def _table_spec(self, table: Table, source: dict[str, Any]) -> list[str]:
        rows, mask, offset, masked = [], b"", 0, False
        for field, part in zip(table.key, source["key"], strict=True):
            if field.match not in MATCHES:
                raise unsupported(f"match kind {field.match} of table {table.name}", source)
            size = (field.bits + 7) // 8
            rows.append(f"{{{offset}, {size}, {field.bits}, {MATCHES[field.match]}}}")
            text = part.get("mask")
            masked = masked or text is not None
            mask += b"\xff" * size if text is None else int(text, 16).to_bytes(size, "big")
            offset += size
        lines = [
            f"static const struct key_spec KEY_{table.id}[] = {{{', '.join([*rows, '{0}'])}}};"
        ]
        if masked:
            lines.append(
                f"static const uint8_t MASK_{table.id}[] = {{{', '.join(str(b) for b in mask)}}};"
            )
        actions = [
            f"{{{a}, {sum((p.bits + 7) // 8 for p in self.program.actions[a].parameters)}}}"
            for a in table.actions
        ]
        lines.append(
            f"static const struct action_spec ACTIONS_{table.id}[] = {{{', '.join([*actions, '{0}'])}}};"
        )
        return lines


def source_counters(sources: list[dict[str, Any]], table: Table) -> bool:
    return bool(next(s for s in sources if s["name"] == table.name).get("with_counters"))


def default_params(program: Program, entry: dict[str, Any]) -> bytes:
    """The encoded parameters of a JSON action entry."""
    action = program.actions[entry["action_id"]]
    return b"".join(
        (int(value, 16) & ((1 << p.bits) - 1)).to_bytes((p.bits + 7) // 8, "big")
        for value, p in zip(entry["action_data"], action.parameters, strict=True)
    )
