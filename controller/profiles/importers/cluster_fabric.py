"""Cluster specifications: Muri's and Tiresias' `num_switch` CSV, Lingjun's `topo.csv` -> a fabric."""

from __future__ import annotations

import csv
from pathlib import Path

from controller.profiles.errors import ProfileError
from controller.profiles.importers.cables import DEFAULT_RATE, Cable, fabric_of
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "cluster specification"
_TIERS = ("asw", "psw", "dsw")
_MOST = 65536


def recognise(head: Head) -> bool:
    """CSV columns `num_switch, num_node_p_switch`, or `ip, DSW, PSW, ASW`."""
    columns = set(head.columns())
    return {"num_switch", "num_node_p_switch"} <= columns or {"ip", *_TIERS} <= columns


def load(paths: list[Path], options: Options) -> Imported:
    """The fabric. Raises `ProfileError` with line and column."""
    (path,) = paths
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = [
            {
                (k or "").strip().lower(): (v or "").strip()
                for k, v in row.items()
                if isinstance(v, str)
            }
            for row in csv.DictReader(file)
        ]
    if not rows:
        raise ProfileError(str(path), "has no rows below its columns", 1)
    rate = options.reference_rate or DEFAULT_RATE
    report = ImportReport(NAME, assumed=[f"every link at {rate:g} bit/s (--link-rate)"])
    if "asw" in rows[0]:
        return _lingjun(path, rows, rate, report)
    return _counted(path, rows[0], rate, report)


def _counted(path: Path, row: dict[str, str], rate: float, report: ImportReport) -> Imported:
    counts = []
    for key in ("num_switch", "num_node_p_switch"):
        word = row.get(key, "")
        if not (word.isascii() and word.isdigit() and 0 < int(word[:9]) <= _MOST):
            raise ProfileError(str(path), f"{word[:30]!r}: expected a whole number > 0", 2, key)
        counts.append(int(word))
    switches, per_switch = counts
    if switches * per_switch > _MOST:
        raise ProfileError(str(path), f"{switches * per_switch} nodes: expected at most {_MOST}", 2)
    hosts = [f"h{i + 1}" for i in range(switches * per_switch)]
    names = [f"s{i + 1}" for i in range(switches)]
    cables: list[Cable] = [(h, names[i // per_switch], rate) for i, h in enumerate(hosts)]
    if switches > 1:
        names.append(f"s{switches + 1}")
        cables += [(name, names[-1], rate * per_switch) for name in names[:-1]]
        report.assumed.append("one core switch joins the others without blocking")
    report.understood.append(
        f"{switches} switches with {per_switch} nodes each, {row.get('num_gpu_p_node', '?')} GPUs a node"
    )
    return Imported(fabric_of(path.stem, hosts, names, cables), report)


def _lingjun(path: Path, rows: list[dict[str, str]], rate: float, report: ImportReport) -> Imported:
    hosts: list[str] = []
    seen: dict[str, int] = {}
    cables: dict[tuple[str, str], None] = {}
    for line, row in enumerate(rows, 2):
        above = []
        for tier in _TIERS:
            if not row.get(tier):
                raise ProfileError(str(path), "is empty: expected a switch", line, tier)
            above.append(f"{tier}-{row[tier]}")
        if not row.get("ip") or row["ip"] in seen:
            raise ProfileError(
                str(path), f"{row.get('ip', '')[:20]!r}: expected a new host", line, "ip"
            )
        seen[row["ip"]] = line
        hosts.append(f"h{len(hosts) + 1}")
        for pair in zip([hosts[-1], *above], above, strict=False):
            cables[pair] = None
    switches = list(dict.fromkeys(upper for _, upper in cables))
    tops = [s for s in switches if s.startswith("dsw-")]
    if len(tops) > 1:
        switches.append("core")
        cables.update({(top, "core"): None for top in tops})
        report.assumed.append("one core switch joins the DSWs")
    report.understood.append(
        f"{len(hosts)} hosts, {len(switches)} switches in tiers ASW, PSW, DSW; host k is line k + 1"
    )
    pairs = [(lower, upper, rate) for lower, upper in cables]
    return Imported(fabric_of(path.stem, hosts, switches, pairs), report)
