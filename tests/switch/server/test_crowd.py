"""Much at once on the real switch: frames, many entries, readers, and controllers that take over from each other."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
import pytest
from finsy.proto import p4r

from switch.server.errors import Code
from tests.switch.differential import frames as f
from tests.switch.server.controller import Controller, number
from tests.switch.server.running import ROOT, Switch, Wire, pipeline, running

pytestmark = pytest.mark.mininet

MANY = 3000
ENTRIES = 131072
"""flow_policy's size here."""
INSERT, DELETE = p4r.Update.INSERT, p4r.Update.DELETE
HOST = "10.0.0.2"
RECONCILE = p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT


def larger(version: int) -> p4r.ForwardingPipelineConfig:
    """echelon.p4 with a larger flow_policy; each version is another program to the switch."""
    config = pipeline("echelon", ROOT / "p4/compiled")
    root = json.loads(config.p4_device_config)
    for table in (t for part in root["pipelines"] for t in part["tables"]):
        if table["name"].endswith("flow_policy"):
            table["max_size"] = ENTRIES
    config.p4_device_config = json.dumps(root).encode() + b" " * version
    for info in config.p4info.tables:
        if info.preamble.alias == "flow_policy":
            info.size = ENTRIES
    return config


CONFIG = larger(0)
TABLES = {t.preamble.alias: t for t in CONFIG.p4info.tables}
ACTIONS = {a.preamble.alias: a.preamble.id for a in CONFIG.p4info.actions}
POLICY = TABLES["flow_policy"].preamble.id


def entry(table: str, match: list[p4r.FieldMatch], action: str, *params: int) -> p4r.Entity:
    message = p4r.TableEntry(table_id=TABLES[table].preamble.id, match=match)
    message.action.action.action_id = ACTIONS[action]
    for i, value in enumerate(params, 1):
        message.action.action.params.add(param_id=i, value=number(value))
    return p4r.Entity(table_entry=message)


def policy(flow: int) -> p4r.Entity:
    """A flow_policy entry that no frame here belongs to."""
    values = (0xFFFF0B000000 + flow, 0xFFFF0A000002, 17, 1, 2)
    match = [
        p4r.FieldMatch(field_id=i, exact=p4r.FieldMatch.Exact(value=number(value)))
        for i, value in enumerate(values, 1)
    ]
    return entry("flow_policy", match, "set_policy", 3, 0)


def updates(kind: p4r.Update.Type.ValueType, flows: range) -> list[p4r.Update]:
    return [p4r.Update(type=kind, entity=policy(flow)) for flow in flows]


@dataclass
class Flow:
    """A steady flow of frames through the switch."""

    sent: int = 0
    received: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def send(self, wire: Wire) -> None:
        frame = f.ethernet(f.IPV4, f.ipv4("10.0.0.1", HOST, 17, f.ports(1, 2)))
        while not self.stop.is_set():
            wire.send(frame)
            self.sent += 1
            time.sleep(0.001)

    def receive(self, wire: Wire) -> None:
        while wire.receive(0.5) is not None or not self.stop.is_set():
            self.received += 1


@contextmanager
def flowing(wires: dict[int, Wire]) -> Iterator[Flow]:
    """Frames flow from port 1 to port 2; each must have arrived at the end."""
    flow = Flow()
    threads = [
        threading.Thread(target=flow.send, args=(wires[1],)),
        threading.Thread(target=flow.receive, args=(wires[2],)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield flow
    finally:
        flow.stop.set()
        for thread in threads:
            thread.join()
    assert flow.received == flow.sent > 0


@pytest.fixture(scope="module")
def switch() -> Iterator[tuple[Switch, dict[int, Wire]]]:
    with running("embedded", 2) as (process, wires):
        yield process, wires


@pytest.fixture
def primary(switch: tuple[Switch, dict[int, Wire]]) -> Iterator[Controller]:
    """A primary; the switch routes to port 2 and has MANY entries besides."""
    with switch[0].controller() as controller:
        controller.arbitrate(10)
        assert controller.arbitration().status.code == Code.OK
        controller.set_pipeline(CONFIG)
        lpm = p4r.FieldMatch.LPM(value=bytes((10, 0, 0, 2)), prefix_len=32)
        route = entry("ipv4_forward", [p4r.FieldMatch(field_id=1, lpm=lpm)], "to_port", 2)
        controller.write(p4r.Update(type=INSERT, entity=route), *updates(INSERT, range(MANY)))
        yield controller


def count(controller: Controller) -> int:
    return len(controller.read_tables(table_id=POLICY))


def test_a_read_sees_whole_batches(
    switch: tuple[Switch, dict[int, Wire]], primary: Controller
) -> None:
    seen: set[int] = set()
    done = threading.Event()

    def read() -> None:
        with switch[0].controller() as reader:
            while not done.is_set():
                seen.add(count(reader))

    readers = [threading.Thread(target=read) for _ in range(2)]
    with flowing(switch[1]):
        for reader in readers:
            reader.start()
        for _ in range(10):
            for kind in (INSERT, DELETE):
                primary.write(*updates(kind, range(MANY, MANY + 500)))
        done.set()
        for reader in readers:
            reader.join()
    assert seen <= {MANY, MANY + 500}


def test_an_old_primary_writes_nothing_once_the_new_one_is_told(
    switch: tuple[Switch, dict[int, Wire]], primary: Controller
) -> None:
    ruling, done = threading.Event(), threading.Event()
    outcomes: dict[bool, int] = {True: 0, False: 0}
    late: list[int] = []

    def write(first: int) -> None:
        flow = first
        while not done.is_set():
            begun_late = ruling.is_set()
            try:
                primary.write(*updates(INSERT, range(flow, flow + 1)))
                outcomes[True] += 1
                if begun_late and ruling.is_set():
                    late.append(flow)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.PERMISSION_DENIED
                outcomes[False] += 1
            flow += 1

    writers = [threading.Thread(target=write, args=(k * 100_000,)) for k in (1, 2, 3, 4)]
    with flowing(switch[1]), switch[0].controller() as second:
        for writer in writers:
            writer.start()
        for bid in range(20, 30):
            second.arbitrate(bid)
            while second.arbitration().status.code != Code.OK:
                pass
            ruling.set()
            second.write(*updates(INSERT, range(9_000_000 + bid, 9_000_001 + bid)))
            time.sleep(0.05)
            ruling.clear()
            second.arbitrate(5)
            while second.arbitration().status.code == Code.OK:
                pass
            time.sleep(0.05)
        done.set()
        for writer in writers:
            writer.join()
        assert count(primary) == MANY + outcomes[True] + 10
    assert not late
    assert min(outcomes.values()) > 0


def test_a_reconcile_keeps_entries_and_frames(
    switch: tuple[Switch, dict[int, Wire]], primary: Controller
) -> None:
    with flowing(switch[1]):
        for version in (0, 1, 2):
            primary.set_pipeline(larger(version), RECONCILE)
            assert count(primary) == MANY


@pytest.mark.slow
def test_a_hundred_thousand_entries(
    switch: tuple[Switch, dict[int, Wire]], primary: Controller
) -> None:
    with flowing(switch[1]):
        for first in range(MANY, 100_000, 1000):
            primary.write(*updates(INSERT, range(first, first + 1000)))
        assert count(primary) == 100_000
    primary.set_pipeline(larger(3), RECONCILE)
    assert count(primary) == 100_000
