"""Fixtures: a server in this process, on a data plane that only remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from switch.server.device import Device
from switch.server.errors import Code
from switch.server.events import EventLoop
from switch.server.service import serve
from tests.switch.server.controller import DEVICE_ID, Controller
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import JSON, PROGRAM, config


@dataclass(frozen=True)
class Server:
    """A server in this process."""

    address: str


@pytest.fixture
def dataplane() -> Iterator[FakeDataplane]:
    fake = FakeDataplane({JSON: PROGRAM})
    yield fake
    fake.close()


@pytest.fixture
def server(dataplane: FakeDataplane) -> Iterator[Server]:
    """A running server without a pipeline."""
    device = Device(
        DEVICE_ID, dataplane, dataplane.cpu_port, lambda: FakeDataplane(dataplane.programs)
    )
    events = EventLoop(device, dataplane.events_fd)
    grpc_server, port = serve(device, "127.0.0.1:0", None)
    events.start()
    yield Server(f"127.0.0.1:{port}")
    grpc_server.stop(0).wait()
    events.stop()
    device.close()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., Controller]]:
    """Makes controllers: each has its own channel and stream."""
    with ExitStack() as stack:

        def make(election_id: int | None = 1, **options: object) -> Controller:
            controller = stack.enter_context(Controller(server.address, DEVICE_ID))
            controller.arbitrate(election_id, **options)
            return controller

        yield make


@pytest.fixture
def primary(connect: Callable[..., Controller]) -> Controller:
    """The primary of the default role, its pipeline committed."""
    controller = connect(1)
    assert controller.arbitration().status.code == Code.OK
    controller.set_pipeline(config(cookie=1))
    return controller
