"""Action profiles: members, groups, one-shots, and what happens to them when ports go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from finsy.proto import p4r

from switch.dataplane import PortStatus, Target, TargetKind
from switch.server.errors import Code
from tests.switch.server.controller import BatchError, Controller, action, exact
from tests.switch.server.eventually import eventually
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import DROP, PROFILE_ID, SELECTOR_ID, TABLE_ID


def member(number: int, port: int = 1, profile: int = SELECTOR_ID) -> p4r.ActionProfileMember:
    return p4r.ActionProfileMember(
        action_profile_id=profile, member_id=number, action=action(port=port)
    )


def group(number: int, *members: tuple[int, int], **fields: Any) -> p4r.ActionProfileGroup:
    listed = [p4r.ActionProfileGroup.Member(member_id=m, weight=weight) for m, weight in members]
    return p4r.ActionProfileGroup(
        action_profile_id=SELECTOR_ID, group_id=number, members=listed, **fields
    )


def indirect(table: str, a: int, **target: Any) -> p4r.TableEntry:
    return p4r.TableEntry(
        table_id=TABLE_ID[table], match=[exact(1, a)], action=p4r.TableAction(**target)
    )


def one_shot(a: int, *slots: tuple[int, int, int], **fields: Any) -> p4r.TableEntry:
    """An entry with an action set of (port, weight, watch port)."""
    actions = [
        p4r.ActionProfileAction(
            action=action(port=port), weight=weight, watch_port=bytes([watch]) if watch else b""
        )
        for port, weight, watch in slots
    ]
    return indirect(
        "selected",
        a,
        action_profile_action_set=p4r.ActionProfileActionSet(
            action_profile_actions=actions, **fields
        ),
    )


def fails(call: Callable[..., None], **entity: Any) -> int:
    with pytest.raises(BatchError) as caught:
        call(**entity)
    return caught.value.codes[0]


def test_members_groups_and_entries_come_back(
    primary: Controller, dataplane: FakeDataplane
) -> None:
    primary.insert(action_profile_member=member(1))
    primary.insert(action_profile_member=member(2, port=2))
    primary.insert(action_profile_member=member(7, profile=PROFILE_ID))
    primary.insert(action_profile_group=group(1, (2, 3), (1, 1), max_size=5))
    primary.insert(table_entry=indirect("selected", 1, action_profile_group_id=1))
    primary.insert(table_entry=indirect("selected", 2, action_profile_member_id=2))
    primary.insert(table_entry=indirect("indirect", 1, action_profile_member_id=7))
    everything = p4r.ActionProfileMember()
    assert [e.action_profile_member for e in primary.read(action_profile_member=everything)] == [
        member(1),
        member(2, port=2),
        member(7, profile=PROFILE_ID),
    ]
    assert [
        e.action_profile_group for e in primary.read(action_profile_group=p4r.ActionProfileGroup())
    ] == [group(1, (2, 3), (1, 1), max_size=5)]
    assert primary.read_tables(table_id=TABLE_ID["selected"]) == [
        indirect("selected", 1, action_profile_group_id=1),
        indirect("selected", 2, action_profile_member_id=2),
    ]
    assert dataplane.groups[0, 1] == [(2, 3), (1, 1)]
    assert [e[3] for e in dataplane.entries(3)] == [
        Target(TargetKind.GROUP, 1),
        Target(TargetKind.MEMBER, 2),
    ]


def test_reads_select_one(primary: Controller) -> None:
    primary.insert(action_profile_member=member(1))
    primary.insert(action_profile_member=member(2))
    chosen = p4r.ActionProfileMember(action_profile_id=SELECTOR_ID, member_id=2)
    assert [e.action_profile_member for e in primary.read(action_profile_member=chosen)] == [
        member(2)
    ]
    assert (
        fails(primary.read, action_profile_member=p4r.ActionProfileMember(action_profile_id=5)) == 3
    )


def test_member_rules(primary: Controller) -> None:
    assert fails(primary.insert, action_profile_member=member(0)) == Code.INVALID_ARGUMENT
    primary.insert(action_profile_member=member(1))
    assert fails(primary.insert, action_profile_member=member(1)) == Code.ALREADY_EXISTS
    assert fails(primary.modify, action_profile_member=member(2)) == Code.NOT_FOUND
    assert fails(primary.delete, action_profile_member=member(2)) == Code.NOT_FOUND
    assert (
        fails(primary.insert, action_profile_member=member(1, profile=9)) == Code.INVALID_ARGUMENT
    )
    for number in range(4):
        primary.insert(action_profile_member=member(number + 1, profile=PROFILE_ID))
    assert (
        fails(primary.insert, action_profile_member=member(5, profile=PROFILE_ID))
        == Code.RESOURCE_EXHAUSTED
    )


def test_what_is_in_use_cannot_be_deleted(primary: Controller) -> None:
    primary.insert(action_profile_member=member(1))
    primary.insert(action_profile_group=group(1, (1, 1)))
    primary.insert(table_entry=indirect("selected", 1, action_profile_group_id=1))
    assert fails(primary.delete, action_profile_group=group(1)) == Code.FAILED_PRECONDITION
    assert fails(primary.delete, action_profile_member=member(1)) == Code.FAILED_PRECONDITION
    primary.delete(table_entry=indirect("selected", 1))
    primary.delete(action_profile_group=group(1))
    primary.delete(action_profile_member=member(1))


def test_group_rules(primary: Controller) -> None:
    primary.insert(action_profile_member=member(1))
    assert fails(primary.insert, action_profile_group=group(0)) == Code.INVALID_ARGUMENT
    assert fails(primary.insert, action_profile_group=group(1, (9, 1))) == Code.NOT_FOUND
    assert fails(primary.insert, action_profile_group=group(1, (1, 0))) == Code.INVALID_ARGUMENT
    assert (
        fails(primary.insert, action_profile_group=group(1, (1, 1), (1, 1)))
        == Code.INVALID_ARGUMENT
    )
    assert fails(primary.insert, action_profile_group=group(1, (1, 9))) == Code.RESOURCE_EXHAUSTED
    assert (
        fails(primary.insert, action_profile_group=group(1, (1, 1), max_size=9))
        == Code.INVALID_ARGUMENT
    )
    assert fails(primary.modify, action_profile_group=group(1)) == Code.NOT_FOUND
    primary.insert(action_profile_group=group(1, (1, 1), max_size=2))
    assert fails(primary.insert, action_profile_group=group(1)) == Code.ALREADY_EXISTS
    assert (
        fails(primary.modify, action_profile_group=group(1, (1, 1), max_size=3))
        == Code.INVALID_ARGUMENT
    )
    assert (
        fails(primary.modify, action_profile_group=group(1, (1, 3), max_size=2))
        == Code.RESOURCE_EXHAUSTED
    )
    without_selector = p4r.ActionProfileGroup(action_profile_id=PROFILE_ID, group_id=1)
    assert fails(primary.insert, action_profile_group=without_selector) == Code.INVALID_ARGUMENT


def test_an_entry_needs_its_member_or_group(primary: Controller) -> None:
    entry = indirect("selected", 1, action_profile_member_id=1)
    assert fails(primary.insert, table_entry=entry) == Code.INVALID_ARGUMENT
    entry = indirect("selected", 1, action_profile_group_id=1)
    assert fails(primary.insert, table_entry=entry) == Code.INVALID_ARGUMENT


def test_a_refused_entry_does_not_hold_its_member(primary: Controller) -> None:
    primary.insert(action_profile_member=member(1))
    entry = indirect("selected", 1, action_profile_member_id=1)
    primary.insert(table_entry=entry)
    assert fails(primary.insert, table_entry=entry) == Code.ALREADY_EXISTS
    primary.delete(table_entry=entry)
    primary.delete(action_profile_member=member(1))


class TestOneShot:
    def test_comes_back_as_written_and_leaves_nothing_behind(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        written = one_shot(1, (1, 2, 0), (2, 3, 0), (1, 1, 0))
        primary.insert(table_entry=written)
        assert primary.read_tables(table_id=TABLE_ID["selected"]) == [written]
        assert [weight for _, weight in next(iter(dataplane.groups.values()))] == [2, 3, 1]
        assert primary.read(action_profile_member=p4r.ActionProfileMember()) == []
        assert primary.read(action_profile_group=p4r.ActionProfileGroup()) == []
        changed = one_shot(1, (3, 1, 0))
        primary.modify(table_entry=changed)
        assert primary.read_tables(table_id=TABLE_ID["selected"]) == [changed]
        assert (len(dataplane.groups), len(dataplane.members)) == (1, 1)
        primary.delete(table_entry=changed)
        assert dataplane.groups == dataplane.members == {}

    def test_rules(self, primary: Controller, dataplane: FakeDataplane) -> None:
        assert fails(primary.insert, table_entry=one_shot(1, (1, 0, 0))) == Code.INVALID_ARGUMENT
        assert fails(primary.insert, table_entry=one_shot(1, (1, 9, 0))) == Code.INVALID_ARGUMENT
        assert fails(primary.insert, table_entry=one_shot(1, (512, 1, 0))) == Code.INVALID_ARGUMENT
        mode = p4r.ActionProfileActionSet.RANDOM
        assert (
            fails(primary.insert, table_entry=one_shot(1, (1, 1, 0), action_selection_mode=mode))
            == Code.UNIMPLEMENTED
        )
        assert dataplane.groups == dataplane.members == {}

    def test_does_not_mix_with_members(self, primary: Controller) -> None:
        primary.insert(table_entry=one_shot(1, (1, 1, 0)))
        assert fails(primary.insert, action_profile_member=member(1)) == Code.INVALID_ARGUMENT
        primary.delete(table_entry=one_shot(1))
        primary.insert(action_profile_member=member(1))
        assert fails(primary.insert, table_entry=one_shot(1, (1, 1, 0))) == Code.INVALID_ARGUMENT

    def test_too_many_actions_leave_nothing_behind(
        self, primary: Controller, dataplane: FakeDataplane
    ) -> None:
        for a in range(4):
            primary.insert(table_entry=one_shot(a, *([(1, 1, 0)] * 4)))
        members, groups = dict(dataplane.members), dict(dataplane.groups)
        assert fails(primary.insert, table_entry=one_shot(9, (1, 1, 0))) == Code.RESOURCE_EXHAUSTED
        assert (dataplane.members, dataplane.groups) == (members, groups)


def test_a_member_is_out_of_its_group_while_its_watch_port_is_down(
    primary: Controller, dataplane: FakeDataplane
) -> None:
    dataplane.interfaces = {1: "a", 2: "b"}
    dataplane.up = {1: True, 2: False}
    primary.insert(table_entry=one_shot(1, (1, 1, 1), (2, 2, 2), (3, 3, 0)))

    def weights() -> list[int]:
        return [weight for _, weight in next(iter(dataplane.groups.values()))]

    assert weights() == [1, 3]
    dataplane.report(PortStatus(2, True))
    assert eventually(lambda: weights() == [1, 2, 3])
    dataplane.report(PortStatus(1, False))
    assert eventually(lambda: weights() == [2, 3])


def test_the_action_of_a_member_can_change(primary: Controller, dataplane: FakeDataplane) -> None:
    primary.insert(action_profile_member=member(1))
    changed = p4r.ActionProfileMember(
        action_profile_id=SELECTOR_ID, member_id=1, action=action(DROP)
    )
    primary.modify(action_profile_member=changed)
    assert [e.action_profile_member for e in primary.read(action_profile_member=changed)] == [
        changed
    ]
    assert dataplane.members[0, 1] == (DROP, b"")
