"""`python -m switch` and the console script `echelon-switch`."""

import sys

from switch.server.cli import main as run


def main() -> None:
    """Run the switch and exit with its code."""
    sys.exit(run())


if __name__ == "__main__":
    main()
