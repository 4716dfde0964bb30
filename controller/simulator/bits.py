"""Sets of small numbers, 64 to a word; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.scheduling.compiling import compiled

Bits = NDArray[np.uint64]
"(words,) bit b of word w: whether the set has 64 w + b."

ONE, NO_BITS = np.uint64(1), np.uint64(0)

DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
"Every 6 consecutive bits of it are another number."
BIT_OF = np.argsort([((0x03F79D71B4CB0A89 << bit) & (2**64 - 1)) >> 58 for bit in range(64)])
"(64,) the bit that shifts that number to the top."


@compiled
def include(bits: Bits, i: int) -> None:
    """The set has i."""
    bits[i >> 6] |= ONE << np.uint64(i & 63)


@compiled
def exclude(bits: Bits, i: int) -> None:
    """The set has i no more."""
    bits[i >> 6] &= ~(ONE << np.uint64(i & 63))


@compiled
def within(part: Bits, whole: Bits) -> bool:
    """Whether all of one set are in another."""
    for w in range(len(part)):
        if part[w] & ~whole[w] != NO_BITS:
            return False
    return True


@compiled
def not_empty(bits: Bits) -> bool:
    """Whether the set has anything."""
    for word in bits:
        if word != NO_BITS:
            return True
    return False


@compiled
def lowest(word: int) -> int:
    """Place of the lowest bit of a word that has one (by a De Bruijn sequence)."""
    return int(BIT_OF[((word & (~word + ONE)) * DE_BRUIJN) >> np.uint64(58)])
