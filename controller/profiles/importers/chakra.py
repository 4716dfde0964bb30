"""Chakra execution traces, one file a rank: a job profile of the DAG across ranks.

A worker computes one thing at a time, so where a trace has GPU operators its CPU operators are taken
out (what depends on one then depends on what that one depended on). SEND and RECV are matched by
sender, receiver and tag in order, collectives by their order within their group.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from controller.model import Collective, Flow, Job, Task
from controller.profiles.errors import ProfileError
from controller.profiles.importers.chakra_nodes import COLLECTIVE, COMPUTE, RECV, SEND, Node, read
from controller.profiles.importers.head import Head
from controller.profiles.importers.protobuf import BadWire, fields, varint
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "Chakra execution trace"
_KINDS = {
    0: "all_reduce", 1: "broadcast", 2: "all_gather", 3: "all_gather", 4: "broadcast",
    5: "broadcast", 6: "all_to_all", 7: "reduce_scatter", 8: "reduce_scatter",
}  # fmt: skip
_BARRIER = 9
_PEAK = 1e14
"Operations a second, where a node has num_ops and no duration."


def recognise(head: Head) -> bool:
    """A first record that is a GlobalMetadata, or JSON with a `workload_graph` or Chakra's names."""
    if head.is_json:
        return head.has_key("workload_graph", "ctrlDeps", "dataDeps", "data_deps")
    try:
        length, at = varint(head.raw, 0)
        record = head.raw[at : at + length]
        if len(record) == length:
            return all(tag in (1, 2) and wire == 2 for tag, wire, _ in fields(record))
        return len(head.raw) > at + 2 and head.raw[at] in (0x0A, 0x12) and length < 1 << 26
    except BadWire:
        return False


def load(paths: list[Path], options: Options) -> Imported:
    """The job profile of the traces of one run. Raises `ProfileError` naming file and node."""
    report = ImportReport(NAME)
    ranks: dict[int, _Rank] = {}
    for place, path in enumerate(paths):
        version, nodes = read(path)
        if not nodes:
            raise ProfileError(str(path), "holds no nodes")
        rank = _rank(path, place)
        if rank in ranks:
            raise ProfileError(
                str(path), f"mixed ranks: rank {rank} is already in {ranks[rank].file}"
            )
        ranks[rank] = _Rank(str(path), version, nodes)
    versions = sorted({rank.version or "not named" for rank in ranks.values()})
    if len(versions) > 1:
        raise ProfileError(
            str(paths[-1]), f"mixed ranks: schema versions {', '.join(versions)}: expected one run"
        )
    report.understood.append(
        f"{len(ranks)} ranks, {sum(len(r.nodes) for r in ranks.values())} nodes, "
        f"schema {versions[0]}"
    )
    job = _Assembly(ranks, options, report).job()
    return Imported(job, report)


def _rank(path: Path, place: int) -> int:
    """The number before the ending, as Chakra names its files; else the place."""
    found = re.search(r"\.(\d{1,6})\.[a-z]+$", path.name)
    return int(found[1]) if found else place


@dataclass
class _Rank:
    file: str
    version: str
    nodes: list[Node]

    def __post_init__(self) -> None:
        """Parents that go round in circles (real recordings have them) are dropped."""
        self.dropped = 0
        try:
            self.ordered()
        except ProfileError:
            self.dropped = sum(len(node.control) for node in self.nodes)
            if not self.dropped:
                raise
            for node in self.nodes:
                node.control = []

    def ordered(self) -> list[Node]:
        """The nodes, each behind what it depends on; ties by start, then as listed."""
        place = {node.id: i for i, node in enumerate(self.nodes)}
        waiting = [0] * len(self.nodes)
        followers: dict[int, list[int]] = defaultdict(list)
        for i, node in enumerate(self.nodes):
            for other in node.data:
                if other not in place:
                    raise ProfileError(
                        self.file,
                        f"dangling: node {node.id} needs node {other}, which is not there",
                    )
            for other in {*node.data, *(c for c in node.control if c in place)}:
                followers[place[other]].append(i)
                waiting[i] += 1
        ready = [(self.nodes[i].start, i) for i, count in enumerate(waiting) if not count]
        heapq.heapify(ready)
        found = []
        while ready:
            _, i = heapq.heappop(ready)
            found.append(self.nodes[i])
            for follower in followers[i]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    heapq.heappush(ready, (self.nodes[follower].start, follower))
        if len(found) < len(self.nodes):
            stuck = next(node.id for node, count in zip(self.nodes, waiting, strict=True) if count)
            raise ProfileError(self.file, f"a circle of dependencies at node {stuck}")
        return found

    def absent(self) -> int:
        """Control dependencies on nodes that were not kept."""
        known = {node.id for node in self.nodes}
        return sum(other not in known for node in self.nodes for other in node.control)


@dataclass
class _Assembly:
    """Puts the ranks together."""

    ranks: dict[int, _Rank]
    options: Options
    report: ImportReport
    tasks: list[Task] = field(default_factory=list)
    flows: dict[tuple[int, int, int, int], Flow] = field(default_factory=dict)
    collectives: dict[tuple[str, int], Collective] = field(default_factory=dict)
    received: dict[tuple[int, int, int, int], str] = field(default_factory=dict)

    def job(self) -> Job:
        """The job profile."""
        world = self._world()
        self._refuse_lonely_transfers()
        everyone = list(range(world)) if world > len(self.ranks) else sorted(self.ranks)
        for rank in everyone:
            self._add(rank, everyone)
        for key in self.flows.keys() ^ self.received.keys():
            a, b, tag, k = key
            how = "never received" if key in self.flows else "never sent"
            if a in self.ranks and b in self.ranks:
                raise ProfileError(
                    self.ranks[b].file,
                    f"dangling: transfer {k} with tag {tag} from rank {a} to rank {b} is {how}",
                )
        first = self.ranks[min(self.ranks)]
        self.report.understood.append(
            f"{len(self.tasks)} computations, {len(self.flows)} transfers, "
            f"{len(self.collectives)} collectives"
        )
        absent = sum(rank.absent() for rank in self.ranks.values())
        if absent:
            self.report.unknown.append(f"{absent} parents of nodes that the trace does not hold")
        dropped = sum(rank.dropped for rank in self.ranks.values())
        if dropped:
            self.report.understood.append(
                f"{dropped} parents (ctrl_deps) go round in circles: left out, data_deps kept"
            )
        if not self.flows and not self.collectives:
            raise ProfileError(first.file, "no rank communicates: nothing to schedule")
        name = Path(first.file).name.split(".")[0]
        self.report.assumed.append(f"collectives by {self.options.algorithm} (--algorithm)")
        return Job(
            self.options.name or name,
            tuple(f"w{rank}" for rank in everyone),
            tuple(self.tasks),
            tuple(self.flows.values()),
            tuple(c for c in self.collectives.values()),
            iterations=self.options.iterations,
            reference_rate=self.options.reference_rate,
        )

    def _refuse_lonely_transfers(self) -> None:
        for rank, trace in self.ranks.items():
            for node in trace.nodes:
                if node.type not in (SEND, RECV):
                    continue
                peer = node.whole("comm_dst" if node.type == SEND else "comm_src")
                if peer is not None and peer != rank and peer not in self.ranks:
                    raise ProfileError(
                        trace.file,
                        f"node {node.id} talks to rank {peer}, whose file is missing: import the "
                        "files of all ranks together (their folder)",
                    )

    def _world(self) -> int:
        peers = [
            peer
            for rank in self.ranks.values()
            for node in rank.nodes
            if node.type in (SEND, RECV)
            for peer in (node.whole("comm_src"), node.whole("comm_dst"))
            if peer is not None
        ]
        world = max([len(self.ranks), max(self.ranks) + 1, *(peer + 1 for peer in peers)])
        if world > 65536:
            raise ProfileError(
                self.ranks[min(self.ranks)].file, f"rank {world - 1}: too many ranks"
            )
        if self.options.world_size:
            return max(world, self.options.world_size)
        if world < 2:
            self.report.assumed.append("2 ranks, the other does the same (--world-size)")
            return 2
        return world

    def _add(self, rank: int, everyone: list[int]) -> None:
        """The nodes of one rank: its own, or those of the nearest rank that has a file."""
        source = min(self.ranks, key=lambda other: (abs(other - rank), other))
        trace = self.ranks[source]
        gpu = any(node.attributes.get("is_cpu_op") in (0, False) for node in trace.nodes)
        stands: dict[int, frozenset[str]] = {}  # node -> what to wait for in its place
        placed: dict[str, int] = {}
        nth: Counter[object] = Counter()
        missing = iter(self.options.sizes)
        for node in trace.ordered():
            before = frozenset().union(
                *(stands[other] for other in (*node.data, *node.control) if other in stands)
            )
            # a worker's tasks run in order: the last one stands for all before it
            tasks = sorted((id_ for id_ in before if id_ in placed), key=placed.__getitem__)
            before = before.difference(tasks[:-1])
            after = tuple(sorted(before))
            skip = gpu and node.attributes.get("is_cpu_op") in (1, True)
            if node.type == COMPUTE and not skip:
                seconds = self._seconds(trace, node)
                task = Task(f"{node.id}/w{rank}", f"w{rank}", seconds, after)
                placed[task.id] = len(placed)
                self.tasks.append(task)
                before = frozenset([task.id])
            elif node.type == COLLECTIVE and not skip:
                size = self._size(trace, node, missing)
                name = self._join(trace, node, everyone, size, after, nth)
                before = frozenset([name]) if name else before
            elif node.type in (SEND, RECV) and rank == source:
                name = self._transfer(trace, rank, node, after, nth)
                before = before | {name} if node.type == RECV else frozenset([name])
            stands[node.id] = before

    def _seconds(self, trace: _Rank, node: Node) -> float:
        seconds = node.duration / 1e6
        operations = node.attributes.get("num_ops")
        if not seconds and isinstance(operations, (int, float)) and operations > 0:
            note = f"nodes without duration: num_ops at {_PEAK:.0e} a second"
            if note not in self.report.assumed:
                self.report.assumed.append(note)
            seconds = operations / _PEAK
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ProfileError(
                trace.file, f"node {node.id}: duration {node.duration!r}: expected >= 0"
            )
        return seconds

    def _size(self, trace: _Rank, node: Node, missing: object) -> float:
        size = node.attributes.get("comm_size")
        if node.whole("comm_type") == _BARRIER:
            return 1.0
        if size is None:
            size = next(missing, None)  # type: ignore[call-overload]
            if size is None:
                raise ProfileError(
                    trace.file,
                    f"node {node.id} ({node.name[:40]}) has no comm_size: give the bytes of each "
                    "such collective in order with --sizes",
                )
        if not isinstance(size, (int, float)) or not (math.isfinite(size) and size > 0):
            raise ProfileError(
                trace.file, f"node {node.id}: comm_size {size!r}: expected bytes > 0"
            )
        return float(size)

    def _join(
        self,
        trace: _Rank,
        node: Node,
        everyone: list[int],
        size: float,
        after: tuple[str, ...],
        nth: Counter[object],
    ) -> str | None:
        kind = self._kind(trace, node)
        group = str(node.attributes.get("pg_name") or node.attributes.get("comm_group") or "")
        key = (group, nth["collective", group])
        nth["collective", group] += 1
        known = self.collectives.get(key)
        if known and (known.kind, known.bytes) != (kind, size):
            raise ProfileError(
                trace.file,
                f"mixed ranks: node {node.id} is {kind} of {size:.0f} bytes, another rank's is "
                f"{known.kind} of {known.bytes:.0f}",
            )
        self.collectives[key] = Collective(
            known.id if known else f"{kind}{len(self.collectives)}",
            kind,
            "direct" if kind == "all_to_all" else self.options.algorithm,
            tuple(f"w{rank}" for rank in everyone),
            size,
            tuple(dict.fromkeys([*(known.after if known else ()), *after])),
        )
        return self.collectives[key].id

    def _kind(self, trace: _Rank, node: Node) -> str:
        code = node.whole("comm_type")
        if code == _BARRIER:
            return "all_reduce"
        if code is None:
            plain = re.sub(r"[^a-z]", "", node.name.lower())
            for kind in ("reduce_scatter", "all_reduce", "all_gather", "all_to_all", "broadcast"):
                if kind.replace("_", "") in plain:
                    return kind
        if code not in _KINDS:
            raise ProfileError(
                trace.file, f"node {node.id}: unknown collective {code}: expected comm_type 0 to 9"
            )
        return _KINDS[code]

    def _transfer(
        self, trace: _Rank, rank: int, node: Node, after: tuple[str, ...], nth: Counter[object]
    ) -> str:
        send = node.type == SEND
        peer = node.whole("comm_dst" if send else "comm_src")
        if peer is None or peer < 0 or peer == rank:
            raise ProfileError(
                trace.file, f"node {node.id}: peer {peer!r}: expected another rank's number"
            )
        a, b = (rank, peer) if send else (peer, rank)
        tag = node.whole("comm_tag") or 0
        key = (a, b, tag, nth[a, b, tag])
        nth[a, b, tag] += 1
        name = f"send{tag}.{key[3]}/w{a}-w{b}"
        if send:
            size = self._size(trace, node, iter(()))
            self.flows[key] = Flow(name, f"w{a}", f"w{b}", size, after)
        else:
            self.received[key] = name
        return name
