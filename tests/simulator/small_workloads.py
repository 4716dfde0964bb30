"""Small random workloads of jobs that compute and send, to hold bounds against schedules."""

from __future__ import annotations

import numpy as np

from controller.model import Fabric, Flow, Job, PlacedJob, Task, Workload
from controller.model.fabrics import big_switch, leaf_spine


def random_job(name: str, seed: int) -> Job:
    """Some rounds of computing and sending between three workers."""
    random = np.random.default_rng(seed)
    workers = ("w0", "w1", "w2")
    tasks: list[Task] = []
    flows: list[Flow] = []
    for k in range(int(random.integers(1, 4))):
        for w in workers:
            needs = tuple(f.id for f in flows if f.dst == w and random.random() < 0.6)
            tasks.append(Task(f"t{k}{w}", w, float(random.uniform(0, 2)), needs))
        for i in range(int(random.integers(1, 4))):
            src, dst = random.choice(workers, 2, replace=False)
            flows.append(
                Flow(f"f{k}{i}", str(src), str(dst), float(random.uniform(0.1, 3)), (f"t{k}{src}",))
            )
    return Job(name, workers, tuple(tasks), tuple(flows), iterations=int(random.integers(1, 4)))


def random_workload(seed: int) -> tuple[Workload, Fabric]:
    """Up to four of them; on a leaf-spine with two spines where the seed is even."""
    random = np.random.default_rng(seed)
    fabric = big_switch(3, 8.0) if seed % 2 else leaf_spine(2, 2, 2, 8.0, 2)
    jobs = [
        PlacedJob(
            random_job(f"j{j}", seed * 10 + j),
            {
                w: str(h)
                for w, h in zip(
                    ("w0", "w1", "w2"), random.permutation(fabric.hosts)[:3], strict=True
                )
            },
            float(random.integers(0, 3)),
        )
        for j in range(int(random.integers(1, 5)))
    ]
    return Workload(tuple(jobs)), fabric
