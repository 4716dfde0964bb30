"""Puts the parts of a generated program together, in the order a reader wants them."""

from __future__ import annotations

from typing import Any

from switch.generator.actions import Actions
from switch.generator.deparser import Deparser
from switch.generator.expressions import Expressions
from switch.generator.hashes import Hashes
from switch.generator.headers import emit_function, extract_function
from switch.generator.layout import Layout, c_string, comment
from switch.generator.parser import Parser
from switch.generator.tables import Tables
from switch.program import Program, parse, unsupported

# enum std_field -> the names BMv2 knows the fields by.
STANDARD = {
    "STD_INGRESS_PORT": "standard_metadata.ingress_port",
    "STD_EGRESS_SPEC": "standard_metadata.egress_spec",
    "STD_EGRESS_PORT": "standard_metadata.egress_port",
    "STD_INSTANCE_TYPE": "standard_metadata.instance_type",
    "STD_PACKET_LENGTH": "standard_metadata.packet_length",
    "STD_ENQ_TIMESTAMP": "queueing_metadata.enq_timestamp",
    "STD_ENQ_QDEPTH": "queueing_metadata.enq_qdepth",
    "STD_DEQ_TIMEDELTA": "queueing_metadata.deq_timedelta",
    "STD_DEQ_QDEPTH": "queueing_metadata.deq_qdepth",
    "STD_QID": "queueing_metadata.qid",
    "STD_INGRESS_TIME": "intrinsic_metadata.ingress_global_timestamp",
    "STD_EGRESS_TIME": "intrinsic_metadata.egress_global_timestamp",
    "STD_MCAST_GRP": "intrinsic_metadata.mcast_grp",
    "STD_EGRESS_RID": "intrinsic_metadata.egress_rid",
    "STD_CHECKSUM_ERROR": "standard_metadata.checksum_error",
    "STD_PARSER_ERROR": "standard_metadata.parser_error",
    "STD_PRIORITY": "intrinsic_metadata.priority",
}
CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)

HELPERS = r"""
#define FAIL(error) do { p->parser_error = PROGRAM.errors[error]; goto done; } while (0)

static inline bool same_masked(const uint8_t *key, const uint8_t *value, const uint8_t *mask, unsigned n) {
    uint8_t difference = 0;
    for (unsigned i = 0; i < n; i++) difference |= (uint8_t)((key[i] & mask[i]) ^ value[i]);
    return difference == 0;
}

/* `bits` bits at src, right-aligned in a wide field of `width` bits. */
static inline void put_wide(uint8_t *dst, unsigned width, const uint8_t *src, unsigned offset, unsigned bits) {
    unsigned total = (width + 7) / 8 * 8;
    copy_bits(dst, total - bits, src, offset, bits);
}

static inline const char *decimal(char *text, i128 value) {
    char *at = text + 47;
    u128 rest = value < 0 ? -(u128)value : (u128)value;
    *at = 0;
    do *--at = (char)('0' + (int)(rest % 10)); while (rest /= 10);
    if (value < 0) *--at = '-';
    return at;
}
"""


class _Generator:
    """One program on its way to C."""

    def __init__(self, program: Program, root: dict[str, Any]) -> None:
        self.program = program
        self.root = root
        self.layout = Layout(root)
        self.expressions = Expressions(self.layout, {r.name: r for r in program.registers})
        self.hashes = Hashes(self.layout)
        self.actions = Actions(program, self.layout, self.expressions, self.hashes)
        self.parser = Parser(program, self.layout, self.expressions, self.actions)
        self.deparser = Deparser(self.layout, self.expressions, self.actions, self.hashes)
        self.tables = Tables(program, root, self.layout, self.expressions, self.actions)
        self.table_sources = [t for p in root["pipelines"] for t in p["tables"]]

    def text(self) -> str:
        body = self._body()
        words = (self.expressions.big_bits + 63) // 64 + 1 if self.expressions.big_bits else 0
        head = [
            f"/* Generated from {comment(self.program.name)} by switch/generator. */",
            '#include "switch.h"',
            *([f"#define BIG_WORDS {words}"] if words else []),
            '#include "bits.h"',
            "",
            "static const struct program PROGRAM;",
            HELPERS,
        ]
        return "\n".join([*head, body, ""])

    def _body(self) -> str:
        pipelines = {p["name"]: p for p in self.root["pipelines"]}
        parser = next(iter(self.root["parsers"]), None)
        deparser = next(iter(self.root["deparsers"]), None)
        packet_types = [t for t in self.layout.types.values() if t.bits % 8 == 0]
        for item in self.root["calculations"]:
            self.hashes.add(item["name"], item["algo"], item["input"], item)
        select = self._select()
        parts = [
            "/* -- headers and metadata ---------------------------------------------------------------------- */",
            self.layout.declarations(),
            *(extract_function(t) for t in packet_types),
            *(emit_function(t) for t in packet_types),
            "/* -- hashes and checksums ---------------------------------------------------------------------- */",
            *self.hashes.text,
            self.deparser.checksums(self.root["checksums"]),
            "/* -- parser ------------------------------------------------------------------------------------ */",
            self.parser.function(parser),
            "/* -- actions ----------------------------------------------------------------------------------- */",
            *(self.actions.function(a) for a in self.root["actions"]),
            "/* -- tables ------------------------------------------------------------------------------------ */",
            *(self.tables.function(t) for t in self.table_sources if not self.tables.is_call(t)),
            "/* -- controls ---------------------------------------------------------------------------------- */",
            self.tables.pipeline("ingress", pipelines.get("ingress")),
            self.tables.pipeline("egress", pipelines.get("egress")),
            "/* -- deparser ---------------------------------------------------------------------------------- */",
            self.deparser.function(deparser),
            "/* -- what the runtime asks for ------------------------------------------------------------------ */",
            select,
            self._reset_metadata(),
            self._copy_fields(),
            self._digest(),
            self._descriptions(deparser),
        ]
        return "\n\n".join(parts)

    def _select(self) -> str:
        lines = []
        profiles = [
            p for pipeline in self.root["pipelines"] for p in pipeline.get("action_profiles", [])
        ]
        for index, profile in enumerate(profiles):
            selector = profile.get("selector")
            if selector:
                name = self.hashes.add(
                    f"selector {profile['name']}", selector["algo"], selector["input"], profile
                )
                lines.append(f"    case {index}: return {name}(p);")
        return "\n".join(
            [
                "static uint64_t select_hash(struct packet *p, int profile) {",
                "    (void)p;",
                "    switch (profile) {",
                *lines,
                "    default: return 0;",
                "    }",
                "}",
            ]
        )

    def _reset_metadata(self) -> str:
        lines = [f"    memset(&{h.code}, 0, sizeof {h.code});" for h in self.layout.metadata]
        return "\n".join(
            [
                "static void reset_metadata(void *phv) {",
                "    struct phv *H = phv; (void)H;",
                *lines,
                "}",
            ]
        )

    def _copy_fields(self) -> str:
        cases = []
        for fields in self.root.get("field_lists", []):
            copies = []
            for element in fields["elements"]:
                if element["type"] != "field":
                    continue
                header, field = self.layout.field(element["value"])
                to, source = header.moved("to").at(field), header.moved("from").at(field)
                copies.append(
                    f"        memcpy({to}, {source}, sizeof {to});"
                    if field.wide
                    else f"        {to} = {source};"
                )
                if field.varbit:
                    copies.append(f"        {to}_bits = {source}_bits;")
            cases += [f"    case {fields['id']}:", *copies, "        break;"]
        return "\n".join(
            [
                "static void copy_fields(int list, void *to_phv, const void *from_phv) {",
                "    struct phv *to = to_phv; const struct phv *from = from_phv; (void)to; (void)from;",
                "    switch (list) {",
                *cases,
                "    default: break;",
                "    }",
                "}",
            ]
        )

    def _digest(self) -> str:
        cases = []
        for index, digest in enumerate(self.root.get("learn_lists", [])):
            cases.append(f"    case {index}:")
            offset = 0
            for element in digest["elements"]:
                if element["type"] != "field":
                    raise unsupported(f"digest element of type {element['type']}", digest)
                header, field = self.layout.field(element["value"])
                code = header.at(field)
                if field.wide:
                    cases.append(f"        memcpy(out + {offset}, {code}, {field.bytes});")
                else:
                    cases.append(
                        f"        store_be{'128' if field.bytes > 8 else ''}(out + {offset}, {field.bytes}, {code});"
                    )
                offset += field.bytes
            cases.append("        break;")
        return "\n".join(
            [
                "static void digest(const struct packet *p, int list, uint8_t *out) {",
                "    struct phv *H = (struct phv *)p->phv; (void)H; (void)out;",
                "    switch (list) {",
                *cases,
                "    default: break;",
                "    }",
                "}",
            ]
        )

    # -- descriptions

    def _descriptions(self, deparser: dict[str, Any] | None) -> str:
        program = self.program
        lines = self.tables.specs(self.table_sources)
        lines += _rows(
            "array_spec",
            "COUNTERS",
            [f"{{{c_string(c.name)}, {c.size}, 0}}" for c in program.counters],
        )
        lines += _rows(
            "array_spec",
            "METERS",
            [
                f"{{{c_string(m.name)}, {m.size if m.table is None else 0}, {int(m.unit == 'bytes')}}}"
                for m in program.meters
            ],
        )
        lines += _rows(
            "array_spec",
            "REGISTERS",
            [f"{{{c_string(r.name)}, {r.size}, {cell_bytes(r.bits)}}}" for r in program.registers],
        )
        lines += _rows(
            "digest_spec",
            "DIGESTS",
            [
                f"{{{c_string(d.name)}, {sum((b + 7) // 8 for b in d.bits)}}}"
                for d in program.digests
            ],
        )
        lines += _rows(
            "vset_spec",
            "VSETS",
            [
                f"{{{c_string(v.name)}, {v.size}, {sum((b + 7) // 8 for b in v.bits)}}}"
                for v in program.value_sets
            ],
        )
        errors = dict(self.root.get("errors", []))
        numbers = [str(errors.get(name, index)) for index, name in enumerate(CORE_ERRORS)]
        lines += [
            "static const struct program PROGRAM = {",
            "    .abi = PROGRAM_ABI,",
            "    .phv_bytes = (sizeof(struct phv) + 15) / 16 * 16,",
            f"    .headroom = {(self.deparser.headroom(deparser) + 15) // 16 * 16},",
            "    .std = {",
        ]
        for name, dotted in STANDARD.items():
            found = self.layout.has_field(dotted)
            if found and not found[1].wide and found[1].bits <= 64:
                header, field = found
                place = f"offsetof(struct phv, {header.at(field)[3:]})"
                size = f"sizeof(((struct phv *)0)->{header.at(field)[3:]})"
                lines.append(
                    f"        [{name}] = {{{place}, {size}, {(1 << field.bits) - 1:#x}ull}},"
                )
        lines += [
            "    },",
            f"    .errors = {{{', '.join(numbers)}}},",
            "    .parse = parse, .ingress = ingress, .egress = egress, .deparse = deparse,",
            "    .reset_metadata = reset_metadata, .copy_fields = copy_fields, .digest = digest, .select = select_hash,",
        ]
        for member, symbol, count in (
            ("table", "TABLES", len(program.tables)),
            ("profile", "PROFILES", len(program.profiles)),
            ("counter", "COUNTERS", len(program.counters)),
            ("meter", "METERS", len(program.meters)),
            ("register", "REGISTERS", len(program.registers)),
            ("digest", "DIGESTS", len(program.digests)),
            ("vset", "VSETS", len(program.value_sets)),
        ):
            lines.append(f"    .{member}s = {symbol}, .{member}_count = {count},")
        return "\n".join(
            [
                *lines,
                "};",
                "",
                "EXPORT const struct program *switch_program(void) { return &PROGRAM; }",
            ]
        )


def cell_bytes(bits: int) -> int:
    """Bytes of one register cell: a machine integer, or big-endian bytes beyond 128 bits."""
    for size in (1, 2, 4, 8, 16):
        if bits <= size * 8:
            return size
    return (bits + 7) // 8


def _rows(kind: str, name: str, rows: list[str]) -> list[str]:
    return [
        f"static const struct {kind} {name}[] = {{",
        *(f"    {row}," for row in rows),
        "    {0}",
        "};",
    ]


def generate(text: bytes) -> tuple[Program, str, dict[str, Any]]:
    """(description, C source, decoded JSON) of a BMv2 JSON.

    Raises UnsupportedProgram naming the construct and its source line, ValueError when it is not a BMv2 JSON.
    """
    program, root = parse(text)
    try:
        return program, _Generator(program, root).text(), root
    except (
        KeyError,
        TypeError,
        IndexError,
        StopIteration,
        AttributeError,
        AssertionError,
        RecursionError,
    ) as error:
        raise ValueError(f"not a well-formed BMv2 JSON: {type(error).__name__} {error}") from error
