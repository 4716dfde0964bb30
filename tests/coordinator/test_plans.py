"""From a workload to what every agent has to do."""

from __future__ import annotations

from controller.coordinator.plans import Endpoint, Plans, make_plans, wire_per_payload
from controller.model import Collective, Flow, Job, PlacedJob, Task
from controller.scheduling.plan import compile_job
from tests.coordinator.conftest import pipeline, star

FABRIC = star(4).fabric()
ENDPOINTS = {f"h{i}": Endpoint(f"10.0.0.{i}", 7000 + i) for i in range(1, 5)}


def plans_of(job: Job, *hosts: str) -> Plans:
    placed = PlacedJob(job, dict(zip(job.workers, hosts, strict=True)))
    compiled = compile_job(placed, FABRIC)
    return make_plans([(placed, compiled)], ENDPOINTS, wire_per_payload(False), 1.0)


def test_payload_is_what_fits_in_the_wire_bytes() -> None:
    plans = plans_of(pipeline(size=1514e3), "h1", "h2")
    assert plans.payload == {("A", f"a{k}"): 1448000 for k in range(3)}
    (sender,), (receiver,) = plans.hosts["h1"], plans.hosts["h2"]
    assert [send.bytes for send in sender.sends] == [1448000] * 3
    assert [(send.dst_ip, send.dst_port) for send in sender.sends] == [("10.0.0.2", 7002)] * 3
    assert [r.number for r in receiver.receives] == [s.number for s in sender.sends]


def test_tasks_keep_their_order_and_what_they_wait_for() -> None:
    plans = plans_of(pipeline(), "h1", "h2")
    (receiver,) = plans.hosts["h2"]
    assert [(t.id, list(t.after)) for t in receiver.tasks] == [
        ("g0", ["a0"]),
        ("g1", ["a1"]),
        ("g2", ["a2"]),
    ]
    assert list(receiver.holds) == ["a0", "a1", "a2"]


def test_a_flow_within_a_host_has_no_address() -> None:
    plans = plans_of(pipeline(), "h1", "h1")
    assert {send.dst_ip for worker in plans.hosts["h1"] for send in worker.sends} == {""}


def test_hosts_are_told_of_what_they_wait_for_and_cannot_see() -> None:
    job = Job(
        "J",
        ("w0", "w1", "w2"),
        (Task("t0", "w0", 1.0), Task("t1", "w1", 1.0, ("t0",)), Task("t2", "w0", 1.0, ("x",))),
        (Flow("x", "w1", "w2", 1e5, ("t1",)),),
    )
    plans = plans_of(job, "h1", "h2", "h3")
    assert plans.relays == {("J", "t0"): frozenset({"h2"}), ("J", "x"): frozenset({"h1"})}


def test_collectives_become_flows_with_numbers_of_their_own() -> None:
    workers = ("w0", "w1", "w2", "w3")
    tasks = tuple(Task(f"t{w}", w, 1.0) for w in workers)
    ring = Collective("r", "all_reduce", "ring", workers, 4e6, tuple(t.id for t in tasks))
    plans = plans_of(Job("J", workers, tasks, (), (ring,)), "h1", "h2", "h3", "h4")
    numbers = [send.number for plan in plans.hosts.values() for w in plan for send in w.sends]
    assert len(numbers) == len(set(numbers)) == 4 * 6
