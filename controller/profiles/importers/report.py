"""What an importer returns: the result, and what it understood, assumed and could not know."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.model import Fabric, Job, Workload
from controller.model.collectives import ALGORITHMS
from controller.model.errors import BadInput


@dataclass(slots=True)
class ImportReport:
    """Notes for the person who imports; each a short sentence."""

    format: str
    "Name of the format."
    understood: list[str] = field(default_factory=list)
    "What the file says."
    assumed: list[str] = field(default_factory=list)
    "What it does not say and was filled in, with the option that changes it."
    unknown: list[str] = field(default_factory=list)
    "What cannot be known from it."

    def lines(self) -> list[str]:
        """The report as lines of text."""
        found = [f"format: {self.format}"]
        for title in ("understood", "assumed", "unknown"):
            found += [f"{title}: {note}" for note in getattr(self, title)]
        return found


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import."""

    subject: Job | Workload | Fabric
    "What the file was."
    report: ImportReport
    "How it was read."
    fabric: str | None = None
    "The fabric the trace was recorded on, as `--topology` takes it; None when it names none."
    link_rate: float | None = None
    "Rate of that fabric's links in bit/s."


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may say where a format is silent. Every importer takes those that concern it."""

    name: str | None = None
    "Name of the job or workload; else the file's."
    algorithm: str = "ring"
    "How collectives are done."
    reference_rate: float | None = None
    "Link rate in bit/s that the sizes belong to."
    world_size: int | None = None
    "Number of ranks."
    element_bytes: float | None = None
    "Bytes of an element where a trace has counts without a type."
    sizes: tuple[float, ...] = ()
    "Bytes of each collective of an iteration in order, for recordings without sizes."
    time_unit: float | None = None
    "Seconds of the trace's unit of time."
    gather_size: str = "total"
    "What the size of an all-gather counts: the `total` result, or what each `rank` gives."
    iterations: int = 1
    "Iterations of the job profile."
    limit: int | None = None
    "At most so many jobs or coflows."

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise BadInput(f"algorithm {self.algorithm!r}: expected one of {', '.join(ALGORITHMS)}")
        if self.gather_size not in ("total", "rank"):
            raise BadInput(f"gather size {self.gather_size!r}: expected total or rank")
        for name in ("world_size", "element_bytes", "time_unit", "iterations", "limit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise BadInput(f"{name.replace('_', ' ')} {value!r}: expected a number > 0")
