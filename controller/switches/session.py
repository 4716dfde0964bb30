"""One switch: its connection, what is installed there, and how that becomes what is wanted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import finsy as fy
from finsy.p4entity import P4EntityList

from controller.model.errors import WorkFailed
from controller.model.network import CLASSES, NetworkSwitch
from controller.model.rule import FlowKey
from controller.switches.counters import PORT_COUNTERS, Count, FlowCount, SwitchCounters
from controller.switches.entries import (
    FLOW_POLICY,
    TABLES,
    Change,
    Entries,
    Key,
    Kind,
    difference,
    keyed,
)
from controller.switches.flows import flow_key
from controller.switches.neighbours import Neighbours

LOG = logging.getLogger("echelon.switches")

BATCH = 500
"Updates in one P4Runtime message."

QUEUE = 1000
"Packet-ins and digests that may wait for us."

PUNTS_PER_SECOND = 200
DIGESTS_PER_SECOND = 100

DIGEST = "flow_digest_t"


class SwitchSession:
    """Keeps one switch as it shall be: pushes the pipeline if another one runs, then only differences.

    After a lost connection finsy connects again, and the switch is reconciled again.
    """

    def __init__(
        self,
        switch: NetworkSwitch,
        pipeline: tuple[Path, Path],
        election_id: int,
        neighbours: Neighbours,
        on_unknown_flow: Callable[[str, FlowKey, int], None],
    ) -> None:
        """`pipeline`: P4Info and BMv2 JSON. `on_unknown_flow(switch, 5-tuple, reason)`: 1 unmet, 2 dead path."""
        self.name = switch.name
        self.wanted: Entries = {}
        self.defaults: list[fy.P4TableEntry] = []
        self.ports: list[int] = []
        self._spec = switch
        self._installed: Entries = {}
        self._neighbours = neighbours
        self._on_unknown_flow = on_unknown_flow
        self._lock = asyncio.Lock()
        self._speaking = asyncio.Lock()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._switch = fy.Switch(
            switch.name,
            switch.address,
            fy.SwitchOptions(
                p4info=pipeline[0],
                p4blob=pipeline[1],
                device_id=switch.device_id,
                initial_election_id=election_id,
                ready_handler=self._on_ready,
            ),
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self, timeout: float) -> None:
        """Connect, push, reconcile. Raises WorkFailed: no answer in `timeout` seconds, or what it refused."""
        self._task = asyncio.create_task(self._switch.run())
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), timeout)
        except asyncio.TimeoutError:
            raise WorkFailed(
                f"switch {self.name} at {self._spec.address} does not answer after {timeout:g} s: "
                "is it running, and is that its P4Runtime address?"
            ) from None

    async def stop(self) -> None:
        """Disconnect; the switch keeps forwarding as it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def fail(self, reason: BaseException) -> None:
        """Report that the connection's set-up failed (finsy itself only logs it)."""
        if not self._ready.done():
            self._ready.set_exception(WorkFailed(f"switch {self.name}: {_words(reason)}"))

    async def apply(self) -> dict[Key, str]:
        """Write what differs between installed and wanted; what was refused, with the reason."""
        async with self._lock:
            return await self._write(difference(self._installed, self.wanted))

    async def counters(self) -> SwitchCounters:
        """Read all counters. Raises WorkFailed when the switch does not answer."""
        indices = [port * CLASSES + class_ for port in self.ports for class_ in range(CLASSES)]
        wanted: list[P4EntityList] = [
            fy.P4CounterEntry("class_counter", index=index) for index in indices
        ]
        wanted += [
            fy.P4CounterEntry(name, index=port) for name in PORT_COUNTERS for port in self.ports
        ]
        wanted.append(fy.P4TableEntry(FLOW_POLICY, counter_data=fy.P4CounterData()))
        counters = SwitchCounters(
            classes={port: [Count(0, 0)] * CLASSES for port in self.ports},
            ports={name: {} for name in PORT_COUNTERS},
        )
        try:
            for entity in await self._read(wanted):
                _sort_in(counters, entity)
        except (fy.P4ClientError, AssertionError) as error:
            raise WorkFailed(
                f"switch {self.name}: counters cannot be read: {_words(error)}"
            ) from error
        return counters

    async def _on_ready(self, switch: fy.Switch) -> None:
        """finsy calls this whenever the pipeline is in place on a new connection."""
        if not switch.is_primary:
            self.fail(
                WorkFailed(
                    f"another controller holds it (election id {switch.primary_id}): stop that one"
                )
            )
            LOG.warning("%s: another controller has taken over", self.name)
            return
        try:
            await self._reconcile()
        except BaseException as error:
            self.fail(error)
            raise
        switch.create_task(self._answer_neighbours())
        switch.create_task(self._hear_digests())
        if not self._ready.done():
            self._ready.set_result(None)

    async def _reconcile(self) -> None:
        async with self._lock:
            await self._switch.modify([*self.defaults, *self._meters()])
            await self._set_digest()
            asked = [fy.P4TableEntry(table) for table in TABLES if table != FLOW_POLICY]
            asked.append(fy.P4TableEntry(FLOW_POLICY, meter_config=_ANY_METER))
            found = await self._read(asked)
            self._installed = keyed(e for e in found if isinstance(e, fy.P4TableEntry))
            refused = await self._write(difference(self._installed, self.wanted))
        for key, reason in refused.items():
            LOG.warning("%s: %s: %s", self.name, key, reason)

    async def _read(self, asked: Sequence[P4EntityList]) -> list[object]:
        # finsy declares `read` as a coroutine that gives a generator; it is the generator itself.
        entities: AsyncIterator[object] = self._switch.read(asked)  # type: ignore[assignment]
        return [entity async for entity in entities]

    def _meters(self) -> list[fy.P4MeterEntry]:
        """A host cannot keep the controller busy."""
        return [
            fy.P4MeterEntry(
                name,
                index=port,
                config=fy.P4MeterConfig(cir=rate, cburst=rate, pir=rate, pburst=rate),
            )
            for name, rate in (
                ("punt_meter", PUNTS_PER_SECOND),
                ("digest_meter", DIGESTS_PER_SECOND),
            )
            for port in self._spec.host_ports
        ]

    async def _set_digest(self) -> None:
        def entry() -> fy.P4DigestEntry:
            return fy.P4DigestEntry(
                DIGEST, max_list_size=100, max_timeout_ns=10_000_000, ack_timeout_ns=1_000_000_000
            )

        try:
            await self._switch.insert([entry()])
        except fy.P4ClientError as error:
            codes = {detail.canonical_code for detail in error.details.values()}
            if codes != {fy.GRPCStatusCode.ALREADY_EXISTS}:
                raise
            await self._switch.modify([entry()])

    async def _write(self, changes: Sequence[Change]) -> dict[Key, str]:
        """Send changes in batches and note what took; a batch can half-apply."""
        refused: dict[Key, str] = {}
        for start in range(0, len(changes), BATCH):
            refused |= await self._write_batch(changes[start : start + BATCH])
        return refused

    async def _write_batch(self, batch: Sequence[Change], again: bool = True) -> dict[Key, str]:
        failed: dict[int, tuple[fy.GRPCStatusCode, str]] = {}
        try:
            await self._switch.write([change.update() for change in batch])
        except AssertionError:  # finsy has no client between two connections
            failed = {
                i: (fy.GRPCStatusCode.UNAVAILABLE, "not connected") for i in range(len(batch))
            }
        except fy.P4ClientError as error:
            failed = {i: (d.canonical_code, d.message) for i, d in error.details.items()}
            if not failed:
                failed = {i: (error.code, error.message) for i in range(len(batch))}
        retry: list[Change] = []
        refused: dict[Key, str] = {}
        for index, change in enumerate(batch):
            code, message = failed.get(index, (fy.GRPCStatusCode.OK, ""))
            opposite = _OTHER_KIND.get((change.kind, code))
            if code == fy.GRPCStatusCode.OK or _is_gone(change, code):
                self._note(change)
            elif opposite and again:
                retry.append(change.as_kind(opposite))
            else:
                refused[change.key] = _reason(change, code, message)
        if retry:
            refused |= await self._write_batch(retry, again=False)
        return refused

    def _note(self, change: Change) -> None:
        if change.kind is Kind.DELETE:
            self._installed.pop(change.key, None)
        else:
            self._installed[change.key] = change.entry

    async def _answer_neighbours(self) -> None:
        async for packet in self._switch.read_packets(queue_size=QUEUE):
            answer = self._neighbours.answer(packet.payload)
            if answer is not None:
                port = packet["ingress_port"]
                await self._say(fy.P4PacketOut(answer, egress_port=port, pad=0))

    async def _hear_digests(self) -> None:
        async for digest in self._switch.read_digests(DIGEST, queue_size=QUEUE):
            for sample in digest:
                assert isinstance(sample, dict)
                fields = (sample[name] for name in ("src", "dst", "protocol", "sport", "dport"))
                self._on_unknown_flow(self.name, flow_key(*fields), sample["reason"])
            await self._say(digest.ack())

    async def _say(self, message: fy.P4PacketOut | fy.P4DigestListAck) -> None:
        """One message of the stream after another: gRPC fails a write that meets another."""
        async with self._speaking:
            await self._switch.write([message])


_ANY_METER = fy.P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0)
"In a read request: tell the meters too."

_OTHER_KIND = {
    (Kind.INSERT, fy.GRPCStatusCode.ALREADY_EXISTS): Kind.MODIFY,
    (Kind.MODIFY, fy.GRPCStatusCode.NOT_FOUND): Kind.INSERT,
}
"Somebody else wrote to the switch since we looked."


def _is_gone(change: Change, code: fy.GRPCStatusCode) -> bool:
    return change.kind is Kind.DELETE and code == fy.GRPCStatusCode.NOT_FOUND


def _reason(change: Change, code: fy.GRPCStatusCode, message: str) -> str:
    table = change.key[0]
    if code == fy.GRPCStatusCode.RESOURCE_EXHAUSTED:
        return f"table {table} is full ({message}): fewer flows at once, or a larger FLOW_POLICY_SIZE in p4/"
    if code == fy.GRPCStatusCode.UNAVAILABLE:
        return f"the switch does not answer ({message})"
    return f"{change.kind.name} in {table}: {code.name} {message}".strip()


def _words(error: BaseException) -> str:
    """The reason in one line."""
    if isinstance(error, fy.P4ClientError):
        messages = {detail.message for detail in error.details.values()} or {error.message}
        return f"{error.code.name}: {'; '.join(sorted(messages))}"
    return " ".join(str(error).split()) or type(error).__name__


def _sort_in(counters: SwitchCounters, entity: object) -> None:
    match entity:
        case fy.P4CounterEntry(counter_id="class_counter", index=int(index)):
            port, class_ = divmod(index, CLASSES)
            counters.classes[port][class_] = Count(entity.packet_count, entity.byte_count)
        case fy.P4CounterEntry(counter_id=name, index=int(port)):
            counters.ports[name][port] = Count(entity.packet_count, entity.byte_count)
        case fy.P4TableEntry(match=found, counter_data=fy.P4CounterData() as data):
            assert found is not None
            key = flow_key(*(found[name] for name in ("src", "dst", "protocol", "sport", "dport")))
            counters.flows.append(FlowCount(key, Count(data.packet_count, data.byte_count)))
