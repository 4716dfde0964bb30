"""What one rank's PyTorch profiler recording says: iterations, collectives, computing time."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.profiles.errors import ProfileError
from controller.profiles.importers.chrome_events import ChromeEvents, Event

_ELEMENT = {
    "float": 4, "float32": 4, "f32": 4, "int": 4, "int32": 4, "u32": 4, "i32": 4,
    "double": 8, "float64": 8, "f64": 8, "long": 8, "long int": 8, "int64": 8, "u64": 8,
    "half": 2, "c10::half": 2, "float16": 2, "f16": 2, "bfloat16": 2, "c10::bfloat16": 2, "bf16": 2,
    "short": 2, "byte": 1, "char": 1, "unsigned char": 1, "signed char": 1, "bool": 1, "int8_t": 1,
    "uint8_t": 1, "i8": 1, "u8": 1,
}  # fmt: skip
_KINDS = (
    ("reducescatter", "reduce_scatter"), ("allreduce", "all_reduce"), ("allgather", "all_gather"),
    ("alltoall", "all_to_all"), ("broadcast", "broadcast"), ("send", "send"), ("recv", "recv"),
    ("reduce", "broadcast"), ("gather", "all_gather"), ("scatter", "broadcast"),
)  # fmt: skip
_SILENT = ("wait", "barrier", "init", "monitored")
_KERNEL = re.compile(r"nccl(?:Dev)?Kernel_?(?P<kind>[A-Za-z]+?)_.*?(?P<type>[a-z0-9_]*?)(?:\(|$)")
_QUEUED = 50.0
"Microseconds between two operations of one stream below which the later one was queued."
_MANY = 1 << 18
"Numbers of spans kept before they are joined."


@dataclass(slots=True)
class Operation:
    """One collective or transfer as a rank saw it; times in microseconds of the recording."""

    kind: str
    "As in `controller.model.collectives`, or send or recv."
    launch: float
    "When the rank was ready for it."
    start: float
    "When it began to run."
    end: float
    "When it had ended."
    bytes: float | None = None
    "Size of the whole buffer; None where the recording has none."
    ranks: tuple[int, ...] = ()
    "Members of its group; empty where the recording does not say."
    peer: int | None = None
    "The other end of a send or recv."
    ran: bool = False
    "Whether start and end are when data moved, not when it was called."
    id: int | str | None = None
    "Correlates an operation with its kernel."

    @property
    def signature(self) -> tuple[Any, ...]:
        """What must repeat from iteration to iteration."""
        return self.kind, self.bytes, self.ranks, self.peer


class Span(NamedTuple):
    """A piece of time, in microseconds."""

    start: float
    end: float


@dataclass(slots=True)
class RankTrace:
    """One recording, one rank."""

    file: str
    "As the user named it."
    rank: int | None = None
    "From `distributedInfo`."
    world: int | None = None
    "Number of ranks, from `distributedInfo`."
    backend: str = ""
    "gloo, nccl, ..."
    steps: list[Span] = field(default_factory=list)
    "Iterations, from `ProfilerStep#`."
    operations: list[Operation] = field(default_factory=list)
    "Collectives and transfers, in the order they were launched."
    busy: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))
    "(intervals, 2) when it computed: on the GPU where there was one, else on the CPU."
    source: str = ""
    "Which events the operations come from."
    _done: NDArray[np.float64] | None = None

    def computing(self, start: float, end: float) -> float:
        """Microseconds it computed between two moments. O(log intervals)."""
        return self._until(end) - self._until(start) if end > start else 0.0

    def forget_computing(self) -> None:
        """Drop what it recorded of computing: too little to mean anything."""
        self.busy, self._done = self.busy[:0], None

    def _until(self, moment: float) -> float:
        """Microseconds it computed before a moment."""
        if self._done is None:
            self._done = np.zeros(len(self.busy) + 1)
            np.subtract(self.busy[:, 1], self.busy[:, 0], out=self._done[1:])
            np.cumsum(self._done[1:], out=self._done[1:])
        begun = int(np.searchsorted(self.busy[:, 0], moment))
        over = max(0.0, self.busy[begun - 1, 1] - moment) if begun else 0.0
        return float(self._done[begun] - over)


def read(path: Path) -> RankTrace:
    """One recording. Raises `ProfileError`."""
    stream = ChromeEvents(path)
    sorter = _Sorter()
    for event in stream.events():
        sorter.take(event)
    info = stream.header.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    trace = RankTrace(
        str(path),
        _whole(info.get("rank")),
        _whole(info.get("world_size")),
        str(info.get("backend", "")),
    )
    if not sorter.seen:
        raise ProfileError(str(path), "holds no events that lasted (ph X): nothing was profiled")
    trace.steps = sorted(sorter.steps.values())
    trace.source, trace.operations = sorter.operations()
    world = _groups(info)
    for operation in trace.operations:
        operation.ranks = operation.ranks or world
    for ranks in {operation.ranks for operation in trace.operations}:
        if len(set(ranks)) < len(ranks):
            raise ProfileError(str(path), f"a rank is twice in the group {list(ranks)[:16]}")
    trace.busy = sorter.kernels.union()
    if not len(trace.busy) and sorter.main in sorter.cpu:
        trace.busy = sorter.cpu[sorter.main].union()
    return trace


class Busy:
    """When something ran: spans as they are recorded, joined now and then so that few are kept."""

    def __init__(self) -> None:
        self._fresh = array("d")  # start, end, start, end, ...
        self._joined: list[NDArray[np.float64]] = []

    def add(self, span: Span) -> None:
        """Note one span."""
        self._fresh.extend(span)
        if len(self._fresh) >= _MANY:
            self._join()

    def union(self) -> NDArray[np.float64]:
        """(n, 2) starts and ends of the union of all spans, in order; uses them up."""
        self._join()
        apart = all(a[-1, 1] < b[0, 0] for a, b in pairwise(self._joined))
        pairs = np.empty((sum(map(len, self._joined)), 2))
        end = len(pairs)
        while self._joined:  # one by one, so that there are never two of all
            part = self._joined.pop()
            pairs[end - len(part) : end] = part
            end -= len(part)
        return pairs if apart else _merged(pairs)

    def _join(self) -> None:
        if self._fresh:
            pairs = np.array(self._fresh, dtype=np.float64).reshape(-1, 2)
            self._joined.append(_merged(pairs))
            self._fresh = array("d")


def _merged(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) the union of (m, 2) spans, in order."""
    if (pairs[1:, 0] < pairs[:-1, 0]).any():
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    ends = np.maximum.accumulate(pairs[:, 1])
    first = np.concatenate(([True], pairs[1:, 0] > ends[:-1]))
    if first.all():
        return pairs
    last = np.concatenate((first[1:], [True]))
    return np.column_stack((pairs[first, 0], ends[last]))


class _Sorter:
    """Takes the events of one recording and keeps what matters."""

    def __init__(self) -> None:
        self.seen = 0
        self.steps: dict[str, Span] = {}
        self.main: int | str = 0
        self.kernels = Busy()
        self.cpu: defaultdict[int | str, Busy] = defaultdict(Busy)
        self._calls: list[Operation] = []  # record_param_comms
        self._dispatched: list[Operation] = []  # c10d:: operators
        self._annotated: list[Operation] = []  # gloo:all_reduce
        self._kernels: list[Operation] = []  # nccl kernels

    def take(self, event: Event) -> None:
        """Note one event."""
        if event.ph != "X":
            return
        self.seen += 1
        name, span = event.name, Span(event.ts, event.ts + event.dur)
        if event.cat in ("kernel", "Kernel"):
            if name.startswith("nccl"):
                self._add(self._kernels, event, *_kernel(name))
            else:
                self.kernels.add(span)
        elif name == "record_param_comms":
            self._add(self._calls, event, str(event.arguments().get("Collective name", "")), "")
        elif name.startswith("ProfilerStep") and event.cat != "gpu_user_annotation":
            self.steps[name] = span
            self.main = event.tid
        elif event.cat in ("cpu_op", "Operator", "user_annotation"):
            backend, colon, what = name.partition(":")
            if name.startswith("c10d::"):
                self._add(self._dispatched, event, name[6:], "")
            elif colon and backend in ("gloo", "nccl", "mpi", "ucc", "xccl", "hccl"):
                self._add(self._annotated, event, what, "")
            elif event.cat != "user_annotation":
                self.cpu[event.tid].add(span)

    def operations(self) -> tuple[str, list[Operation]]:
        """Where the operations are best told, and they, in order of launch, with when they ran."""
        run = self._kernels or self._annotated
        for source, found in (
            ("record_param_comms", self._calls),
            ("c10d operators", self._dispatched),
            ("annotations", self._annotated),
            ("NCCL kernels", self._kernels),
        ):
            if found:
                found.sort(key=lambda o: o.launch)
                if found is not run:
                    _run_times(found, run)
                else:
                    for operation in found:
                        operation.ran = True
                return source, found
        return "", []

    @staticmethod
    def _add(into: list[Operation], event: Event, name: str, dtype: str) -> None:
        plain = re.sub(r"[^a-z]", "", name.lower().split(" ")[0])
        if any(plain.startswith(word) for word in _SILENT):
            return
        kind = next((kind for word, kind in _KINDS if word in plain), None)
        if kind is None:
            return
        args = event.arguments()
        id_ = args.get("External id")
        operation = Operation(kind, event.ts, event.ts, event.ts + event.dur)
        operation.id = id_ if isinstance(id_, (int, str)) else None
        _describe(operation, args, dtype)
        into.append(operation)


def _run_times(calls: list[Operation], run: list[Operation]) -> None:
    """Give each call the time it ran: by its id, or else by its place among those of its kind."""
    by_id = {o.id: o for o in run if o.id is not None}
    queues: dict[str, list[Operation]] = {}
    for operation in sorted(run, key=lambda o: o.start, reverse=True):
        queues.setdefault(operation.kind, []).append(operation)
    counts = Counter(call.kind for call in calls)
    matches = {kind for kind, queue in queues.items() if len(queue) == counts[kind]}
    last = float("-inf")
    for call in calls:
        ran = None if call.id is None else by_id.get(call.id)
        if (ran is None or ran.kind != call.kind) and call.kind in matches:
            ran = queues[call.kind].pop()
        if ran is None:
            continue
        call.start, call.end, call.ran = ran.start, max(ran.end, ran.start), True
        if ran.bytes is not None and call.kind not in ("all_gather", "recv"):
            call.bytes = ran.bytes  # it knows the type of its elements
        if ran.start > max(last, call.launch) + _QUEUED and ran.id == call.id:
            call.launch = ran.start  # the GPU got there later than the CPU
        last = max(last, ran.end)


def _describe(operation: Operation, args: dict[str, Any], dtype: str) -> None:
    """Size, group and peer from an event's arguments."""
    before, after = _whole(args.get("In msg nelems")), _whole(args.get("Out msg nelems"))
    element = _ELEMENT.get(str(args.get("dtype") or dtype).lower())
    size = _whole(args.get("Group size")) or 1
    if before is not None and element:
        count = before
        if operation.kind == "all_gather":
            count = max(after or 0, before * size)
        elif operation.kind == "recv":
            count = after or before
        operation.bytes = float(count * element)
    else:
        operation.bytes = _from_shapes(args)
    ranks = re.findall(r"\d+", str(args.get("Process Group Ranks", "")))
    if len(ranks) == size:
        operation.ranks = tuple(map(int, ranks))
    elif (
        _whole(args.get("Global rank stride")) and _whole(args.get("Global rank start")) is not None
    ):
        start, stride = int(args["Global rank start"]), int(args["Global rank stride"])
        operation.ranks = tuple(range(start, start + min(size, 100_000) * stride, stride))
    peer = args.get("Dst Rank" if operation.kind == "send" else "Src Rank")
    operation.peer = _whole(peer)


def _from_shapes(args: dict[str, Any]) -> float | None:
    """Bytes of the largest tensor among an operator's inputs."""
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list):
        return None
    best = None
    for shape, kind in zip(dims, types, strict=False):
        if not isinstance(shape, list) or not shape:
            continue
        element = 4 if kind == "TensorList" else _ELEMENT.get(str(kind).lower())
        tensors = shape if isinstance(shape[0], list) else [shape]
        if not element or not all(isinstance(n, int) for tensor in tensors for n in tensor):
            continue
        total = float(sum(np.prod(tensor, dtype=float) for tensor in tensors) * element)
        best = max(best or 0.0, total)
    return best or None


def _kernel(name: str) -> tuple[str, str]:
    """(collective, type) in the name of an NCCL kernel."""
    found = _KERNEL.match(name)
    if not found:
        return name, ""
    return found["kind"], name.split("(")[0].rsplit("_", 1)[-1] if "_t" not in name else "byte"


def _groups(info: dict[str, Any]) -> tuple[int, ...]:
    """Ranks of the default group."""
    config = info.get("pg_config")
    if isinstance(config, list) and config and isinstance(config[0], dict):
        ranks = config[0].get("ranks")
        if isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks):
            return tuple(ranks)
    world = _whole(info.get("world_size"))
    return tuple(range(min(world, 100_000))) if world else ()


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
