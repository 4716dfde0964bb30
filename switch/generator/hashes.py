"""Calculations (hash inputs and algorithms) -> C functions `hash_NAME(p)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from switch.generator.layout import Field, Header, Layout, c_name, comment
from switch.program import unsupported

SIMPLE = {
    "csum16": "hash_csum16",
    "cksum16": "hash_csum16",
    "xor16": "hash_xor16",
    "xor32": "hash_xor32",
    "identity": "hash_identity",
    "xxh64": "hash_xxh64",
    "bmv2_hash": "hash_xxh64",
}

# (width, polynomial, initial, final xor, reflected), the catalogue BMv2 knows by name.
CRCS: dict[str, tuple[int, int, int, int, bool]] = {
    "crc16": (16, 0x8005, 0, 0, True),
    "crc16_custom": (16, 0x8005, 0, 0, True),
    "crc32": (32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "crc32_custom": (32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "crc8_custom": (8, 0x07, 0, 0, False),
    "crc64_custom": (64, 0x1B, 0, 0, True),
    "crcCCITT": (16, 0x1021, 0xFFFF, 0, False),
    "crc_8": (8, 0x07, 0, 0, False),
    "crc_8_darc": (8, 0x39, 0, 0, True),
    "crc_8_i_code": (8, 0x1D, 0xFD, 0, False),
    "crc_8_itu": (8, 0x07, 0, 0x55, False),
    "crc_8_maxim": (8, 0x31, 0, 0, True),
    "crc_8_rohc": (8, 0x07, 0xFF, 0, True),
    "crc_8_wcdma": (8, 0x9B, 0, 0, True),
    "crc_16": (16, 0x8005, 0, 0, True),
    "crc_16_buypass": (16, 0x8005, 0, 0, False),
    "crc_16_dds_110": (16, 0x8005, 0x800D, 0, False),
    "crc_16_dect": (16, 0x0589, 0, 1, False),
    "crc_16_dnp": (16, 0x3D65, 0, 0xFFFF, True),
    "crc_16_en_13757": (16, 0x3D65, 0, 0xFFFF, False),
    "crc_16_genibus": (16, 0x1021, 0xFFFF, 0xFFFF, False),
    "crc_16_maxim": (16, 0x8005, 0, 0xFFFF, True),
    "crc_16_mcrf4xx": (16, 0x1021, 0xFFFF, 0, True),
    "crc_16_riello": (16, 0x1021, 0xB2AA, 0, True),
    "crc_16_t10_dif": (16, 0x8BB7, 0, 0, False),
    "crc_16_teledisk": (16, 0xA097, 0, 0, False),
    "crc_16_usb": (16, 0x8005, 0xFFFF, 0xFFFF, True),
    "x_25": (16, 0x1021, 0xFFFF, 0xFFFF, True),
    "xmodem": (16, 0x1021, 0, 0, False),
    "modbus": (16, 0x8005, 0xFFFF, 0, True),
    "kermit": (16, 0x1021, 0, 0, True),
    "crc_ccitt_false": (16, 0x1021, 0xFFFF, 0, False),
    "crc_aug_ccitt": (16, 0x1021, 0x1D0F, 0, False),
    "crc_32": (32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "crc_32_bzip2": (32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, False),
    "crc_32c": (32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "crc_32d": (32, 0xA833982B, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "crc_32_mpeg": (32, 0x04C11DB7, 0xFFFFFFFF, 0, False),
    "posix": (32, 0x04C11DB7, 0, 0xFFFFFFFF, False),
    "crc_32q": (32, 0x814141AB, 0, 0, False),
    "jamcrc": (32, 0x04C11DB7, 0xFFFFFFFF, 0, True),
    "xfer": (32, 0xAF, 0, 0, False),
    "crc_64": (64, 0x1B, 0, 0, True),
    "crc_64_we": (64, 0x42F0E1EBA9EA3693, (1 << 64) - 1, (1 << 64) - 1, False),
    "crc_64_jones": (64, 0xAD93D23594C935A9, (1 << 64) - 1, 0, True),
}


def crc_parameters(algorithm: str) -> tuple[int, int, int, int, bool] | None:
    """A CRC by its name, or spelled out: `poly_0x18bb7[_init_0x..][_xout_0x..][_not_rev]`."""
    if algorithm in CRCS:
        return CRCS[algorithm]
    match = re.fullmatch(
        r"poly_0x1([0-9a-fA-F]{2,16})((?:_init_\w+?|_xout_\w+?|_not_rev)*)", algorithm
    )
    if not match or len(match[1]) * 4 not in (8, 16, 32, 64):
        return None
    options = dict(re.findall(r"_(init|xout)_(?:0x)?([0-9a-fA-F]+)", match[2]))
    width = len(match[1]) * 4
    mask = (1 << width) - 1
    return (
        width,
        int(match[1], 16),
        int(options.get("init", "0"), 16) & mask,
        int(options.get("xout", "0"), 16) & mask,
        "_not_rev" not in match[2],
    )


@dataclass(frozen=True)
class _Piece:
    """A constant or a field of the input."""

    bits: int
    header: Header | None = None
    field: Field | None = None
    constant: int = 0


class Hashes:
    """Writes one C function per calculation."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.names: dict[str, str] = {}
        self.text: list[str] = []

    def add(
        self, name: str, algorithm: str, inputs: list[dict[str, Any]], where: dict[str, Any]
    ) -> str:
        """Defines the function of a calculation and returns its C name."""
        function = f"hash_of_{len(self.names)}_{c_name(name)}"
        self.names[name] = function
        call = self._algorithm(algorithm, function, where)
        lines = [
            f"/* {comment(name)}: {comment(algorithm)} */",
            f"static uint64_t {function}(struct packet *p) {{",
            "    struct phv *H = (struct phv *)p->phv;",
            "    uint8_t *out = p->sw->scratch;",
        ]
        lines += self._input(inputs)
        lines += [f"    return {call};", "}"]
        self.text.append("\n".join(lines))
        return function

    def _algorithm(self, algorithm: str, function: str, where: dict[str, Any]) -> str:
        if algorithm in SIMPLE:
            return f"{SIMPLE[algorithm]}(out, bits / 8)"
        if algorithm == "round_robin":
            self.text.append(f"static uint64_t {function}_turn;")
            return f"hash_round_robin(&{function}_turn)"
        crc = crc_parameters(algorithm)
        if crc is None:
            raise unsupported(f"hash algorithm {algorithm}", where)
        width, polynomial, initial, final, reflected = crc
        flag = str(reflected).lower()
        self.text.append(
            f"static struct crc {function}_crc = {{{width}, {polynomial:#x}ull, {initial:#x}ull, "
            f"{final:#x}ull, {flag}, {flag}, false, {{0}}}};"
        )
        return f"hash_crc(&{function}_crc, out, bits / 8)"

    def _input(self, inputs: list[dict[str, Any]]) -> list[str]:
        pieces, payload = self._pieces(inputs)
        headers = {p.header.code for p in pieces if p.header and not p.header.metadata}
        plain = all(
            p.field is None or not (p.field.wide and (p.field.varbit or p.field.bits % 8))
            for p in pieces
        )
        if plain and len(headers) <= 1 and all(p.header is not None for p in pieces):
            lines = self._static(pieces)
        else:
            lines = ["    uint32_t bits = 0;", *(self._append(p) for p in pieces)]
        lines.append(
            "    if (bits % 8) { out[bits / 8] &= (uint8_t)(0xff00 >> bits % 8); bits += 8 - bits % 8; }"
        )
        if payload:
            lines += [
                "    uint32_t rest = p->len < p->truncate ? p->len : p->truncate;",
                "    memcpy(out + bits / 8, p->data, rest);",
                "    bits += rest * 8;",
            ]
        return lines

    def _pieces(self, inputs: list[dict[str, Any]]) -> tuple[list[_Piece], bool]:
        pieces, payload = [], False
        for item in inputs:
            if item["type"] == "field":
                header, field = self.layout.field(item["value"])
                pieces.append(_Piece(field.bits, header, field))
            elif item["type"] == "hexstr":
                pieces.append(_Piece(item["bitwidth"], constant=int(item["value"], 16)))
            elif item["type"] == "header":
                header = self.layout.headers[item["value"]]
                pieces += [_Piece(f.bits, header, f) for f in header.type.fields]
            elif item["type"] == "payload":
                payload = True
            else:
                raise unsupported(f"hash input of type {item['type']}", item)
        return pieces, payload

    @staticmethod
    def _static(pieces: list[_Piece]) -> list[str]:
        """Every field of one header, at offsets known now: whole bytes are gathered into single stores."""
        lines, group, start, at = [], [], 0, 0
        for index, piece in enumerate(pieces):
            assert piece.header and piece.field
            if piece.field.wide:
                if at % 8:
                    return ["    uint32_t bits = 0;", *(Hashes._append(p) for p in pieces)]
                lines.append(
                    f"    memcpy(out + {at // 8}, {piece.header.at(piece.field)}, {piece.field.bytes});"
                )
                at += piece.bits
                start = at
                continue
            group.append(piece)
            at += piece.bits
            following = pieces[index + 1] if index + 1 < len(pieces) else None
            following_bits = (
                0
                if following is None or (following.field and following.field.wide)
                else following.bits
            )
            if (
                at % 8
                and following is not None
                and following_bits
                and at + following_bits - start <= 128
            ):
                continue
            lines.append(_store_group(group, start, at))
            if at % 8 and following is not None:
                return ["    uint32_t bits = 0;", *(Hashes._append(p) for p in pieces)]
            group, start = [], at
        valid = next((p.header.valid for p in pieces if p.header and not p.header.metadata), "1")
        return [
            "    uint32_t bits = 0;",
            f"    if ({valid}) {{",
            *("    " + line for line in lines),
            f"        bits = {at};",
            "    }",
        ]

    @staticmethod
    def _append(piece: _Piece) -> str:
        if piece.header is None or piece.field is None:
            if piece.bits > 128:
                data = "".join(
                    f"\\x{b:02x}" for b in piece.constant.to_bytes((piece.bits + 7) // 8, "big")
                )
                return f'    wide_put(out, bits, (const uint8_t *)"{data}", {piece.bits}); bits += {piece.bits};'
            value = f"U128({piece.constant >> 64:#x}ull, {piece.constant & (1 << 64) - 1:#x}ull)"
            return f"    put_bits(out, bits, {piece.bits}, {value}); bits += {piece.bits};"
        code = piece.header.at(piece.field)
        if piece.field.varbit:
            return f"    if ({piece.header.valid}) {{ wide_put(out, bits, {code}, {code}_bits); bits += {code}_bits; }}"
        put = (
            f"wide_put(out, bits, {code}, {piece.bits})"
            if piece.field.wide
            else f"put_bits(out, bits, {piece.bits}, {code})"
        )
        return f"    if ({piece.header.valid}) {{ {put}; bits += {piece.bits}; }}"


def _store_group(group: list[_Piece], start: int, end: int) -> str:
    total = end - start
    size = (total + 7) // 8
    wide = total > 64
    terms, shift = [], size * 8
    for piece in group:
        assert piece.header and piece.field
        shift -= piece.bits
        code = f"({'u128' if wide else 'uint64_t'}){piece.header.at(piece.field)}"
        terms.append(f"{code} << {shift}" if shift else code)
    return f"    store_be{'128' if wide else ''}(out + {start // 8}, {size}, {' | '.join(terms)});"
