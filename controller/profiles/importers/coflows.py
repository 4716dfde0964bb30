"""The coflow benchmark's trace (FB2010): one line a coflow, mappers and reducers by rack.

`<racks> <coflows>`, then `<id> <arrival ms> <m> <rack>.. <r> <rack>:<MB>..`. Each reducer's bytes come
evenly from all mappers. Source: Chowdhury et al., github.com/coflow/coflow-benchmark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from controller.model import EchelonFlow, Flow, Job, PlacedJob, Workload
from controller.profiles.errors import ProfileError
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "coflow benchmark"
MEGABYTE = 1e6
"Bytes of the trace's MB."
MOST_FLOWS = 5_000_000
"More than any published trace; bounds what a hostile line can ask for."


def recognise(head: Head) -> bool:
    """`150 526`, and then lines of numbers with <rack>:<MB>."""
    lines = head.lines[:2]
    return (
        bool(lines)
        and re.fullmatch(r"\d+ +\d+", lines[0].strip()) is not None
        and (len(lines) < 2 or re.match(r"\d+ \d+ \d+ \d+ ", lines[1]) is not None)
    )


def load(paths: list[Path], options: Options) -> Imported:
    """A workload of one job a coflow. Raises `ProfileError` with line and field."""
    (path,) = paths
    report = ImportReport(NAME)
    with path.open(encoding="utf-8", errors="replace") as lines:
        reader = _Lines(str(path), lines)
        racks, expected = reader.header()
        jobs = list(reader.coflows(racks, options.limit))
    if reader.coflows_seen < min(expected, options.limit or expected):
        raise reader.error(f"{reader.coflows_seen} coflows: expected {expected}; is it truncated?")
    flows = sum(len(placed.job.flows) for placed in jobs)
    report.understood += [
        f"{racks} racks, {reader.coflows_seen} coflows, {flows + reader.local} flows",
        f"{reader.local} flows stay in their rack: counted, not sent",
    ]
    if reader.coflows_seen > len(jobs):
        report.understood.append(f"{reader.coflows_seen - len(jobs)} coflows never leave a rack")
    report.assumed += [
        "1 MB is 10^6 bytes",
        "rack k is host h<k+1>; a reducer's bytes come evenly from its mappers",
        f"fabric big-switch:{racks} at 1gbit (choose with --topology and --link-rate)",
    ]
    if not jobs:
        raise reader.error("no coflow leaves its rack: nothing to send")
    return Imported(
        Workload(tuple(jobs), options.name or path.stem), report, f"big-switch:{racks}", 1e9
    )


class _Lines:
    """Reads the lines of one trace and remembers where it is."""

    def __init__(self, file: str, lines: Iterator[str]) -> None:
        self.local = 0
        "Flows within a rack."
        self.coflows_seen = 0
        self._file = file
        self._lines = lines
        self._number = 0
        self._flows = 0

    def error(self, message: str, key: str = "") -> ProfileError:
        """The error about the current line."""
        return ProfileError(self._file, message, self._number, key)

    def header(self) -> tuple[int, int]:
        """(racks, coflows)."""
        self._number = 1
        words = next(self._lines, "").split()
        if len(words) != 2:
            raise self.error("expected '<racks> <coflows>'")
        return self._whole(words[0], "racks", 1), self._whole(words[1], "coflows", 1)

    def coflows(self, racks: int, limit: int | None) -> Iterator[PlacedJob]:
        """The coflows that leave their racks."""
        names = [f"r{rack}" for rack in range(min(racks, 1_000_000))]
        seen: set[str] = set()
        for line in self._lines:
            self._number += 1
            words = line.split()
            if not words:
                continue
            if words[0] in seen:
                raise self.error(f"coflow {words[0]} is listed twice", "id")
            seen.add(words[0])
            placed = self._coflow(words, names)
            self.coflows_seen += 1
            if placed is not None:
                yield placed
            if self.coflows_seen == limit:
                return

    def _coflow(self, words: list[str], names: list[str]) -> PlacedJob | None:
        arrival = self._number_of(words, 1, "arrival", 0.0) / 1e3
        mappers = [self._rack(word, "mapper", names) for word in self._counted(words, 2, "mappers")]
        start = 3 + len(mappers)
        sizes: dict[int, float] = {}
        for word in self._counted(words, start, "reducers"):
            rack, colon, size = word.partition(":")
            if not colon:
                raise self.error(f"{word!r}: expected <rack>:<MB>", "reducer")
            reducer = self._rack(rack, "reducer", names)
            megabytes = self._number_of([size], 0, "reducer's MB", 0.0)
            sizes[reducer] = sizes.get(reducer, 0.0) + megabytes * MEGABYTE
        self._flows += len(mappers) * len(sizes)
        if self._flows > MOST_FLOWS:
            raise self.error(f"more than {MOST_FLOWS} flows")
        share: dict[int, int] = {}
        for mapper in mappers:
            share[mapper] = share.get(mapper, 0) + 1
        flows = [
            Flow(f"{m}-{r}", names[m], names[r], size * parts / len(mappers))
            for r, size in sizes.items()
            for m, parts in share.items()
            if m != r and size > 0
        ]
        self.local += sum(1 for r in sizes if r in share)
        if not flows:
            return None
        used = sorted({rack for rack in (*share, *sizes)})
        ids = tuple(flow.id for flow in flows)
        job = Job(
            f"coflow{words[0]}",
            tuple(names[rack] for rack in used),
            flows=tuple(flows),
            echelonflows=(EchelonFlow("coflow", ids, (0.0,) * len(ids)),),
        )
        return PlacedJob(job, {names[rack]: f"h{rack + 1}" for rack in used}, arrival)

    def _counted(self, words: list[str], at: int, what: str) -> list[str]:
        """The words behind a count."""
        if at >= len(words):
            raise self.error(f"ends before the number of {what}", what)
        count = self._whole(words[at], what, 1)
        found = words[at + 1 : at + 1 + count]
        if len(found) < count:
            raise self.error(f"{len(found)} {what}: expected {count}; is it truncated?", what)
        if what == "reducers" and len(words) > at + 1 + count:
            raise self.error(f"{len(words) - at - 1 - count} words too many", what)
        return found

    def _rack(self, word: str, what: str, names: list[str]) -> int:
        rack = self._whole(word, what, 0)
        if rack >= len(names):
            raise self.error(f"rack {rack}: expected 0..{len(names) - 1}", what)
        return rack

    def _whole(self, word: str, what: str, least: int) -> int:
        if not (word.isascii() and word.isdigit() and len(word) < 10 and int(word) >= least):
            raise self.error(f"{word[:30]!r}: expected a whole number >= {least}", what)
        return int(word)

    def _number_of(self, words: list[str], at: int, what: str, least: float) -> float:
        word = words[at] if at < len(words) else ""
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= least):
            raise self.error(f"{word[:30]!r}: expected a number >= {least:g}", what)
        return value
