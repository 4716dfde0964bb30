"""Undoing updates: what must be written to take an update back, found before it is done."""

from __future__ import annotations

from finsy.proto import p4r

from switch.server.errors import Code, Outcome, RequestError
from switch.server.state import DELETE, INSERT, MODIFY, ForwardingState


def write_or_roll_back(state: ForwardingState, updates: list[p4r.Update]) -> list[Outcome]:
    """ROLLBACK_ON_ERROR: all updates, or none. After a failure the outcome of the others is ABORTED."""
    inverses: list[p4r.Update] = []
    for position, update in enumerate(updates):
        inverse = _inverse(state, update)
        error = state.write_one(update)
        if error is None:
            inverses.extend(inverse)
            continue
        for step in reversed(inverses):
            failure = state.write_one(step)
            if failure is not None:
                raise RequestError(Code.INTERNAL, f"rolling back failed: {failure.message}")
        outcomes: list[Outcome] = [
            RequestError(Code.ABORTED, "rolled back: another update failed")
        ] * len(updates)
        outcomes[position] = error
        return outcomes
    return [None] * len(updates)


def _inverse(state: ForwardingState, update: p4r.Update) -> list[p4r.Update]:
    """The updates that restore what `update` changes; none if it cannot succeed anyway."""
    if update.type == INSERT:
        return [p4r.Update(type=DELETE, entity=update.entity)]
    restoring = INSERT if update.type == DELETE else MODIFY
    try:
        if update.entity.HasField("table_entry"):
            return [p4r.Update(type=restoring, entity=_table_entry_before(state, update))]
        return [p4r.Update(type=restoring, entity=entity) for entity in state.read(update.entity)]
    except RequestError:
        return []


def _table_entry_before(state: ForwardingState, update: p4r.Update) -> p4r.Entity:
    entry = update.entity.table_entry
    table = state.table(entry.table_id)
    if entry.is_default_action:
        before = (
            table.default.read()
            if table.default.changed
            else p4r.TableEntry(table_id=entry.table_id)
        )
        before.is_default_action = True
        return p4r.Entity(table_entry=before)
    wanted = p4r.TableEntry(meter_config=p4r.MeterConfig())
    if update.type == DELETE or entry.HasField("counter_data"):
        wanted.counter_data.SetInParent()
    before = table.message(table.find(entry), wanted)
    if before.is_const:
        before.ClearField("action")
    return p4r.Entity(table_entry=before)
