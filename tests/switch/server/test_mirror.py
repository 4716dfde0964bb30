"""Random sequences of updates, right and wrong: the server's store stays the mirror of the data plane, a rollback
leaves no trace, and a snapshot recreates the state elsewhere."""

from __future__ import annotations

from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from switch.dataplane import TargetKind
from switch.server.pipeline import build
from switch.server.ports import Ports
from switch.server.snapshot import replay, snapshot
from switch.server.state import ForwardingState
from switch.server.undo import write_or_roll_back
from tests.switch.server.controller import action, entry, exact, number
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import (
    DROP,
    JSON,
    PROFILE_ID,
    PROGRAM,
    SELECTOR_ID,
    TABLE_ID,
    config,
)

small = st.integers(0, 3)
TYPES = st.sampled_from([p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE])


def _table_entry(table: str, a: int, how: int, ids: tuple[int, int]) -> p4r.TableEntry:
    if table not in ("selected", "indirect"):
        match = [exact(1, a)] if table != "lpm" else []
        if table == "exact":
            match.append(exact(2, ids[0]))
        if table == "lpm" and a:
            lpm = p4r.FieldMatch.LPM(value=number(a << 24), prefix_len=8)
            match.append(p4r.FieldMatch(field_id=1, lpm=lpm))
        act = action(DROP) if how == 0 else action(port=how)
        return entry(table, *match, act=act, metadata=bytes([how]))
    message = p4r.TableEntry(table_id=TABLE_ID[table], match=[exact(1, a)])
    if how == 0:
        message.action.action_profile_member_id = ids[0]
    elif how == 1:
        message.action.action_profile_group_id = ids[0]
    else:
        for port in range(how):
            slot = message.action.action_profile_action_set.action_profile_actions.add(
                weight=ids[1]
            )
            slot.action.CopyFrom(action(port=port))
    return message


entries = st.builds(
    lambda *a: p4r.Entity(table_entry=_table_entry(*a)),
    st.sampled_from(["exact", "lpm", "selected", "selected", "indirect", "small"]),
    small,
    small,
    st.tuples(small, small),
)
members = st.builds(
    lambda profile, member, port: p4r.Entity(
        action_profile_member=p4r.ActionProfileMember(
            action_profile_id=profile, member_id=member, action=action(port=port)
        )
    ),
    st.sampled_from([SELECTOR_ID, SELECTOR_ID, PROFILE_ID]),
    small,
    small,
)
groups = st.builds(
    lambda group, slots: p4r.Entity(
        action_profile_group=p4r.ActionProfileGroup(
            action_profile_id=SELECTOR_ID,
            group_id=group,
            members=[p4r.ActionProfileGroup.Member(member_id=m, weight=w) for m, w in slots],
        )
    ),
    small,
    st.lists(st.tuples(small, small), max_size=3),
)
updates = st.builds(p4r.Update, type=TYPES, entity=st.one_of(entries, members, groups))
batches = st.lists(st.tuples(st.booleans(), st.lists(updates, max_size=6)), max_size=12)


def fresh() -> tuple[ForwardingState, FakeDataplane]:
    dataplane = FakeDataplane({JSON: PROGRAM})
    pipeline = build(config(), dataplane.check)
    dataplane.load(JSON)
    return ForwardingState(pipeline, dataplane, Ports(dataplane, None), lambda _: False), dataplane


def everything(state: ForwardingState) -> list[str]:
    """What clients read, in an order that does not depend on history."""
    requests = [
        p4r.Entity(table_entry=p4r.TableEntry(counter_data=p4r.CounterData())),
        p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
        p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    ]
    return sorted(str(entity) for request in requests for entity in state.read(request))


def check_mirror(state: ForwardingState, dataplane: FakeDataplane) -> None:
    for table in state.tables.values():
        stored = {e.handle: (e.key, e.target) for e in table.entries()}
        held = {
            h: (key, target)
            for h, key, _, target in dataplane.entries(dataplane.table(table.info.name))
        }
        assert stored == held
    used = {t.id for _, _, _, t in dataplane.entries(3) if t.kind is TargetKind.GROUP}
    assert used <= {group for _, group in dataplane.groups}


@settings(max_examples=150, deadline=None)
@given(history=batches)
def test_any_history_keeps_the_mirror(history: list[tuple[bool, list[p4r.Update]]]) -> None:
    state, dataplane = fresh()
    try:
        for roll_back, batch in history:
            if not roll_back:
                state.write(batch)
            else:
                before = everything(state)
                if any(write_or_roll_back(state, batch)):
                    assert everything(state) == before
            check_mirror(state, dataplane)
        copy, other = fresh()
        assert replay(copy, snapshot(state)) == []
        assert everything(copy) == everything(state)
        other.close()
    finally:
        dataplane.close()
