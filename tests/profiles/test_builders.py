"""Built profiles are valid jobs with the bytes, tasks and EchelonFlows of their paradigm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.model import Job, dag
from controller.model.arrangement import derive, fsdp_offsets
from controller.model.check import job_problems
from controller.model.collectives import expand
from controller.model.errors import BadInput
from controller.profiles import catalogue
from controller.profiles.builders import Layer, Spec, build, layers_of, parameter_server
from controller.profiles.builders.schedules import passes
from controller.profiles.builders.training import split_layers

LAYER = Layer(1.0, 2.0, 100.0, 10.0)
FOUR = (LAYER,) * 4


def busy(job: Job, worker: str) -> float:
    return sum(task.seconds for task in job.tasks_of(worker))


def total(job: Job, prefix: str) -> float:
    return sum(c.bytes for c in job.collectives if c.id.startswith(prefix))


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    schedule = draw(st.sampled_from(["gpipe", "1f1b", "interleaved"]))
    pipeline = draw(st.integers(1, 3))
    chunks = draw(st.integers(1, 2)) if schedule == "interleaved" else 1
    expert = draw(st.integers(1, 2))
    micro = draw(st.integers(1, 3)) * (pipeline if schedule == "interleaved" else 1)
    count = draw(st.integers(pipeline * chunks, 7))
    layer = Layer(
        1.0,
        2.0,
        100.0,
        10.0,
        draw(st.sampled_from([0.0, 80.0])),
        draw(st.sampled_from([0.0, 20.0])),
    )
    return Spec(
        "j",
        (layer,) * count,
        data=expert * draw(st.integers(1, 2)),
        tensor=draw(st.integers(1, 2)),
        pipeline=pipeline,
        expert=expert,
        micro_batches=micro,
        schedule=schedule,
        chunks=chunks,
        sharded=draw(st.booleans()),
        prefetch=draw(st.integers(1, 3)),
        bucket_bytes=draw(st.sampled_from([1.0, 150.0, 1e9])),
        optimizer=0.5,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spec=specs())
def test_every_mix_is_a_job_that_can_finish_and_computes_all_of_it(spec: Spec) -> None:
    job = build(spec)
    assert not list(job_problems(job))
    assert len(job.workers) == spec.data * spec.tensor * spec.pipeline
    work = sum(task.seconds for task in job.tasks)
    passes_ = sum(layer.forward + layer.backward for layer in spec.layers)
    expected = passes_ * spec.micro_batches * spec.data + 0.5 * len(job.workers)
    assert work == pytest.approx(expected)
    expanded = expand(job)
    assert not list(job_problems(expanded))
    grouped = [flow for group in expanded.echelonflows for flow in group.flows]
    assert sorted(grouped) == sorted(flow.id for flow in expanded.flows)


def test_data_parallel_reduces_all_gradients_in_buckets_as_they_are_made() -> None:
    job = build(Spec("dp", FOUR, data=3, bucket_bytes=200.0, optimizer=0.5))
    assert [c.bytes for c in job.collectives] == [200.0, 200.0]
    assert [(t.id, t.seconds) for t in job.tasks_of("w0")] == [
        ("F0.0.3/w0", 4.0),
        ("B0.0.2/w0", 4.0),
        ("B0.0.0/w0", 4.0),
        ("step/w0", 0.5),
    ]
    assert job.collectives[0].after == ("B0.0.2/w0", "B0.0.2/w1", "B0.0.2/w2")
    assert all(group.is_coflow for group in derive(job))


def test_accumulated_micro_batches_reduce_once() -> None:
    job = build(Spec("dp", FOUR, data=2, micro_batches=3))
    assert total(job, "bucket") == 400.0
    assert busy(job, "w0") == 36.0


def test_tensor_parallel_has_four_all_reduces_a_layer() -> None:
    job = build(Spec("tp", FOUR, tensor=4))
    assert len(job.collectives) == 4 * 4
    assert all(c.kind == "all_reduce" and c.bytes == 10.0 for c in job.collectives)
    assert busy(job, "w2") == 12.0 / 4
    assert all(group.is_coflow and len(group.flows) == 1 for group in derive(job))


@pytest.mark.parametrize("form", ["exact", "paper"])
def test_fsdp_gathers_2n_times_in_one_echelonflow(form: str) -> None:
    job = build(Spec("fsdp", FOUR, data=4, sharded=True, arrangement=form))
    gathers = [c for c in job.collectives if c.kind == "all_gather"]
    scatters = [c for c in job.collectives if c.kind == "reduce_scatter"]
    assert (len(gathers), len(scatters)) == (8, 4)
    group = next(g for g in derive(job) if gathers[0].id in g.flows)
    assert group.flows == tuple(c.id for c in gathers)
    assert group.arrangement == pytest.approx(fsdp_offsets([1.0] * 4, [2.0] * 4, form))
    assert sum(g.is_coflow for g in derive(job)) == 4


def test_moe_dispatches_and_combines_around_the_experts() -> None:
    layer = Layer(1.0, 2.0, 100.0, 10.0, 800.0, 20.0)
    job = build(Spec("moe", (layer,) * 2, data=4, expert=4, bucket_bytes=1e9))
    exchanges = [c for c in job.collectives if c.kind == "all_to_all"]
    assert len(exchanges) == 2 * 4
    assert all(c.bytes == 20.0 and len(c.workers) == 4 for c in exchanges)
    assert total(job, "bucket.data") == 200.0
    assert total(job, "bucket.replica") == 0.0  # each worker alone holds its experts
    shared = build(Spec("moe", (layer,) * 2, data=4, expert=2, bucket_bytes=1e9))
    experts = [c for c in shared.collectives if c.id.startswith("bucket.replica")]
    assert [(c.workers, c.bytes) for c in experts] == [
        (("w0", "w2"), 800.0),
        (("w1", "w3"), 800.0),
    ]


def test_gpipe_sends_one_flow_a_micro_batch_boundary_and_direction() -> None:
    job = build(Spec("pp", FOUR, pipeline=4, micro_batches=3, schedule="gpipe"))
    assert len(job.flows) == 3 * 3 * 2
    groups = derive(job)
    assert len(groups) == 6
    forward = next(g for g in groups if g.flows[0] == "act0.0/w0-w1")
    assert forward.arrangement == (0.0, 1.0, 2.0)
    backward = next(g for g in groups if g.flows[0] == "grad0.2/w3-w2")
    assert backward.arrangement == (0.0, 2.0, 4.0)


def test_schedules_run_every_pass_once_and_backward_after_forward() -> None:
    for schedule, chunks in (("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 3)):
        spec = Spec(
            "s", (LAYER,) * 12, pipeline=4, micro_batches=8, schedule=schedule, chunks=chunks
        )
        for stage in range(4):
            order = passes(spec, stage)
            assert len(set(order)) == len(order) == 2 * 8 * chunks
            for step in order:
                if step.direction == "B":
                    assert order.index(step._replace(direction="F")) < order.index(step)


def test_one_f_one_b_keeps_few_micro_batches_in_flight() -> None:
    spec = Spec("s", FOUR, pipeline=4, micro_batches=8)
    for stage in range(4):
        flying = most = 0
        for step in passes(spec, stage):
            flying += 1 if step.direction == "F" else -1
            most = max(most, flying)
        assert most == 4 - stage


def ideal_makespan(job: Job) -> float:
    """On an infinitely fast network."""
    nodes, before = dag.nodes(job), dag.predecessors(job)
    end: dict[str, float] = {}
    for id_ in dag.order(job):
        start = max((end[b] for b in before[id_]), default=0.0)
        end[id_] = start + getattr(nodes[id_], "seconds", 0.0)
    return max(end.values())


@pytest.mark.parametrize(
    ("schedule", "chunks", "bubble"), [("gpipe", 1, 3), ("1f1b", 1, 3), ("interleaved", 2, 1.5)]
)
def test_pipelines_have_the_published_bubble(schedule: str, chunks: int, bubble: float) -> None:
    """(p - 1)(t_f + t_b), divided by the chunks for interleaving (Narayanan et al., SC 2021)."""
    spec = Spec("s", (LAYER,) * 8, pipeline=4, micro_batches=8, schedule=schedule, chunks=chunks)
    assert ideal_makespan(build(spec)) == pytest.approx((8 + bubble) * 6.0)


def test_a_hybrid_moves_every_kind_of_bytes() -> None:
    spec = Spec("3d", FOUR, data=2, tensor=2, pipeline=2, micro_batches=2, bucket_bytes=1e9)
    job = build(spec)
    assert len(job.workers) == 8
    # 4 all-reduces x 2 layers x 2 micro-batches x (2 x 2 groups)
    assert sum(c.id.startswith("all_reduce.tensor") for c in job.collectives) == 4 * 2 * 2 * 4
    # each (stage, tensor rank) reduces its half of two layers
    assert total(job, "bucket.data") == pytest.approx(4 * 100.0)
    assert sum(f.bytes for f in job.flows) == pytest.approx(2 * 2 * 2 * 10.0)


def test_parameter_servers_push_and_pull_everything() -> None:
    job = parameter_server(Spec("ps", FOUR, data=3, bucket_bytes=200.0, optimizer=1.0), servers=2)
    assert not list(job_problems(job))
    assert sum(f.bytes for f in job.flows) == 3 * 2 * 400.0
    assert {f.dst for f in job.flows if f.id.startswith("push")} == {"ps0", "ps1"}
    assert busy(job, "w1") == 12.0
    groups = derive(job)
    assert all(set(g.flows) & {f"push0/w{d}" for d in range(3)} in (set(), {"push0/w0", "push0/w1", "push0/w2"})
               for g in groups)  # fmt: skip


def test_layers_of_a_model_keep_its_operations_and_parameters() -> None:
    model = catalogue.model("gpt2")
    layers = layers_of(model, 4)
    assert sum(layer.parameters for layer in layers) == pytest.approx(2 * model.parameters)
    assert sum(layer.forward for layer in layers) == pytest.approx(model.flops * 4 / 124.8e12)
    assert layers[3].activations == 4 * 1024 * 768 * 2


def test_layers_are_split_in_order_evenly_and_never_empty() -> None:
    layers = (Layer(9.0, 9.0), *(Layer(1.0, 1.0),) * 3)
    assert [len(part) for part in split_layers(layers, 4)] == [1, 1, 1, 1]
    assert [len(part) for part in split_layers(layers, 2)] == [1, 3]
    assert [len(part) for part in split_layers((LAYER,) * 10, 3)] in (
        [3, 4, 3],
        [3, 3, 4],
        [4, 3, 3],
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": 0}, "data is 0"),
        ({"pipeline": 5}, "4 layers cannot fill 5"),
        ({"schedule": "zigzag"}, "gpipe, 1f1b, interleaved"),
        ({"chunks": 2}, "need the schedule interleaved"),
        ({"schedule": "interleaved", "pipeline": 2, "micro_batches": 3}, "expected a multiple"),
        ({"expert": 2, "data": 3}, "does not divide"),
        ({"layers": (Layer(-1.0, 1.0),)}, "layer 0: forward is -1.0"),
        ({"layers": (Layer(float("nan"), 1.0),)}, "layer 0: forward is nan"),
        ({"arrangement": "paper"}, "needs sharded"),
        ({"algorithm": "bus"}, "ring, halving_doubling"),
    ],
)  # fmt: skip
def test_impossible_specifications_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        replace(Spec("s", FOUR), **change)  # type: ignore[arg-type]
