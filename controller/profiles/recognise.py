"""Which format a file is, by what is in it, not by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from controller.profiles.errors import ProfileError
from controller.profiles.importers import (
    aicb_csv,
    astra_network,
    capture,
    chakra,
    cluster_fabric,
    cluster_jobs,
    coflows,
    htsim_topology,
    kineto,
    layer_text,
    nccl_log,
    p4lang_topology,
)
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, Options


class Importer(Protocol):
    """A module that reads one format."""

    NAME: str

    def recognise(self, head: Head) -> bool:
        """Whether a file that begins so is of this format."""
        ...

    def load(self, paths: list[Path], options: Options) -> Imported:
        """What the files of one run hold. Raises `ProfileError`."""
        ...


IMPORTERS: tuple[Importer, ...] = (
    capture,
    kineto,
    coflows,
    layer_text,
    p4lang_topology,
    astra_network,
    htsim_topology,
    cluster_fabric,
    cluster_jobs,
    aicb_csv,
    nccl_log,
    chakra,
)
"All formats; the first that recognises a file reads it."

_OWN = re.compile(r"""["']?schema["']?\s*:\s*["']?echelon/(job|workload)/""")


def is_own(head: Head) -> bool:
    """Whether it is one of our own profiles or workloads."""
    return _OWN.search(head.text) is not None


def recognise(path: Path) -> Importer:
    """The importer for a file. Raises `ProfileError` naming the formats when there is none."""
    head = Head.of(path)
    if not head.raw.strip():
        raise ProfileError(str(path), "is empty")
    for importer in IMPORTERS:
        if importer.recognise(head):
            return importer
    raise ProfileError(str(path), _reason(head))


def _reason(head: Head) -> str:
    """Why nothing reads a file."""
    if head.is_json and head.has_key("nodes") and head.has_key("op_schema", "rf_id"):
        return (
            "is a PyTorch execution trace of one process: it has no durations and no sizes of "
            "collectives; import the profiler's recording (torch.profiler) instead"
        )
    if {"world_size", "tp", "pp"} <= set(head.columns()) or "\tWorld_size\t" in head.text:
        return (
            "is AICB's table of model configurations: it has no collectives; generate a workload "
            "of one of them with AICB and import that"
        )
    if head.is_json:
        return "is JSON of no known kind: expected an echelon profile, Kineto, Chakra or a topology"
    known = ", ".join(importer.NAME for importer in IMPORTERS)
    return f"is of no known format: expected an echelon profile or one of {known}"


def import_files(paths: list[Path], options: Options | None = None) -> Imported:
    """Import the files of one run, all of one format; a folder stands for the files in it.

    Raises `ProfileError`.
    """
    files = [file for path in paths for file in _files(path)]
    importers = [recognise(file) for file in files]
    for file, importer in zip(files, importers, strict=True):
        if importer is not importers[0]:
            raise ProfileError(
                str(file), f"is {importer.NAME}, but {files[0]} is {importers[0].NAME}"
            )
    return importers[0].load(files, options or Options())


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
    if not found:
        raise ProfileError(str(path), "is an empty folder: expected recordings")
    return found
