"""One measured run in a process of its own: `python -m bench.scheduling.one KIND ARGUMENT..`.

Prints {"cpu_s", "setup_s", "peak_mb", ..} as JSON. CPU time of one thread, compilation excluded by a
small run first, so that other work on the machine counts little.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.scheduling.cluster import FABRICS, HOUR, cluster
from controller.experiments.inputs import read_problem
from controller.model import EchelonFlow, Flow, Job, PlacedJob, Workload
from controller.model.fabrics import big_switch
from controller.scheduling.policy import Decision, NetworkState, Policy
from controller.scheduling.registry import policy
from controller.simulator.simulate import Simulation, plans_of, play, simulate

DATA = Path(os.environ.get("ECHELON_DATA", Path(__file__).parents[3] / "shared" / "data"))
TRACE = DATA / "coflow-benchmark" / "FB2010-1Hr-150-0.txt"


def trace(name: str, path: str) -> dict[str, Any]:
    """A coflow trace under a policy: checking and compiling the jobs and playing them; reading the
    file is `setup_s`."""
    _warm_up(name)
    began = time.process_time()
    problem = read_problem(Path(path))
    read = time.process_time()
    result = simulate(problem.workload, problem.fabric, policy(name), records=False)
    return {
        "cpu_s": time.process_time() - read,
        "setup_s": read - began,
        "mean_completion_s": result.mean_coflow_completion_s,
    }


def hour(
    name: str, model: str, fabric_name: str, placement: str, jobs: str, seconds: str
) -> dict[str, Any]:
    """`jobs` training jobs on 1,024 GPUs, `seconds` simulated; compiling the jobs is `setup_s`,
    playing them without setting up the tables `play_s`."""
    _warm_up(name)
    fabric, span = FABRICS[fabric_name](), float(seconds)
    began = time.process_time()
    plans = plans_of(cluster(fabric, placement, max(span, HOUR), int(jobs)), fabric)
    compiled = time.process_time()
    asked = Asked(policy(name))
    simulation = Simulation(plans, fabric, asked, model, records=False)
    ready = time.process_time()
    simulation.play(span)
    ended = time.process_time()
    return {
        "cpu_s": ended - compiled,
        "play_s": ended - ready,
        "setup_s": compiled - began,
        "flows": simulation.log().flows_ended,
        "decisions": asked.decisions,
        "flows_decided": asked.flows,
    }


class Asked:
    """A policy that counts what it is asked."""

    def __init__(self, policy: Policy) -> None:
        self.name, self.local = policy.name, policy.local
        self.decisions = 0
        self.flows = 0
        self._policy = policy

    def decide(self, state: NetworkState) -> Decision:
        """What the policy decides."""
        self.decisions += 1
        self.flows += state.flows
        return self._policy.decide(state)


def _warm_up(name: str) -> None:
    """Compile: two coflows on both paths of the simulator."""
    flows = tuple(Flow(f"f{i}", "a", "b", 1.0 + i) for i in range(2))
    jobs = tuple(
        PlacedJob(
            Job(j, ("a", "b"), (), flows, (), (EchelonFlow("c", ("f0", "f1"), (0.0, 0.0)),)),
            {"a": "h1", "b": "h2"},
        )
        for j in ("x", "y")
    )
    plans, fabric = plans_of(Workload(jobs), big_switch(2, 8.0)), big_switch(2, 8.0)
    play(plans, fabric, policy(name))
    play(plans, fabric, policy(name), "enforced")


if __name__ == "__main__":
    kinds: dict[str, Callable[..., dict[str, Any]]] = {"trace": trace, "hour": hour}
    measured = kinds[sys.argv[1]](*sys.argv[2:])
    measured["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump(measured, sys.stdout)
