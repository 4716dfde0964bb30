"""PyTorch profiler recordings (Kineto), one file a rank: a job profile of one median iteration.

A rank's iteration is cut where it launches a collective; the pieces are its tasks. A collective is
needed by the next task where the rank did nothing while it ran, else by the first task that starts
after it (all-gather, broadcast, all-to-all) or by the last one (gradients, needed by the optimiser).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from controller.model import Collective, Flow, Job, Task
from controller.model.units import format_rate
from controller.profiles.errors import ProfileError
from controller.profiles.importers.head import Head
from controller.profiles.importers.kineto_rank import Operation, RankTrace, Span, read
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "PyTorch profiler (Kineto)"
_IDLE = 0.05
"Share of a collective's time below which computing under it is noise."
_RECORDED = 0.01
"Share of an iteration below which the recording holds no computing worth the name."
_MOST_RANKS = 4096
"More ranks than a profile can sensibly hold."


@dataclass(slots=True)
class _Iteration:
    """The median iteration of one rank."""

    operations: list[Operation]
    "What it launches, in order."
    seconds: list[float]
    "Computing before each operation, and after the last."
    consumer: list[int]
    "For each operation, the piece of computing that needs it."


def recognise(head: Head) -> bool:
    """Chrome trace events, or the header of the PyTorch profiler's."""
    if not head.is_json:
        return False
    if head.has_key("traceEvents", "deviceProperties", "distributedInfo"):
        return True
    return head.text.lstrip()[:1] == "[" and head.has_key("ph") and head.has_key("ts")


def load(paths: list[Path], options: Options) -> Imported:
    """The job profile of recordings of one run. Raises `ProfileError`."""
    report = ImportReport(NAME)
    traces = _ranks([read(path) for path in paths], report)
    iterations = {rank: _iteration(trace, options, report) for rank, trace in traces.items()}
    job = _Assembly(traces, iterations, options, report).job()
    return Imported(job, report)


def _ranks(traces: list[RankTrace], report: ImportReport) -> dict[int, RankTrace]:
    """The recordings by rank; refuses those of different runs."""
    found: dict[int, RankTrace] = {}
    for place, trace in enumerate(traces):
        if trace.world != traces[0].world:
            raise ProfileError(
                trace.file,
                f"mixed ranks: is of a job of {trace.world} ranks, {traces[0].file} of "
                f"{traces[0].world}: expected recordings of one run",
            )
        if trace.rank is None:
            report.assumed.append(f"{trace.file} names no rank: taken as rank {place}")
        rank = place if trace.rank is None else trace.rank
        if rank in found:
            raise ProfileError(
                trace.file, f"mixed ranks: rank {rank} is already in {found[rank].file}"
            )
        if not trace.operations:
            raise ProfileError(
                trace.file,
                "holds no collectives (record_param_comms, c10d, nccl or gloo events): "
                "a job on one worker has nothing to schedule",
            )
        found[rank] = trace
    return dict(sorted(found.items()))


def _iteration(trace: RankTrace, options: Options, report: ImportReport) -> _Iteration:
    steps = trace.steps
    if not steps:
        first = min(o.launch for o in trace.operations)
        last = max(o.end for o in trace.operations)
        if len(trace.busy):
            first, last = min(first, trace.busy[0, 0]), max(last, trace.busy[-1, 1])
        steps = [Span(first, last)]
        report.assumed.append(f"{trace.file} has no ProfilerStep: all of it is one iteration")
    launches = [o.launch for o in trace.operations]
    held = [
        trace.operations[bisect_left(launches, s.start) : bisect_left(launches, s.end)]
        for s in steps
    ]
    signatures = Counter(tuple(o.signature for o in operations) for operations in held)
    usual = max(signatures, key=lambda s: (bool(s), signatures[s]))
    if not usual:
        raise ProfileError(trace.file, "no collective lies within a ProfilerStep")
    chosen = [(s, ops) for s, ops in zip(steps, held, strict=True)
              if tuple(o.signature for o in ops) == usual]  # fmt: skip
    if len(chosen) < len(steps):
        report.understood.append(
            f"{trace.file}: {len(steps) - len(chosen)} of {len(steps)} iterations differ: left out"
        )
    if sum(trace.computing(*s) for s, _ in chosen) < _RECORDED * sum(
        s.end - s.start for s, _ in chosen
    ):
        trace.forget_computing()
        report.assumed.append(
            f"{trace.file} records no computing: gradients are reduced while the rank goes on"
        )
    consumers = [_consumers(trace, ops) for _, ops in chosen]
    consumer = [Counter(c[i] for c in consumers).most_common(1)[0][0] for i in range(len(usual))]
    pieces = [_pieces(trace, step, ops, consumer) for step, ops in chosen]
    seconds = [median(piece[i] for piece in pieces) / 1e6 for i in range(len(usual) + 1)]
    operations = chosen[0][1]
    _sizes(operations, trace, options, report)
    return _Iteration(operations, seconds, consumer)


def _consumers(trace: RankTrace, operations: list[Operation]) -> list[int]:
    """For each operation of one iteration, which piece of computing needs it."""
    last = len(operations)
    found = []
    for i, operation in enumerate(operations):
        length = operation.end - operation.launch
        idle = trace.computing(operation.launch, operation.end) < _IDLE * length
        if operation.kind == "recv" or (idle and len(trace.busy)):
            found.append(i + 1)
        elif operation.kind in ("all_reduce", "reduce_scatter", "send"):
            found.append(last)
        else:
            later = (j + 1 for j in range(i, last) if operations[j].launch >= operation.end)
            found.append(next(later, last))
    return found


def _pieces(
    trace: RankTrace, step: Span, operations: list[Operation], consumer: list[int]
) -> list[float]:
    """Microseconds of computing before each operation and after the last, waiting left out."""
    found = []
    bounds = [step.start, *(o.launch for o in operations)]
    ends = [*(o.launch for o in operations), step.end]
    for j, (start, end) in enumerate(zip(bounds, ends, strict=True)):
        needed = [o.end for o, c in zip(operations, consumer, strict=True) if c == j]
        go = min(max([start, *needed]), max(end, start))
        found.append(max(0.0, end - go) + trace.computing(start, go))
    return found


def _sizes(
    operations: list[Operation], trace: RankTrace, options: Options, report: ImportReport
) -> None:
    """Fill in sizes the recording lacks from the options."""
    missing = [o for o in operations if not o.bytes]
    if not missing:
        return
    if len(options.sizes) != len(missing):
        given = f", {len(options.sizes)} given" if options.sizes else ""
        raise ProfileError(
            trace.file,
            f"the recording has no sizes for {len(missing)} collectives of an iteration "
            f"({', '.join(sorted({o.kind for o in missing}))}); give their bytes in order with "
            f"--sizes{given}",
        )
    for operation, size in zip(missing, options.sizes, strict=True):
        operation.bytes = size
    report.assumed.append(f"{trace.file}: sizes of {len(missing)} collectives from --sizes")


def _sent(operation: Operation, ranks: int) -> float:
    """Bytes that each of so many ranks sends in a collective, at least."""
    size = operation.bytes or 0.0
    if operation.kind in ("send", "recv", "broadcast"):
        return size
    return size * (ranks - 1) / ranks * (2 if operation.kind == "all_reduce" else 1)


@dataclass
class _Assembly:
    """Puts the iterations of the ranks together."""

    traces: dict[int, RankTrace]
    iterations: dict[int, _Iteration]
    options: Options
    report: ImportReport
    collectives: dict[tuple[Any, ...], Collective] = field(default_factory=dict)
    flows: dict[tuple[int, int, int], Flow] = field(default_factory=dict)
    received: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def job(self) -> Job:
        """The job profile."""
        everyone = self._everyone()
        tasks = [task for rank in everyone for task in self._tasks(rank)]
        for a, b, k in self.flows.keys() ^ self.received.keys():
            if a in self.traces and b in self.traces:
                raise ProfileError(
                    self.traces[b].file,
                    f"dangling: transfer {k} from rank {a} to rank {b} is "
                    + ("never received" if (a, b, k) in self.flows else "never sent"),
                )
        first = self.traces[min(self.traces)]
        flows = [f for key, f in self.flows.items() if key[1] in everyone]
        known = {f.id for f in flows} | {c.id for c in self.collectives.values()}
        known |= {task.id for task in tasks}
        tasks = [
            Task(t.id, t.worker, t.seconds, tuple(a for a in t.after if a in known)) for t in tasks
        ]
        job = Job(
            self.options.name or self._name(Path(first.file)),
            tuple(f"w{rank}" for rank in everyone),
            tuple(tasks),
            tuple(flows),
            tuple(self.collectives.values()),
            iterations=self.options.iterations,
            reference_rate=self.options.reference_rate or self._fastest(),
        )
        self._describe(job, first)
        return job

    def _name(self, file: Path) -> str:
        """A file's own name, or of several that of the folder they are in."""
        return (len(self.traces) > 1 and file.absolute().parent.name) or file.name.split(".")[0]

    def _fastest(self) -> float | None:
        """Rate in bit/s at which a rank sent in the fastest large collective of the recording."""
        ran = [
            operation
            for iteration in self.iterations.values()
            for operation in iteration.operations
            if operation.ran and operation.bytes and operation.end > operation.start
        ]
        largest = max((operation.bytes or 0.0 for operation in ran), default=0.0)
        rates = [
            _sent(operation, len(operation.ranks or self._world))
            * 8e6
            / (operation.end - operation.start)
            for operation in ran
            if (operation.bytes or 0.0) >= largest / 2
        ]
        return max(rates, default=None)

    def _everyone(self) -> list[int]:
        members = set(self.traces)
        for iteration in self.iterations.values():
            for operation in iteration.operations:
                members.update(operation.ranks)
        world = self.options.world_size or self.traces[min(self.traces)].world
        if len(members) < 2:
            if not world or world < 2:
                raise ProfileError(
                    self.traces[min(self.traces)].file,
                    "the recording does not say how many ranks took part: give --world-size",
                )
            members = set(range(world))
        if len(members) > _MOST_RANKS:
            raise ProfileError(
                self.traces[min(self.traces)].file,
                f"{len(members)} ranks: expected at most {_MOST_RANKS}",
            )
        silent = sorted(members - set(self.traces))
        if silent:
            self.report.assumed.append(
                f"{len(silent)} of {len(members)} ranks have no recording: they do as the nearest "
                "recorded one"
            )
        self._world = tuple(sorted(members))
        return sorted(members)

    def _tasks(self, rank: int) -> list[Task]:
        """One rank's tasks; registers its part in collectives and its transfers."""
        source = min(self.traces, key=lambda other: (abs(other - rank), other))
        iteration = self.iterations[source]
        nth: Counter[Any] = Counter()
        names: list[str | None] = []
        before: dict[tuple[int, ...], str] = {}
        for i, operation in enumerate(iteration.operations):
            group = operation.ranks or self._world
            if operation.kind in ("send", "recv"):
                names.append(self._transfer(rank, source, operation, nth, f"{i}/w{rank}"))
            elif rank in group and len(group) > 1:
                after = [f"{i}/w{rank}"]
                if group in before and self.traces[source].backend == "nccl":
                    after.append(before[group])  # one communicator, one stream
                name = self._join(operation, group, nth[group], after, source)
                nth[group] += 1
                before[group] = name
                names.append(name)
            else:
                names.append(None)
        return [
            Task(
                f"{j}/w{rank}",
                f"w{rank}",
                seconds,
                tuple(
                    name
                    for name, c in zip(names, iteration.consumer, strict=True)
                    if name is not None and c == j
                ),
            )
            for j, seconds in enumerate(iteration.seconds)
        ]

    def _join(
        self, operation: Operation, group: tuple[int, ...], n: int, after: list[str], source: int
    ) -> str:
        key = (group, n)
        known = self.collectives.get(key)
        if known and (known.kind, known.bytes) != (operation.kind, operation.bytes):
            raise ProfileError(
                self.traces[source].file,
                f"mixed ranks: operation {n} of rank {source} is {operation.kind} of "
                f"{operation.bytes:.0f} bytes, another rank's is {known.kind} of {known.bytes:.0f}",
            )
        waits = dict.fromkeys([*(known.after if known else ()), *after])
        name = known.id if known else f"{operation.kind}{len(self.collectives)}"
        algorithm = "direct" if operation.kind == "all_to_all" else self.options.algorithm
        self.collectives[key] = Collective(
            name,
            operation.kind,
            algorithm,
            tuple(f"w{rank}" for rank in group),
            operation.bytes or 0.0,
            tuple(waits),
        )
        return name

    def _transfer(
        self, rank: int, source: int, operation: Operation, nth: Counter[Any], task: str
    ) -> str | None:
        if operation.peer is None or rank != source or operation.peer == rank:
            return None  # who talks to whom is known of recorded ranks only
        send = operation.kind == "send"
        a, b = (rank, operation.peer) if send else (operation.peer, rank)
        key = (a, b, nth[a, b, send])
        nth[a, b, send] += 1
        name = f"send{key[2]}/w{a}-w{b}"
        if send:
            self.flows[key] = Flow(name, f"w{a}", f"w{b}", operation.bytes or 0.0, (task,))
            return None
        self.received[key] = rank
        return name

    def _describe(self, job: Job, first: RankTrace) -> None:
        notes = self.report.understood
        notes.append(
            f"{len(self.traces)} of {len(job.workers)} ranks, {len(first.steps)} iterations, "
            f"backend {first.backend or 'not named'}, collectives from {first.source}"
        )
        for kind in dict.fromkeys(c.kind for c in job.collectives):
            sizes = [c.bytes for c in job.collectives if c.kind == kind]
            notes.append(f"{len(sizes)} {kind} of {sum(sizes):.0f} bytes in all an iteration")
        if job.flows:
            notes.append(f"{len(job.flows)} transfers between two ranks")
        longest = max(sum(i.seconds) for i in self.iterations.values())
        notes.append(f"{longest:.6g} s of computing an iteration at the busiest rank")
        if job.reference_rate is None:
            self.report.unknown.append("the link rate of the recording (--reference-rate)")
        elif self.options.reference_rate is None:
            self.report.assumed.append(
                f"links of {format_rate(job.reference_rate)}, as fast as the fastest collective "
                "(--reference-rate)"
            )
        self.report.assumed.append(f"collectives by {self.options.algorithm} (--algorithm)")
