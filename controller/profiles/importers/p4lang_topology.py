"""p4lang's `topology.json` (the P4 tutorials): hosts, switches, links -> a fabric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controller.profiles.documents import Document
from controller.profiles.importers.cables import DEFAULT_RATE, Cable, fabric_of, unreached
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options
from controller.profiles.reader import Reader, shown

NAME = "p4lang topology"


def recognise(head: Head) -> bool:
    """JSON with hosts, switches and links."""
    return head.is_json and head.has_key("links") and head.has_key("hosts", "switches")


def load(paths: list[Path], options: Options) -> Imported:
    """The fabric; a link is `[end, end, latency, Mbit/s]`, an end `h1` or `s1-p2`."""
    (path,) = paths
    reader = Reader(Document.load(path))
    found = reader.mapping(reader.document.value, (), ("hosts", "switches", "links"),
                           list(reader.document.value) if isinstance(reader.document.value, dict) else ())  # fmt: skip
    hosts = _names(reader, found["hosts"], "hosts")
    switches = _names(reader, found["switches"], "switches")
    report = ImportReport(NAME)
    default = options.reference_rate or DEFAULT_RATE
    cables: list[Cable] = []
    rated = 0
    known = {*hosts, *switches}
    plugged: set[str] = set()
    for i, entry in enumerate(reader.entries(found["links"], ("links",))):
        key = ("links", i)
        ends = (
            entry
            if isinstance(entry, list)
            else [entry.get("node1"), entry.get("node2")]
            if isinstance(entry, dict)
            else []
        )
        if len(ends) < 2:
            raise reader.fail(key, f"{shown(entry)}: expected [end, end]")
        spelled = [reader.text(end, (*key, k)) for k, end in enumerate(ends[:2])]
        names = [n if n in known else n.rsplit("-p", 1)[0].split(":")[0] for n in spelled]
        for k, (name, end) in enumerate(zip(names, spelled, strict=True)):
            if name not in known:
                raise reader.fail((*key, k), f"{name!r}: expected one of the hosts or switches")
            if end in plugged:
                raise reader.fail((*key, k), f"{end!r}: expected a port without a cable")
            if end != name:  # it names a port, as s1-p2 does
                plugged.add(end)
        rate = default
        if len(ends) > 3:
            rate = reader.number(ends[3], (*key, 3)) * 1e6
            rated += 1
            if not rate > 0:
                raise reader.fail((*key, 3), f"{shown(ends[3])}: expected Mbit/s > 0")
        cables.append((names[0], names[1], rate))
    if not hosts:
        raise reader.fail(("hosts",), "no hosts: expected at least one")
    fabric = fabric_of(path.stem, hosts, switches, cables)
    lost = unreached(fabric)
    if lost:
        raise reader.fail(("links",), f"disconnected: no way from {hosts[0]} to {lost}")
    report.understood.append(f"{len(hosts)} hosts, {len(switches)} switches, {len(cables)} links")
    if rated < len(cables):
        report.assumed.append(f"{len(cables) - rated} links at {default:g} bit/s (--link-rate)")
    return Imported(fabric, report)


def _names(reader: Reader, value: Any, key: str) -> list[str]:
    if isinstance(value, dict):
        return list(value)
    return list(reader.texts(value, (key,)))
