"""Header types -> C functions that read them from a frame and write them back.

Neighbouring fields that together fill whole bytes (version and length of IPv4, say) are read with one load and
written with one store.
"""

from __future__ import annotations

from collections.abc import Iterator

from switch.generator.layout import Field, HeaderType


def extract_function(kind: HeaderType) -> str:
    """`extract_TAG(h, d)` or, with a varbit, `extract_TAG(h, d, bits)`: fills every field from the bytes at d."""
    varbit = kind.varbit
    lines = [
        f"static inline void extract_{kind.tag}(struct {kind.tag} *h, const uint8_t *d{', uint32_t bits' if varbit else ''}) {{"
    ]
    for offset, group in _groups(kind):
        lines += [f"    {line}" for line in _extract(offset, group)]
    return "\n".join([*lines, "}"])


def emit_function(kind: HeaderType) -> str:
    """`emit_TAG(h, d)`: writes the header to d; returns its length in bytes."""
    varbit = kind.varbit
    lines = [f"static inline uint32_t emit_{kind.tag}(const struct {kind.tag} *h, uint8_t *d) {{"]
    for offset, group in _groups(kind):
        lines += [f"    {line}" for line in _emit(offset, group)]
    size = f"{kind.bytes}u" + (f" + h->{varbit.member}_bits / 8u" if varbit else "")
    return "\n".join([*lines, f"    return {size};", "}"])


def _groups(kind: HeaderType) -> Iterator[tuple[int, list[Field]]]:
    """(bit offset, fields): one wide field, or integers of at most 64 bits that start on a byte, or one that does not.

    Offsets behind a varbit count it as empty; `d` is moved past it when it is met.
    """
    at = 0
    pending: list[Field] = []
    start = 0
    for field in kind.fields:
        if field.wide or (pending and at + field.bits - start > 64):
            yield from _flush(start, pending)
            pending = []
        if field.wide:
            yield at, [field]
            at += 0 if field.varbit else field.bits
            continue
        if not pending:
            start = at
        pending.append(field)
        at += field.bits
        if at % 8 == 0:
            yield from _flush(start, pending)
            pending = []
    yield from _flush(start, pending)


def _flush(start: int, fields: list[Field]) -> Iterator[tuple[int, list[Field]]]:
    total = sum(f.bits for f in fields)
    if fields and start % 8 == 0 and total % 8 == 0 and total <= 64:
        yield start, fields
        return
    for field in fields:
        yield start, [field]
        start += field.bits


def _whole(offset: int, fields: list[Field]) -> bool:
    return offset % 8 == 0 and sum(f.bits for f in fields) % 8 == 0


def _extract(offset: int, fields: list[Field]) -> list[str]:
    first = fields[0]
    if first.varbit:
        return [
            f"h->{first.member}_bits = (uint16_t)bits;",
            f"copy_bits(h->{first.member}, 0, d, {offset}, bits); d += bits / 8;",
        ]
    if first.wide:
        return [f"wide_get(h->{first.member}, {first.bits}, d, {offset});"]
    total = sum(f.bits for f in fields)
    if not _whole(offset, fields):
        return [f"h->{f.member} = ({f.c_type})get_bits(d, {offset}, {f.bits});" for f in fields]
    if len(fields) == 1:
        name = "load_be" if total <= 64 else "load_be128"
        return [f"h->{first.member} = ({first.c_type}){name}(d + {offset // 8}, {total // 8});"]
    lines, left = [f"uint64_t w = load_be(d + {offset // 8}, {total // 8});"], total
    for field in fields:
        left -= field.bits
        shifted = f"w >> {left}" if left else "w"
        lines.append(
            f"h->{field.member} = ({field.c_type})(({shifted}) & {(1 << field.bits) - 1:#x});"
        )
    return ["{", *("    " + line for line in lines), "}"]


def _emit(offset: int, fields: list[Field]) -> list[str]:
    first = fields[0]
    if first.varbit:
        return [
            f"copy_bits(d, {offset}, h->{first.member}, 0, h->{first.member}_bits); d += h->{first.member}_bits / 8;"
        ]
    if first.wide:
        return [f"wide_put(d, {offset}, h->{first.member}, {first.bits});"]
    total = sum(f.bits for f in fields)
    if not _whole(offset, fields):
        return [f"put_bits(d, {offset}, {f.bits}, h->{f.member});" for f in fields]
    name = "store_be" if total <= 64 else "store_be128"
    terms, left = [], total
    for field in fields:
        left -= field.bits
        term = f"(uint64_t)h->{field.member}" if total <= 64 else f"h->{field.member}"
        terms.append(f"{term} << {left}" if left else term)
    return [f"{name}(d + {offset // 8}, {total // 8}, {' | '.join(terms)});"]
