"""The active flows of all jobs, kept up to date flow by flow: what a policy is shown live.

(The simulator keeps its own tables and shows the same.) In short:

    builder = StateBuilder(fabric)
    job = builder.add_job(plan)                      # a JobPlan, see `plan.compile_job`
    slot = builder.start(job, flow, iteration, now)  # the flow is ready to send
    builder.set_remaining(slot, bytes_left)          # as far as it is known
    state = builder.state(now)                       # row i of it is flow builder.rows[i]
    builder.finish(slot)
    builder.remove_job(job)
"""

from __future__ import annotations

import itertools

import numpy as np

from controller.model.fabric import Fabric, Path
from controller.scheduling import gather
from controller.scheduling.gather import Table
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats, Ints, JobState, NetworkState
from controller.scheduling.routing import LeastLoaded, Routing, least_loaded

LOCAL = -1
"Slot of a flow between workers of one host: it takes no time and has no place in the state."


class StateBuilder:
    """Active flows and their EchelonFlows in slots; a slot is kept for the life of a flow.

    An EchelonFlow of one iteration begins with the first of its flows that becomes ready: that
    moment is its reference time r. It ends when all its flows have finished. The next iteration
    brings a fresh one.
    """

    def __init__(self, fabric: Fabric, routing: Routing | None = None) -> None:
        """Paths are chosen by `routing` (the least loaded unless given)."""
        self.fabric = fabric
        self.rows: Ints = np.empty(0, np.int64)
        "(flows,) slots of the rows of the last state made."
        self.paths: dict[int, Path] = {}
        "Slot -> the links of its active flow."
        self._routing = routing or LeastLoaded()
        self.capacity: Floats = np.array(fabric.capacities())
        "(links,) bit/s; 0 for a link that is down."
        self._load: Floats = np.zeros(len(self.capacity))
        self._flows = Table(
            active=bool, size=float, remaining=float, release=float, ideal_finish=float,
            group=int, tie=int, hops=int,
        )  # fmt: skip
        self._groups = Table(
            reference=float, weight=float, job=int, iteration=int, index=int, sent=float, tie=int,
            left=int,
        )  # fmt: skip
        self._links: Ints = np.zeros((64, 6), np.int64)
        self._scratch: Ints = np.full(64, -1, np.int64)
        self._group_of: dict[tuple[int, int, int], int] = {}
        self._plans: list[JobPlan | None] = []
        self._states: list[JobState | None] = []
        self._next_tie = itertools.count()
        self._next_group_tie = itertools.count()

    def add_job(self, plan: JobPlan) -> int:
        """A job arrives: returns its handle."""
        self._plans.append(plan)
        self._states.append(job_state(plan, self.fabric))
        if len(self._plans) > len(self._scratch):
            self._scratch = np.full(2 * len(self._scratch), -1, np.int64)
        return len(self._plans) - 1

    def remove_job(self, job: int) -> None:
        """A job departs; the flows it still has are dropped."""
        owner = self._groups.column["job"][self._flows.column["group"]]
        for slot in np.flatnonzero(self._flows.column["active"] & (owner == job)):
            self.finish(int(slot))
        for key in [key for key in self._group_of if key[0] == job]:
            self._groups.give_back(self._group_of.pop(key))
        self._plans[job] = self._states[job] = None

    def start(
        self, job: int, flow: int, iteration: int, time: float, path: Path | None = None
    ) -> int:
        """A flow became ready to send: returns its slot, or `LOCAL` if it stays on one host.

        `flow` is its row in the plan; `path` overrides the routing. Raises `DisconnectedFabric`.
        """
        plan = self._plan(job)
        src, dst = plan.src[flow], plan.dst[flow]
        if src == dst:
            self.pass_by(job, flow, iteration, time)
            return LOCAL
        if path is None:
            choices = self._routing.choices(self.fabric, src, dst, plan.job.flows[flow].id)
            path = least_loaded(choices, self._load)
        group = self._enter_group(plan, job, plan.group[flow], iteration, time)
        slot = self._flows.take()
        column = self._flows.column
        size = plan.size[flow]
        column["size"][slot] = column["remaining"][slot] = size
        column["release"][slot] = time
        reference = self._groups.column["reference"][group]
        column["ideal_finish"][slot] = reference + plan.offset[flow]
        column["group"][slot] = group
        column["tie"][slot] = next(self._next_tie)
        column["active"][slot] = True
        self._set_path(slot, path, size)
        return slot

    def pass_by(self, job: int, flow: int, iteration: int, time: float) -> float:
        """A flow between workers of one host became ready, and so has finished.

        It may begin its EchelonFlow. Returns its ideal finish in seconds.
        """
        plan = self._plan(job)
        group = self._enter_group(plan, job, plan.group[flow], iteration, time)
        ideal_finish = float(self._groups.column["reference"][group]) + plan.offset[flow]
        self._leave_group(group, 0.0)
        return ideal_finish

    def set_remaining(self, slot: int, remaining: float) -> None:
        """Bytes the flow still has to send, > 0."""
        self._flows.column["remaining"][slot] = remaining

    def finish(self, slot: int) -> None:
        """The flow's last byte arrived: its slot is free for another."""
        column = self._flows.column
        column["active"][slot] = False
        self._unload(slot)
        del self.paths[slot]
        self._flows.give_back(slot)
        group = int(column["group"][slot])
        self._leave_group(group, float(column["size"][slot]))

    def reroute(self, fabric: Fabric) -> list[int]:
        """Links failed, recovered or changed rate: returns the slots whose path had to change.

        `fabric` has the links of the one before (`Fabric.without`, `Fabric.degraded`). Raises
        `DisconnectedFabric` when a flow has no path left; it then keeps its dead one.
        """
        self.fabric = fabric
        self.capacity = np.array(fabric.capacities())
        moved = [s for s, path in self.paths.items() if not fabric.failed.isdisjoint(path)]
        for slot in moved:
            old = self.paths[slot]
            src, dst = fabric.links[old[0]].src, fabric.links[old[-1]].dst
            tie = str(self._flows.column["tie"][slot])
            path = least_loaded(self._routing.choices(fabric, src, dst, tie), self._load)
            self._unload(slot)
            self._set_path(slot, path, float(self._flows.column["size"][slot]))
        return moved

    def ideal_finish(self, slot: int) -> float:
        """d_j = r + a_j of an active flow, in seconds."""
        return float(self._flows.column["ideal_finish"][slot])

    def active(self) -> Ints:
        """Slots of all active flows, ascending."""
        return np.flatnonzero(self._flows.column["active"])

    def state(self, time: float) -> NetworkState:
        """What a policy sees at a time, in seconds. `rows` tells which slot stands in which row.

        O(slots + path entries). Its arrays are copies.
        """
        flow = self._flows.column
        self.rows = self.active()
        paths = gather.paths_of(self.rows, flow["hops"], self._links)
        return gather.network_state(
            time,
            self.capacity,
            flow,
            self._groups.column,
            self.rows,
            paths,
            self._job_state,
            self._scratch,
        )

    def _job_state(self, job: int) -> JobState:
        state = self._states[job]
        assert state is not None, "a job that departs takes its flows along"
        return state

    def _plan(self, job: int) -> JobPlan:
        plan = self._plans[job]
        if plan is None:
            raise ValueError(f"job {job} has been removed")
        return plan

    def _enter_group(self, plan: JobPlan, job: int, index: int, iteration: int, time: float) -> int:
        """The EchelonFlow's slot; the first of its flows begins it."""
        key = (job, iteration, index)
        if key not in self._group_of:
            group = self._group_of[key] = self._groups.take()
            column = self._groups.column
            if len(column["tie"]) > len(self._scratch):
                self._scratch = np.full(len(column["tie"]), -1, np.int64)
            column["reference"][group] = time
            column["weight"][group] = plan.weight
            column["job"][group] = job
            column["index"][group] = index
            column["iteration"][group] = iteration
            column["sent"][group] = 0.0
            column["tie"][group] = next(self._next_group_tie)
            column["left"][group] = plan.group_flows[index]
        return self._group_of[key]

    def _leave_group(self, group: int, size: float) -> None:
        """One of its flows has finished; the last one ends it."""
        column = self._groups.column
        column["sent"][group] += size
        column["left"][group] -= 1
        if not column["left"][group]:
            job, iteration = int(column["job"][group]), int(column["iteration"][group])
            del self._group_of[job, iteration, int(column["index"][group])]
            self._groups.give_back(group)

    def _set_path(self, slot: int, path: Path, size: float) -> None:
        rows, longest = self._links.shape
        if slot >= rows or len(path) > longest:
            rows, longest = max(rows, len(self._flows.column["size"])), max(longest, len(path))
            grown = np.zeros((rows, longest), np.int64)
            grown[: self._links.shape[0], : self._links.shape[1]] = self._links
            self._links = grown
        self.paths[slot] = path
        self._flows.column["hops"][slot] = len(path)
        for hop, link in enumerate(path):
            self._links[slot, hop] = link
            self._load[link] += 8.0 * size / self.fabric.links[link].rate

    def _unload(self, slot: int) -> None:
        size = float(self._flows.column["size"][slot])
        for link in self.paths[slot]:
            self._load[link] -= 8.0 * size / self.fabric.links[link].rate


def job_state(plan: JobPlan, fabric: Fabric) -> JobState:
    """What a policy may know of a job: its work, and the bytes an iteration puts on each link.

    Where there are several paths, each carries its share.
    """
    seconds = [0.0] * len(plan.held)
    for node, duration in enumerate(plan.seconds):
        seconds[plan.holds[node][0]] += duration
    between: dict[tuple[str, str], float] = {}
    for src, dst, size in zip(plan.src, plan.dst, plan.size, strict=True):
        between[src, dst] = between.get((src, dst), 0.0) + size
    link_bytes: dict[int, float] = {}
    for (src, dst), size in between.items():
        paths = fabric.paths(src, dst)
        for path in paths:
            for link in path:
                link_bytes[link] = link_bytes.get(link, 0.0) + size / len(paths)
    return JobState(
        name=plan.job.name,
        weight=plan.weight,
        arrival=plan.arrival,
        work=sum(seconds),
        compute_s=max(seconds, default=0.0),
        link_bytes=link_bytes,
    )
