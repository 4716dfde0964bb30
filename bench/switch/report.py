"""The rows of the benchmark: a table to read, and results/bench/switch.json for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "results/bench/switch.json"


@dataclass(frozen=True)
class Row:
    """One figure beside its peer's."""

    what: str
    ours: float
    peer: float | None
    peer_name: str | None
    unit: str
    ratio: float | None
    target: str
    met: bool | None
    """None where the peer is not installed or nothing is asked of the figure."""


def at_least(
    what: str, ours: float, peer: float | None, peer_name: str, unit: str, factor: float
) -> Row:
    """ours >= factor x peer."""
    ratio = None if not peer else ours / peer
    met = None if ratio is None else ratio >= factor
    return Row(what, ours, peer, peer_name, unit, ratio, f">= {factor:g} x peer", met)


def at_most(
    what: str, ours: float, peer: float | None, peer_name: str, unit: str, factor: float
) -> Row:
    """ours <= factor x peer."""
    ratio = None if not peer else ours / peer
    met = None if ratio is None else ratio <= factor
    return Row(what, ours, peer, peer_name, unit, ratio, f"<= {factor:g} x peer", met)


def floor(
    what: str,
    ours: float,
    unit: str,
    least: float,
    peer: float | None = None,
    peer_name: str | None = None,
) -> Row:
    """ours >= least; the peer is for comparison."""
    ratio = ours / peer if peer else None
    return Row(what, ours, peer, peer_name, unit, ratio, f">= {least:g} {unit}", ours >= least)


def ceiling(
    what: str,
    ours: float,
    unit: str,
    most: float,
    peer: float | None = None,
    peer_name: str | None = None,
) -> Row:
    """ours <= most; the peer is for comparison."""
    ratio = ours / peer if peer else None
    return Row(what, ours, peer, peer_name, unit, ratio, f"<= {most:g} {unit}", ours <= most)


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(row: Row) -> None:
    """One line of the table."""
    met = {True: "met", False: "MISSED", None: "-"}[row.met]
    print(
        f"{row.what:52} {number(row.ours):>11} {number(row.peer):>11} {row.unit:10}"
        f" {number(row.ratio):>7} {row.target:18} {met:7} {row.peer_name or ''}",
        flush=True,
    )


def heading() -> None:
    print(
        f"{'what':52} {'ours':>11} {'peer':>11} {'unit':10} {'ratio':>7} {'target':18} {'':7} peer"
    )


def write(rows: list[Row]) -> Path:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return RESULTS
