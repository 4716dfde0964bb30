"""Client arbitration: which client of each role is the primary.

As in BMv2, the connected client with the highest election id is the primary, so a backup is promoted when the
primary goes. (The specification would leave the role without one until the next arbitration message.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from finsy.proto import p4r

from switch.server.errors import Code, RequestError, invalid
from switch.server.roles import RoleConfig, parse_role_config

_LOG = logging.getLogger(__name__)

MAX_CLIENTS = 16
"""Connections of one role, as in BMv2."""


def uint128(message: p4r.Uint128) -> int:
    """An election id as a number."""
    return message.high << 64 | message.low


@dataclass(slots=True, eq=False)
class Client:
    """A controller's stream."""

    send: Callable[[p4r.StreamMessageResponse], None]
    role: str | None = None
    """The role's name ("" is the default role); None before its first arbitration message."""
    election_id: int | None = None
    """None if the client gave none: then it never becomes primary."""


@dataclass(slots=True)
class _Role:
    """The live clients of a role."""

    name: str
    echo: p4r.Role | None = None
    """As the primary sent it, for notifications."""
    config: RoleConfig = field(default_factory=RoleConfig)
    clients: list[Client] = field(default_factory=list)
    primary: Client | None = None
    highest: int | None = None
    """The highest election id seen, None before there was one."""

    def elect(self) -> None:
        """Find the primary among the clients, which have changed."""
        candidates = [c for c in self.clients if c.election_id is not None]
        self.primary = max(candidates, key=lambda c: c.election_id or 0, default=None)


class Arbiter:
    """All roles of one device. Callers hold the device's lock."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {}

    def update(self, client: Client, message: p4r.MasterArbitrationUpdate) -> None:
        """Handle an arbitration message. Raises, and the stream then ends: NOT_FOUND (another device),
        FAILED_PRECONDITION (device or role changed), INVALID_ARGUMENT (election id in use, role config not
        understood), RESOURCE_EXHAUSTED (too many clients)."""
        name = role_name(message.role) if message.HasField("role") else ""
        if message.device_id != self._device_id:
            code = Code.NOT_FOUND if client.role is None else Code.FAILED_PRECONDITION
            raise RequestError(
                code, f"this switch is device {self._device_id}, not {message.device_id}"
            )
        if client.role is not None and client.role != name:
            raise RequestError(
                Code.FAILED_PRECONDITION, "a client cannot change its role; open another stream"
            )
        config = parse_role_config(message.role)
        role = self._roles.setdefault(name, _Role(name))
        election_id = uint128(message.election_id) if message.HasField("election_id") else None
        if election_id is not None and any(
            c.election_id == election_id for c in role.clients if c is not client
        ):
            raise invalid(
                "Election id already exists"
            )  # finsy looks for these words, which are BMv2's
        before = role.primary
        if client.role is None:
            if len(role.clients) >= MAX_CLIENTS:
                raise RequestError(
                    Code.RESOURCE_EXHAUSTED, f"a role has at most {MAX_CLIENTS} clients"
                )
            role.clients.append(client)
            client.role = name
        client.election_id = election_id
        role.elect()
        if role.primary is client:
            role.highest = (
                election_id if role.highest is None else max(role.highest, election_id or 0)
            )
            role.config = config
            role.echo = p4r.Role()
            role.echo.CopyFrom(message.role)
            if not message.HasField("role"):
                role.echo = None
        if role.primary is not before or role.primary is client:
            self._notify(role, role.clients)
        else:
            self._notify(role, [client])

    def leave(self, client: Client) -> None:
        """A stream has ended; a backup may become primary."""
        if client.role is None:
            return
        role = self._roles[client.role]
        was_primary = role.primary is client
        role.clients.remove(client)
        client.role = None
        role.elect()
        if was_primary:
            self._notify(role, role.clients)

    def check_primary(self, role: str, election_id: int | None) -> RoleConfig:
        """Whether a unary request comes from the primary of a role; the role's configuration. Raises
        PERMISSION_DENIED. As in BMv2, while no client is connected at all, requests without election id pass."""
        known = self._roles.get(role)
        if known is not None and known.primary is not None:
            if known.primary.election_id == election_id:
                return known.config
        elif not any(r.clients for r in self._roles.values()):
            if election_id is None:
                return RoleConfig()
            raise RequestError(Code.PERMISSION_DENIED, "Not primary: no client is connected")
        raise RequestError(Code.PERMISSION_DENIED, "Not primary")

    def role_config(self, role: str) -> RoleConfig:
        """What a role may see."""
        known = self._roles.get(role)
        return known.config if known else RoleConfig()

    def is_primary(self, client: Client) -> bool:
        """Whether a client is the primary of its role."""
        return client.role is not None and self._roles[client.role].primary is client

    def primaries(self) -> list[tuple[Client, RoleConfig]]:
        """The primary of each role that has one."""
        return [
            (role.primary, role.config) for role in self._roles.values() if role.primary is not None
        ]

    def _notify(self, role: _Role, clients: list[Client]) -> None:
        primary = role.primary
        election_id = primary.election_id if primary is not None else None
        _LOG.info(
            "role %r: %d clients, the primary's election id is %s",
            role.name,
            len(role.clients),
            election_id,
        )
        for client in clients:
            response = p4r.StreamMessageResponse()
            update = response.arbitration
            update.device_id = self._device_id
            if role.echo is not None:
                update.role.CopyFrom(role.echo)
            elif role.name:
                update.role.name = role.name
            shown = primary.election_id if primary is not None else role.highest
            if shown is not None:
                update.election_id.high = shown >> 64
                update.election_id.low = shown & (1 << 64) - 1
            if client is primary:
                update.status.code, update.status.message = Code.OK, "Is primary"
            elif primary is not None:
                update.status.code, update.status.message = Code.ALREADY_EXISTS, "Is backup"
            else:
                update.status.code, update.status.message = Code.NOT_FOUND, "There is no primary"
            client.send(response)


def role_name(role: p4r.Role) -> str:
    """A role's name; the deprecated numeric id counts as a name."""
    return role.name or (str(role.id) if role.id else "")
