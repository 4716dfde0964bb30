"""The controller daemon: switches, coordinator and gRPC server in one process, until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc

from controller.api.coordinator_pb2_grpc import add_CoordinatorServicer_to_server
from controller.coordinator.config import Config, load_config
from controller.coordinator.coordinator import Coordinator
from controller.coordinator.enforcer import FlowEnforcer, NullEnforcer
from controller.coordinator.service import Service
from controller.model.errors import EchelonError, WorkFailed
from controller.model.network import Network
from controller.model.rule import FlowKey
from controller.profiles.network_file import load_network

Watch = Callable[[Coordinator], None]
"Makes a coordinator hear of links that fail or recover."

MAX_MESSAGE = 256 * 1024 * 1024
"""Bytes: plans and results of large workloads."""


def main(config_path: Path) -> int:
    """Runs the daemon: exit code 0 after SIGTERM, 2 for bad input, 1 when the work failed."""
    try:
        config = load_config(config_path)
        network = load_network(Path(config.network))
        asyncio.run(run(config, network))
    except EchelonError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    return 0


async def run(config: Config, network: Network) -> None:
    """Serves until SIGTERM or SIGINT, also while it is still starting. Raises EchelonError."""
    work = asyncio.ensure_future(_serve(config, network))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    with suppress(asyncio.CancelledError):
        await work


async def _serve(config: Config, network: Network) -> None:
    async with _enforcer(config, network) as (enforcer, watch):
        coordinator = Coordinator(network, enforcer, config.policy, config.debounce_s)
        watch(coordinator)
        async with serving(coordinator, config.listen, config.grant_timeout_s):
            print(f"controller: listening on {config.listen}, policy {config.policy}", flush=True)
            await asyncio.Event().wait()


@asynccontextmanager
async def serving(
    coordinator: Coordinator, listen: str, grant_timeout: float
) -> AsyncIterator[None]:
    """The coordinator's gRPC server on `listen`. Raises WorkFailed when the address is taken."""
    _refuse_taken(listen)
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE),
            ("grpc.max_send_message_length", MAX_MESSAGE),
            ("grpc.so_reuseport", 0),
        ]
    )
    add_CoordinatorServicer_to_server(Service(coordinator, grant_timeout), server)
    try:
        server.add_insecure_port(listen)
        await server.start()
    except RuntimeError as error:
        raise WorkFailed(f"controller: cannot listen on {listen}: {error}") from None
    try:
        yield
    finally:
        await coordinator.stop()
        await server.stop(grace=0.5)
        if listen.startswith("unix:"):
            Path(listen.removeprefix("unix:")).unlink(missing_ok=True)


@asynccontextmanager
async def _enforcer(config: Config, network: Network) -> AsyncIterator[tuple[FlowEnforcer, Watch]]:
    """What enforces, and how to let it tell a coordinator of links that fail."""
    if not config.switches:
        yield NullEnforcer(), lambda coordinator: None
        return
    # Imported here: without switches, finsy need not be installed.
    from controller.switches.driver import FabricDriver

    watchers: list[Coordinator] = []

    def links_changed(down: frozenset[int], unpinned: list[FlowKey]) -> None:
        for coordinator in watchers:
            coordinator.links_changed(network.fabric().without(down))

    driver = FabricDriver(network, on_links=links_changed)
    await driver.start()
    try:
        yield driver, watchers.append
    finally:
        await driver.stop()


def _refuse_taken(listen: str) -> None:
    """gRPC would take a socket file from a living server without a word."""
    if not listen.startswith("unix:"):
        return
    path = Path(listen.removeprefix("unix:"))
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)  # left behind by one that was killed
            return
    raise WorkFailed(f"controller: {listen} is in use by another controller; stop it first")
