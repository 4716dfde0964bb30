"""Any file a command accepts -> a workload: our own formats, and every trace an importer knows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from controller.model import Fabric, Workload
from controller.profiles.errors import ProfileError
from controller.profiles.files import as_workload, read
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Options
from controller.profiles.network_file import load_network
from controller.profiles.recognise import import_files, is_own


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

    @property
    def is_trace(self) -> bool:
        """Whether an importer read it, not our own format."""
        return bool(self.notes)


def load(path: Path, options: Options | None = None) -> Loaded:
    """Reads a workload, a job profile or a trace (a folder: one file a rank). Raises BadInput."""
    if not path.is_dir() and is_own(Head.of(path)):
        return Loaded(as_workload(read(path)))
    imported = import_files([path], options)
    if isinstance(imported.subject, Fabric):
        raise ProfileError(str(path), "is a fabric: expected a job or a workload")
    return Loaded(
        as_workload(imported.subject),
        imported.fabric,
        imported.link_rate,
        tuple(imported.report.lines()),
    )


def load_fabric(path: Path, link_rate: float | None) -> Fabric:
    """Reads a fabric file; `link_rate` (bit/s) is used where the file states none.

    Raises BadInput when it is of no known format.
    """
    if not path.is_dir() and re.search(
        r"""schema["']?\s*:\s*["']?echelon/network/""", Head.of(path).text
    ):
        return load_network(path).fabric()
    imported = import_files([path], Options(reference_rate=link_rate))
    if not isinstance(imported.subject, Fabric):
        raise ProfileError(str(path), f"is {imported.report.format}: expected a fabric")
    return imported.subject
