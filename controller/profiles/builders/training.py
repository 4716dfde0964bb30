"""The profile of a training job of any mix: data, tensor, pipeline, expert parallel, FSDP.

A worker is (replica d, stage p, tensor rank t), named w<rank> with rank = (p x data + d) x tensor + t
as Megatron numbers them. Each pass of a micro-batch through a chunk is a row of *blocks*: one
computation each, with what it waits for and what must follow it. Sources: Li et al., "PyTorch
distributed", VLDB 2020 (buckets); Shoeybi et al., "Megatron-LM", 2019 (tensor parallel: two
all-reduces a layer and direction); Narayanan et al., SC 2021 (pipelines, sliced activations);
Zhao et al., "PyTorch FSDP", VLDB 2023; Lepikhin et al., "GShard", ICLR 2021 (dispatch, combine).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from controller.model import Collective, EchelonFlow, Flow, Job, Task
from controller.model.arrangement import fsdp_offsets
from controller.profiles.builders.schedules import Pass, passes
from controller.profiles.builders.spec import Layer, Spec


@dataclass(frozen=True, slots=True)
class _Block:
    """One computation of a pass: a run of layers, or one half of a layer."""

    name: str
    "Unique in its pass."
    seconds: float
    "Computing seconds on one tensor rank."
    syncs: tuple[tuple[str, str, float], ...] = ()
    "What must follow before the next block: (axis, kind, bytes)."
    gather: float = 0.0
    "FSDP: bytes of weights to gather before it."
    scatter: float = 0.0
    "FSDP: bytes of gradients to reduce-scatter after it."
    buckets: tuple[tuple[str, str, float], ...] = ()
    "Gradients to all-reduce after it, without waiting: (axis, id, bytes)."


def build(spec: Spec) -> Job:
    """The job profile of a specification."""
    return _Training(spec).job()


@dataclass
class _Training:
    spec: Spec
    tasks: list[Task] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    collectives: dict[str, Collective] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chunks = split_layers(self.spec.layers, self.spec.pipeline * self.spec.chunks)

    def job(self) -> Job:
        spec = self.spec
        for p in range(spec.pipeline):
            for d in range(spec.data):
                for t in range(spec.tensor):
                    self._worker(d, p, t)
        job = Job(
            spec.name,
            tuple(f"w{rank}" for rank in range(spec.data * spec.pipeline * spec.tensor)),
            tuple(self.tasks),
            tuple(self.flows),
            tuple(c for c in self.collectives.values() if c.bytes > 0),
            iterations=spec.iterations,
            reference_rate=spec.reference_rate,
        )
        return replace(job, echelonflows=self._printed()) if spec.arrangement == "paper" else job

    def _name(self, d: int, p: int, t: int) -> str:
        return f"w{(p * self.spec.data + d) * self.spec.tensor + t}"

    def _group(self, axis: str, d: int, p: int, t: int) -> tuple[str, list[tuple[int, int, int]]]:
        """The workers along an axis, and a name for their group."""
        spec = self.spec
        if axis == "tensor":
            return f"d{d}p{p}", [(d, p, i) for i in range(spec.tensor)]
        if axis == "data":
            return f"p{p}t{t}", [(i, p, t) for i in range(spec.data)]
        first = d - d % spec.expert
        if axis == "expert":
            return f"e{first}p{p}t{t}", [(first + i, p, t) for i in range(spec.expert)]
        same = d % spec.expert  # replicas that hold the same experts
        return f"x{same}p{p}t{t}", [(i, p, t) for i in range(same, spec.data, spec.expert)]

    def _collective(
        self,
        id_: str,
        kind: str,
        axis: str,
        at: tuple[int, int, int],
        size: float,
        after: list[str],
    ) -> list[str]:
        """Join a collective along an axis; `after` is what this worker waits for. Its id, if any."""
        name, group = self._group(axis, *at)
        if len(group) < 2 or not size:
            return []
        id_ = f"{id_}.{name}"
        known = self.collectives.get(id_)
        waits = dict.fromkeys([*(known.after if known else ()), *after])
        self.collectives[id_] = Collective(
            id_,
            kind,
            "direct" if kind == "all_to_all" else self.spec.algorithm,
            tuple(self._name(*member) for member in group),
            size,
            tuple(waits),
        )
        return [id_]

    def _worker(self, d: int, p: int, t: int) -> None:
        """All tasks of one worker, its sends, and its part in collectives."""
        spec, worker = self.spec, self._name(d, p, t)
        order = [
            (step, block)
            for step in passes(spec, p)
            for block in self._blocks(step, step.chunk * spec.pipeline + p)
        ]
        ids = [f"{s.direction}{s.chunk}.{s.micro}.{b.name}/{worker}" for s, b in order]
        carry: list[str] = []
        pending: list[str] = []  # gradients under way
        gathered: list[str] = []
        gathers = [i for i, (_, block) in enumerate(order) if block.gather]
        previous: Pass | None = None
        for i, (step, block) in enumerate(order):
            at = f"{step.direction}{step.chunk}.{step.micro}.{block.name}"
            if step != previous:
                carry = [*carry, *self._input(step, d, p, t)]
            if block.gather:
                place = gathers.index(i)
                ahead = place - spec.prefetch - 1
                waits = [*gathered, *([ids[gathers[ahead]]] if ahead >= 0 else [])]
                gathered = self._collective(
                    f"gather.{at}", "all_gather", "data", (d, p, t), block.gather, waits
                )
                carry = [*carry, *gathered]
            self.tasks.append(Task(ids[i], worker, block.seconds, tuple(carry)))
            carry = [ids[i]]
            for axis, kind, size in block.syncs:
                carry = (
                    self._collective(f"{kind}.{axis}.{at}", kind, axis, (d, p, t), size, carry)
                    or carry
                )
            if block.scatter:
                pending += self._collective(
                    f"scatter.{at}", "reduce_scatter", "data", (d, p, t), block.scatter, [ids[i]]
                )
            for axis, bucket, size in block.buckets:
                pending += self._collective(bucket, "all_reduce", axis, (d, p, t), size, [ids[i]])
            carry = [id_ for id_ in carry if id_ != ids[i]]  # the worker's order says so already
            ends = i + 1 == len(order) or order[i + 1][0] != step
            if ends and self._output(step, d, p, t, carry or [ids[i]]):
                carry = []  # the next stage waits for it, not this one
            previous = step
        self.tasks.append(Task(f"step/{worker}", worker, spec.optimizer, (*carry, *pending)))

    def _neighbour(self, step: Pass, p: int, towards: int) -> tuple[int, int] | None:
        """(stage, chunk) before (-1) or after (+1) this one in the direction of the pass."""
        ahead = towards if step.direction == "F" else -towards
        place = step.chunk * self.spec.pipeline + p + ahead
        if not 0 <= place < len(self._chunks):
            return None
        return place % self.spec.pipeline, place // self.spec.pipeline

    def _input(self, step: Pass, d: int, p: int, t: int) -> list[str]:
        source = self._neighbour(step, p, -1)
        if source is None or source[0] == p:
            return []
        return [self._transfer(step, source[1], self._name(d, source[0], t), self._name(d, p, t))]

    def _output(self, step: Pass, d: int, p: int, t: int, after: list[str]) -> bool:
        """Send what a pass has made to the next stage. False where there is none."""
        target = self._neighbour(step, p, 1)
        if target is None or target[0] == p:
            return False
        src, dst = self._name(d, p, t), self._name(d, target[0], t)
        upstream = step.chunk * self.spec.pipeline + p
        if step.direction == "B":
            upstream -= 1
        size = self._chunks[upstream][-1].activations / self.spec.tensor
        self.flows.append(
            Flow(self._transfer(step, step.chunk, src, dst), src, dst, max(size, 1.0), tuple(after))
        )
        return True

    @staticmethod
    def _transfer(step: Pass, chunk: int, src: str, dst: str) -> str:
        """Id of what a sender's chunk passes on."""
        return f"{'act' if step.direction == 'F' else 'grad'}{chunk}.{step.micro}/{src}-{dst}"

    def _blocks(self, step: Pass, place: int) -> list[_Block]:
        """The computations of one pass through a chunk, in the order they run."""
        layers = list(enumerate(self._chunks[place]))
        if step.direction == "B":
            layers.reverse()
        buckets = self._buckets(step, place)
        spec = self.spec
        if spec.sharded or spec.tensor > 1 or any(layer.dispatched for _, layer in layers):
            blocks = [
                block
                for i, layer in layers
                for block in self._layer(step, f"{i}", layer, buckets.get(i, ()))
            ]
        else:
            blocks = list(
                _runs(
                    step,
                    layers,
                    buckets,
                )
            )
        return blocks

    def _layer(
        self, step: Pass, name: str, layer: Layer, buckets: tuple[tuple[str, str, float], ...]
    ) -> Iterator[_Block]:
        """One layer: whole, or in two halves with what must happen between them."""
        spec = self.spec
        forward = step.direction == "F"
        seconds = (layer.forward if forward else layer.backward) / spec.tensor
        weights = layer.parameters / spec.tensor if spec.sharded else 0.0
        reduce = ("tensor", "all_reduce", layer.activations) if spec.tensor > 1 else None
        exchange = ("expert", "all_to_all", layer.dispatched / spec.tensor)
        halves: list[list[tuple[str, str, float]]] = [[], []]
        for half in halves:
            if reduce:
                half.append(reduce)
        if layer.dispatched:
            halves[0].append(exchange)
            halves[1].insert(0, exchange)
        last_scatter = 0.0 if forward else weights
        if not reduce and not layer.dispatched:
            yield _Block(name, seconds, (), weights, last_scatter, buckets)
            return
        first, second = ("a", "b") if forward else ("b", "a")
        yield _Block(name + first, seconds / 2, tuple(halves[0]), weights)
        yield _Block(name + second, seconds / 2, tuple(halves[1]), 0.0, last_scatter, buckets)

    def _buckets(self, step: Pass, place: int) -> dict[int, tuple[tuple[str, str, float], ...]]:
        """Layer of the chunk -> buckets complete after its last backward pass."""
        spec = self.spec
        last = [s for s in passes(spec, place % spec.pipeline) if s[:2] == ("B", step.chunk)][-1]
        if step != last:
            return {}
        found: dict[int, list[tuple[str, str, float]]] = {}
        dense = experts = 0.0
        layers = self._chunks[place]
        for i in reversed(range(len(layers))):
            dense += 0.0 if spec.sharded else layers[i].parameters / spec.tensor
            experts += layers[i].expert_parameters / (spec.tensor * spec.expert)
            for axis, size in (("data", dense), ("replica", experts)):
                if size >= spec.bucket_bytes or (size and not i):
                    found.setdefault(i, []).append((axis, f"bucket.{axis}.{step.chunk}.{i}", size))
                    if axis == "data":
                        dense = 0.0
                    else:
                        experts = 0.0
        return {i: tuple(entries) for i, entries in found.items()}

    def _printed(self) -> tuple[EchelonFlow, ...]:
        """The all-gathers under the paper's arrangement."""
        gathers = [c.id for c in self.collectives.values() if c.kind == "all_gather"]
        forward = [layer.forward for layer in self.spec.layers]
        backward = [layer.backward for layer in reversed(self.spec.layers)]
        offsets = fsdp_offsets(forward, backward, "paper")
        return (EchelonFlow("gathers", tuple(gathers), tuple(offsets)),) if gathers else ()


def _runs(
    step: Pass,
    layers: list[tuple[int, Layer]],
    buckets: dict[int, tuple[tuple[str, str, float], ...]],
) -> Iterator[_Block]:
    """Layers without synchronisation between them, as one block up to each complete bucket."""
    seconds = 0.0
    for i, layer in layers:
        seconds += layer.forward if step.direction == "F" else layer.backward
        if i in buckets or (i, layer) == layers[-1]:
            yield _Block(f"{i}", seconds, buckets=buckets.get(i, ()))
            seconds = 0.0


def split_layers(layers: tuple[Layer, ...], parts: int) -> list[tuple[Layer, ...]]:
    """Layers in order, in `parts` runs of about equal computing time, none empty."""
    total = sum(layer.forward + layer.backward for layer in layers)
    found: list[tuple[Layer, ...]] = []
    start, done = 0, 0.0
    for part in range(1, parts + 1):
        end = start
        most = len(layers) - (parts - part)  # leave one for each part to come
        while end < most and (
            end == start
            or part == parts
            or done + (layers[end].forward + layers[end].backward) / 2 <= total * part / parts
        ):
            done += layers[end].forward + layers[end].backward
            end += 1
        found.append(layers[start:end])
        start = end
    return found
