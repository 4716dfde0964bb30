"""Role configurations: which entities, packet-ins and pipelines a role may touch.

P4Runtime leaves the scheme open. This switch understands Stratum's P4RoleConfig (which finsy sends); no configuration
is full access.
"""

from __future__ import annotations

from dataclasses import dataclass

from finsy.proto import p4r

from switch.server.errors import invalid

_TYPE = "stratum.P4RoleConfig"


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """What a role may do."""

    writable: frozenset[int] | None = None
    """P4Info ids it may write (and sees when it reads by role); None is all."""
    receives_packet_ins: bool = True
    packet_in_filter: tuple[int, bytes] | None = None
    """(metadata id, value) that a packet-in must have; None is any."""
    can_push_pipeline: bool = True

    def allows(self, p4info_id: int) -> bool:
        """Whether an entity of this P4Info id is in the role's scope. Multicast groups and clone sessions have no id
        (0) and cannot be listed: every role may write them."""
        return self.writable is None or not p4info_id or p4info_id in self.writable

    def wants(self, packet: p4r.PacketIn) -> bool:
        """Whether the role receives this packet."""
        if not self.receives_packet_ins or self.packet_in_filter is None:
            return self.receives_packet_ins
        return any((m.metadata_id, m.value) == self.packet_in_filter for m in packet.metadata)


def parse_role_config(role: p4r.Role) -> RoleConfig:
    """The configuration in a role. Raises INVALID_ARGUMENT if it follows another scheme."""
    if not role.HasField("config"):
        return RoleConfig()
    if role.config.TypeName() != _TYPE:
        raise invalid(f"role config: expected {_TYPE}, not {role.config.TypeName() or 'nothing'}")
    from finsy.proto import stratum  # rarely needed

    message = stratum.P4RoleConfig()
    if not role.config.Unpack(message):
        raise invalid(f"role config: not a valid {_TYPE}")
    listed = frozenset(message.exclusive_p4_ids) | frozenset(message.shared_p4_ids)
    chosen = message.packet_in_filter
    return RoleConfig(
        writable=listed,
        receives_packet_ins=message.receives_packet_ins,
        packet_in_filter=(chosen.metadata_id, chosen.value)
        if message.HasField("packet_in_filter")
        else None,
        can_push_pipeline=message.can_push_pipeline,
    )
