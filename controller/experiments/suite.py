"""The suite of multi-job workloads that policies are compared on, from published model sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controller.model import Fabric, Job, PlacedJob, Workload
from controller.model.fabrics import big_switch, leaf_spine
from controller.profiles.builders import Layer, Spec, build, layers_of, parameter_server
from controller.profiles.builders.training import split_layers
from controller.profiles.catalogue import model
from controller.profiles.placement import place

GBIT = 1e9
ITERATIONS = 4
"Iterations of each job; of the largest workloads, two."


@dataclass(frozen=True, slots=True)
class Case:
    """One workload of the suite on its fabric."""

    workload: Workload
    "Placed jobs."
    fabric: Fabric
    "Where they run."
    what: str
    "One line for people."

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.workload.name


def suite() -> list[Case]:
    """All workloads, smallest first. Deterministic."""
    return [make() for make in _CASES]


def case(name: str) -> Case:
    """The workload of that name. Raises KeyError."""
    return {one.name: one for one in suite()}[name]


def coarse(name: str, micro_batch: int, parts: int) -> tuple[Layer, ...]:
    """A model's layers on one A100, merged into `parts` runs of about equal computing time."""
    runs = split_layers(layers_of(model(name), micro_batch), parts)
    return tuple(
        Layer(
            forward=sum(layer.forward for layer in run),
            backward=sum(layer.backward for layer in run),
            parameters=sum(layer.parameters for layer in run),
            activations=run[-1].activations,
            expert_parameters=sum(layer.expert_parameters for layer in run),
            dispatched=sum(layer.dispatched for layer in run),
        )
        for run in runs
    )


def data_parallel(name: str, of: str, batch: int, workers: int, iterations: int) -> Job:
    """All-reduce of gradient buckets on a ring."""
    layers = coarse(of, batch, 6)
    return build(Spec(name, layers, data=workers, bucket_bytes=1.0, iterations=iterations))


def served(name: str, of: str, batch: int, workers: int, iterations: int) -> Job:
    """Parameter server, a server for every two workers."""
    layers = coarse(of, batch, 4)
    spec = Spec(name, layers, data=workers, bucket_bytes=1.0, iterations=iterations)
    return parameter_server(spec, max(1, workers // 2))


def pipelined(
    name: str, of: str, batch: int, stages: int, schedule: str, iterations: int, replicas: int = 1
) -> Job:
    """A pipeline of four micro-batches a stage, with data parallelism across replicas."""
    chunks = 2 if schedule == "interleaved" else 1
    return build(
        Spec(
            name,
            coarse(of, batch, 2 * stages),
            data=replicas,
            pipeline=stages,
            micro_batches=2 * stages,
            schedule=schedule,
            chunks=chunks,
            bucket_bytes=1.0,
            iterations=iterations,
        )
    )


def sharded(name: str, of: str, batch: int, workers: int, iterations: int) -> Job:
    """FSDP."""
    layers = coarse(of, batch, 6)
    return build(Spec(name, layers, data=workers, sharded=True, iterations=iterations))


def tensor(name: str, of: str, batch: int, ranks: int, iterations: int, replicas: int = 1) -> Job:
    """Tensor parallel, with data parallelism across replicas."""
    layers = coarse(of, batch, 4)
    return build(
        Spec(name, layers, data=replicas, tensor=ranks, bucket_bytes=1.0, iterations=iterations)
    )


def experts(name: str, batch: int, workers: int, iterations: int) -> Job:
    """A mixture of experts."""
    layers = coarse("mixtral8x7b", batch, 4)
    return build(
        Spec(name, layers, data=workers, expert=workers, bucket_bytes=1.0, iterations=iterations)
    )


def _zoo(count: int, iterations: int) -> list[Job]:
    """Jobs of all paradigms in turn, no two alike in model and batch until the list repeats."""
    kinds: list[Callable[[str, int], Job]] = [
        lambda n, k: data_parallel(n, "resnet50", 64 + 16 * k, 4, iterations),
        lambda n, k: pipelined(n, "bertlarge", 8 + 2 * k, 2, "gpipe", iterations),
        lambda n, k: sharded(n, "gpt2medium", 4 + k, 4, iterations),
        lambda n, k: served(n, "vgg16", 64 + 16 * k, 2, iterations),
        lambda n, k: pipelined(n, "gpt2large", 2 + k, 4, "1f1b", iterations),
        lambda n, k: tensor(n, "gpt2xl", 2 + k, 2, iterations),
        lambda n, k: data_parallel(n, "bertbase", 16 + 4 * k, 2, iterations),
        lambda n, k: experts(n, 1 + k % 2, 4, iterations),
    ]
    return [kinds[i % len(kinds)](f"job{i}", i // len(kinds)) for i in range(count)]


def _case(
    name: str,
    what: str,
    jobs: list[Job],
    fabric: Fabric,
    placement: str = "packed",
    apart: float = 0.0,
) -> Case:
    """Job k arrives at k * apart seconds."""
    placed = tuple(PlacedJob(job, {}, k * apart) for k, job in enumerate(jobs))
    return Case(place(Workload(placed, name), fabric, placement, seed=1), fabric, what)


_CASES: list[Callable[[], Case]] = [
    lambda: _case(
        "two-gpipe",
        "two pipelines of BERT-large, 4 stages, on the same 4 hosts",
        [pipelined(f"bert{i}", "bertlarge", 16, 4, "gpipe", ITERATIONS) for i in range(2)],
        big_switch(4, 5 * GBIT),
    ),
    lambda: _case(
        "two-data-parallel",
        "ResNet-50 and VGG-16, data parallel, on the same 4 hosts",
        [
            data_parallel("resnet50", "resnet50", 128, 4, ITERATIONS),
            data_parallel("vgg16", "vgg16", 128, 4, ITERATIONS),
        ],
        big_switch(4, 10 * GBIT),
    ),
    lambda: _case(
        "three-1f1b",
        "three 1F1B pipelines of GPT-2, 4 stages, on the same 4 hosts",
        [
            pipelined(f"{m}{i}", m, 4, 4, "1f1b", ITERATIONS)
            for i, m in enumerate(("gpt2large", "gpt2medium", "gpt2xl"))
        ],
        big_switch(4, 5 * GBIT),
    ),
    lambda: _case(
        "three-interleaved",
        "three interleaved 1F1B pipelines of GPT-2 medium, 2 stages x 2 chunks",
        [pipelined(f"gpt2-{b}", "gpt2medium", b, 2, "interleaved", ITERATIONS) for b in (4, 6, 8)],
        big_switch(2, 5 * GBIT),
    ),
    lambda: _case(
        "four-parameter-server",
        "four jobs with parameter servers on 4 hosts",
        [served(m, m, 64, 4, ITERATIONS) for m in ("resnet50", "vgg16", "inception3", "resnet152")],
        big_switch(6, 25 * GBIT),
    ),
    lambda: _case(
        "three-fsdp",
        "three FSDP jobs on the same 4 hosts",
        [sharded(m, m, 4, 4, ITERATIONS) for m in ("gpt2medium", "gpt2large", "bertlarge")],
        big_switch(4, 25 * GBIT),
    ),
    lambda: _case(
        "three-tensor",
        "three tensor-parallel jobs, two with replicas, on the same 4 hosts",
        [
            tensor("gpt2xl", "gpt2xl", 4, 4, ITERATIONS),
            tensor("gpt2large", "gpt2large", 4, 2, ITERATIONS, 2),
            tensor("bertlarge", "bertlarge", 16, 2, ITERATIONS, 2),
        ],
        big_switch(4, 100 * GBIT),
    ),
    lambda: _case(
        "three-mixture-of-experts",
        "three mixtures of experts on the same 4 hosts",
        [experts(f"moe{b}", b, 4, ITERATIONS) for b in (1, 2, 3)],
        big_switch(4, 50 * GBIT),
    ),
    lambda: _case(
        "four-hybrid",
        "four hybrids of pipeline and data parallelism across 4 leaves",
        [
            pipelined(f"{m}-pp2dp2", m, 8, 2, schedule, ITERATIONS, 2)
            for m, schedule in (
                ("gpt2medium", "1f1b"),
                ("bertlarge", "gpipe"),
                ("gpt2large", "1f1b"),
                ("bertbase", "gpipe"),
            )
        ],
        leaf_spine(4, 2, 2, 25 * GBIT, 2),
        "spread",
    ),
    lambda: _case(
        "eight-mixed",
        "eight jobs, one of each paradigm, across 4 leaves at 2:1",
        _zoo(8, ITERATIONS),
        leaf_spine(4, 2, 2, 50 * GBIT, 2),
        "spread",
    ),
    lambda: _case(
        "eight-arriving",
        "the same eight jobs, arriving one after another",
        _zoo(8, ITERATIONS),
        big_switch(8, 50 * GBIT),
        "random",
        apart=0.3,
    ),
    lambda: _case(
        "sixteen-mixed",
        "sixteen jobs of all paradigms on 16 hosts",
        _zoo(16, ITERATIONS),
        big_switch(16, 50 * GBIT),
        "random",
    ),
    lambda: _case(
        "thirty-two-mixed",
        "thirty-two jobs of all paradigms across 8 leaves at 2:1",
        _zoo(32, 2),
        leaf_spine(8, 2, 4, 50 * GBIT, 2),
        "spread",
    ),
    lambda: _case(
        "sixty-four-mixed",
        "sixty-four jobs of all paradigms across 8 leaves at 2:1",
        _zoo(64, 2),
        leaf_spine(8, 4, 8, 50 * GBIT, 2),
        "random",
    ),
]
