"""`python -m host_agent`: runs the agent of one host until its coordinator goes or SIGTERM comes."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys

from controller.model.errors import EchelonError
from host_agent import kernel
from host_agent.agent import Agent


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 when told to end, 1 when the work failed; errors are one line on stderr."""
    options = _parser().parse_args(arguments)
    try:
        if options.pin_sysctls:
            _pin_sysctls()
        if options.nice:
            os.nice(options.nice)
        asyncio.run(_run(Agent(options.host, options.coordinator)))
    except EchelonError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"host agent {options.host}: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(agent: Agent) -> None:
    """Ends quietly on SIGTERM and SIGINT."""
    work = asyncio.ensure_future(agent.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


def _pin_sysctls() -> None:
    """Refuses to touch the machine's own network namespace, where it can tell which that is."""
    ours = os.readlink("/proc/self/ns/net")
    with contextlib.suppress(PermissionError):  # some containers hide process 1
        if ours == os.readlink("/proc/1/ns/net"):
            raise OSError("--pin-sysctls works only in a network namespace of the host's own")
    kernel.pin_sysctls()


def _parser() -> argparse.ArgumentParser:
    pinned = ", ".join(f"{name}={value}" for name, value in kernel.PINNED_SYSCTLS.items())
    parser = argparse.ArgumentParser(prog="python -m host_agent", description=__doc__)
    parser.add_argument("--host", required=True, help="name of this host in the fabric: h1")
    parser.add_argument(
        "--coordinator", required=True, help="where the coordinator listens: unix:PATH or HOST:PORT"
    )
    parser.add_argument(
        "--pin-sysctls",
        action="store_true",
        help=f"in this host's own network namespace, set {pinned}",
    )
    parser.add_argument("--nice", type=int, default=0, help="scheduling priority, as of nice(1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
