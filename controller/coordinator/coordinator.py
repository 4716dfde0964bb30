"""The coordinator: hears what hosts report, keeps the decision loop fed, plays scenarios."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from controller.api import coordinator_pb2 as api
from controller.coordinator.changes import Wanted
from controller.coordinator.enforcer import FlowEnforcer
from controller.coordinator.loop import DecisionLoop
from controller.coordinator.plans import wire_per_payload
from controller.coordinator.scenario import Scenario
from controller.coordinator.session import Session, flow_name
from controller.coordinator.tracker import FlowName, Tracker
from controller.model.errors import BadInput, EchelonError, WorkFailed
from controller.model.fabric import Fabric
from controller.model.job import PlacedJob
from controller.model.network import Network
from controller.model.rule import FlowKey
from controller.scheduling.plan import compile_job
from controller.scheduling.registry import policy as make_policy
from controller.scheduling.state import LOCAL

ANNOUNCED = 0.003
"Seconds in which a host that is told of a flow's coming end announces the flows that follow it."

_PLAYED = {
    "flow_ready",
    "flow_progress",
    "flow_ending",
    "flow_received",
    "flow_sent",
    "task_done",
    "error",
}
"Messages of a scenario that is being played."


class Coordinator:
    """One network's live loop. All methods belong to one event loop."""

    def __init__(
        self, network: Network, enforcer: FlowEnforcer, policy: str, debounce: float
    ) -> None:
        """`policy` decides outside scenarios; `debounce` in seconds. Raises BadInput."""
        self.network = network
        self.fabric = network.fabric()
        self.enforcer = enforcer
        self.policy = policy
        self.sessions: dict[int, Session] = {}
        self.scenario: Scenario | None = None
        self.notes: list[str] = []
        "What happened outside scenarios that somebody should know."
        self._debounce = debounce
        self._attached = asyncio.Condition()
        self._playing = asyncio.Lock()
        self._begin(policy)

    # -- hosts come and go ------------------------------------------------------------------

    async def attach(self, session: Session) -> None:
        """A host agent or client is there. Raises BadInput for one the network does not have."""
        if session.host not in self.fabric.hosts:
            raise BadInput(
                f"host {session.host} is not in the network, which has "
                f"{self.fabric.hosts[0]}..{self.fabric.hosts[-1]}"
            )
        if session.role == "agent" and session.host in self.agents():
            raise BadInput(f"host {session.host} has an agent already; stop that one first")
        self.sessions[session.number] = session
        async with self._attached:
            self._attached.notify_all()

    def detach(self, session: Session) -> None:
        """It is gone, with all its flows."""
        self.sessions.pop(session.number, None)
        for name in list(session.open):
            self._close(session, name)
        if session.role == "agent" and self.scenario is not None:
            self.scenario.fail(f"the agent of host {session.host} is gone")

    def agents(self) -> dict[str, Session]:
        """Host -> its agent."""
        return {s.host: s for s in self.sessions.values() if s.role == "agent"}

    async def wait_for_agents(self, hosts: Iterable[str], timeout: float) -> None:
        """Until every one of the hosts has an agent. Raises WorkFailed naming those without."""
        wanted = set(hosts)
        async with self._attached:
            try:
                await asyncio.wait_for(
                    self._attached.wait_for(lambda: wanted <= self.agents().keys()), timeout
                )
            except asyncio.TimeoutError:
                missing = ", ".join(sorted(wanted - self.agents().keys()))
                raise WorkFailed(f"no agent has attached from {missing} in {timeout:g} s") from None

    # -- what hosts report ------------------------------------------------------------------

    def hear(self, session: Session, message: api.FromHost) -> None:
        """One message of a host. What makes no sense is noted, never raised."""
        kind = message.WhichOneof("kind")
        if self.scenario is not None and not self.scenario.started and kind in _PLAYED:
            return  # of the scenario before
        try:
            if kind == "flow_ready":
                self._flow_ready(session, message.flow_ready)
            elif kind == "flow_progress":
                self._flow_progress(message.flow_progress)
            elif kind == "flow_ending":
                self._flow_ending(message.flow_ending)
            elif kind == "flow_received":
                self._flow_received(message.flow_received)
            elif kind == "flow_closed":
                self._close(session, flow_name(message.flow_closed.id))
            elif kind == "ping":
                pong = api.Pong(sent=message.ping.sent, now=time.monotonic())
                session.tell(api.ToHost(pong=pong))
            elif self.scenario is not None:
                self.scenario.hear(session, message)
        except KeyError as error:
            self.note(f"{session.host}: {error.args[0]}")

    def now(self) -> float:
        """Seconds on the clock that all times count on."""
        return time.monotonic()

    def note(self, message: str) -> None:
        """Something a report must not hide."""
        if self.scenario is not None:
            self.scenario.note(message)
        else:
            self.notes = [*self.notes[-99:], message]

    def _flow_ready(self, session: Session, message: api.FlowReady) -> None:
        key = None
        if message.HasField("key"):
            five = message.key
            key = FlowKey(five.src_ip, five.dst_ip, five.protocol, five.src_port, five.dst_port)
        flow = self.tracker.announce(flow_name(message.id), key, session.number, message.at)
        if session.role == "client":
            session.open[flow.name] = key
        if self.scenario is not None:
            self.scenario.flow_ready(flow)
        if flow.slot != LOCAL:
            self.loop.holds_from(message.at)
            self.loop.wake()

    def _flow_ending(self, message: api.FlowEnding) -> None:
        self.loop.holds_from(message.at)
        flow = self.tracker.finish(flow_name(message.id))
        if flow is None or flow.slot == LOCAL:
            return
        if flow.key is not None:
            self.loop.ends(flow.key)
        if self.scenario is not None and self.scenario.flow_ending(message):
            # What follows it will be announced in a moment, and may outrank who waits now.
            asyncio.get_running_loop().call_later(ANNOUNCED, self.loop.wake)
        else:
            self.loop.wake()

    def _flow_progress(self, message: api.FlowProgress) -> None:
        for flow in message.flows:
            self.tracker.progress(flow_name(flow.id), flow.acked * self.factor, message.at)

    def _flow_received(self, message: api.FlowReceived) -> None:
        self._finished(flow_name(message.id))
        if self.scenario is not None:
            self.scenario.flow_received(message)

    def _finished(self, name: FlowName) -> None:
        flow = self.tracker.finish(name)
        if flow is not None and flow.slot != LOCAL:
            self.loop.wake()

    def _close(self, session: Session, name: FlowName) -> None:
        """A client's flow will send nothing more, and its connection carries no other."""
        self.tracker.finish(name)
        if (key := session.open.pop(name, None)) is not None:
            self.loop.forget(key)

    # -- what people ask --------------------------------------------------------------------

    def add_jobs(self, jobs: Sequence[PlacedJob]) -> None:
        """Jobs whose flows clients will announce. Raises BadInput."""
        known = set(self.tracker.jobs())
        now = self.now() - self.tracker.epoch
        plans = [compile_job(replace(placed, arrival=now), self.fabric) for placed in jobs]
        for plan in plans:
            if plan.job.name in known:
                raise BadInput(f"job {plan.job.name} is known already; remove it first")
            known.add(plan.job.name)
        for plan in plans:
            self.tracker.add_job(plan)

    def remove_job(self, name: str) -> None:
        """Forgets a job; its flows become class 0. Raises BadInput."""
        if name not in self.tracker.jobs():
            raise BadInput(f"no job {name} is known")
        for session in self.sessions.values():
            for flow in [flow for flow in session.open if flow[0] == name]:
                self._close(session, flow)
        self.tracker.remove_job(name)

    async def play(self, scenario: Scenario) -> api.ScenarioResult:
        """Plays a scenario, alone. Raises BadInput, WorkFailed."""
        if self._playing.locked():
            raise WorkFailed("a scenario is being played; one at a time")
        if self.tracker.jobs():
            raise WorkFailed(
                "clients' jobs are being scheduled; a scenario needs the network alone"
            )
        async with self._playing:
            await self._end_loop()
            self._begin(scenario.policy, scenario.ipv6)
            for plan in scenario.job_plans():
                self.tracker.add_job(plan)
            self.scenario = scenario
            try:
                return await scenario.play(self)
            finally:
                self.scenario = None
                await self._end_loop()
                self._begin(self.policy)

    def links_changed(self, fabric: Fabric) -> None:
        """Links failed or recovered; `fabric` has the same links as before."""
        self.fabric = fabric
        try:
            moved = self.tracker.builder.reroute(fabric)
        except EchelonError as error:
            self.note(str(error))
            return
        self.note(f"links changed: {len(moved)} flows take other paths")
        self.loop.wake()

    async def stop(self) -> None:
        """Ends the loop, takes its rules out and tells every session goodbye."""
        for session in self.sessions.values():
            session.close()
        await self._end_loop()

    # -- the loop of the moment -------------------------------------------------------------

    def _begin(self, policy: str, ipv6: bool = False) -> None:
        """A fresh tracker and loop: nothing of one scenario reaches the next."""
        self.factor = wire_per_payload(ipv6)
        chosen = make_policy(policy)
        self.tracker = Tracker(self.fabric, self.now(), getattr(chosen, "routing", None))
        self.loop = DecisionLoop(
            self.tracker, chosen, self.enforcer, self._tell, self._debounce, self.note
        )
        self._running = asyncio.get_running_loop().create_task(self.loop.run())
        self._running.add_done_callback(self._loop_ended)

    async def _end_loop(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        try:
            await self.loop.clear()
        except EchelonError as error:  # why a scenario failed matters more
            self.note(str(error))

    def _loop_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        message = f"the decision loop failed: {type(error).__name__}: {error}"
        if self.scenario is not None:
            self.scenario.fail(message)
        else:
            self.note(message)

    def _tell(self, owner: int, wanted: Sequence[Wanted], not_before: float) -> None:
        session = self.sessions.get(owner)
        if session is not None:
            session.tell_settings(wanted, not_before)
