"""The run file: everything a run has made on this machine, so that it can be removed, also after `kill -9`.

One directory per instance, `/run/echelon/NAME`. An instance is a name that also begins its interfaces' names;
`ECHELON_INSTANCE` sets it, so that a test never meets a run. Only the standard library is used: `make clean` must
work without the environment.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from controller.model.errors import WorkFailed

MARK = "ECHELON_RUN"
"Environment variable that every process of a run inherits: its value is the run's id."

DEFAULT_INSTANCE = "ech"

_TERM_SECONDS = 3.0


@dataclass
class _Made:
    """What `run.json` holds."""

    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    owner: int = field(default_factory=os.getpid)
    processes: list[tuple[int, int, str]] = field(default_factory=list)
    "(pid, start time in clock ticks since boot, what it is); pid and start time name a process."
    interfaces: list[str] = field(default_factory=list)
    "Interfaces in the machine's own namespace; listed before they are made."
    sysctls: dict[str, tuple[str, str]] = field(default_factory=dict)
    "Name -> (value found, value set)."


def instance() -> str:
    """Name of the instance: `ech` unless ECHELON_INSTANCE says otherwise."""
    return os.environ.get("ECHELON_INSTANCE", DEFAULT_INSTANCE)


def state_directory(name: str | None = None) -> Path:
    """Where an instance keeps its run file, logs and sockets."""
    root = Path("/run") if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR", "/tmp"))
    return root / "echelon" / (name or instance())


class RunFile:
    """The run file of one instance, locked while its owner lives."""

    def __init__(self, name: str | None = None) -> None:
        """Lock the instance, remove what a killed run left, and begin an empty list.

        Raises WorkFailed when another run of this instance is alive.
        """
        self.instance = name or instance()
        self.directory = state_directory(self.instance)
        self._lock = _lock(self.directory)
        _remove(self.directory)
        self._made = _Made()
        os.environ[MARK] = self._made.run
        self._write()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._lock < 0

    def file(self, name: str) -> Path:
        """Path of a file that goes when the run goes."""
        return self.directory / name

    def add_process(self, pid: int, what: str) -> None:
        """List a process that was started."""
        self._made.processes.append((pid, _start_time(pid) or 0, what))
        self._write()

    def add_interface(self, name: str) -> None:
        """List an interface that is about to be made. Raises WorkFailed if somebody else's has the name."""
        if Path("/sys/class/net", name).exists():
            raise WorkFailed(
                f"interface {name} exists and is not ours: set ECHELON_INSTANCE to another name"
            )
        self._made.interfaces.append(name)
        self._write()

    def set_sysctl(self, name: str, value: str) -> None:
        """Change a setting of the whole machine until `restore_sysctls` or `close`."""
        path = _sysctl_path(name)
        found = self._made.sysctls.get(name, (path.read_text().strip(),))[0]
        self._made.sysctls[name] = (found, value)
        self._write()
        path.write_text(value)

    def restore_sysctls(self) -> None:
        """Put all settings back."""
        for name, values in self._made.sysctls.items():
            _restore(name, *values)
        self._made.sysctls.clear()
        self._write()

    def close(self) -> None:
        """Remove whatever is still listed, then the run file itself (idempotent)."""
        if self.closed:
            return
        _remove(self.directory)
        os.environ.pop(MARK, None)
        _unlock(self.directory, self._lock)
        self._lock = -1

    def _write(self) -> None:
        draft = self.directory / "run.json.new"
        draft.write_text(json.dumps(asdict(self._made), indent=1))
        draft.rename(self.directory / "run.json")


def clean(name: str | None = None) -> list[str]:
    """Remove what a run of an instance left behind; says what it removed. Idempotent.

    Raises WorkFailed while that run is alive.
    """
    directory = state_directory(name)
    if not directory.exists():
        return []
    lock = _lock(directory)
    removed = _remove(directory)
    _unlock(directory, lock)
    return removed


def owner_of(directory: Path) -> int | None:
    """Process id of the run that holds an instance, as its run file says."""
    made = _read(directory)
    return made.owner if made else None


def _lock(directory: Path) -> int:
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "lock"
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise WorkFailed(
                f"another run is active (process {owner_of(directory)}, {directory}): wait for it or stop it"
            ) from None
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        os.close(descriptor)  # a run that ended just now took the file away


def _unlock(directory: Path, lock: int) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    with suppress(OSError):
        directory.parent.rmdir()
    os.close(lock)


def _read(directory: Path) -> _Made | None:
    try:
        fields = json.loads((directory / "run.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    fields["processes"] = [tuple(process) for process in fields["processes"]]
    return _Made(**fields)


def _remove(directory: Path) -> list[str]:
    """Undo all that the run file lists, and delete the instance's files except the lock."""
    removed = []
    made = _read(directory)
    if made is not None:
        removed += _kill(made)
        for name in made.interfaces:
            if Path("/sys/class/net", name).exists():
                subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)
                removed.append(f"interface {name}")
        for name, (found, ours) in made.sysctls.items():
            _restore(name, found, ours)
            removed.append(f"sysctl {name}")
    for path in directory.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return removed


def _kill(made: _Made) -> list[str]:
    """End the run's processes: those listed, and those that carry its mark."""
    victims = {pid: what for pid, start, what in made.processes if _start_time(pid) == start}
    mark = f"{MARK}={made.run}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                victims.setdefault(int(path.parent.name), "process")
    victims.pop(os.getpid(), None)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in filter(_alive, victims):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + _TERM_SECONDS
        while any(_alive(pid) for pid in victims) and time.monotonic() < deadline:
            time.sleep(0.02)
    return [f"{what} {pid}" for pid, what in victims.items()]


def _start_time(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat; None when there is no such process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _restore(name: str, found: str, ours: str) -> None:
    path = _sysctl_path(name)
    if path.read_text().strip() == ours:
        path.write_text(found)


def _sysctl_path(name: str) -> Path:
    return Path("/proc/sys", name.replace(".", "/"))


_current: RunFile | None = None


def current() -> RunFile:
    """The run file of this process: opened at first use, closed when the process ends."""
    global _current
    if _current is None or _current.closed:
        _current = RunFile()
        atexit.register(_current.close)
    return _current
