"""Which format a file is, by what is in it, not by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from controller.profiles.errors import ProfileError
from controller.profiles.importers import (
    astra_network,
    chakra,
    cluster_fabric,
    coflows,
    htsim_topology,
    kineto,
    layer_text,
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
    kineto,
    coflows,
    layer_text,
    p4lang_topology,
    astra_network,
    htsim_topology,
    cluster_fabric,
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
    known = ", ".join(importer.NAME for importer in IMPORTERS)
    raise ProfileError(str(path), f"is of no known format: expected an echelon profile or {known}")


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
