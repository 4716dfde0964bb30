"""A scenario's plans: what every host's agent has to compute, send and receive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controller.api import coordinator_pb2 as api
from controller.model.job import PlacedJob
from controller.scheduling.plan import JobPlan

FRAME = 1514
"Bytes of a full Ethernet frame, without its check sequence."
PAYLOAD_IPV4, PAYLOAD_IPV6 = 1448, 1428
"TCP payload of a full frame, with the timestamp option."
MIN_PAYLOAD = 17
"Payload bytes of the smallest flow: its header and one byte."


def wire_per_payload(ipv6: bool) -> float:
    """Wire bytes per payload byte of a full frame."""
    return FRAME / (PAYLOAD_IPV6 if ipv6 else PAYLOAD_IPV4)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a host's agent receives."""

    address: str
    "IPv4 or IPv6 address of the host."
    port: int
    "TCP port."


@dataclass(frozen=True, slots=True)
class Plans:
    """All hosts' plans of one scenario."""

    hosts: dict[str, list[api.WorkerPlan]]
    "Host -> what its workers do."
    payload: dict[tuple[str, str], int]
    "(job, flow) -> payload bytes."
    relays: dict[tuple[str, str], frozenset[str]]
    "(job, task or flow) -> hosts that wait for it but do not see it end themselves."
    successors: dict[tuple[str, str], frozenset[str]]
    "(job, flow) -> hosts with flows that wait for it."


def make_plans(
    jobs: list[tuple[PlacedJob, JobPlan]],
    endpoints: Mapping[str, Endpoint],
    factor: float,
    time_scale: float,
) -> Plans:
    """Plans of compiled jobs; `factor` is wire bytes per payload byte.

    `endpoints` has every host on which a worker is placed. O(tasks + flows + dependencies).
    """
    plans = Plans({}, {}, {}, {})
    numbers = iter(range(1, 2**32))
    for placed, plan in jobs:
        _add_job(plans, placed, plan, endpoints, factor, time_scale, numbers)
    return plans


def _add_job(
    plans: Plans,
    placed: PlacedJob,
    plan: JobPlan,
    endpoints: Mapping[str, Endpoint],
    factor: float,
    time_scale: float,
    numbers: Iterator[int],
) -> None:
    job = plan.job
    workers = {
        worker: api.WorkerPlan(
            job=job.name,
            worker=worker,
            iterations=job.iterations,
            arrival=plan.arrival * time_scale,
        )
        for worker in job.workers
    }
    for worker in job.workers:
        plans.hosts.setdefault(placed.placement[worker], []).append(workers[worker])
    for task, seconds in zip(job.tasks, plan.seconds, strict=True):
        workers[task.worker].tasks.add(id=task.id, seconds=seconds, after=task.after)
    for row, flow in enumerate(job.flows):
        number = next(numbers)
        payload = max(MIN_PAYLOAD, round(plan.size[row] / factor))
        plans.payload[job.name, flow.id] = payload
        send = workers[flow.src].sends.add(
            id=flow.id,
            bytes=payload,
            after=flow.after,
            dst_worker=flow.dst,
            number=number,
        )
        if plan.src[row] != plan.dst[row]:
            endpoint = endpoints[plan.dst[row]]
            send.dst_ip, send.dst_port = endpoint.address, endpoint.port
        workers[flow.dst].receives.add(id=flow.id, number=number, bytes=payload)
    _add_waits(plans, placed, plan, workers)


def _add_waits(
    plans: Plans, placed: PlacedJob, plan: JobPlan, workers: Mapping[str, api.WorkerPlan]
) -> None:
    """What holds a worker's next iteration, and what hosts must be told of other hosts' items."""
    job = plan.job
    ids = [task.id for task in job.tasks] + [flow.id for flow in job.flows]
    acts_at = [placed.placement[task.worker] for task in job.tasks] + plan.src
    ends_at = [placed.placement[task.worker] for task in job.tasks] + plan.dst
    for node, item in enumerate(ids):
        waiting = {acts_at[other] for other in plan.frees[node]}
        for row in plan.holds[node]:
            worker = job.workers[row]
            waiting.add(placed.placement[worker])
            if node >= plan.tasks:
                workers[worker].holds.append(item)
        told = frozenset(waiting - {ends_at[node]})
        if told:
            plans.relays[job.name, item] = told
        flows = frozenset(acts_at[other] for other in plan.frees[node] if other >= plan.tasks)
        if flows and node >= plan.tasks:
            plans.successors[job.name, item] = flows
