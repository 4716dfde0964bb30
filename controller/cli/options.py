"""Options that several commands share, under one name and one meaning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

InputFile = Annotated[
    Path, typer.Argument(help="A workload, a job profile, or a trace of a known format.")
]
Policies = Annotated[
    list[str] | None, typer.Option("--policy", help="Policy to use; repeat to compare.")
]
Topology = Annotated[
    str | None,
    typer.Option(
        help="big-switch:HOSTS, leaf-spine:LEAVESxSPINESxHOSTS_PER_LEAF, fat-tree:K, or a file."
    ),
]
LinkRate = Annotated[str | None, typer.Option(help="Rate of the links, as in 40mbit or 100gbit.")]
Model = Annotated[
    str,
    typer.Option(help="ideal: the policy's own rates; enforced: 8 classes and host pacing."),
]
Placement = Annotated[
    str,
    typer.Option(
        help="packed, spread or random, for workers without a host; or a file: job -> worker -> host."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything that is drawn by chance.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the results.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

console = Console()


def print_json(data: Any) -> None:
    """JSON on stdout, plain, for programs."""
    print(json.dumps(data, indent=1))
