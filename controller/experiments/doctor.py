"""What this machine has and lacks for a live run, with the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from topologies.nodes import bmv2_help, bmv2_usable
from topologies.runfile import owner_of, state_directory
from topologies.shaping import available_qdiscs

TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "ping": "iputils-ping",
    "mnexec": "mininet",
}
"Command -> the Debian package that has it."

NEEDED_QDISCS = {
    "htb": "link rates and priorities of host uplinks and BMv2 ports",
    "u32": "classes by DSCP",
}

USEFUL_QDISCS = {
    "fq": "fair queueing in hosts; without it TCP paces itself, and UDP cannot be paced",
    "netem": "delays on links; runs have none",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    name: str
    "What."
    ok: bool
    "Whether it is as a live run likes it."
    says: str
    "What was found."
    remedy: str = ""
    "What to do about it, where something is to be done."
    blocks: bool = False
    "Whether no live run is possible without."

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def diagnose() -> list[Finding]:
    """Look at everything; takes a second or so."""
    return [
        _root(),
        *_tools(),
        _mininet(),
        _compiler(),
        *_qdiscs(),
        _congestion_control(),
        _ipv6(),
        _cores(),
        _priorities(),
        _p4c(),
        _other_run(),
    ]


def print_diagnosis(found: list[Finding], console: Console) -> None:
    """A line each; what is missing with its remedy."""
    for finding in found:
        mark = "[green]ok[/]" if finding.ok else "[red]no[/]" if finding.blocks else "[yellow]--[/]"
        console.print(f"{mark}  [bold]{finding.name}[/]: {finding.says}", highlight=False)
        if finding.remedy:
            console.print(f"      {finding.remedy}", highlight=False)


def _finding(name: str, ok: bool, says: str, otherwise: str, remedy: str, blocks: bool) -> Finding:
    return Finding(name, True, says) if ok else Finding(name, False, otherwise, remedy, blocks)


def _root() -> Finding:
    return _finding(
        "root", os.geteuid() == 0, "yes",
        "no: namespaces and interfaces cannot be made", "run with sudo", True,
    )  # fmt: skip


def _tools() -> Iterator[Finding]:
    for tool, package in TOOLS.items():
        path = shutil.which(tool)
        yield _finding(
            tool, path is not None, str(path), "not on PATH", f"apt-get install {package}", True
        )


def _mininet() -> Finding:
    return _finding(
        "Mininet", find_spec("mininet") is not None, "this Python can import it",
        "this Python cannot import it",
        "make setup (an environment from /usr/bin/python3 with --system-site-packages)", True,
    )  # fmt: skip


def _compiler() -> Finding:
    """The embedded switch compiles the program that it runs."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    works = False
    if compiler is not None:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "try.c")
            source.write_text(
                "#include <stdint.h>\n#include <string.h>\nint main(void) { return 0; }\n"
            )
            command = [compiler, "-shared", "-fPIC", "-o", str(Path(folder, "try.so")), str(source)]
            works = subprocess.run(command, capture_output=True, check=False).returncode == 0
    return _finding(
        "C compiler", works, f"{compiler} works", "none that works", "apt-get install gcc libc6-dev",
        blocks=not bmv2_usable(),
    )  # fmt: skip


def _qdiscs() -> Iterator[Finding]:
    found = available_qdiscs() if os.geteuid() == 0 else frozenset[str]()
    untried = "" if os.geteuid() == 0 else " (not root: not tried)"
    for name, purpose in {**NEEDED_QDISCS, **USEFUL_QDISCS}.items():
        needed = name in NEEDED_QDISCS
        kind = "cls" if name == "u32" else "sch"
        yield _finding(
            f"tc {name}", name in found, purpose, f"not in this kernel{untried}: {purpose}",
            f"modprobe {kind}_{name}, or a kernel that has it" if needed else "", needed,
        )  # fmt: skip


def _congestion_control() -> Finding:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    return _finding(
        "cubic", "cubic" in available, f"available (the default, {default}, is not used: each socket is set)",
        f"not among {' '.join(available)}", "modprobe tcp_cubic", True,
    )  # fmt: skip


def _ipv6() -> Finding:
    path = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    on = path.exists() and path.read_text().strip() == "0"
    return _finding(
        "IPv6",
        on,
        "on",
        "off: hosts get no IPv6 addresses",
        "sysctl -w net.ipv6.conf.default.disable_ipv6=0",
        True,
    )


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0))
    busy = os.getloadavg()[0]
    return _finding(
        "cores", cores >= 2 and busy < cores, f"{cores}, load {busy:.1f}",
        f"{cores}, load {busy:.1f}: figures will be noisy", "stop other programs", False,
    )  # fmt: skip


def _priorities() -> Finding:
    """Which target a run takes, and where its priority queues stand."""
    if bmv2_usable():
        says = "simple_switch_grpc is on PATH with --priority-queues; tc HTB at its ports holds the queues that decide"
    elif bmv2_help():
        says = "simple_switch_grpc is on PATH without --priority-queues, so the embedded switch is used"
    else:
        says = "simple_switch_grpc is not on PATH, so the embedded switch is used; its ports have 8 queues each"
    return Finding("P4 target", True, says)


def _p4c() -> Finding:
    path = shutil.which("p4c")
    return _finding(
        "p4c", path is not None, str(path), "not on PATH: only a change of p4/ needs it", "", False
    )


def _other_run() -> Finding:
    directory = state_directory()
    owner = owner_of(directory)
    if owner is None:
        return Finding("other runs", True, "none")
    if Path(f"/proc/{owner}").exists():
        return Finding(
            "other runs",
            False,
            f"process {owner} has a network up ({directory})",
            "wait for it or stop it",
            True,
        )
    return Finding(
        "other runs",
        False,
        f"one was killed and left {directory}",
        "make clean (or just run: it cleans)",
    )
