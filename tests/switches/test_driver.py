"""The driver against switches that keep entries in memory: what is written, when, and what is said of failures."""

from __future__ import annotations

import asyncio
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_address

import pytest
from finsy import P4Schema
from finsy.proto import p4d, p4r, rpc_code

from controller.model.errors import WorkFailed
from controller.model.fabrics import parse_topology
from controller.model.network import Network
from controller.model.rule import FlowKey, FlowRule
from controller.switches import FabricDriver
from controller.switches import driver as driver_module
from tests.switches.fake_switch import FakeSwitch
from topologies.layout import network_of


def table_id(name: str) -> int:
    return P4Schema(driver_module.PIPELINE[0]).tables[name].id


def digest_id(name: str) -> int:
    return P4Schema(driver_module.PIPELINE[0]).digests[name].id


async def eventually(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something becomes true, and fail if it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@asynccontextmanager
async def leaf_spine(size: str = "2x2x2") -> AsyncIterator[tuple[Network, dict[str, FakeSwitch]]]:
    """Fake switches for every switch of a leaf-spine fabric."""
    network = network_of(parse_topology(f"leaf-spine:{size}", 4e7), 4e7, "embedded")
    fakes = {switch.name: FakeSwitch() for switch in network.switches}
    for fake in fakes.values():
        await fake.start()
    switches = tuple(replace(s, address=fakes[s.name].address) for s in network.switches)
    try:
        yield replace(network, switches=switches), fakes
    finally:
        for fake in fakes.values():
            await fake.stop()


@asynccontextmanager
async def driving(network: Network) -> AsyncIterator[FabricDriver]:
    driver = FabricDriver(network)
    await driver.start()
    try:
        yield driver
    finally:
        await driver.stop()


def rule(network: Network, src: str, dst: str, class_: int = 5, port: int = 4000) -> FlowRule:
    key = FlowKey(network.host(src).ipv4, network.host(dst).ipv4, 6, port, 5001)
    return FlowRule(key, src, dst, class_, network.fabric().paths(src, dst)[0], 1e7)


async def test_a_fresh_switch_gets_pipeline_and_routes_to_every_host() -> None:
    async with leaf_spine() as (network, fakes), driving(network):
        for fake in fakes.values():
            assert fake.pipelines == 1
            assert len(fake.table(table_id("ipv4_forward"))) == len(network.hosts)
            assert len(fake.table(table_id("ipv6_forward"))) == len(network.hosts)
        groups = fakes["s1"].table(table_id("ecmp_group"))
        assert [len(g.action.action_profile_action_set.action_profile_actions) for g in groups] == [
            2
        ]
        assert not fakes["s3"].table(table_id("ecmp_group"))


async def test_a_restarted_controller_writes_no_entry_that_is_there_already() -> None:
    async with leaf_spine() as (network, fakes):
        async with driving(network) as driver:
            await driver.set_flows([rule(network, "h1", "h3")])
        for fake in fakes.values():
            fake.log.clear()
        async with driving(network):
            for fake in fakes.values():
                assert fake.pipelines == 1
                kinds = {kind for kind, what in fake.log if what == "table_entry"}
                assert kinds <= {
                    "MODIFY",
                    "DELETE",
                }  # the default action; the flow nobody wants now
                assert not fake.table(table_id("flow_policy"))


async def test_a_rule_is_set_at_both_edges_and_only_differences_are_sent() -> None:
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        first = rule(network, "h1", "h3")
        assert await driver.set_flows([first]) == []
        entries = {name: fake.table(table_id("flow_policy")) for name, fake in fakes.items()}
        assert {name: len(found) for name, found in entries.items()} == {
            "s1": 1,
            "s2": 1,
            "s3": 0,
            "s4": 0,
        }
        edge = entries["s1"][0]
        assert edge.match[0].exact.value == (0xFFFF << 32 | int(ip_address("10.0.0.1"))).to_bytes(
            6, "big"
        )
        assert [p.value for p in edge.action.action.params] == [b"\x05", b"\x03"]
        assert edge.meter_config.pir == pytest.approx(1e7 * 1.05 / 8, abs=1)
        for fake in fakes.values():
            fake.log.clear()
        await driver.set_flows([first])
        assert all(not fake.log for fake in fakes.values())
        await driver.set_flows([replace(first, class_=2)])
        assert fakes["s1"].log == [("MODIFY", "table_entry")]
        assert not fakes["s2"].log
        await driver.set_flows([first.key])
        assert not fakes["s1"].table(table_id("flow_policy")) + fakes["s2"].table(
            table_id("flow_policy")
        )


async def test_flows_inside_one_leaf_are_not_pinned() -> None:
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        await driver.set_flows([rule(network, "h1", "h2")])
        entries = fakes["s1"].table(table_id("flow_policy"))
        assert [[p.value for p in e.action.action.params] for e in entries] == [
            [b"\x05", b"\x00"],
            [b"\x07", b"\x00"],
        ]


async def test_a_fat_tree_flow_is_pinned_at_edge_and_aggregation_in_both_directions() -> None:
    network = network_of(parse_topology("fat-tree:4", 4e7), 4e7, "embedded")
    fakes = {switch.name: FakeSwitch() for switch in network.switches}
    for fake in fakes.values():
        await fake.start()
    switches = tuple(replace(s, address=fakes[s.name].address) for s in network.switches)
    async with driving(replace(network, switches=switches)) as driver:
        assert await driver.set_flows([rule(network, "h1", "h16")]) == []
        counts = Counter({n: len(f.table(table_id("flow_policy"))) for n, f in fakes.items()})
        assert sum(counts.values()) == 4  # edge and aggregation, there and back
        assert max(counts.values()) == 1
    for fake in fakes.values():
        await fake.stop()


async def test_a_full_table_is_reported_for_the_flow_and_the_others_take() -> None:
    async with leaf_spine() as (network, fakes):
        fakes["s1"].table_size = 8  # the static tables need up to 6
        async with driving(network) as driver:
            rules = [rule(network, "h1", "h3", port=4000 + k) for k in range(10)]
            errors = await driver.set_flows(rules)
            assert [e.switch for e in errors] == ["s1", "s1"]
            assert {e.key for e in errors} == {r.key for r in rules[8:]}
            assert "flow_policy is full" in errors[0].reason
            assert len(fakes["s1"].table(table_id("flow_policy"))) == 8


async def test_an_entry_that_somebody_else_wrote_or_removed_is_set_all_the_same() -> None:
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        first = rule(network, "h1", "h3")
        await driver.set_flows([first])
        stolen = {
            k: e
            for k, e in fakes["s1"].entries.items()
            if e.table_entry.table_id == table_id("flow_policy")
        }
        for key in stolen:
            del fakes["s1"].entries[key]
        assert await driver.set_flows([replace(first, class_=1)]) == []
        assert len(fakes["s1"].table(table_id("flow_policy"))) == 1
        await driver.set_flows([first.key])
        fakes["s1"].entries.update(stolen)
        assert await driver.set_flows([first]) == []


async def test_a_dead_cable_reroutes_unpins_and_a_mended_one_is_used_again() -> None:
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        first = rule(network, "h1", "h3")
        await driver.set_flows([first])
        before = dict(fakes["s1"].entries)
        lost = await driver.set_failed_links(frozenset(network.links_at("s1", 3)))
        assert lost == [first.key]
        (entry,) = fakes["s1"].table(table_id("flow_policy"))
        assert [p.value for p in entry.action.action.params] == [b"\x05", b"\x00"]
        assert len(fakes["s1"].table(table_id("live_port"))) == 3
        assert not fakes["s1"].table(table_id("ecmp_group"))
        assert await driver.set_failed_links(frozenset()) == []
        assert fakes["s1"].entries == before


async def test_a_switch_that_restarts_gets_everything_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("finsy.switch._FAIL_THROTTLE_SECS", 0.1)  # it ran for less than two seconds
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        await driver.set_flows([rule(network, "h1", "h3")])
        wanted = set(fakes["s1"].entries)
        address = fakes["s1"].address
        await fakes["s1"].stop()
        again = FakeSwitch()
        await again.start(address)
        await eventually(lambda: set(again.entries) == wanted)
        await again.stop()


async def test_neighbours_are_answered_where_the_question_came_from() -> None:
    async with leaf_spine() as (network, fakes), driving(network):
        asker, asked = network.host("h1"), network.host("h4")
        mac = bytes.fromhex(asker.mac.replace(":", ""))
        frame = b"\xff" * 6 + mac + b"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01" + mac
        frame += ip_address(asker.ipv4).packed + bytes(6) + ip_address(asked.ipv4).packed
        metadata = [
            p4r.PacketMetadata(metadata_id=1, value=b"\x01"),
            p4r.PacketMetadata(metadata_id=2, value=b"\x01"),
        ]
        await fakes["s1"].send(
            p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=frame, metadata=metadata))
        )
        await eventually(lambda: bool(fakes["s1"].packet_outs))
        (answer,) = fakes["s1"].packet_outs
        assert answer.payload[:6] == mac
        assert struct.unpack("!H", answer.payload[20:22]) == (2,)
        assert answer.payload[22:28].hex(":") == asked.mac
        assert answer.metadata[0].value == b"\x01"


async def test_counters_name_ports_classes_and_flows() -> None:
    async with leaf_spine() as (network, _), driving(network) as driver:
        first = rule(network, "h1", "h3")
        await driver.set_flows([first])
        counters = await driver.counters()
        assert counters.switches["s1"].classes[2][5].packets == 2 * 8 + 5
        assert counters.switches["s1"].flows[0].key == first.key
        assert counters.switches["s2"].flows[0].key == first.key.reversed()
        assert counters.switches["s1"].flows[0].count == (3, 300)
        assert counters.total("policed") == sum(
            sum(network.ports(s.name)) for s in network.switches
        )


async def test_a_switch_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "START_SECONDS", 0.5)
    async with leaf_spine() as (network, fakes):
        await fakes["s3"].stop()
        with pytest.raises(
            WorkFailed, match=r"s3 at 127\.0\.0\.1:\d+ does not answer after 0\.5 s"
        ):
            await FabricDriver(network).start()


async def test_a_refused_pipeline_is_told_with_the_switchs_own_reason() -> None:
    async with leaf_spine() as (network, fakes):
        fakes["s2"].refuse_pipeline = True
        with pytest.raises(WorkFailed, match="s2.*no such extern: wormhole"):
            await FabricDriver(network).start()


async def test_an_unmet_flow_is_reported_with_its_edge_and_the_digest_is_acknowledged() -> None:
    async with leaf_spine() as (network, fakes):
        met: list[tuple[str, FlowKey, int]] = []
        driver = FabricDriver(network, on_unknown_flow=lambda *flow: met.append(flow))
        await driver.start()
        values = [0xFFFF0A000001, 0xFFFF0A000003, 6, 4000, 5001, 1, 1]
        sample = p4d.P4Data()
        for value in values:
            member = sample.struct.members.add()
            member.bitstring = value.to_bytes((value.bit_length() + 7) // 8, "big")
        digest = p4r.DigestList(digest_id=digest_id("flow_digest_t"), list_id=7, data=[sample])
        await fakes["s2"].send(p4r.StreamMessageResponse(digest=digest))
        await eventually(lambda: bool(fakes["s2"].digest_acks))
        await driver.stop()
    assert met == [("s2", FlowKey("10.0.0.1", "10.0.0.3", 6, 4000, 5001), 1)]
    assert fakes["s2"].digest_acks == [7]


async def test_a_controller_whose_switch_was_taken_over_says_so_and_leaves_it_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        taken = p4r.MasterArbitrationUpdate(device_id=1)
        taken.election_id.high = 1 << 40
        taken.status.code = rpc_code.ALREADY_EXISTS
        await fakes["s1"].send(p4r.StreamMessageResponse(arbitration=taken))
        await eventually(lambda: "s1: another controller has taken over" in caplog.text)
        assert await driver.set_flows([rule(network, "h3", "h4")]) == []  # s2 alone is concerned


async def test_many_rules_at_once_take_and_go_in_batches() -> None:
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        rules = [rule(network, "h1", "h3", port=1000 + k) for k in range(1200)]
        assert await driver.set_flows(rules) == []
        assert len(fakes["s1"].table(table_id("flow_policy"))) == 1200
        assert await driver.set_flows([one.key for one in rules]) == []
        assert not fakes["s1"].table(table_id("flow_policy"))


async def test_a_rule_for_workers_on_one_host_needs_no_switch() -> None:
    async with leaf_spine() as (network, fakes), driving(network) as driver:
        for fake in fakes.values():
            fake.log.clear()
        assert await driver.set_flows([replace(rule(network, "h1", "h3"), path=())]) == []
        assert not any(fake.log for fake in fakes.values())
