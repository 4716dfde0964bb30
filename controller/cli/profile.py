"""`echelon profile`: import, show and check job profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli.options import console, print_json
from controller.model.errors import BadInput
from controller.model.units import format_rate, parse_rate, parse_size, parse_time

app = typer.Typer(no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.callback()
def profile() -> None:
    """Import, show and check job profiles."""


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(help="Recordings of one run (one a rank), a folder of them, or a trace."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Profile or workload to write: .yaml or .json."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job or workload.")] = None,
    algorithm: Annotated[str, typer.Option(help="How collectives are done.")] = "ring",
    reference_rate: Annotated[
        str | None, typer.Option(help="Link rate of the recording, as in 100gbit.")
    ] = None,
    world_size: Annotated[int | None, typer.Option(help="Number of ranks.")] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Bytes of each collective in order, as in 8MB,4MB.")
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(help="The trace's unit of time, as in 1ns.")
    ] = None,
    gather_size: Annotated[
        str, typer.Option(help="What an all-gather's size counts: total or rank.")
    ] = "total",
    iterations: Annotated[int, typer.Option(help="Iterations of the profile.")] = 1,
    limit: Annotated[int | None, typer.Option(help="At most so many jobs or coflows.")] = None,
    json_: Json = False,
) -> None:
    """Turn a recording or a trace into a job profile or a workload, and say how it was read."""
    from controller.model import Fabric
    from controller.profiles.files import write
    from controller.profiles.importers.report import Options
    from controller.profiles.recognise import import_files

    options = Options(
        name=name,
        algorithm=algorithm,
        reference_rate=None if reference_rate is None else parse_rate(reference_rate),
        world_size=world_size,
        sizes=tuple(parse_size(size) for size in sizes.split(",")) if sizes else (),
        time_unit=None if time_unit is None else parse_time(time_unit),
        gather_size=gather_size,
        iterations=iterations,
        limit=limit,
    )
    imported = import_files(files, options)
    if out is not None:
        if isinstance(imported.subject, Fabric):
            raise BadInput(f"{files[0]} is a fabric: use it with --topology {files[0]}")
        write(imported.subject, out)
    if json_:
        report = imported.report
        print_json(
            {
                "format": report.format,
                "understood": report.understood,
                "assumed": report.assumed,
                "unknown": report.unknown,
                "out": None if out is None else str(out),
            }
        )
        return
    for line in imported.report.lines():
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if out is not None:
        console.print(f"written: {out}", highlight=False, markup=False)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A job profile, a workload, or a trace.")],
    job: Annotated[str | None, typer.Option(help="Which job; the first unless said.")] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Picture to write: .html or .png.")
    ] = None,
    link_rate: Annotated[
        str | None,
        typer.Option(help="Rate of the links: sizes scale to it; the profile's own unless said."),
    ] = None,
    json_: Json = False,
) -> None:
    """Draw one iteration of a job: tasks and flows per worker, EchelonFlows and arrangements."""
    from controller.model import PlacedJob, Workload
    from controller.profiles import draw
    from controller.profiles.load import load
    from controller.profiles.scaling import scale

    loaded = load(file)
    jobs = {placed.job.name: placed.job for placed in loaded.workload.jobs}
    if job is not None and job not in jobs:
        raise BadInput(f"{file}: no job {job!r}: expected one of {', '.join(list(jobs)[:20])}")
    chosen = jobs[job] if job is not None else next(iter(jobs.values()))
    rate = parse_rate(link_rate) if link_rate else chosen.reference_rate or loaded.link_rate or 1e9
    notes: list[str] = []
    if link_rate and chosen.reference_rate and chosen.reference_rate != rate:
        scaled = scale(Workload((PlacedJob(chosen),)), rate)
        chosen, notes = scaled.workload.jobs[0].job, scaled.lines()
    if json_:
        bars = draw.timeline(chosen, rate)
        print_json(
            [{"row": b.row, "kind": b.kind, "label": b.label, "start": b.start, "end": b.end}
             for b in bars]
        )  # fmt: skip
        return
    if out is None:
        text = draw.to_text(chosen, rate, max(40, console.width - 12))
        text = "\n".join([*notes, text])
        console.print(text, highlight=False, markup=False, soft_wrap=True)
        return
    if out.suffix not in (".html", ".png"):
        raise BadInput(f"{out}: expected a name that ends in .html or .png")
    if out.suffix == ".png":
        out.write_bytes(draw.to_png(chosen, rate))
    else:
        out.write_text(draw.to_html(chosen, rate), encoding="utf-8")
    console.print(
        f"{out}: {chosen.name} on links of {format_rate(rate)}", highlight=False, markup=False
    )


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A job profile, a workload, or a trace.")],
    json_: Json = False,
) -> None:
    """Whether a file can be used; says where it is wrong."""
    from controller.model.check import require_valid
    from controller.profiles.load import load

    loaded = load(file)
    require_valid(loaded.workload)
    jobs = [placed.job for placed in loaded.workload.jobs]
    counts = {
        "jobs": len(jobs),
        "workers": sum(len(job.workers) for job in jobs),
        "tasks": sum(len(job.tasks) for job in jobs),
        "flows": sum(len(job.flows) for job in jobs),
        "collectives": sum(len(job.collectives) for job in jobs),
    }
    if json_:
        print_json({"file": str(file), "valid": True, **counts})
        return
    shown = ", ".join(f"{count} {what}" for what, count in counts.items())
    console.print(f"{file}: {shown}: fine", highlight=False, markup=False, soft_wrap=True)
