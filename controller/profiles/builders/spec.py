"""What a builder must know of a training job: its layers, its degrees of parallelism, its schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from controller.model.collectives import ALGORITHMS
from controller.model.errors import BadInput

SCHEDULES = ("gpipe", "1f1b", "interleaved")
"Orders in which a pipeline stage runs its micro-batches."


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer and one micro-batch, on a worker that holds the layer alone."""

    forward: float
    "Computing seconds of the forward pass."
    backward: float
    "Computing seconds of the backward pass."
    parameters: float = 0.0
    "Bytes of its gradients (and weights), experts not counted."
    activations: float = 0.0
    "Bytes of its output."
    expert_parameters: float = 0.0
    "Bytes of the gradients of all its experts."
    dispatched: float = 0.0
    "Bytes a worker sends to experts, and gets back; 0 for a dense layer."


@dataclass(frozen=True, slots=True)
class Spec:
    """A training job; `build` makes its profile. Workers = data x pipeline x tensor."""

    name: str
    "Name of the job."
    layers: tuple[Layer, ...]
    "In forward order."
    data: int = 1
    "Replicas."
    tensor: int = 1
    "Workers that share each layer: an all-reduce after attention and feed-forward, both ways."
    pipeline: int = 1
    "Stages."
    expert: int = 1
    "Replicas that share the experts of a layer; divides `data`."
    micro_batches: int = 1
    "Micro-batches of one replica in one iteration."
    schedule: str = "1f1b"
    "gpipe, 1f1b or interleaved."
    chunks: int = 1
    "Parts of the model a stage holds; more than 1 needs `interleaved`."
    sharded: bool = False
    "FSDP / ZeRO-3: weights are gathered before use, gradients reduce-scattered."
    prefetch: int = 1
    "FSDP: layers gathered ahead of the one that computes."
    arrangement: str = "exact"
    "FSDP all-gathers: `exact` (derived) or `paper` (as printed, for comparison)."
    bucket_bytes: float = 25 * 2**20
    "Data parallel: gradients are reduced in buckets of at least this size (PyTorch's 25 MiB)."
    algorithm: str = "ring"
    "How all-reduce, reduce-scatter and all-gather are done; all-to-all is always direct."
    optimizer: float = 0.0
    "Seconds of the optimiser step on every worker."
    iterations: int = 1
    "How often the iteration is played."
    reference_rate: float | None = None
    "Link rate in bit/s that the sizes belong to."

    def __post_init__(self) -> None:
        for name in ("data", "tensor", "pipeline", "expert", "micro_batches", "chunks", "prefetch"):
            if getattr(self, name) < 1:
                raise BadInput(f"{self.name}: {name} is {getattr(self, name)}: expected >= 1")
        for problem in self._problems():
            raise BadInput(f"{self.name}: {problem}")

    def _problems(self) -> list[str]:
        found = []
        if self.schedule not in SCHEDULES:
            found.append(f"schedule {self.schedule!r}: expected one of {', '.join(SCHEDULES)}")
        if self.algorithm not in ALGORITHMS:
            found.append(f"algorithm {self.algorithm!r}: expected one of {', '.join(ALGORITHMS)}")
        if self.arrangement not in ("exact", "paper"):
            found.append(f"arrangement {self.arrangement!r}: expected exact or paper")
        if self.arrangement == "paper" and not (
            self.sharded and self.pipeline == 1 and self.micro_batches == 1
        ):
            found.append("the paper's arrangement needs sharded, one stage and one micro-batch")
        if self.chunks > 1 and self.schedule != "interleaved":
            found.append(f"{self.chunks} chunks a stage need the schedule interleaved")
        if self.schedule == "interleaved" and self.micro_batches % self.pipeline:
            found.append(
                f"interleaved: {self.micro_batches} micro-batches on {self.pipeline} stages: "
                "expected a multiple"
            )
        if len(self.layers) < self.pipeline * self.chunks:
            found.append(
                f"{len(self.layers)} layers cannot fill {self.pipeline * self.chunks} stage chunks"
            )
        if self.data % self.expert:
            found.append(f"expert {self.expert} does not divide data {self.data}")
        for index, layer in enumerate(self.layers):
            for part in fields(Layer):
                value = getattr(layer, part.name)
                if not (math.isfinite(value) and value >= 0):
                    found.append(f"layer {index}: {part.name} is {value!r}: expected >= 0")
        return found
