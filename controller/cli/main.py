"""The `echelon` command: mounts the sub-commands, turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys

import typer

from controller.cli import daemon, network, offline
from controller.model.errors import BadInput

DONE, FAILED, USAGE = 0, 1, 2

app = typer.Typer(
    name="echelon",
    help="EchelonFlow scheduling of training traffic, enforced by P4 switches.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
offline.mount(app)
network.mount(app)
daemon.mount(app)


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 the work failed, 2 usage or bad input."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """One command; returns its exit code. `ECHELON_DEBUG=1` shows tracebacks."""
    try:
        status = app(arguments, standalone_mode=False)
    except typer.Exit as stop:
        return int(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", FAILED)
    except Exception as error:
        if os.environ.get("ECHELON_DEBUG"):
            raise
        return _complain(_one_line(error), _code_of(error))
    return status if isinstance(status, int) else DONE


def _code_of(error: Exception) -> int:
    if isinstance(error, (BadInput, ValueError, FileNotFoundError, IsADirectoryError)):
        return USAGE
    if _is_usage_error(error):
        return USAGE
    return FAILED


def _one_line(error: Exception) -> str:
    if _is_usage_error(error):
        return str(error.format_message())  # type: ignore[attr-defined]
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _is_usage_error(error: Exception) -> bool:
    """Click's usage errors, whichever copy of click typer carries."""
    return any(base.__name__ == "UsageError" for base in type(error).__mro__)


def _complain(message: str, code: int) -> int:
    print(f"echelon: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
