"""NCCL's own words: `NCCL INFO` ring lines, call traces, and inspector / profiler JSON lines.

Rings give the order of the workers, calls (`NCCL_DEBUG_SUBSYS=COLL`: `AllReduce: opCount .. count ..`)
and JSON lines the sizes. Rings alone need sizes from the user.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from controller.model import Collective, Job
from controller.profiles.errors import ProfileError
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "NCCL log"
_RING = re.compile(r"NCCL INFO Channel (\d{1,4})/(\d{1,4}) *: +(\d[\d ]*)$")
_COMM = re.compile(r"NCCL INFO comm (\S+).*? rank (\d{1,6}) nranks (\d{1,6})")
_CALL = re.compile(
    r"NCCL INFO (\w+): opCount (\w+) .*?count (\d{1,18}) datatype (\d{1,2}).*?comm (\S+)"
    r"(?: \[nranks=(\d{1,6})\])?"
)
_KINDS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "broadcast": "broadcast", "alltoall": "all_to_all", "reduce": "broadcast",
}  # fmt: skip
_ELEMENT = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"Bytes by ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, f16, f32, f64, bf16, f8, f8."
_MOST_RANKS = 4096
_MOST_CALLS = 100_000


def recognise(head: Head) -> bool:
    """`NCCL INFO`, or JSON lines of the inspector or profiler."""
    if "NCCL INFO" in head.text:
        return True
    first = head.lines[0] if head.lines else ""
    return (
        first.startswith("{")
        and re.search(r'"coll(_perf)?"\s*:|"coll_msg_size_bytes"', first) is not None
    )


def load(paths: list[Path], options: Options) -> Imported:
    """The job profile. Raises `ProfileError`."""
    (path,) = paths
    report = ImportReport(NAME)
    log = _Log(path)
    log.read()
    ranks = options.world_size or log.ranks
    if not 2 <= ranks <= _MOST_RANKS:
        raise ProfileError(
            str(path), f"{ranks} ranks: expected 2 to {_MOST_RANKS}; is it the log of one GPU?"
        )
    rings = _complete(log.rings, ranks, report) or [list(range(ranks))]
    calls = log.calls or [("all_reduce", size) for size in options.sizes]
    if not calls:
        raise ProfileError(
            str(path),
            f"names rings of {ranks} ranks but no collective with its size: give the bytes of each "
            "all-reduce of an iteration with --sizes",
        )
    collectives: list[Collective] = []
    last: list[str] = []
    for i, (kind, size) in enumerate(calls):
        now = []
        for channel, ring in enumerate(rings):
            now.append(f"{kind}{i}.ch{channel}")
            collectives.append(
                Collective(
                    now[-1], kind, "direct" if kind == "all_to_all" else "ring",
                    tuple(f"w{rank}" for rank in ring), size / len(rings), tuple(last),
                )
            )  # fmt: skip
        last = now
    report.understood.append(
        f"{ranks} ranks, {log.channels} ring channels ({len(rings)} different), "
        f"{len(log.calls)} collectives with sizes"
    )
    if not log.calls:
        report.assumed.append("all-reduces of the sizes given with --sizes")
    report.assumed.append("the channels share each collective evenly; one collective at a time")
    report.unknown.append("computing times: tasks are left out")
    job = Job(
        options.name or path.stem,
        tuple(f"w{rank}" for rank in range(ranks)),
        collectives=tuple(collectives),
        iterations=options.iterations,
        reference_rate=options.reference_rate,
    )
    return Imported(job, report)


class _Log:
    """Reads one log, line by line."""

    def __init__(self, path: Path) -> None:
        self.rings: list[list[int]] = []
        self.channels = 0
        self.ranks = 0
        self.calls: list[tuple[str, float]] = []
        self._path = path
        self._seen: set[str] = set()
        self._counted: dict[str, int] = {}  # communicator -> its last collective
        self._sizes: dict[str, int] = {}  # communicator -> its ranks

    def read(self) -> None:
        """All lines. Raises `ProfileError` with the line."""
        with self._path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if len(self.calls) > _MOST_CALLS:
                    raise ProfileError(str(self._path), f"more than {_MOST_CALLS} calls", number)
                line = line.rstrip()
                if line.startswith("{"):
                    self._json(number, line)
                elif found := _RING.search(line):
                    self._ring(number, [int(word[:9]) for word in found[3].split()])
                elif found := _COMM.search(line):
                    self.ranks = max(self.ranks, int(found[3]))
                elif found := _CALL.search(line):
                    self._call(number, *found.groups())

    def _ring(self, number: int, ring: list[int]) -> None:
        if len(set(ring)) < len(ring):
            raise ProfileError(str(self._path), "a rank is twice in the ring", number)
        self.channels += 1
        self.ranks = max(self.ranks, max(ring) + 1)
        if ring not in self.rings and len(self.rings) < 64:
            self.rings.append(ring)

    def _call(
        self, number: int, name: str, op: str, count: str, kind: str, comm: str, ranks: str | None
    ) -> None:
        plain = _KINDS.get(name.lower())
        if plain is None or int(kind) >= len(_ELEMENT):
            raise ProfileError(
                str(self._path), f"unknown collective {name[:30]!r} or type {kind}", number
            )
        self.ranks = max(self.ranks, int(ranks or 0))
        key = f"{comm} {op} {name}"
        if key in self._seen or int(count) == 0:
            return  # other ranks of this host log the same call
        self._seen.add(key)
        size = float(int(count) * _ELEMENT[int(kind)])
        if plain == "all_gather":
            size *= max(self.ranks, 1)
        self.calls.append((plain, size))

    def _json(self, number: int, line: str) -> None:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise ProfileError(
                str(self._path), "not valid JSON; is it truncated?", number
            ) from None
        performance = _inner(entry, "coll_perf") or entry
        header = _inner(entry, "header") or entry
        name = performance.get("coll") or header.get("coll")
        size = performance.get("coll_msg_size_bytes") or performance.get("msg_size_bytes")
        ranks = header.get("n_ranks") or header.get("nranks")
        communicator = str(header.get("id"))
        if isinstance(ranks, int) and 0 < ranks < 1 << 20:
            self.ranks = max(self.ranks, ranks)
            if self._sizes.setdefault(communicator, ranks) != ranks:
                raise ProfileError(
                    str(self._path),
                    f"mixed ranks: {ranks}, but {self._sizes[communicator]} in an earlier line of "
                    f"communicator {communicator[:20]}",
                    number,
                    "n_ranks",
                )
        plain = _KINDS.get(str(name).lower().replace("_", ""))
        if plain is None:
            raise ProfileError(
                str(self._path), f"unknown collective {str(name)[:30]!r}", number, "coll"
            )
        if not isinstance(size, (int, float)) or not 0 < size < 1e18:
            raise ProfileError(
                str(self._path), f"{size!r}: expected bytes > 0", number, "coll_msg_size_bytes"
            )
        sequence = performance.get("coll_sn")
        if sequence is not None and header.get("rank") not in (None, 0):
            return  # rank 0's line tells it
        if isinstance(sequence, int):
            self._count(number, communicator, sequence)
        self.calls.append((plain, float(size)))

    def _count(self, number: int, communicator: str, sequence: int) -> None:
        """A communicator's collectives are numbered: one twice or left out is an error."""
        last = self._counted.get(communicator, sequence - 1)
        if sequence <= last:
            reason = f"collective {sequence} of one rank is there twice or behind {last}"
        elif sequence > last + 1:
            reason = f"a gap: collective {sequence} follows {last}; were lines lost?"
        else:
            self._counted[communicator] = sequence
            return
        raise ProfileError(str(self._path), reason, number, "coll_sn")


def _inner(entry: Any, key: str) -> dict[str, Any] | None:
    found = entry.get(key) if isinstance(entry, dict) else None
    return found if isinstance(found, dict) else None


def _complete(rings: list[list[int]], ranks: int, report: ImportReport) -> list[list[int]]:
    """Rings of all ranks; NCCL cuts long lines off."""
    found, cut = [], 0
    for ring in rings:
        known = [rank for rank in ring if rank < ranks]
        rest = sorted(set(range(ranks)) - set(known))
        cut += bool(rest)
        found.append([*known, *rest])
    if cut:
        report.assumed.append(f"{cut} rings are cut off: the missing ranks follow in their order")
    return _different(found)


def _different(rings: list[list[int]]) -> list[list[int]]:
    kept: list[list[int]] = []
    for ring in rings:
        if ring not in kept:
            kept.append(ring)
    return kept
