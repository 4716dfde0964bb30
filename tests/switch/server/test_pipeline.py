"""Forwarding-pipeline configs: verified, saved, committed, reconciled, read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import grpc
import pytest
from finsy.proto import p4r

from switch.server.errors import Code
from tests.switch.server.controller import (
    DEVICE_ID,
    BatchError,
    Controller,
    action,
    entry,
    exact,
    exact_entry,
)
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import DROP, JSON, PROGRAM, TABLE_ID, TABLES, config
from tests.switch.server.test_notifications import digest
from tests.switch.server.test_profiles import group, indirect, member
from tests.switch.server.test_replication import group as multicast
from tests.switch.server.test_replication import replica, session

Set = p4r.SetForwardingPipelineConfigRequest
Get = p4r.GetForwardingPipelineConfigRequest

SMALLER = replace(PROGRAM, tables=TABLES[:2])
"""The same program without most of its tables."""
SMALLER_JSON = b"{smaller}"


@pytest.fixture
def controller(connect: Callable[..., Controller]) -> Controller:
    """A primary on a switch without pipeline."""
    made = connect(1)
    made.arbitration()
    return made


def refused(call: Callable[[], object]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert caught.value.details()
    return caught.value.code()


def test_without_pipeline_everything_waits_for_it(controller: Controller) -> None:
    for call in (
        lambda: controller.insert(table_entry=exact_entry(1)),
        lambda: controller.read_tables(),
        lambda: controller.get_pipeline(),
    ):
        assert refused(call) == grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize(
    ("response_type", "has_info", "has_config"),
    [
        (Get.ALL, True, True),
        (Get.COOKIE_ONLY, False, False),
        (Get.P4INFO_AND_COOKIE, True, False),
        (Get.DEVICE_CONFIG_AND_COOKIE, False, True),
    ],
)
def test_a_config_is_read_back(
    controller: Controller, response_type: int, has_info: bool, has_config: bool
) -> None:
    written = config(cookie=77)
    controller.set_pipeline(written)
    got = controller.get_pipeline(response_type)
    assert got.cookie.cookie == 77
    assert got.HasField("p4info") == has_info
    assert (not has_info) or got.p4info == written.p4info
    assert got.p4_device_config == (written.p4_device_config if has_config else b"")


def test_without_cookie_none_is_read_back(controller: Controller) -> None:
    controller.set_pipeline(config())
    assert not controller.get_pipeline().HasField("cookie")


@pytest.mark.parametrize(
    "act", [Set.VERIFY, Set.VERIFY_AND_SAVE, Set.VERIFY_AND_COMMIT, Set.RECONCILE_AND_COMMIT]
)
@pytest.mark.parametrize(
    "broken",
    [
        None,
        p4r.ForwardingPipelineConfig(),
        config(json=b"garbage"),
        config(json=b"unsupported"),
        config(json=b""),
        config(json=SMALLER_JSON),
    ],
    ids=["absent", "empty", "not JSON", "unsupported", "no JSON", "another program's P4Info"],
)
def test_a_bad_config_is_refused_and_the_old_one_stays(
    primary: Controller,
    dataplane: FakeDataplane,
    act: int,
    broken: p4r.ForwardingPipelineConfig | None,
) -> None:
    dataplane.programs[SMALLER_JSON] = SMALLER
    primary.insert(table_entry=exact_entry(1))
    assert refused(lambda: primary.set_pipeline(broken, act)) == grpc.StatusCode.INVALID_ARGUMENT
    assert primary.read_tables(table_id=TABLE_ID["exact"]) == [exact_entry(1)]


def test_an_unknown_action_is_refused(primary: Controller) -> None:
    for act in (Set.UNSPECIFIED, 99):
        assert (
            refused(lambda act=act: primary.set_pipeline(config(), act))
            == grpc.StatusCode.INVALID_ARGUMENT
        )


def test_verify_changes_nothing(primary: Controller, dataplane: FakeDataplane) -> None:
    primary.insert(table_entry=exact_entry(1))
    primary.set_pipeline(config(cookie=2), Set.VERIFY)
    assert primary.get_pipeline().cookie.cookie == 1
    assert primary.read_tables(table_id=TABLE_ID["exact"]) == [exact_entry(1)]
    assert dataplane.loads == 1


def test_commit_clears_the_state(primary: Controller) -> None:
    primary.insert(table_entry=exact_entry(1))
    primary.set_pipeline(config(cookie=2))
    assert primary.read_tables(table_id=TABLE_ID["exact"]) == []


class TestSaved:
    def test_writes_wait_for_the_commit(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        primary.insert(table_entry=exact_entry(1))
        primary.set_pipeline(config(cookie=2), Set.VERIFY_AND_SAVE)
        primary.insert(table_entry=exact_entry(2))
        with pytest.raises(BatchError):
            primary.delete(table_entry=exact_entry(1))
        assert primary.read_tables(table_id=TABLE_ID["exact"]) == [exact_entry(2)]
        assert [key for _, key, _, _ in dataplane.entries(0)] == [bytes.fromhex("000000010001")]
        primary.set_pipeline(None, Set.COMMIT)
        assert primary.get_pipeline().cookie.cookie == 2
        assert primary.read_tables(table_id=TABLE_ID["exact"]) == [exact_entry(2)]
        assert [key for _, key, _, _ in dataplane.entries(0)] == [bytes.fromhex("000000020001")]

    def test_commit_needs_a_saved_config_and_brings_none(self, primary: Controller) -> None:
        assert refused(lambda: primary.set_pipeline(None, Set.COMMIT)) == grpc.StatusCode.NOT_FOUND
        primary.set_pipeline(config(), Set.VERIFY_AND_SAVE)
        assert (
            refused(lambda: primary.set_pipeline(config(), Set.COMMIT))
            == grpc.StatusCode.INVALID_ARGUMENT
        )
        primary.set_pipeline(None, Set.COMMIT)
        assert refused(lambda: primary.set_pipeline(None, Set.COMMIT)) == grpc.StatusCode.NOT_FOUND

    def test_another_commit_forgets_it(self, primary: Controller) -> None:
        primary.set_pipeline(config(cookie=2), Set.VERIFY_AND_SAVE)
        primary.set_pipeline(config(cookie=3), Set.VERIFY_AND_COMMIT)
        assert refused(lambda: primary.set_pipeline(None, Set.COMMIT)) == grpc.StatusCode.NOT_FOUND
        assert primary.get_pipeline().cookie.cookie == 3


class TestReconcile:
    reconcile = Set.RECONCILE_AND_COMMIT

    def fill(self, primary: Controller) -> None:
        meter = p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
        counter = p4r.CounterData(packet_count=5, byte_count=6)
        primary.insert(
            table_entry=exact_entry(1, metadata=b"m", meter_config=meter, counter_data=counter)
        )
        primary.insert(table_entry=entry("idle", exact(1, 1), idle_timeout_ns=10**12))
        default = p4r.TableEntry(table_id=TABLE_ID["lpm"], is_default_action=True)
        default.action.action.CopyFrom(action(DROP))
        primary.modify(table_entry=default)
        primary.insert(action_profile_member=member(1))
        primary.insert(action_profile_group=group(1, (1, 2)))
        primary.insert(table_entry=indirect("selected", 1, action_profile_group_id=1))
        primary.insert(**multicast(3, replica(1)))
        primary.insert(**session(4, replica(2)))
        primary.insert(digest_entry=digest(max_list_size=5))

    def everything(self, primary: Controller) -> list[p4r.Entity]:
        wanted = [
            p4r.Entity(
                table_entry=p4r.TableEntry(
                    counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig()
                )
            ),
            p4r.Entity(
                table_entry=p4r.TableEntry(table_id=TABLE_ID["lpm"], is_default_action=True)
            ),
            p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
            p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
            p4r.Entity(**multicast(0)),  # type: ignore[arg-type]
            p4r.Entity(**session(0)),  # type: ignore[arg-type]
            p4r.Entity(digest_entry=p4r.DigestEntry()),
        ]
        return primary.read_all(*wanted)

    def test_state_is_carried_over_to_a_new_program(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        self.fill(primary)
        before = self.everything(primary)
        dataplane.programs[b"{new}"] = PROGRAM
        primary.set_pipeline(config(cookie=2, json=b"{new}"), self.reconcile)
        assert dataplane.loads == 2
        assert self.everything(primary) == before
        assert primary.get_pipeline().p4_device_config == b"{new}"

    def test_the_same_program_is_not_touched(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        self.fill(primary)
        before = self.everything(primary)
        primary.set_pipeline(config(cookie=2), self.reconcile)
        assert dataplane.loads == 1
        assert self.everything(primary) == before
        assert primary.get_pipeline().cookie.cookie == 2

    def test_state_that_does_not_fit_keeps_the_old_program(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        self.fill(primary)
        before = self.everything(primary)
        dataplane.programs[SMALLER_JSON] = SMALLER
        smaller = config(json=SMALLER_JSON, program=SMALLER)
        assert (
            refused(lambda: primary.set_pipeline(smaller, self.reconcile))
            == grpc.StatusCode.INVALID_ARGUMENT
        )
        assert self.everything(primary) == before
        assert dataplane.loads == 1

    def test_the_first_program_needs_no_state(self, controller: Controller) -> None:
        controller.set_pipeline(config(cookie=9), self.reconcile)
        assert controller.get_pipeline().cookie.cookie == 9


def test_the_tutorials_wrapping_of_the_json_is_understood(controller: Controller) -> None:
    wrapped = b"\x08\x01" + b"\x1a" + bytes([len(JSON)]) + JSON
    controller.set_pipeline(config(json=wrapped))
    assert controller.get_pipeline().p4_device_config == wrapped
    controller.insert(table_entry=exact_entry(1))


def test_capabilities_name_the_version(controller: Controller) -> None:
    for device_id in (0, DEVICE_ID):
        response = controller.stub.Capabilities(p4r.CapabilitiesRequest(device_id=device_id))
        assert response.p4runtime_api_version.startswith("1.")


def test_codes_are_those_of_grpc() -> None:
    assert {code.name: code.value for code in Code}.items() <= {
        status.name: status.value[0] for status in grpc.StatusCode
    }.items()
