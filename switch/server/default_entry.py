"""The default entry of a table: always there, modified or reset, never inserted or deleted."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from switch.dataplane import Dataplane, Target, TargetKind
from switch.server.actions import ActionSet
from switch.server.errors import Code, RequestError, invalid
from switch.server.pipeline import TableInfo


class DefaultEntry:
    """What a table does when nothing matches, and the metadata a client gave it."""

    def __init__(
        self, info: TableInfo, dataplane: Dataplane, table: int, actions: ActionSet
    ) -> None:
        self._info = info
        self._dataplane = dataplane
        self._table = table
        self._actions = actions
        self._metadata = b""
        self._cookie = 0
        self.changed = False
        """Whether a client has set it: only then it belongs to the state that a reconcile carries over."""

    def modify(self, message: p4r.TableEntry) -> None:
        """Set it, or reset it to the program's own if the message has no action. Raises PERMISSION_DENIED (const, or
        an action for entries only), INVALID_ARGUMENT."""
        name = self._info.name
        if message.match or message.priority:
            raise invalid(f"table {name}: the default entry has neither match nor priority")
        if self._info.profile:
            raise invalid(f"Cannot set / reset default action for indirect table {name}")
        if self._info.const_default:
            raise RequestError(
                Code.PERMISSION_DENIED, f"the default action of table {name} is constant"
            )
        if message.HasField("counter_data") or message.HasField("meter_config"):
            raise RequestError(
                Code.UNIMPLEMENTED,
                f"table {name}: the default entry has no counter and no meter here",
            )
        if not message.HasField("action"):
            self._dataplane.set_default(self._table, None)
            self._metadata, self._cookie, self.changed = b"", 0, False
            return
        if not message.action.HasField("action"):
            raise invalid(f"table {name} has no action profile: give an action")
        codec = self._actions.find(message.action.action.action_id)
        if codec.scope == p4i.ActionRef.TABLE_ONLY:
            raise RequestError(
                Code.PERMISSION_DENIED,
                f"action {codec.name} is for entries only, not for the default",
            )
        params = codec.encode(message.action.action)
        self._dataplane.set_default(
            self._table, Target(TargetKind.ACTION, codec.dataplane_id, params)
        )
        self._metadata, self._cookie, self.changed = (
            message.metadata,
            message.controller_metadata,
            True,
        )

    def read(self) -> p4r.TableEntry:
        """The entry as a client reads it."""
        message = p4r.TableEntry(
            table_id=self._info.id, is_default_action=True, is_const=self._info.const_default
        )
        target = self._dataplane.default(self._table)
        if target is not None and target.kind is TargetKind.ACTION and self._actions.by_id:
            message.action.action.CopyFrom(self._actions.decode(target.id, target.params))
        message.metadata = self._metadata
        message.controller_metadata = self._cookie
        return message
