"""EchelonFlows of a job: which of its flows hang together, and their ideal finish offsets.

One rule for every paradigm. Let a consumer run operations o_0..o_{m-1} in order, with durations c_k,
where o_k needs flow k. Then it completes at max_k(e_k + c_k + c_{k+1} + ...), so with ideal finish
times d_k = r + c_0 + .. + c_{k-1} completion = tardiness + r + sum c: least tardiness is least
completion. Hence a_k = the durations of the consumer's own tasks from the one that needs flow 0 up
to, not including, the one that needs flow k. Only durations count, never waiting for a producer.

The paper's (Pan et al., "Efficient flow scheduling in distributed deep learning training with echelon
formation", HotNets 2022) arrangements are instances of it, bar FSDP's, printed below for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from controller.model import dag
from controller.model.errors import BadInput
from controller.model.job import Collective, EchelonFlow, Flow, Job
from controller.model.reachability import Reachability

Unit = list[Flow]
"Flows that are needed (or were made) together."


def derive(job: Job) -> tuple[EchelonFlow, ...]:
    """The declared EchelonFlows, and for flows and collectives in none of them the derived ones.

    To be asked before collectives are expanded. Every flow and collective is in exactly one of them.
    - Flows: those one task consumes, or one sender made at one moment, are a unit (a coflow). Units
      between the same workers, consumed in one order, are one EchelonFlow.
    - Collectives: of one kind among the same workers, consumed in one order by different tasks.
    A unit that can start only after its forerunner was consumed begins a new EchelonFlow: the two
    never compete (tensor parallel, MoE). So do collectives that one task consumes: data-parallel
    buckets are a coflow each. O((nodes + dependencies) x workers). Raises `CircularJob`.
    """
    owned = {flow for group in job.echelonflows for flow in group.flows}
    flows = [flow for flow in job.flows if flow.id not in owned]
    collectives = [c for c in job.collectives if c.id not in owned]
    if not flows and not collectives:
        return job.echelonflows
    consumers = _Consumers(job)
    taken = {group.id for group in job.echelonflows}
    derived = [*_of_flows(flows, consumers), *_of_collectives(collectives, consumers)]
    return (*job.echelonflows, *(_named(group, taken) for group in derived))


def fsdp_offsets(forward: Sequence[float], backward: Sequence[float], form: str) -> list[float]:
    """Offsets of the 2n all-gathers of an iteration of FSDP with n layers, in seconds.

    `forward` and `backward` are the layers' durations in the order they run. Form `paper`: as
    printed, the step into all-gather n already a backward one, which breaks the identity above.
    `exact`: that step is the last forward operation's. Raises `BadInput` on another form.
    """
    if form == "exact":
        steps = [*forward, *backward[:-1]]
    elif form == "paper":
        steps = [*forward[1:], *backward]
    else:
        raise BadInput(f"arrangement {form!r}: expected paper or exact")
    return [0.0, *accumulate(steps)]


class _Consumers:
    """Who needs a flow or collective first, and when in its worker's own computing time."""

    def __init__(self, job: Job) -> None:
        self.reachability = Reachability(job)
        self._followers: dict[str, list[str]] = {}
        for node in dag.nodes(job).values():
            for other in node.after:
                self._followers.setdefault(other, []).append(node.id)
        self._place: dict[str, tuple[str, int]] = {}  # task -> worker, place in its order
        self._computed: dict[str, list[float]] = {w: [0.0] for w in job.workers}
        self._ids: dict[str, list[str]] = {w: [] for w in job.workers}
        for task in job.tasks:
            self._place[task.id] = task.worker, len(self._ids[task.worker])
            self._ids[task.worker].append(task.id)
            computed = self._computed[task.worker]
            computed.append(computed[-1] + task.seconds)
        self._known: dict[tuple[str, str], int] = {}

    def place(self, id_: str, worker: str) -> int:
        """Place of the worker's first task that needs it, at once or through other transfers.

        The number of the worker's tasks where none does: needed at the end of the iteration.
        """
        todo = [id_]
        while todo:
            current = todo[-1]
            if (current, worker) in self._known:
                todo.pop()
                continue
            relays = [f for f in self._followers.get(current, ()) if f not in self._place]
            unknown = [f for f in relays if (f, worker) not in self._known]
            if unknown:
                todo += unknown
                continue
            places = [
                self._place[f][1]
                for f in self._followers.get(current, ())
                if f in self._place and self._place[f][0] == worker
            ]
            places += [self._known[f, worker] for f in relays]
            self._known[current, worker] = min(places, default=len(self._ids[worker]))
        return self._known[id_, worker]

    def offset(self, worker: str, start: int, end: int) -> float:
        """Computing seconds of a worker's tasks from one place up to, not including, another."""
        return self._computed[worker][end] - self._computed[worker][start]

    def must_precede(self, worker: str, place: int, id_: str) -> bool:
        """Whether the worker's task at that place has ended whenever `id_` starts."""
        return place < len(self._ids[worker]) and self.reachability.precedes(
            self._ids[worker][place], id_
        )


def _of_flows(flows: Sequence[Flow], consumers: _Consumers) -> list[EchelonFlow]:
    chains: dict[frozenset[tuple[str, str]], list[Unit]] = {}
    for unit in _units(flows, consumers):
        chains.setdefault(frozenset((f.src, f.dst) for f in unit), []).append(unit)
    return [
        _staggered_flows(part, consumers)
        for chain in chains.values()
        for part in _split_flows(chain, consumers)
    ]


def _units(flows: Sequence[Flow], consumers: _Consumers) -> list[Unit]:
    """Flows joined by a common consumer, or by a common sender and moment."""
    parent = list(range(len(flows)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[object, int] = {}
    for i, flow in enumerate(flows):
        place = consumers.place(flow.id, flow.dst)
        for key in ((flow.dst, place), (flow.src, flow.after)):
            parent[root(i)] = root(first.setdefault(key, i))
    units: dict[int, Unit] = {}
    for i, flow in enumerate(flows):
        units.setdefault(root(i), []).append(flow)
    return list(units.values())


def _split_flows(chain: list[Unit], consumers: _Consumers) -> list[list[Unit]]:
    """Units between the same workers, in the order they are consumed, cut where nothing overlaps."""

    def places(unit: Unit) -> dict[str, int]:
        found: dict[str, int] = {}
        for flow in unit:
            place = consumers.place(flow.id, flow.dst)
            found[flow.dst] = min(place, found.get(flow.dst, place))
        return found

    ordered = sorted(((places(unit), unit) for unit in chain), key=lambda p: sorted(p[0].items()))
    parts: list[list[Unit]] = []
    before: dict[str, int] = {}
    for now, unit in ordered:
        goes_on = (
            bool(before)
            and all(before[w] < now[w] for w in now)
            and not any(
                consumers.must_precede(w, before[w], flow.id) for flow in unit for w in before
            )
        )
        if goes_on:
            parts[-1].append(unit)
        else:
            parts.append([unit])
        before = now
    return parts


def _staggered_flows(units: list[Unit], consumers: _Consumers) -> EchelonFlow:
    start: dict[str, int] = {}
    for flow in units[0]:
        place = consumers.place(flow.id, flow.dst)
        start[flow.dst] = min(place, start.get(flow.dst, place))
    flows = [flow for unit in units for flow in unit]
    offsets = [consumers.offset(f.dst, start[f.dst], consumers.place(f.id, f.dst)) for f in flows]
    first = min(range(len(flows)), key=lambda i: (offsets[i], i))
    pairs = sorted(zip(offsets, flows, strict=True), key=lambda p: p[0])
    assert offsets[first] == 0
    return _group([flow.id for _, flow in pairs], [offset for offset, _ in pairs])


def _of_collectives(collectives: Sequence[Collective], consumers: _Consumers) -> list[EchelonFlow]:
    chains: dict[tuple[str, frozenset[str]], list[Collective]] = {}
    for c in collectives:
        chains.setdefault((c.kind, frozenset(c.workers)), []).append(c)
    return [
        _staggered_collectives(part, consumers)
        for chain in chains.values()
        for part in _split_collectives(chain, consumers)
    ]


def _split_collectives(chain: list[Collective], consumers: _Consumers) -> list[list[Collective]]:
    """Collectives of the same workers, in the order they are consumed, cut where nothing overlaps."""
    workers = chain[0].workers

    def places(c: Collective) -> tuple[int, ...]:
        return tuple(consumers.place(c.id, w) for w in workers)

    parts: list[list[Collective]] = []
    before: tuple[int, ...] = ()
    for now, c in sorted(((places(c), c) for c in chain), key=lambda p: p[0]):
        goes_on = (
            bool(before)
            and all(earlier < later for earlier, later in zip(before, now, strict=True))
            and not any(
                consumers.must_precede(w, place, c.id)
                for w, place in zip(workers, before, strict=True)
            )
        )
        if goes_on:
            parts[-1].append(c)
        else:
            parts.append([c])
        before = now
    return parts


def _staggered_collectives(part: list[Collective], consumers: _Consumers) -> EchelonFlow:
    workers = part[0].workers
    start = {w: consumers.place(part[0].id, w) for w in workers}
    offsets = [
        # the worker that needs it first decides
        min(consumers.offset(w, start[w], consumers.place(c.id, w)) for w in workers)
        for c in part
    ]
    return _group([c.id for c in part], offsets)


def _group(ids: list[str], offsets: list[float]) -> EchelonFlow:
    name = ids[0] if len(ids) == 1 else f"{ids[0]}..{ids[-1]}"
    return EchelonFlow(name, tuple(ids), tuple(offsets))


def _named(group: EchelonFlow, taken: set[str]) -> EchelonFlow:
    """The group under a name that no declared EchelonFlow has."""
    name = group.id
    while name in taken:
        name += "'"
    taken.add(name)
    return EchelonFlow(name, group.flows, group.arrangement)
