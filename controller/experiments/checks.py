"""Before a run: will the packets fit this machine, and will priorities act? Refuses rather than measure nonsense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from controller.experiments.calibration import Calibration, measure
from controller.experiments.doctor import diagnose
from controller.experiments.load import longest_path, peak_forwardings
from controller.model import Fabric
from controller.model.errors import WorkFailed
from controller.model.units import format_rate

if TYPE_CHECKING:
    from controller.experiments.run import Prediction

ENOUGH_SHARE = 0.9
"Of a full port's bytes, what class 7 must get against class 0."

ENOUGH_USE = 0.9
"Of a port's rate, what two connections must be able to fill."

LATEST_WAKE_UP_S = 0.009
"What a port's queue bridges: a switch that gets its core later than this drops frames."

ATTEMPTS = 3
"Another program may have held the machine for a moment."


@dataclass(frozen=True, slots=True)
class Preflight:
    """The figures on which a run was admitted; they go into summary.json."""

    calibration: Calibration
    "What was measured."
    offered_per_s: float
    "Frames a second that the switches must forward at the busiest moment, by the prediction."

    @property
    def load(self) -> float:
        """Offered over measured."""
        return self.offered_per_s / self.calibration.forwardings_per_s

    def as_json(self) -> dict[str, Any]:
        """Plain figures."""
        return {**asdict(self.calibration), "offered_per_s": self.offered_per_s, "load": self.load}

    def sentence(self) -> str:
        """For the person at the terminal."""
        found = self.calibration
        return (
            f"at most {self.offered_per_s:,.0f} frames/s to forward, this machine forwards "
            f"{found.forwardings_per_s:,.0f}; class 7 got {found.top_class_share:.1%} of a full "
            f"{format_rate(found.link_rate_bps)} port"
        )


def require_fit(predictions: Sequence[Prediction], fabric: Fabric, target: str) -> Preflight:
    """Admit what was predicted; the figures on which it was admitted.

    Takes about eight seconds. Raises WorkFailed with the first reason why the run would mean nothing.
    """
    plays = [(one.scenario.workload, one.played, fabric) for one in predictions]
    hops = [longest_path(*play) for play in plays]
    offered = [peak_forwardings(*play) for play in plays]
    return preflight(target, fabric.host_rate, max(1, *hops), max(offered))


def preflight(
    target: str,
    link_rate_bps: float,
    hops: int,
    offered_per_s: float,
    measure: Callable[[str, float, int], Calibration] = measure,
) -> Preflight:
    """Admit a run whose switches must forward `offered_per_s` frames a second (`load.peak_forwardings`).

    `hops`: switches in a row that its flows cross at most.

    Takes about eight seconds. Raises WorkFailed with the first reason why the run would mean nothing.
    """
    for finding in diagnose():
        if finding.blocks:
            raise WorkFailed(f"{finding.name}: {finding.says}; {finding.remedy}")
    reason = ""
    for _ in range(ATTEMPTS):
        found = Preflight(measure(target, link_rate_bps, hops), offered_per_s)
        reason = _why_not(found)
        if not reason:
            return found
    raise WorkFailed(reason)


def _why_not(found: Preflight) -> str:
    measured = found.calibration
    rate = format_rate(measured.link_rate_bps)
    if found.load > 1:
        slower = format_rate(measured.link_rate_bps / found.load)
        other = "--target embedded, which carries more, " if measured.target == "bmv2" else ""
        return (
            f"too many packets: the run asks for {found.offered_per_s:,.0f} frames/s at its busiest, this machine "
            f"forwards {measured.forwardings_per_s:,.0f} now: use --link-rate {slower} or less, {other}or stop other "
            "programs"
        )
    if measured.wake_up_s > LATEST_WAKE_UP_S:
        return (
            f"this machine is too busy: a process wakes up {measured.wake_up_s * 1e3:.0f} ms late (95th percentile), "
            f"a port's queue bridges {LATEST_WAKE_UP_S * 1e3:.0f} ms: stop other programs"
        )
    if measured.port_use < ENOUGH_USE:
        return (
            f"a {rate} port was used to {measured.port_use:.0%} only: this machine is too busy to keep the link rate; "
            "stop other programs or use a lower --link-rate"
        )
    if measured.top_class_share < ENOUGH_SHARE:
        return (
            f"priorities do not act: class 7 got {measured.top_class_share:.0%} of a full {rate} {measured.target} port "
            "while class 0 wanted it too; `echelon doctor` says what is missing"
        )
    return ""
