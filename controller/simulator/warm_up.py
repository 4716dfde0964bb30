"""Compiles what numba compiles, into its cache on disk: `python -m controller.simulator.warm_up`.

Plays a tiny workload under every policy, so that the first real run does not wait. What earlier
versions of the source compiled to is removed.
"""

from __future__ import annotations

from controller.model import EchelonFlow, Flow, Job, PlacedJob, Task, Workload
from controller.model.fabrics import big_switch
from controller.scheduling.compiling import remove_old
from controller.scheduling.echelon_search import FixedOrder
from controller.scheduling.registry import POLICIES
from controller.simulator.simulate import simulate


def warm_up() -> None:
    """Every policy, both models, jobs that compute and coflows alone."""
    fabric = big_switch(3, 8.0)
    for tasks in ((), (Task("t", "a", 1.0),)):
        workload = Workload(tuple(_job(name, tasks) for name in ("x", "y")))
        for name in POLICIES:
            for model in ("ideal", "enforced"):
                simulate(workload, fabric, POLICIES[name](), model)
        simulate(workload, fabric, FixedOrder(), records=False)


def _job(name: str, tasks: tuple[Task, ...]) -> PlacedJob:
    """Two flows on two links, after the tasks."""
    after = tuple(task.id for task in tasks)
    flows = (Flow("f", "a", "b", 1.0, after), Flow("g", "a", "c", 2.0, after))
    step = 1.0 if tasks else 0.0
    groups = (EchelonFlow("h", ("f", "g"), (0.0, step)),)
    job = Job(name, ("a", "b", "c"), tasks, flows, (), groups)
    return PlacedJob(job, {"a": "h1", "b": "h2", "c": "h3"})


if __name__ == "__main__":
    remove_old()
    warm_up()
