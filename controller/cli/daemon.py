"""Commands for a fabric that runs: controller, status, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli.options import Json, console, print_json

Address = Annotated[str, typer.Option(help="Where the controller listens: unix:PATH or HOST:PORT.")]


def mount(app: typer.Typer) -> None:
    """Adds the commands to `echelon`."""
    app.command()(controller)
    app.command()(status)
    app.command()(doctor)


def controller(
    config: Annotated[Path, typer.Option(help="Configuration (YAML); see docs/controller.md.")],
) -> int:
    """Runs the controller until SIGTERM: drives the switches, decides for every flow."""
    from controller.coordinator.daemon import main

    return main(config)


def status(address: Address = "127.0.0.1:50550", json: Json = False) -> None:
    """What a running controller has attached and what is in force."""
    from controller.experiments.status import print_status, read_status

    found = read_status(address)
    if json:
        print_json(found)
    else:
        print_status(found, console)


def doctor(json: Json = False) -> int:
    """What this machine has and lacks, with the remedy."""
    from controller.experiments.doctor import diagnose, print_diagnosis

    found = diagnose()
    if json:
        print_json([finding.as_json() for finding in found])
    else:
        print_diagnosis(found, console)
    return int(any(finding.blocks for finding in found))
