"""Collective operations as flows: which worker sends how much to which, step by step.

`bytes` of a collective is the whole buffer S of n workers: what every worker holds (all_reduce,
broadcast), what every worker puts in (reduce_scatter, all_to_all), what every worker ends with
(all_gather). Bytes sent in all, per algorithm:

=================  ===========  ==============  ===========  ==========  ===========
                   all_reduce   reduce_scatter  all_gather   broadcast   all_to_all
=================  ===========  ==============  ===========  ==========  ===========
ring, direct       2 (n-1) S    (n-1) S         (n-1) S      (n-1) S     (n-1) S
halving_doubling   2 (n-1) S    (n-1) S         (n-1) S      see below   n/2 log2(n) S
tree               2 (n-1) S    see below       see below    (n-1) S     -
parameter_server   2 (n-1) S    (n-1)(1+1/n) S  (n-1) S      (n-1) S     -
=================  ===========  ==============  ===========  ==========  ===========

(all_gather through a server: (n-1)/n S up, (n-1)^2/n S down; halving_doubling where n is not a
power of two folds the surplus workers into the others first.) Sources: Thakur, Rabenseifner, Gropp,
"Optimization of collective communication operations in MPICH", 2005, for ring, recursive halving
and doubling, binomial trees and the scatter-allgather broadcast; NCCL for the chunked ring
broadcast. The parameter server is the first of the workers. Trees are binomial, and not pipelined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from controller.model import arrangement, dag
from controller.model.errors import BadInput
from controller.model.job import Collective, EchelonFlow, Flow, Job

Step = list[tuple[int, int, float]]
"Transfers that may happen at once: (sender, receiver, share of the whole buffer); workers by place."

KINDS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")
"What a collective can do."
ALGORITHMS = ("ring", "halving_doubling", "tree", "parameter_server", "direct")
"How it can be done."


def supported(kind: str, algorithm: str) -> bool:
    """Whether there is such an algorithm for such a collective."""
    return (kind, algorithm) in _SCHEDULES


def schedule(kind: str, algorithm: str, n: int) -> list[Step]:
    """The steps of a collective among n >= 1 workers, shares relative to the whole buffer.

    Raises BadInput when the kind has no such algorithm.
    """
    if not supported(kind, algorithm):
        known = ", ".join(a for a in ALGORITHMS if supported(kind, a))
        raise BadInput(
            f"{kind} by {algorithm}: expected a kind of {', '.join(KINDS)}; "
            f"algorithms of {kind}: {known or 'none'}"
        )
    return _SCHEDULES[kind, algorithm](n) if n > 1 else []


def expand(job: Job) -> Job:
    """The job with every collective as flows and every flow in an EchelonFlow (derived if undeclared).

    Flow ids are `<collective>/<step>/<src>-<dst>`. Step 0 of every sender waits for all that the
    collective waits for; a later transfer waits for what its sender received and sent since it last
    sent. Whoever waits for a collective waits, at its own worker, for the flows that reach that
    worker (for a worker nothing reaches: for what the collective waited for; at a worker outside it:
    for all its flows). O(flows + dependencies). Raises `CircularJob`, `BadInput`.
    """
    groups = arrangement.derive(job)
    if not job.collectives:
        return replace(job, echelonflows=groups)
    plan = _Expansion(job)
    return replace(
        job,
        tasks=tuple(replace(t, after=plan.resolve(t.after, t.worker)) for t in job.tasks),
        flows=tuple(
            [replace(f, after=plan.resolve(f.after, f.src)) for f in job.flows]
            + [flow for c in job.collectives for flow in plan.flows[c.id]]
        ),
        collectives=(),
        echelonflows=tuple(g for g in map(plan.spell_out, groups) if g.flows),
    )


class _Expansion:
    """The flows of each collective of one job, made in an order that respects what waits for what."""

    def __init__(self, job: Job) -> None:
        self.flows: dict[str, list[Flow]] = {}
        "Collective -> its flows."
        self._reach: dict[str, dict[str, tuple[str, ...]]] = {}
        "Collective -> worker -> flows into it, or else what the collective waited for."
        collectives = {c.id: c for c in job.collectives}
        for id_ in dag.order(job):
            if id_ in collectives:
                self._add(collectives[id_])

    def resolve(self, after: tuple[str, ...], worker: str) -> tuple[str, ...]:
        """`after` as the worker sees it, with flows for collectives."""
        if not any(id_ in self._reach for id_ in after):
            return after
        found: dict[str, None] = {}
        for id_ in after:
            if id_ not in self._reach:
                found[id_] = None
            elif worker in self._reach[id_]:
                found.update(dict.fromkeys(self._reach[id_][worker]))
            else:
                found.update((flow.id, None) for flow in self.flows[id_])
        return tuple(found)

    def spell_out(self, group: EchelonFlow) -> EchelonFlow:
        """The EchelonFlow with flows for collectives, each at its collective's offset."""
        pairs = [
            (flow, offset)
            for id_, offset in zip(group.flows, group.arrangement, strict=True)
            for flow in ([f.id for f in self.flows[id_]] if id_ in self.flows else [id_])
        ]
        first = pairs[0][1] if pairs else 0.0
        return replace(
            group,
            flows=tuple(flow for flow, _ in pairs),
            arrangement=tuple(offset - first for _, offset in pairs),
        )

    def _add(self, c: Collective) -> None:
        start = {worker: self.resolve(c.after, worker) for worker in c.workers}
        since_sent: dict[str, list[str]] = {}  # what a worker sent last, and received since
        sent: set[str] = set()
        into: dict[str, list[str]] = {worker: [] for worker in c.workers}
        flows: list[Flow] = []
        for number, step in enumerate(schedule(c.kind, c.algorithm, len(c.workers))):
            made = []
            for sender, receiver, share in step:
                src, dst = c.workers[sender], c.workers[receiver]
                after = (*(() if src in sent else start[src]), *since_sent.get(src, ()))
                made.append(Flow(f"{c.id}/{number}/{src}-{dst}", src, dst, share * c.bytes, after))
            sent.update(flow.src for flow in made)
            since_sent.update((flow.src, []) for flow in made)
            for flow in made:
                since_sent[flow.src].append(flow.id)
                since_sent.setdefault(flow.dst, []).append(flow.id)
                into[flow.dst].append(flow.id)
            flows += made
        self.flows[c.id] = flows
        self._reach[c.id] = {w: tuple(into[w]) or start[w] for w in c.workers}


def _all_pairs(n: int) -> Step:
    return [(i, (i + k) % n, 1 / n) for k in range(1, n) for i in range(n)]


def _ring(n: int) -> list[Step]:
    return [[(i, (i + 1) % n, 1 / n) for i in range(n)] for _ in range(n - 1)]


def _ring_broadcast(n: int) -> list[Step]:
    """n chunks one behind the other down the chain."""
    return [
        [(hop, hop + 1, 1 / n) for hop in range(n - 1) if 0 <= step - hop < n]
        for step in range(2 * n - 2)
    ]


def _gather(n: int) -> list[Step]:
    """A binomial tree to the first worker, each sending the shares of its subtree."""
    steps, reach = [], 1
    while reach < n:
        senders = range(reach, n, 2 * reach)
        steps.append([(i, i - reach, min(reach, n - i) / n) for i in senders])
        reach *= 2
    return steps


def _reduce(n: int) -> list[Step]:
    return [[(src, dst, 1.0) for src, dst, _ in step] for step in _gather(n)]


def _mirror(steps: list[Step]) -> list[Step]:
    """The same transfers backwards: a gather becomes a scatter, an all-gather a reduce-scatter."""
    return [[(dst, src, share) for src, dst, share in step] for step in reversed(steps)]


def _doubling(n: int) -> list[Step]:
    """All-gather by recursive doubling; what exceeds a power of two goes through a partner."""
    core = 1 << (n.bit_length() - 1)
    extra = range(n - core)
    held = [2 if i in extra else 1 for i in range(core)]
    steps: list[Step] = [[(core + i, i, 1 / n) for i in extra]] if extra else []
    reach = 1
    while reach < core:
        steps.append([(i, i ^ reach, held[i] / n) for i in range(core)])
        held = [held[i] + held[i ^ reach] for i in range(core)]
        reach *= 2
    return [*steps, [(i, core + i, 1 - 1 / n) for i in extra]] if extra else steps


def _halving_doubling(n: int) -> list[Step]:
    core = 1 << (n.bit_length() - 1)
    extra = range(n - core)
    inner = [*_mirror(_doubling(core)), *_doubling(core)]
    if not extra:
        return inner
    return [[(core + i, i, 1.0) for i in extra], *inner, [(i, core + i, 1.0) for i in extra]]


def _bruck(n: int) -> list[Step]:
    steps, reach = [], 1
    while reach < n:
        share = sum(1 for block in range(n) if block & reach) / n
        steps.append([(i, (i + reach) % n, share) for i in range(n)])
        reach *= 2
    return steps


def _star(n: int, up: float, down: float) -> list[Step]:
    """Everyone to the first worker, then the first worker to everyone."""
    steps: list[Step] = [[(i, 0, up) for i in range(1, n)], [(0, i, down) for i in range(1, n)]]
    return [step for step, share in zip(steps, (up, down), strict=True) if share]


_SCHEDULES: dict[tuple[str, str], Callable[[int], list[Step]]] = {
    ("all_reduce", "ring"): lambda n: _ring(n) * 2,
    ("all_reduce", "halving_doubling"): _halving_doubling,
    ("all_reduce", "tree"): lambda n: [*_reduce(n), *_mirror(_reduce(n))],
    ("all_reduce", "parameter_server"): lambda n: _star(n, 1.0, 1.0),
    ("all_reduce", "direct"): lambda n: [_all_pairs(n)] * 2,
    ("reduce_scatter", "ring"): _ring,
    ("reduce_scatter", "halving_doubling"): lambda n: _mirror(_doubling(n)),
    ("reduce_scatter", "tree"): lambda n: [*_reduce(n), *_mirror(_gather(n))],
    ("reduce_scatter", "parameter_server"): lambda n: _star(n, 1.0, 1 / n),
    ("reduce_scatter", "direct"): lambda n: [_all_pairs(n)],
    ("all_gather", "ring"): _ring,
    ("all_gather", "halving_doubling"): _doubling,
    ("all_gather", "tree"): lambda n: [*_gather(n), *_mirror(_reduce(n))],
    ("all_gather", "parameter_server"): lambda n: _star(n, 1 / n, 1 - 1 / n),
    ("all_gather", "direct"): lambda n: [_all_pairs(n)],
    ("broadcast", "ring"): _ring_broadcast,
    ("broadcast", "halving_doubling"): lambda n: [*_mirror(_gather(n)), *_doubling(n)],
    ("broadcast", "tree"): lambda n: _mirror(_reduce(n)),
    ("broadcast", "parameter_server"): lambda n: _star(n, 0.0, 1.0),
    ("broadcast", "direct"): lambda n: _star(n, 0.0, 1.0),
    ("all_to_all", "ring"): lambda n: [
        [(i, (i + k) % n, 1 / n) for i in range(n)] for k in range(1, n)
    ],
    ("all_to_all", "halving_doubling"): _bruck,
    ("all_to_all", "direct"): lambda n: [_all_pairs(n)],
}
