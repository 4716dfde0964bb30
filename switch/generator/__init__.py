"""BMv2 JSON -> one readable C file: `generate`."""

from switch.generator.generate import generate

__all__ = ["generate"]
