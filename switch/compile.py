"""C source -> a shared library in the user's cache, compiled once for each source, runtime and compiler."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

RUNTIME = Path(__file__).parent / "runtime"
WARNINGS = ("-Wall", "-Wextra", "-Wno-unused")
FLAGS = (
    "-std=gnu11",
    "-O2",
    "-g1",
    "-fPIC",
    "-shared",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-D_GNU_SOURCE",
    "-pthread",
)
COMPILE_SECONDS = 300
SANITIZE = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
    "-g",
    "-O1",
)


class NoCompiler(RuntimeError):
    """There is no C compiler: the message says what to install."""


class CompilerError(RuntimeError):
    """The C compiler failed: the message has its output."""


def cache_directory() -> Path:
    """Where libraries are kept: $ECHELON_SWITCH_CACHE, else the user's cache directory (made if missing, 0700)."""
    chosen = os.environ.get("ECHELON_SWITCH_CACHE")
    base = (
        Path(chosen)
        if chosen
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "echelon-switch"
    )
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    return base


def compiler() -> list[str]:
    """The command of the C compiler: $CC, else cc, gcc or clang. Raises NoCompiler if there is none."""
    chosen = os.environ.get("CC")
    if chosen:
        return shlex.split(chosen)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise NoCompiler(
        "the embedded switch needs a C compiler (cc, gcc or clang) on PATH; on Debian: apt install gcc"
    )


def runtime_library(sanitize: bool = False) -> Path:
    """The runtime, compiled if it is not in the cache."""
    return _build("runtime", "", sorted(RUNTIME.glob("*.c")), sanitize)


def program_library(source: str, name: str, sanitize: bool = False) -> Path:
    """A generated program, compiled if it is not in the cache."""
    return _build(name, source, [], sanitize)


@lru_cache(maxsize=1)
def _runtime_digest() -> bytes:
    digest = hashlib.sha256()
    for path in sorted(RUNTIME.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _build(name: str, source: str, files: list[Path], sanitize: bool) -> Path:
    extra = shlex.split(os.environ.get("ECHELON_SWITCH_CFLAGS", ""))
    flags = [*FLAGS, *WARNINGS, *(SANITIZE if sanitize else ()), *extra]
    command = compiler()
    key = hashlib.sha256(
        b"\0".join([_runtime_digest(), source.encode(), " ".join([*command, *flags]).encode()])
    )
    target = cache_directory() / f"{name}-{key.hexdigest()[:24]}.so"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        if source:
            files = [Path(directory) / f"{name}.c"]
            files[0].write_text(source)
        output = Path(directory) / target.name
        try:
            result = subprocess.run(
                [*command, *flags, f"-I{RUNTIME}", "-o", str(output), *map(str, files)],
                capture_output=True,
                text=True,
                check=False,
                timeout=COMPILE_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompilerError(f"{' '.join(command)} on {name}: {error}") from error
        if result.returncode:
            raise CompilerError(f"{' '.join(command)} failed on {name}:\n{result.stderr[:8000]}")
        output.rename(target)  # atomic: two switches that start together both see a whole file
    return target
