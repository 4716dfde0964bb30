"""ASTRA-sim's network description (analytical backend, YAML or JSON) -> a fabric.

Dimension by dimension: `topology` Ring, FullyConnected or Switch, `npus_count`, `bandwidth` in GB/s.
Hosts do not forward here, so every group of a dimension hangs on one switch.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from controller.profiles.documents import Document, Key
from controller.profiles.importers.cables import Cable, fabric_of
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options
from controller.profiles.reader import Reader, shown

NAME = "ASTRA-sim network"
_SHAPES = ("ring", "fullyconnected", "switch")
_MOST = 65536


def recognise(head: Head) -> bool:
    """`npus_count` and `topology`, or the older `units-count`."""
    text = head.text
    return ("npus_count" in text and "topology" in text) or "units-count" in text


def load(paths: list[Path], options: Options) -> Imported:
    """The fabric. Raises `ProfileError`."""
    (path,) = paths
    reader = Reader(Document.load(path))
    value = reader.document.value
    if not isinstance(value, dict):
        raise reader.fail((), f"{shown(value)}: expected topology, npus_count, bandwidth")
    shapes, at = _first(reader, value, "topology", "topologies-per-dim")
    counts, count_at = _first(reader, value, "npus_count", "units-count")
    rates, rate_at = _first(reader, value, "bandwidth", "link-bandwidth")
    if not len(shapes) == len(counts) == len(rates) or not shapes:
        raise reader.fail(
            at, f"{len(shapes)} shapes, {len(counts)} counts, {len(rates)} rates: expected as many"
        )
    report = ImportReport(NAME)
    sizes, speeds = [], []
    for i, (shape, count, rate) in enumerate(zip(shapes, counts, rates, strict=True)):
        if str(shape).lower() not in _SHAPES:
            raise reader.fail((*at, i), f"{shown(shape)}: expected Ring, FullyConnected or Switch")
        sizes.append(reader.whole(count, (*count_at, i)))
        speeds.append(reader.number(rate, (*rate_at, i)) * 8e9)
        if not 0 < sizes[-1] <= _MOST or math.prod(sizes) > _MOST:
            raise reader.fail((*count_at, i), f"{shown(count)}: expected 1 to {_MOST} in all")
        if not speeds[-1] > 0:
            raise reader.fail((*rate_at, i), f"{shown(rate)}: expected GB/s > 0")
        if str(shape).lower() != "switch":
            report.assumed.append(f"dimension {i} ({shape}): a switch, hosts do not forward")
    hosts = [f"h{i + 1}" for i in range(math.prod(sizes))]
    switches, cables = _tree(hosts, sizes, speeds)
    report.understood.append(f"{len(hosts)} hosts in {len(sizes)} dimensions")
    report.assumed.append("bandwidth in GB/s each way; latencies are left out")
    return Imported(fabric_of(path.stem, hosts, switches, cables), report)


def _tree(hosts: list[str], sizes: list[int], speeds: list[float]) -> tuple[list[str], list[Cable]]:
    """A switch a group and dimension; each joins those of the dimension before."""
    below, carried = hosts, 1
    switches: list[str] = []
    cables: list[Cable] = []
    for size, speed in zip(sizes, speeds, strict=True):
        groups = [below[i : i + size] for i in range(0, len(below), size)]
        names = [f"s{len(switches) + i + 1}" for i in range(len(groups))]
        for name, members in zip(names, groups, strict=True):
            cables += [(member, name, speed * carried) for member in members]
        switches += names
        below, carried = names, carried * size
    return switches, cables


def _first(reader: Reader, value: dict[str, Any], *names: str) -> tuple[list[Any], Key]:
    for name in names:
        if name in value:
            found = value[name]
            return (found if isinstance(found, list) else [found]), (name,)
    raise reader.fail((), f"{names[0]} is missing")
