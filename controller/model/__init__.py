"""Plain data that every part shares: jobs, EchelonFlows, fabrics. No I/O, no clock."""

from controller.model.fabric import DisconnectedFabric, Fabric, Link, Path
from controller.model.job import (
    Collective,
    EchelonFlow,
    Flow,
    Job,
    PlacedJob,
    Task,
    Workload,
)

__all__ = [
    "Collective",
    "DisconnectedFabric",
    "EchelonFlow",
    "Fabric",
    "Flow",
    "Job",
    "Link",
    "Path",
    "PlacedJob",
    "Task",
    "Workload",
]
