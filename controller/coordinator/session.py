"""One attached host agent or framework client, as the coordinator sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import count

from controller.api import coordinator_pb2 as api
from controller.coordinator.changes import Wanted
from controller.coordinator.tracker import FlowName
from controller.model.rule import FlowKey

_numbers = count(1)


class Session:
    """Messages to one host go out in the order they are told."""

    def __init__(self, hello: api.Hello) -> None:
        self.number = next(_numbers)
        "Unique in this process."
        self.host = hello.host
        self.role = hello.role
        self.listen_port = hello.listen_port
        self.kernel = dict(hello.kernel)
        self.open: dict[FlowName, FlowKey | None] = {}
        "A client's flows until they are closed, those that have arrived included; None: local."
        self._out: asyncio.Queue[api.ToHost | None] = asyncio.Queue()

    def tell(self, message: api.ToHost) -> None:
        """Sends a message; returns at once."""
        self._out.put_nowait(message)

    def tell_settings(self, wanted: Iterable[Wanted], not_before: float) -> None:
        """Sends new settings of flows this session announced, in force from `not_before` on."""
        settings = api.Settings(
            flows=[
                api.FlowSetting(
                    id=flow_id(want.flow.name),
                    class_=want.class_,
                    pace=want.pace,
                    not_before=not_before,
                )
                for want in wanted
            ]
        )
        self.tell(api.ToHost(settings=settings))

    def close(self) -> None:
        """Ends the stream once all that was told is out."""
        self._out.put_nowait(None)

    async def outgoing(self) -> AsyncIterator[api.ToHost]:
        """What the stream carries to the host."""
        while (message := await self._out.get()) is not None:
            yield message


def flow_id(name: tuple[str, int, str]) -> api.FlowId:
    """A flow's name as a message."""
    job, iteration, flow = name
    return api.FlowId(job=job, iteration=iteration, flow=flow)


def flow_name(message: api.FlowId) -> tuple[str, int, str]:
    """A message as a flow's name."""
    return (message.job, message.iteration, message.flow)
