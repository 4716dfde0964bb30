"""What was pinned during a run, for `summary.json` and the report."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from controller.coordinator.client import LiveResult
from controller.experiments.checks import Preflight
from topologies.shaping import (
    FRAME_BYTES,
    PORT_HEADROOM,
    PORT_QUEUE_FRAMES,
    UPLINK_HEADROOM,
    host_leaf,
)


def settings_of(target: str, result: LiveResult, admitted: Preflight) -> dict[str, Any]:
    """Alike under every policy: congestion control, sysctls, queues; and the versions."""
    used = sorted({flow.congestion_control for flow in result.raw.flows if flow.congestion_control})
    return {
        "congestion_control": ", ".join(used),
        **{f"sysctl {name}": value for name, value in sorted(result.raw.kernel.items())},
        "port queue": f"{PORT_QUEUE_FRAMES} frames of {FRAME_BYTES} bytes a class",
        "switch port": f"{PORT_HEADROOM:g} of the link's rate",
        "host uplink": f"{UPLINK_HEADROOM:g} of the link's rate",
        "host queue": host_leaf(),
        "target": target,
        "before the run": admitted.sentence(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "echelon": version("echelon"),
    }
