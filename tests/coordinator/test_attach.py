"""Who may attach, and jobs of frameworks outside scenarios."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest

from controller.api import PROTOCOL
from controller.api import coordinator_pb2 as api
from controller.model import Workload
from controller.model.errors import WorkFailed
from controller.model.network import DATA_CLASSES
from host_agent.agent import Agent
from host_agent.client import FlowClient
from tests.coordinator.conftest import RATE, Live, RecordingEnforcer, live, pipeline, placed

TOP = DATA_CLASSES - 1
"The class that is served first among data; acknowledgements have class 7."

TOS = {socket.AF_INET: (socket.IPPROTO_IP, socket.IP_TOS)}


@pytest.mark.parametrize(("host", "words"), [("h9", "h1..h2"), ("h1", "has an agent already")])
async def test_an_agent_the_network_cannot_have_is_refused_by_name(
    tmp_path: Path, host: str, words: str
) -> None:
    async with live(tmp_path) as system:
        with pytest.raises(WorkFailed, match=words) as caught:
            await Agent(host, system.address).run()
    assert host in str(caught.value)


async def test_another_protocol_is_refused_with_the_remedy(tmp_path: Path) -> None:
    async with live(tmp_path, agents=False) as system:

        async def old_agent():  # type: ignore[no-untyped-def]
            yield api.FromHost(hello=api.Hello(host="h1", role="agent", protocol=PROTOCOL + 1))
            await asyncio.sleep(5)

        with pytest.raises(grpc.aio.AioRpcError, match="install one version"):
            async for _ in system.stub.Attach(old_agent()):
                pass


async def test_status_tells_hosts_jobs_and_flows(tmp_path: Path) -> None:
    async with live(tmp_path) as system:
        await add_job(system, placed(pipeline(), "h1", "h2"))
        reply = await system.stub.Status(api.StatusRequest())
    assert [(h.host, h.attached) for h in reply.hosts] == [("h1", True), ("h2", True)]
    assert list(reply.jobs) == ["A"] and reply.policy == "echelon"


async def test_a_framework_flow_is_granted_tagged_and_paced_before_it_connects(
    tmp_path: Path,
) -> None:
    async with framework(tmp_path, policy="fifo") as (system, sender, receiver, target):
        flow = await asyncio.to_thread(sender.open, ("A", 0, "a0"), "127.0.1.1", target)
        rules = system.enforcer.installed
        assert [rule.class_ for rule in rules.values()] == [TOP]
        assert next(iter(rules)).src_port == flow.sock.getsockname()[1]
        assert flow.sock.getsockopt(*TOS[flow.sock.family]) == TOP << 5
        assert int.from_bytes(flow.sock.getsockopt(1, 47, 8), "little") == round(
            RATE / 8 * 1448 / 1514
        )
        with flow:
            await asyncio.to_thread(flow.sendall, b"x" * 100_000)
        await asyncio.to_thread(receiver.received, ("A", 0, "a0"), 100_000)
        await until(lambda: not system.enforcer.installed)
    assert sender.unscheduled == 0


async def test_a_framework_flow_on_hold_sends_nothing_until_its_turn(tmp_path: Path) -> None:
    async with framework(tmp_path, policy="fifo") as (system, sender, _, target):
        first = await asyncio.to_thread(sender.open, ("A", 0, "a0"), "127.0.1.1", target)
        waiting = asyncio.ensure_future(
            asyncio.to_thread(sender.open, ("A", 0, "a1"), "127.0.1.1", target)
        )
        await until(lambda: len(system.coordinator.tracker.flows) == 2)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        with first:
            pass
        second = await asyncio.wait_for(waiting, 5.0)
        with second:
            pass


async def test_a_coordinator_that_does_not_answer_costs_no_traffic(tmp_path: Path) -> None:
    slow = RecordingEnforcer(delay=1.0)
    async with framework(tmp_path, enforcer=slow, grant_timeout=0.05) as (_, sender, _, target):
        flow = await asyncio.to_thread(sender.open, ("A", 0, "a0"), "127.0.1.1", target)
        assert sender.unscheduled == 1
        assert flow.sock.getsockopt(*TOS[flow.sock.family]) == 0
        flow.sock.close()


@pytest.mark.parametrize("gone", ["client", "job"])
async def test_a_connection_whose_flow_has_arrived_leaves_no_rule_behind_its_client_or_job(
    tmp_path: Path, gone: str
) -> None:
    async with framework(tmp_path, policy="fifo") as (system, sender, receiver, target):
        await asyncio.to_thread(sender.open, ("A", 0, "a0"), "127.0.1.1", target)
        await asyncio.to_thread(receiver.received, ("A", 0, "a0"), 100_000)
        await until(lambda: not system.coordinator.tracker.flows)
        assert system.enforcer.installed
        if gone == "client":
            await asyncio.to_thread(sender.close)
        else:
            await system.stub.RemoveJob(api.RemoveJobRequest(job="A"))
        await until(lambda: not system.enforcer.installed)


async def test_scenarios_and_framework_jobs_do_not_mix(tmp_path: Path) -> None:
    async with live(tmp_path) as system:
        await add_job(system, placed(pipeline(), "h1", "h2"))
        with pytest.raises(grpc.aio.AioRpcError, match="needs the network alone"):
            await system.play(placed(pipeline("B"), "h1", "h2"), "fifo")
        await system.stub.RemoveJob(api.RemoveJobRequest(job="A"))
        result, _ = await system.play(placed(pipeline("B"), "h1", "h2"), "fifo")
        assert len(result.played.flows) == 3


async def add_job(system: Live, workload: Workload) -> None:
    text = msgspec.json.encode(workload).decode()
    await system.stub.AddJobs(api.AddJobsRequest(workload_json=text))


@asynccontextmanager
async def framework(
    tmp_path: Path, **options: Any
) -> AsyncIterator[tuple[Live, FlowClient, FlowClient, tuple[str, int]]]:
    """A network without agents that knows a pipeline, a client on each of its hosts, and where the
    second listens. `options` as of `live`."""
    async with live(tmp_path, agents=False, **options) as system:
        await add_job(system, placed(pipeline(), "h1", "h2"))
        with socket.create_server(("127.0.1.2", 0)) as server:
            sender = await asyncio.to_thread(FlowClient, "h1", system.address)
            receiver = await asyncio.to_thread(FlowClient, "h2", system.address)
            yield system, sender, receiver, server.getsockname()[:2]
            await asyncio.to_thread(sender.close)
            await asyncio.to_thread(receiver.close)


async def until(condition) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)
