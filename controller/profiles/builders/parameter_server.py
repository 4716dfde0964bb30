"""The profile of data-parallel training through parameter servers: push, update, pull."""

from __future__ import annotations

from controller.model import Flow, Job, Task
from controller.model.errors import BadInput
from controller.profiles.builders.spec import Spec


def parameter_server(spec: Spec, servers: int = 1) -> Job:
    """`spec.data` workers w0.. and servers ps0..; each bucket of gradients has one server, in turn.

    A worker pushes a bucket when its backward pass has made it; the server updates when all pushes
    are in (`spec.optimizer` seconds shared by the buckets), and all workers pull. The iteration ends
    with the last pull. Source: Li et al., "Scaling distributed machine learning with the parameter
    server", OSDI 2014. Raises `BadInput` where the spec asks for more than data parallelism.
    """
    if servers < 1 or (spec.tensor, spec.pipeline, spec.expert, spec.micro_batches) != (1, 1, 1, 1):
        raise BadInput(f"{spec.name}: a parameter server takes data parallelism only, >= 1 server")
    workers = [f"w{d}" for d in range(spec.data)]
    buckets = _buckets(spec)
    update = spec.optimizer / max(len(buckets), 1)
    tasks, flows = [], []
    for b, (seconds, size) in enumerate(buckets):
        server = f"ps{b % servers}"
        for worker in workers:
            tasks.append(Task(f"B{b}/{worker}", worker, seconds))
            flows.append(Flow(f"push{b}/{worker}", worker, server, size, (f"B{b}/{worker}",)))
            flows.append(Flow(f"pull{b}/{worker}", server, worker, size, (f"update{b}",)))
        pushes = tuple(f"push{b}/{worker}" for worker in workers)
        tasks.append(Task(f"update{b}", server, update, pushes))
    forward = sum(layer.forward for layer in spec.layers)
    before = [Task(f"F/{worker}", worker, forward) for worker in workers]
    after = [
        Task(f"step/{w}", w, 0.0, tuple(f"pull{b}/{w}" for b in range(len(buckets))))
        for w in workers
    ]
    return Job(
        spec.name,
        (*workers, *(f"ps{s}" for s in range(servers))),
        (*before, *tasks, *after),
        tuple(flows),
        iterations=spec.iterations,
        reference_rate=spec.reference_rate,
    )


def _buckets(spec: Spec) -> list[tuple[float, float]]:
    """(backward seconds, bytes) of each bucket, last layers first."""
    found, seconds, size = [], 0.0, 0.0
    for i in reversed(range(len(spec.layers))):
        layer = spec.layers[i]
        seconds += layer.backward
        size += layer.parameters
        if size >= spec.bucket_bytes or (size and not i):
            found.append((seconds, size))
            seconds = size = 0.0
    return found
