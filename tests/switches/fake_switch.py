"""A P4Runtime server that keeps table entries in memory and forwards nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf import any_pb2

_KINDS = {p4r.Update.INSERT: "INSERT", p4r.Update.MODIFY: "MODIFY", p4r.Update.DELETE: "DELETE"}


class FakeSwitch(p4r_grpc.P4RuntimeServicer):
    """Behaves like BMv2 in what the driver relies on, and remembers what it was told."""

    def __init__(self, table_size: int = 10_000) -> None:
        self.table_size = table_size
        self.pipelines = 0
        self.log: list[tuple[str, str]] = []
        "(kind, entity) of every update that took."
        self.entries: dict[bytes, Any] = {}
        self.packet_outs: list[Any] = []
        self.digest_acks: list[int] = []
        self.refuse_pipeline = False
        self._config: Any = None
        self._streams: list[asyncio.Queue[Any]] = []
        self._server: Any = None
        self.address = ""

    async def start(self, address: str = "127.0.0.1:0") -> None:
        self._server = grpc.aio.server()
        p4r_grpc.add_P4RuntimeServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(address)}"
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(0)

    def table(self, table_id: int) -> list[Any]:
        return [e.table_entry for e in self.entries.values() if e.table_entry.table_id == table_id]

    async def send(self, message: Any) -> None:
        for stream in self._streams:
            await stream.put(message)

    async def StreamChannel(self, requests: AsyncIterator[Any], context: Any) -> Any:
        replies: asyncio.Queue[Any] = asyncio.Queue()
        self._streams.append(replies)

        async def read() -> None:
            async for request in requests:
                if request.HasField("arbitration"):
                    reply = p4r.StreamMessageResponse(arbitration=request.arbitration)
                    reply.arbitration.status.code = rpc_code.OK
                    await replies.put(reply)
                elif request.HasField("packet"):
                    self.packet_outs.append(request.packet)
                elif request.HasField("digest_ack"):
                    self.digest_acks.append(request.digest_ack.list_id)

        reader = asyncio.create_task(read())
        try:
            while True:
                yield await replies.get()
        finally:
            reader.cancel()
            self._streams.remove(replies)

    async def Capabilities(self, request: Any, context: Any) -> Any:
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.4.0")

    async def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        if self._config is None:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                "No forwarding pipeline config set for this device.",
            )
        return p4r.GetForwardingPipelineConfigResponse(config=self._config)

    async def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        if self.refuse_pipeline:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such extern: wormhole")
        self._config = request.config
        self.pipelines += 1
        self.entries.clear()
        return p4r.SetForwardingPipelineConfigResponse()

    async def Write(self, request: Any, context: Any) -> Any:
        codes = [self._update(update) for update in request.updates]
        if any(code != rpc_code.OK for code in codes):
            status = rpc_status.Status(code=rpc_code.UNKNOWN)
            for code in codes:
                detail = any_pb2.Any()
                detail.Pack(p4r.Error(canonical_code=code, message="fake"))
                status.details.append(detail)
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
            await context.abort(grpc.StatusCode.UNKNOWN, "some updates failed")
        return p4r.WriteResponse()

    async def Read(self, request: Any, context: Any) -> Any:
        reply = p4r.ReadResponse()
        for asked in request.entities:
            match asked.WhichOneof("entity"):
                case "table_entry":
                    for entry in self.table(asked.table_entry.table_id):
                        found = reply.entities.add(table_entry=entry)
                        if asked.table_entry.HasField("counter_data"):
                            found.table_entry.counter_data.packet_count = 3
                            found.table_entry.counter_data.byte_count = 300
                case "counter_entry":
                    counted = reply.entities.add(counter_entry=asked.counter_entry)
                    counted.counter_entry.data.packet_count = asked.counter_entry.index.index
        yield reply

    def _update(self, update: Any) -> int:
        kind = _KINDS[update.type]
        entity = update.entity
        what = entity.WhichOneof("entity")
        if what != "table_entry" or entity.table_entry.is_default_action:
            self.log.append((kind, what))
            return rpc_code.OK
        entry = entity.table_entry
        key = p4r.TableEntry(table_id=entry.table_id, match=entry.match).SerializeToString()
        if kind == "INSERT" and key in self.entries:
            return rpc_code.ALREADY_EXISTS
        if kind != "INSERT" and key not in self.entries:
            return rpc_code.NOT_FOUND
        if kind == "INSERT" and len(self.table(entry.table_id)) >= self.table_size:
            return rpc_code.RESOURCE_EXHAUSTED
        if kind == "DELETE":
            del self.entries[key]
        else:
            self.entries[key] = entity
        self.log.append((kind, what))
        return rpc_code.OK
