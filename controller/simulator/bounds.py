"""Lower bounds that no schedule can pass: each job alone, and the mean slowdown of a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from controller.model.errors import WorkFailed
from controller.model.fabric import Fabric
from controller.model.job import Workload
from controller.scheduling.plan import JobPlan
from controller.scheduling.policy import Floats
from controller.simulator.critical import Critical, Demand, critical, most_done
from controller.simulator.refuting import Refuter
from controller.simulator.simulate import plans_of
from controller.simulator.windows import unroll

GROWTHS = (1.005, 1.01, 1.02, 1.05, 1.1, 1.2)
"An interval ends at so many times its beginning: the least that keeps the programme small enough."
LARGEST = 50_000
"Columns above which the programme is not tried: each job alone is the bound then."
EFFORT = 1_000_000_000
"Steps spent on refuting what the programme leaves open: about two seconds of CPU."
UNROLLED = 200_000
"Tasks and flows in all iterations above which nothing is refuted."
DENSE_ROWS = 40
"Instants at which a job is held to what its tails allow; at the others to all or nothing."


@dataclass(frozen=True, slots=True)
class Bound:
    """What no schedule of a workload can pass."""

    mean_slowdown: float
    "Mean over the jobs of (completion / iterations) / alone, at least."
    completion_s: dict[str, float]
    "Job -> seconds from its arrival to its end, at least."
    method: str
    """How: an interval-indexed LP, or each job alone where none share or the LP is too large;
    then whether refuting raised it."""

    @property
    def by_programme(self) -> bool:
        """Whether a linear programme was solved."""
        return self.method.startswith("interval-indexed LP")


def job_bound(plan: JobPlan, fabric: Fabric) -> float:
    """Seconds that a job needs on the idle fabric at least, for all its iterations."""
    return critical(plan, fabric).least


def workload_bound(
    workload: Workload,
    fabric: Fabric,
    alone: Mapping[str, float],
    growths: Sequence[float] = GROWTHS,
    largest: int = LARGEST,
    effort: int = EFFORT,
) -> Bound:
    """The least mean slowdown of a workload: what a linear programme gives, raised by refuting.

    `alone` is job -> seconds of an iteration on the idle fabric, what slowdowns are measured
    against; `effort` is the number of steps of `Refuter.climb`. Deterministic; more `effort` never
    gives less. Raises `WorkFailed` when the solver fails.
    """
    plans = plans_of(workload, fabric)
    found = [critical(plan, fabric) for plan in plans]
    least = np.array([one.least for one in found])
    completion = {plan.job.name: c for plan, c in zip(plans, least.tolist(), strict=True)}
    unit = np.array([plan.job.iterations * alone[plan.job.name] for plan in plans])
    arrival = np.array([plan.arrival for plan in plans])
    mean, method = float(np.mean(least / unit)), "each job alone"
    shared = _shared(found)
    if shared:
        by_programme, growth = _programme(shared, arrival, least, unit, growths, largest)
        if growth:
            mean, method = max(mean, by_programme), f"interval-indexed LP, growth {growth:g}"
        nodes = sum(plan.job.iterations * len(plan.needs) for plan in plans)
        if effort and nodes <= UNROLLED and np.all(unit > 0):
            refuter = Refuter(unroll(plans, fabric), arrival, unit, least)
            raised = refuter.climb(mean, effort)
            if raised > mean:
                mean, method = raised, f"{method}, raised by refuting"
    return Bound(mean, completion, method)


def _programme(
    shared: list[dict[int, Demand]],
    arrival: Floats,
    least: Floats,
    unit: Floats,
    growths: Sequence[float],
    largest: int,
) -> tuple[float, float]:
    """The least mean slowdown by the interval-indexed linear programme, and the growth of its
    intervals: the first with no more than `largest` columns; (0, 0) if there is none.

    Columns, for the end of each interval: the share of job j that has ended by then, and the work
    it has had done by then on each resource that it shares. Of that work, no more than its heads
    allow, no less than its tails demand, and together no more than the resource gives. A job that
    ends in an interval is counted from its beginning.

    Source: algorithms.md, section 6, after Hall, Schulz, Shmoys, Wein, "Scheduling to minimize
    average completion time", Mathematics of OR 22, 1997; heads and tails are ours.
    """
    for growth in growths:
        ends = _intervals(arrival + least, growth)
        if (len(least) + sum(map(len, shared))) * len(ends) <= largest:
            return _solve(shared, arrival, least, unit, ends) / len(least), growth
    return 0.0, 0.0


def _shared(found: Sequence[Critical]) -> list[dict[int, Demand]]:
    """Job -> demand, for every resource that several jobs use; of equal ones, one."""
    users: dict[frozenset[int], dict[int, Demand]] = {}
    for job, one in enumerate(found):
        for resource, demand in one.demands.items():
            users.setdefault(resource, {})[job] = demand
    distinct: dict[tuple[object, ...], dict[int, Demand]] = {}
    for demands in users.values():
        if len(demands) > 1:
            key = tuple((job, _print_of(demand)) for job, demand in sorted(demands.items()))
            distinct.setdefault(key, demands)
    return list(distinct.values())


def _print_of(demand: Demand) -> tuple[int, float, float, float]:
    """A finger-print: demands that agree in it are taken for equal. Dropping one only loosens."""
    return (
        len(demand.seconds),
        round(float(demand.seconds.sum()), 9),
        round(float(demand.head @ demand.seconds), 6),
        round(float(demand.tail @ demand.seconds), 6),
    )


def _intervals(earliest: Floats, growth: float) -> Floats:
    """Ends of the intervals, the first at the earliest completion; the last interval is open."""
    first, last = float(earliest.min()), float(earliest.max() + earliest.sum())
    count = int(np.ceil(np.log(last / first) / np.log(growth))) + 1
    return first * growth ** np.arange(count, dtype=np.float64)


class _Programme:
    """Rows and columns as they are added."""

    def __init__(self) -> None:
        self.columns = 0
        self.upper: list[float] = []
        self.cost: list[float] = []
        self.rows: list[Floats] = []
        self.cols: list[Floats] = []
        self.values: list[Floats] = []
        self.limit: list[float] = []

    def add_columns(self, cost: Floats, upper: Floats) -> int:
        """Columns from 0 to `upper`: the number of the first."""
        first = self.columns
        self.columns += len(cost)
        self.cost += cost.tolist()
        self.upper += upper.tolist()
        return first

    def ascending(self, first: int, count: int) -> None:
        """Rows: each of `count` columns is at least the one before."""
        for column in range(first + 1, first + count):
            self.at_most(0.0, np.array([column - 1, column]), np.array([1.0, -1.0]))

    def at_most(self, limit: float, columns: Floats, values: Floats) -> None:
        """A row: sum of values * columns <= limit."""
        self.rows.append(np.full(len(columns), len(self.limit)))
        self.cols.append(columns)
        self.values.append(values)
        self.limit.append(limit)


def _solve(
    shared: list[dict[int, Demand]],
    arrival: Floats,
    least: Floats,
    unit: Floats,
    ends: Floats,
) -> float:
    """Least sum of slowdowns."""
    programme = _Programme()
    begins = np.concatenate([[0.0], ends])
    offset = 0.0
    ended = []
    for job, end in enumerate(least):
        after = np.maximum(begins - arrival[job], end) / unit[job]
        offset += float(after[-1])
        possible = ends >= (arrival[job] + end) * (1 - 1e-12)
        ended.append(programme.add_columns(-np.diff(after), possible.astype(float)))
        programme.ascending(ended[job], len(ends))
    step = max(1, -(-len(ends) // DENSE_ROWS))
    for demands in shared:
        done = {job: _work(programme, d, arrival[job], ends) for job, d in demands.items()}
        for job, demand in demands.items():
            _tails(programme, demand, done[job], ended[job], ends, step)
        work = np.array(list(done.values()))
        ones = np.ones(len(work))
        programme.at_most(float(ends[0]), work, ones)
        for i in range(1, len(ends)):
            programme.at_most(
                float(ends[i] - ends[i - 1]),
                np.concatenate([work + i, work + i - 1]),
                np.concatenate([ones, -ones]),
            )
    rows, cols, values = map(np.concatenate, (programme.rows, programme.cols, programme.values))
    solved = linprog(
        programme.cost,
        A_ub=coo_array((values, (rows, cols)), shape=(len(programme.limit), programme.columns)),
        b_ub=programme.limit,
        bounds=np.column_stack([np.zeros(programme.columns), programme.upper]),
        method="highs-ipm",
    )
    if not solved.success:
        raise WorkFailed(f"the linear programme of the bound failed: {solved.message}")
    return offset + float(solved.fun)


def _work(programme: _Programme, demand: Demand, arrival: float, ends: Floats) -> int:
    """Columns of the work done by the end of each interval: not ahead of its heads."""
    most = most_done(demand.head + arrival, demand.seconds, ends)
    first = programme.add_columns(np.zeros(len(ends)), most)
    programme.ascending(first, len(ends))
    return first


def _tails(
    programme: _Programme, demand: Demand, done: int, ended: int, ends: Floats, step: int
) -> None:
    """Work that must be done by the end of interval i, given in which interval the job ends.

    In its last s seconds a job can have done no more than its tails, read backwards as heads,
    allow. Rows at every `step`-th interval; between them only jobs that have ended count.
    """
    total = float(demand.seconds.sum())
    for i in range(len(ends)):
        later = np.maximum(ends[i:] - ends[i], 0.0) if i % step == 0 else np.zeros(1)
        needed = np.append(total - most_done(demand.tail, demand.seconds, later), 0.0)
        drops = needed[:-1] - needed[1:]
        counts = np.flatnonzero(drops > 1e-9 * total)
        programme.at_most(
            0.0,
            np.concatenate([ended + i + counts, [done + i]]),
            np.concatenate([drops[counts], [-1.0]]),
        )
