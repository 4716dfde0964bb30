"""How well the model foretold a live run: the time of every flow, measured beside predicted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from controller.experiments.summary import Fidelity, FlowDifference
from controller.model.record import FlowRecord, Played

LEAST_S = 0.01
"A share of a shorter time says nothing: it is a few packets and the decision."


@dataclass(frozen=True, slots=True)
class Pair:
    """One flow of one iteration, twice. Its time runs from when it was ready until it had arrived."""

    measured: FlowRecord
    "As it was live."
    predicted: FlowRecord
    "As the fluid model had it."

    @property
    def measured_s(self) -> float:
        """Seconds from ready to arrived, live."""
        return self.measured.finish - self.measured.ready

    @property
    def predicted_s(self) -> float:
        """The same from the model; above 0."""
        return self.predicted.finish - self.predicted.ready

    @property
    def difference_s(self) -> float:
        """Measured minus predicted, in seconds."""
        return self.measured_s - self.predicted_s

    @property
    def share(self) -> float:
        """The difference as a share of the prediction."""
        return self.difference_s / self.predicted_s


def pairs(measured: Played, predicted: Played) -> list[Pair]:
    """The flows that both have and that take time (not those inside a host), worst first."""
    model = {(flow.job, flow.iteration, flow.flow): flow for flow in predicted.flows}
    found = []
    for flow in measured.flows:
        other = model.get((flow.job, flow.iteration, flow.flow))
        if other is not None and other.finish > other.ready:
            found.append(Pair(flow, other))
    return sorted(found, key=lambda pair: abs(pair.difference_s), reverse=True)


def fidelity(found: Sequence[Pair]) -> Fidelity | None:
    """The figures of some `pairs`, worst first; None where there are none.

    The shares are those of flows that the model gives `LEAST_S` or more; all may be the worst.
    """
    if not found:
        return None
    shares = sorted(abs(pair.share) for pair in found if pair.predicted_s >= LEAST_S)
    worst = found[0]
    return Fidelity(
        flows=len(found),
        timed_flows=len(shares),
        median_difference=median(shares) if shares else None,
        p95_difference=shares[math.ceil(0.95 * len(shares)) - 1] if shares else None,
        worst=FlowDifference(
            job=worst.measured.job,
            iteration=worst.measured.iteration,
            flow=worst.measured.flow,
            src=worst.measured.src,
            dst=worst.measured.dst,
            measured_s=worst.measured_s,
            predicted_s=worst.predicted_s,
        ),
    )
