"""The cluster of the benchmark: 1,024 GPUs on a fat-tree, 100 training jobs of four kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from controller.model import Job, PlacedJob, Workload
from controller.model.fabric import Fabric
from controller.model.fabrics import fat_tree, leaf_spine
from controller.profiles.builders import Spec, build, layers_of
from controller.profiles.catalogue import model
from controller.profiles.placement import place

HOUR = 3600.0

FABRICS: dict[str, Callable[[], Fabric]] = {
    "wide": lambda: fat_tree(16, 100e9),
    "narrow": lambda: leaf_spine(64, 4, 16, 25e9),
}
"1,024 hosts with a GPU each: a fat-tree of 16-port switches, 100 Gbit/s; and one where many flows \
contend, 64 leaves whose 4 uplinks carry a quarter of what their 16 hosts can send, 25 Gbit/s."


def kinds() -> list[Job]:
    """One job of each kind, global batches as published; workers 4, 8, 8 and 24."""
    gpt2 = Spec(
        "gpt2xl-dp4", layers_of(model("gpt2-xl"), 8), data=4, micro_batches=16, bucket_bytes=1e9
    )
    llama = Spec("llama7b-pp8", layers_of(model("llama-7b"), 16), pipeline=8, micro_batches=16)
    bert = Spec(
        "bert-dp8",
        layers_of(model("bert-large"), 64),
        data=8,
        micro_batches=32,
        bucket_bytes=4e8,
        algorithm="halving_doubling",
    )
    gpt3 = Spec(
        "gpt13b-dp3-pp8",
        layers_of(model("gpt3-13b"), 8),
        data=3,
        pipeline=8,
        micro_batches=16,
        bucket_bytes=4e9,
    )
    return [build(spec) for spec in (gpt2, llama, bert, gpt3)]


def cluster(
    fabric: Fabric, placement: str, seconds: float = HOUR, jobs: int = 100, seed: int = 0
) -> Workload:
    """`jobs` jobs that arrive over the first minute and compute for about `seconds` in all."""
    made = kinds()
    counts = [40, 18, 18, 24]  # of a hundred: 160 + 144 + 144 + 576 = 1,024 workers
    sequence = [kind for kind, count in zip(made, counts, strict=True) for _ in range(count)]
    placed = []
    for i in range(jobs):
        job = sequence[i * len(sequence) // jobs]
        busiest = max(sum(task.seconds for task in job.tasks_of(w)) for w in job.workers)
        count = max(1, round(seconds / busiest))
        named = replace(job, name=f"{job.name}-{i}", iterations=count)
        placed.append(PlacedJob(named, {}, arrival=min(60.0, seconds) * i / jobs))
    return place(Workload(tuple(placed), "cluster"), fabric, placement, seed)
