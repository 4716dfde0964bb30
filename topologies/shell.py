"""Shell lines run in a Mininet node's namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controller.model.errors import WorkFailed


def run_lines(node: Any, lines: Sequence[str]) -> None:
    """Run lines in one shell. Raises WorkFailed with what was said when one of them fails."""
    script = "set -e\n" + "\n".join(lines)
    out, err, code = node.pexec(["sh", "-c", script])
    if code != 0:
        raise WorkFailed(f"setting up {node.name} failed: {(err or out).strip()}")


def tc_lines(batch: Sequence[str]) -> list[str]:
    """Lines that feed `tc -batch`."""
    return ["tc -batch - <<'BATCH'\n" + "\n".join(batch) + "\nBATCH"]
