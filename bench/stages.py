"""One pipeline alone, by its number of stages: where the smooth rule stops being harmless.

python -m bench.stages
"""

from __future__ import annotations

from controller.model import Flow, Job, PlacedJob, Task, Workload
from controller.model.fabrics import big_switch
from controller.scheduling.registry import policy
from controller.simulator.bounds import job_bound
from controller.simulator.simulate import plans_of, simulate

NAMES = ("fair", "varys", "echelon", "echelon-edf", "fifo")


def pipeline(stages: int, batches: int = 8) -> Workload:
    """Compute 1 a micro-batch on every stage, transfers of 2, forward only."""
    tasks = [
        Task(f"t{k}.{i}", f"w{k}", 1.0, (f"a{k}.{i}",) if k else ())
        for k in range(stages)
        for i in range(batches)
    ]
    flows = [
        Flow(f"a{k}.{i}", f"w{k - 1}", f"w{k}", 2.0, (f"t{k - 1}.{i}",))
        for k in range(1, stages)
        for i in range(batches)
    ]
    workers = tuple(f"w{k}" for k in range(stages))
    placement = {worker: f"h{k + 1}" for k, worker in enumerate(workers)}
    return Workload((PlacedJob(Job("p", workers, tuple(tasks), tuple(flows)), placement),))


def main() -> None:
    """Print the table."""
    print("| stages | bound | " + " | ".join(NAMES) + " |")
    print("|---:|---:|" + "---:|" * len(NAMES))
    for stages in (2, 3, 4, 8):
        workload, fabric = pipeline(stages), big_switch(stages, 8.0)
        bound = job_bound(plans_of(workload, fabric)[0], fabric)
        done = [simulate(workload, fabric, policy(n)).played.jobs[0].completion_s for n in NAMES]
        print(f"| {stages} | {bound:.1f} | " + " | ".join(f"{x:.1f}" for x in done) + " |")


if __name__ == "__main__":
    main()
