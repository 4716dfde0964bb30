"""Exact optima of small instances, to test policies and bounds against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import coo_array, csr_array

from controller.model.errors import BadInput, WorkFailed
from controller.model.fabric import Path
from controller.scheduling.policy import Floats

LARGEST = 7
"Coflows that `least_weighted_completion` takes at most."


@dataclass(frozen=True, slots=True)
class Released:
    """A flow that is ready to send now."""

    bytes: float
    "Still to send, > 0."
    path: Path
    "Its links."
    ideal_finish: float = 0.0
    "d_j in seconds."


def least_tardiness(flows: Sequence[Released], capacity: Floats, now: float) -> float:
    """The least tardiness T of one EchelonFlow that has the fabric to itself, in seconds.

    `capacity` is (links,) bit/s. A linear programme over the intervals between consecutive
    d_k + T: the bytes of flow j lie in intervals that end by d_j + T; T enters only the length of
    the first (algorithms.md, section 3). All flows are released by `now`.
    """
    finishes = sorted({flow.ideal_finish for flow in flows})
    lengths = np.diff(finishes)
    unit = max(8 * flow.bytes for flow in flows) / max(capacity)
    columns = [
        (j, i)
        for j, flow in enumerate(flows)
        for i, finish in enumerate(finishes)
        if finish <= flow.ideal_finish
    ]
    late = len(columns)  # the column of T, in units
    sent = coo_array(
        (np.ones(late), ([j for j, _ in columns], range(late))), shape=(len(flows), late + 1)
    )
    rows: list[int] = []
    cols: list[int] = []
    values: list[float] = []
    row_of: dict[tuple[int, int], int] = {}
    for column, (j, i) in enumerate(columns):
        for link in flows[j].path:
            row = row_of.setdefault((link, i), len(row_of))
            rows.append(row)
            cols.append(column)
            values.append(8 * flows[j].bytes / capacity[link] / unit)
    limit = np.zeros(len(row_of))
    for (_, i), row in row_of.items():
        if i:
            limit[row] = lengths[i - 1] / unit
        else:
            limit[row] = (finishes[0] - now) / unit
            rows.append(row)
            cols.append(late)
            values.append(-1.0)
    cost = np.zeros(late + 1)
    cost[late] = 1.0
    solved = linprog(
        cost,
        A_ub=csr_array((values, (rows, cols)), shape=(len(row_of), late + 1)),
        b_ub=limit,
        A_eq=sent,
        b_eq=np.ones(len(flows)),
        bounds=[(0, None)] * late + [((now - finishes[0]) / unit, None)],
        method="highs",
    )
    if not solved.success:
        raise WorkFailed(f"the linear programme of least tardiness failed: {solved.message}")
    return float(solved.fun * unit)


def least_weighted_completion(
    coflows: Sequence[Sequence[Released]], weights: Sequence[float], capacity: Floats
) -> float:
    """The least sum of w_c C_c of at most `LARGEST` coflows all released at 0.

    A mixed-integer programme (HiGHS, branch and bound): coflow c takes place k in the order of
    completions; rates are constant between completions, which loses nothing, since averaging the
    rates of an interval keeps every link within its capacity. Raises BadInput for more coflows.
    """
    count = len(coflows)
    if count > LARGEST:
        raise BadInput(f"{count} coflows: an exact optimum is for at most {LARGEST}")
    flows = [(c, flow) for c, coflow in enumerate(coflows) for flow in coflow]
    seconds = np.zeros((count, len(capacity)))
    for c, flow in flows:
        for link in flow.path:
            seconds[c, link] += 8 * flow.bytes / capacity[link]
    horizon = float(seconds.sum(axis=0).max())  # any work-conserving order ends by `far`
    far = max(horizon, float(seconds.max(axis=1).sum()))

    place = np.arange(count * count).reshape(count, count)
    share = place.size + np.arange(len(flows) * count).reshape(len(flows), count)
    length = share[-1, -1] + 1 + np.arange(count)
    done = length[-1] + 1 + np.arange(count)
    size = int(done[-1]) + 1
    matrix: list[tuple[Floats, float, float]] = []

    def constrain(terms: dict[int, float], low: float, high: float) -> None:
        row = np.zeros(size)
        for column, value in terms.items():
            row[column] = value
        matrix.append((row, low, high))

    for c in range(count):
        constrain({int(p): 1.0 for p in place[c]}, 1, 1)
        constrain({int(p): 1.0 for p in place[:, c]}, 1, 1)
    for f, (c, _) in enumerate(flows):
        constrain({int(s): 1.0 for s in share[f]}, 1, 1)
        for k in range(count):  # nothing is sent after the coflow's own place
            terms = {int(p): -1.0 for p in place[c, k:]}
            constrain({**terms, int(share[f, k]): 1.0}, -np.inf, 0)
    for link in range(len(capacity)):
        for k in range(count):
            terms = {
                int(share[f, k]): 8 * flow.bytes / capacity[link]
                for f, (_, flow) in enumerate(flows)
                if link in flow.path
            }
            if terms:
                constrain({**terms, int(length[k]): -1.0}, -np.inf, 0)
    for c in range(count):
        for k in range(count):  # done_c >= end of interval k, if c has place k
            terms = {int(x): -1.0 for x in length[: k + 1]}
            constrain({**terms, int(done[c]): 1.0, int(place[c, k]): -far}, -far, np.inf)
    cost = np.zeros(size)
    cost[done] = weights
    integral = np.zeros(size)
    integral[: place.size] = 1
    solved = milp(
        cost,
        constraints=LinearConstraint(
            np.array([row for row, _, _ in matrix]),
            [low for _, low, _ in matrix],
            [high for _, _, high in matrix],
        ),
        integrality=integral,
        bounds=None,
        options={"mip_rel_gap": 1e-9},
    )
    if not solved.success:
        raise WorkFailed(f"the exact programme failed: {solved.message}")
    return float(solved.fun)
