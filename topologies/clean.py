"""`make clean`: removes exactly what runs made and left behind, every instance that is not running."""

from __future__ import annotations

import sys

from controller.model.errors import WorkFailed
from topologies.runfile import clean, state_directory


def main() -> int:
    """Clean all instances; 1 if one of them is running."""
    code = 0
    root = state_directory().parent
    for directory in sorted(root.iterdir()) if root.is_dir() else []:
        try:
            for item in clean(directory.name):
                print(f"clean: removed {item}")
        except WorkFailed as error:
            print(f"clean: {error}", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
