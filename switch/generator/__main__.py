"""`python -m switch.generator FILE.json [--emit-c]`: print the C that the switch would compile."""

from __future__ import annotations

import sys
from pathlib import Path

from switch.generator.generate import generate
from switch.program import UnsupportedProgram


def main(arguments: list[str]) -> int:
    files = [a for a in arguments if a != "--emit-c"]
    if len(files) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(generate(Path(files[0]).read_bytes())[1])
    except (OSError, ValueError, UnsupportedProgram) as error:
        print(f"{files[0]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
