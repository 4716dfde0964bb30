"""A network of its own for the benchmark, and the C programs that load it.

The benchmark moves itself into a new network namespace, so all it makes is gone when it ends, however it ends.

    gen0 -- sw1 [switch] sw2 -- out0
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CLONE_NEWNET = 0x40000000
OFFLOADS = ("tx", "rx", "tso", "gso", "gro", "sg")


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def own_namespace() -> None:
    """Move this process (and all it starts) into a new network namespace. Raises OSError without root."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWNET): the benchmark needs root")
    run("ip", "link", "set", "lo", "up")


def add_veth(name: str, peer: str) -> None:
    """A pair without offloads (the frames are read as they are) and without the kernel's own chatter."""
    run("ip", "link", "add", name, "type", "veth", "peer", "name", peer)
    for end in (name, peer):
        quiet(end)


def quiet(interface: str) -> None:
    # As an argument: /proc/sys is per namespace, /sys is not.
    Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
    options = [x for offload in OFFLOADS for x in (offload, "off")]
    run("ethtool", "-K", interface, *options)
    run("ip", "link", "set", interface, "up")


def delete_veth(name: str) -> None:
    run("ip", "link", "delete", name)


def received(interface: str) -> int:
    """Frames that an interface of this namespace has received."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            return int(numbers.split()[1])
    raise KeyError(interface)


class Host:
    """A namespace with one interface, for the ends of TCP connections."""

    def __init__(self, interface: str, address: str, mac: str) -> None:
        self.address, self.mac = address, mac
        self._holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        while os.readlink(f"/proc/{self._holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            pass  # until unshare has run
        run("ip", "link", "set", interface, "netns", str(self._holder.pid))
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "set", interface, "address", mac, "up")
        self.run("ip", "address", "add", f"{address}/24", "dev", interface)
        options = [x for offload in OFFLOADS for x in (offload, "off")]
        self.run("ethtool", "-K", interface, *options)
        self.interface = interface

    def knows(self, other: Host) -> None:
        self.run(
            "ip", "neigh", "replace", other.address, "lladdr", other.mac, "dev", self.interface
        )

    def command(self, *command: str) -> list[str]:
        return ["nsenter", "-t", str(self._holder.pid), "-n", *command]

    def run(self, *command: str) -> str:
        return run(*self.command(*command))

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


def compiled(name: str, directory: str | None = None) -> str:
    """The path of a C program of this folder, compiled."""
    directory = directory or tempfile.gettempdir()
    path = Path(directory) / f"echelon-bench-{name}"
    source = HERE / f"{name}.c"
    if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
        run("cc", "-O2", "-D_GNU_SOURCE", "-o", str(path), str(source))
    return str(path)


def generate(
    interface: str, octets: int, flows: int, seconds: float, rate: float = 0
) -> tuple[int, float]:
    """Send; (frames sent, seconds it took). `rate` in frames/s, 0 is flat out."""
    sent, took = run(
        # Above what it measures, so that what it sends is what was asked.
        "chrt", "-r", "2", "taskset", "-c", "1" if (os.cpu_count() or 1) > 1 else "0",
        compiled("generate"), interface, "02:00:00:00:00:02",
        *map(str, (octets, flows, seconds, rate)),
    ).split()  # fmt: skip
    return int(sent), float(took)
