"""Match keys: P4Runtime's FieldMatch lists <-> the data plane's key bytes, both ways by one description."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from finsy.proto import p4r

from switch.server.bytestrings import narrow, octets, widen
from switch.server.errors import RequestError, invalid
from switch.server.pipeline import MatchField

_PREFIX_OCTETS = 2


class KeyCodec:
    """Encodes and decodes the keys of one table or value set."""

    def __init__(self, fields: Iterable[MatchField], owner: str) -> None:
        self._owner = owner
        self._fields = tuple(_CODECS[field.kind](field) for field in fields)
        # (position, size, top, encode): an exact value of that size whose first byte is at most `top` needs no encoding
        self._by_id = {
            codec.id: (position, *codec.plain, codec.encode)
            for position, codec in enumerate(self._fields)
        }
        self._omitted = [codec.omitted for codec in self._fields]

    def encode(self, matches: Iterable[p4r.FieldMatch]) -> bytes:
        """The key. Raises INVALID_ARGUMENT for unknown, repeated, missing or malformed fields, and for a "don't
        care" that is spelled out instead of left out."""
        omitted = self._omitted
        parts = omitted.copy()
        by_id = self._by_id
        for match in matches:
            found = by_id.get(match.field_id)
            if found is None:
                raise invalid(f"{self._owner}: no match field has id {match.field_id}")
            position, size, top, encode = found
            if parts[position] is not omitted[position]:
                raise invalid(f"{self._fields[position].name} is given twice")
            value = match.exact.value
            plain = len(value) == size and value[0] <= top
            parts[position] = value if plain else encode(match)
        try:
            return b"".join(parts)  # type: ignore[arg-type]
        except TypeError:
            missing = [c.name for c, part in zip(self._fields, parts, strict=True) if part is None]
            raise invalid(f"{missing[0]} is missing: an exact match cannot be left out") from None

    def decode(self, key: bytes) -> list[p4r.FieldMatch]:
        """The fields of a key; those that match anything are left out."""
        matches, position = [], 0
        for codec in self._fields:
            part = key[position : position + codec.length]
            position += codec.length
            if part != codec.omitted:
                matches.append(codec.decode(part))
        return matches

    def masked(self, key: bytes) -> tuple[bytes, bytes]:
        """A key as one value and one mask (parser value sets). Raises UNIMPLEMENTED for a range that is no prefix."""
        value = mask = b""
        position = 0
        for codec in self._fields:
            part_value, part_mask = codec.masked(key[position : position + codec.length])
            position += codec.length
            value, mask = value + part_value, mask + part_mask
        return value, mask


class _FieldCodec:
    """Shared by the five kinds of match."""

    omitted: bytes | None
    """The encoding of a field left out; None where that is an error."""
    length: int
    """Bytes of the encoding."""
    plain: tuple[int, int] = (-1, 0)
    """(size, top) of an exact match: a value of `size` bytes, the first at most `top`, is its own encoding."""

    def __init__(self, field: MatchField) -> None:
        self.id = field.id
        self.name = field.name
        self.bits = field.bits
        self.size = octets(field.bits)
        self.ones = ((1 << field.bits) - 1).to_bytes(self.size, "big")

    def encode(self, match: p4r.FieldMatch) -> bytes:
        raise NotImplementedError

    def decode(self, part: bytes) -> p4r.FieldMatch:
        raise NotImplementedError

    def masked(self, part: bytes) -> tuple[bytes, bytes]:
        return part[: self.size], part[self.size :]

    def wrong_kind(self, kind: str) -> RequestError:
        return invalid(f"{self.name}: expected {kind} match")

    def mask_of_prefix(self, prefix: int) -> int:
        return ((1 << prefix) - 1) << (self.bits - prefix)


class _Exact(_FieldCodec):
    def __init__(self, field: MatchField) -> None:
        super().__init__(field)
        self.omitted = None
        self.length = self.size
        self.plain = (self.size, self.ones[0])

    def encode(self, match: p4r.FieldMatch) -> bytes:
        if not match.HasField("exact"):
            raise self.wrong_kind("an exact")
        return widen(match.exact.value, self.bits, self.name)

    def decode(self, part: bytes) -> p4r.FieldMatch:
        return p4r.FieldMatch(field_id=self.id, exact=p4r.FieldMatch.Exact(value=narrow(part)))

    def masked(self, part: bytes) -> tuple[bytes, bytes]:
        return part, self.ones


class _Lpm(_FieldCodec):
    def __init__(self, field: MatchField) -> None:
        super().__init__(field)
        self.length = self.size + _PREFIX_OCTETS
        self.omitted = bytes(self.length)

    def encode(self, match: p4r.FieldMatch) -> bytes:
        if not match.HasField("lpm"):
            raise self.wrong_kind("an lpm")
        prefix = match.lpm.prefix_len
        value = widen(match.lpm.value, self.bits, self.name)
        if not 0 <= prefix <= self.bits:
            raise invalid(f"{self.name}: prefix length {prefix} is not within 0..{self.bits}")
        if prefix == 0:
            raise invalid(f"{self.name}: leave the field out instead of giving prefix length 0")
        if int.from_bytes(value, "big") & ~self.mask_of_prefix(prefix):
            raise invalid(f"{self.name}: bits beyond the prefix of {prefix} must be 0")
        return value + prefix.to_bytes(_PREFIX_OCTETS, "big")

    def decode(self, part: bytes) -> p4r.FieldMatch:
        lpm = p4r.FieldMatch.LPM(
            value=narrow(part[: self.size]), prefix_len=int.from_bytes(part[self.size :], "big")
        )
        return p4r.FieldMatch(field_id=self.id, lpm=lpm)

    def masked(self, part: bytes) -> tuple[bytes, bytes]:
        mask = self.mask_of_prefix(int.from_bytes(part[self.size :], "big"))
        return part[: self.size], mask.to_bytes(self.size, "big")


class _Ternary(_FieldCodec):
    def __init__(self, field: MatchField) -> None:
        super().__init__(field)
        self.length = 2 * self.size
        self.omitted = bytes(self.length)

    def encode(self, match: p4r.FieldMatch) -> bytes:
        if not match.HasField("ternary"):
            raise self.wrong_kind("a ternary")
        value = widen(match.ternary.value, self.bits, self.name)
        mask = widen(match.ternary.mask, self.bits, self.name)
        mask_bits = int.from_bytes(mask, "big")
        if mask_bits == 0:
            raise invalid(f"{self.name}: leave the field out instead of giving mask 0")
        if int.from_bytes(value, "big") & ~mask_bits:
            raise invalid(f"{self.name}: bits outside the mask must be 0")
        return value + mask

    def decode(self, part: bytes) -> p4r.FieldMatch:
        ternary = p4r.FieldMatch.Ternary(
            value=narrow(part[: self.size]), mask=narrow(part[self.size :])
        )
        return p4r.FieldMatch(field_id=self.id, ternary=ternary)


class _Range(_FieldCodec):
    def __init__(self, field: MatchField) -> None:
        super().__init__(field)
        self.length = 2 * self.size
        self.omitted = bytes(self.size) + self.ones

    def encode(self, match: p4r.FieldMatch) -> bytes:
        if not match.HasField("range"):
            raise self.wrong_kind("a range")
        low = widen(match.range.low, self.bits, self.name)
        high = widen(match.range.high, self.bits, self.name)
        if low > high:
            raise invalid(f"{self.name}: low end {low.hex()} is above high end {high.hex()}")
        if low + high == self.omitted:
            raise invalid(f"{self.name}: leave the field out instead of giving the full range")
        return low + high

    def decode(self, part: bytes) -> p4r.FieldMatch:
        bounds = p4r.FieldMatch.Range(low=narrow(part[: self.size]), high=narrow(part[self.size :]))
        return p4r.FieldMatch(field_id=self.id, range=bounds)

    def masked(self, part: bytes) -> tuple[bytes, bytes]:
        low, high = (int.from_bytes(part[i : i + self.size], "big") for i in (0, self.size))
        if (width := high - low + 1) & (width - 1) or low & (width - 1):
            raise invalid(
                f"{self.name}: a range in a value set must be a power of two wide and aligned"
            )
        return part[: self.size], ((1 << self.bits) - width).to_bytes(self.size, "big")


class _Optional(_FieldCodec):
    def __init__(self, field: MatchField) -> None:
        super().__init__(field)
        self.length = 2 * self.size
        self.omitted = bytes(self.length)

    def encode(self, match: p4r.FieldMatch) -> bytes:
        if not match.HasField("optional"):
            raise self.wrong_kind("an optional")
        return widen(match.optional.value, self.bits, self.name) + self.ones

    def decode(self, part: bytes) -> p4r.FieldMatch:
        return p4r.FieldMatch(
            field_id=self.id, optional=p4r.FieldMatch.Optional(value=narrow(part[: self.size]))
        )


_CODECS: dict[str, Callable[[MatchField], _FieldCodec]] = {
    "exact": _Exact,
    "valid": _Exact,
    "lpm": _Lpm,
    "ternary": _Ternary,
    "range": _Range,
    "optional": _Optional,
}
