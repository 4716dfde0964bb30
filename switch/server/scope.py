"""Which P4Info object an entity belongs to (roles are given P4Info ids)."""

from __future__ import annotations

from finsy.proto import p4r


def p4info_id(entity: p4r.Entity) -> int:
    """The P4Info id of an entity's object; 0 for multicast groups and clone sessions, which have none."""
    kind = entity.WhichOneof("entity")
    if kind == "table_entry":
        return entity.table_entry.table_id
    if kind in ("direct_counter_entry", "direct_meter_entry"):
        direct = (
            entity.direct_counter_entry
            if kind == "direct_counter_entry"
            else entity.direct_meter_entry
        )
        return direct.table_entry.table_id
    if kind in ("action_profile_member", "action_profile_group"):
        profiled = (
            entity.action_profile_member
            if kind == "action_profile_member"
            else entity.action_profile_group
        )
        return profiled.action_profile_id
    if kind == "counter_entry":
        return entity.counter_entry.counter_id
    if kind == "meter_entry":
        return entity.meter_entry.meter_id
    if kind == "register_entry":
        return entity.register_entry.register_id
    if kind == "value_set_entry":
        return entity.value_set_entry.value_set_id
    if kind == "digest_entry":
        return entity.digest_entry.digest_id
    return 0
