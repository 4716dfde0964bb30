"""Small BMv2 JSONs, built by hand: what p4c would emit for a program of a few lines."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Node = dict[str, Any]

STANDARD = [
    ("ingress_port", 9),
    ("egress_spec", 9),
    ("egress_port", 9),
    ("instance_type", 32),
    ("packet_length", 32),
    ("enq_timestamp", 32),
    ("enq_qdepth", 19),
    ("deq_timedelta", 32),
    ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48),
    ("egress_global_timestamp", 48),
    ("mcast_grp", 16),
    ("egress_rid", 16),
    ("checksum_error", 1),
    ("parser_error", 32),
    ("priority", 3),
    ("_padding", 3),
]
ALIASES = {
    "queueing_metadata": ("enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"),
    "intrinsic_metadata": (
        "ingress_global_timestamp",
        "egress_global_timestamp",
        "mcast_grp",
        "egress_rid",
        "priority",
    ),
}
ERRORS = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
]


def ref(header: str, name: str) -> Node:
    return {"type": "field", "value": [header, name]}


def const(value: int) -> Node:
    return {"type": "hexstr", "value": f"{'-' if value < 0 else ''}{abs(value):#x}"}


def header(name: str) -> Node:
    return {"type": "header", "value": name}


def op(name: str, left: Node | None, right: Node, **more: Node) -> Node:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right, **more}}


def wrapped(node: Node) -> Node:
    return {"type": "expression", "value": node}


def call(name: str, *parameters: Node) -> Node:
    return {
        "op": name,
        "parameters": list(parameters),
        "source_info": {"filename": "test.p4", "line": 42, "column": 1, "source_fragment": name},
    }


def assign(target: Node, source: Node) -> Node:
    return call("assign", target, source)


def extract(name: str) -> Node:
    return {"op": "extract", "parameters": [{"type": "regular", "value": name}]}


def state(
    name: str,
    *ops: Node,
    key: list[Node] | None = None,
    cases: list[Node] | None = None,
    default: str | None = None,
) -> Node:
    return {
        "name": name,
        "id": 0,
        "parser_ops": list(ops),
        "transition_key": key or [],
        "transitions": [
            *(cases or []),
            {"type": "default", "value": None, "mask": None, "next_state": default},
        ],
    }


@dataclass
class Source:
    """A program under construction. Unless told otherwise: header `h` is extracted, the ingress body runs as one
    action, and `h` is emitted."""

    fields: list[tuple[Any, ...]]
    """Fields of header type h_t: (name, bits) or (name, bits, signed); bits "*" is a varbit."""
    body: list[Node] = field(default_factory=list)
    egress: list[Node] = field(default_factory=list)
    metadata: list[tuple[Any, ...]] = field(default_factory=list)
    """Fields of the metadata header `scalars`."""
    states: list[Node] | None = None
    order: list[str] = field(default_factory=lambda: ["h"])
    actions: list[Node] = field(default_factory=list)
    """Further actions: {"name", "runtime_data", "primitives"}; their ids start at 2."""
    tables: list[Node] = field(default_factory=list)
    """Tables that run, in order, after the body; see `table`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Keys of the root to replace."""
    more_types: list[Node] = field(default_factory=list)
    more_headers: list[Node] = field(default_factory=list)
    profiles: list[Node] = field(default_factory=list)

    def table(
        self, name: str, key: list[tuple[Node, str]], actions: list[int], **more: Any
    ) -> None:
        """Adds a table; `actions` are ids."""
        self.tables.append(
            {
                "name": name,
                "key": [
                    {
                        "match_type": kind,
                        "name": ".".join(node["value"]),
                        "target": node["value"],
                        "mask": None,
                    }
                    for node, kind in key
                ],
                "match_type": "exact",
                "type": "simple",
                "max_size": 1024,
                "with_counters": False,
                "support_timeout": False,
                "direct_meters": None,
                "action_ids": actions,
                "base_default_next": None,
                **more,
            }
        )

    def json(self) -> bytes:
        limit = {"max_length": 64} if any(f[1] == "*" for f in self.fields) else {}
        actions = [
            {"name": "body", "id": 0, "runtime_data": [], "primitives": self.body},
            {"name": "egress_body", "id": 1, "runtime_data": [], "primitives": self.egress},
        ]
        actions += [
            {"id": 2 + i, "runtime_data": [], **action} for i, action in enumerate(self.actions)
        ]
        names = {a["id"]: a["name"] for a in actions}
        tables = [_call_table("run_body", 0)]
        tables += self.tables
        for position, table in enumerate(tables):
            following = tables[position + 1]["name"] if position + 1 < len(tables) else None
            table["id"] = position
            table["actions"] = [names[a] for a in table["action_ids"]]
            if "next_tables" not in table:
                table["base_default_next"] = following
                table["next_tables"] = dict.fromkeys(table["actions"], following)
        root = {
            "program": "test.p4",
            "__meta__": {"version": [2, 23]},
            "header_types": [
                {"name": "scalars_t", "id": 0, "fields": [list(f) for f in self.metadata]},
                {
                    "name": "standard_metadata",
                    "id": 1,
                    "fields": [[n, b, False] for n, b in STANDARD],
                },
                {"name": "h_t", "id": 2, "fields": [list(f) for f in self.fields], **limit},
                *self.more_types,
            ],
            "headers": [
                {"name": "scalars", "id": 0, "header_type": "scalars_t", "metadata": True},
                {
                    "name": "standard_metadata",
                    "id": 1,
                    "header_type": "standard_metadata",
                    "metadata": True,
                },
                {"name": "h", "id": 2, "header_type": "h_t", "metadata": False},
                *self.more_headers,
            ],
            "header_stacks": [],
            "header_union_types": [],
            "header_unions": [],
            "header_union_stacks": [],
            "field_lists": [],
            "errors": [[name, i] for i, name in enumerate(ERRORS)],
            "enums": [],
            "parsers": [
                {
                    "name": "parser",
                    "id": 0,
                    "init_state": "start",
                    "parse_states": self.states or [state("start", extract("h"))],
                }
            ],
            "parse_vsets": [],
            "deparsers": [{"name": "deparser", "id": 0, "order": self.order, "primitives": []}],
            "meter_arrays": [],
            "counter_arrays": [],
            "register_arrays": [],
            "calculations": [],
            "learn_lists": [],
            "actions": actions,
            "pipelines": [
                {
                    "name": "ingress",
                    "id": 0,
                    "init_table": "run_body",
                    "tables": tables,
                    "action_profiles": self.profiles,
                    "conditionals": [],
                },
                {
                    "name": "egress",
                    "id": 1,
                    "init_table": "run_egress",
                    "tables": [
                        {
                            **_call_table("run_egress", 1),
                            "actions": ["egress_body"],
                            "id": 99,
                            "next_tables": {"egress_body": None},
                        }
                    ],
                    "action_profiles": [],
                    "conditionals": [],
                },
            ],
            "checksums": [],
            "force_arith": [],
            "extern_instances": [],
            "field_aliases": [
                [f"{kind}.{name}", ["standard_metadata", name]]
                for kind, names in ALIASES.items()
                for name in names
            ],
            **self.extra,
        }
        return json.dumps(root).encode()


def _call_table(name: str, action: int) -> Node:
    return {
        "name": name,
        "key": [],
        "match_type": "exact",
        "type": "simple",
        "max_size": 1024,
        "with_counters": False,
        "support_timeout": False,
        "direct_meters": None,
        "action_ids": [action],
        "base_default_next": None,
        "default_entry": {
            "action_id": action,
            "action_const": True,
            "action_data": [],
            "action_entry_const": True,
        },
    }


def to_port(port: int | Node) -> Node:
    """Statement: send the packet to a port."""
    return assign(
        ref("standard_metadata", "egress_spec"), const(port) if isinstance(port, int) else port
    )
