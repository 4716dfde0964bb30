"""What a running controller says of itself."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.table import Table

from controller.coordinator.client import CoordinatorClient
from controller.model.units import format_rate, format_size


def read_status(address: str) -> dict[str, Any]:
    """Policy, hosts, jobs and flows of the controller at `address`. Raises WorkFailed."""
    client = CoordinatorClient(address)
    try:
        client.wait_ready(3.0)
        reply = client.status()
    finally:
        client.close()
    return {
        "policy": reply.policy,
        "scenario": reply.scenario or None,
        "jobs": list(reply.jobs),
        "hosts": [
            {"host": host.host, "role": host.role, "attached": host.attached}
            for host in reply.hosts
        ],
        "flows": [
            {
                "job": flow.id.job,
                "iteration": flow.id.iteration,
                "flow": flow.id.flow,
                "from": f"{flow.key.src_ip}:{flow.key.src_port}",
                "to": f"{flow.key.dst_ip}:{flow.key.dst_port}",
                "class": flow.class_,
                "pace_bps": flow.pace if math.isfinite(flow.pace) else None,
                "remaining_bytes": flow.remaining,
            }
            for flow in reply.flows
        ],
    }


def print_status(status: dict[str, Any], console: Console) -> None:
    """The same for people."""
    playing = f", playing {status['scenario']}" if status["scenario"] else ""
    console.print(
        f"policy {status['policy']}{playing}; jobs: {', '.join(status['jobs']) or 'none'}"
    )
    hosts = [
        f"{host['host']} ({host['role']}{'' if host['attached'] else ', gone'})"
        for host in status["hosts"]
    ]
    console.print(f"hosts: {', '.join(hosts) or 'none attached'}")
    table = Table("flow", "from", "to", "class", "pace", "remaining")
    for flow in status["flows"]:
        pace = flow["pace_bps"]
        table.add_row(
            f"{flow['job']} {flow['flow']} #{flow['iteration']}",
            flow["from"],
            flow["to"],
            str(flow["class"]),
            "unpaced" if pace is None else "held" if not pace else format_rate(pace),
            format_size(flow["remaining_bytes"]),
        )
    if status["flows"]:
        console.print(table)
