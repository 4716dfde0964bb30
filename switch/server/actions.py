"""Actions: P4Runtime's Action messages <-> action ids and parameter bytes of the data plane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from finsy.proto import p4r

from switch.server.bytestrings import narrow, octets, widen
from switch.server.errors import invalid
from switch.server.pipeline import ActionInfo


class ActionCodec:
    """One action of one table or profile."""

    def __init__(self, info: ActionInfo, dataplane_id: int) -> None:
        self.id = info.id
        self.name = info.name
        self.scope = info.scope
        self.dataplane_id = dataplane_id
        self._params = info.params
        # (position, size, top, field): a value of that size whose first byte is at most `top` needs no encoding
        self._by_id = {
            p.id: (position, octets(p.bits), 0xFF >> -p.bits % 8, p)
            for position, p in enumerate(info.params)
        }

    def encode(self, action: p4r.Action) -> bytes:
        """The parameters' bytes. Raises INVALID_ARGUMENT for unknown, repeated, missing or too wide parameters."""
        parts: list[bytes | None] = [None] * len(self._params)
        for param in action.params:
            found = self._by_id.get(param.param_id)
            if found is None:
                raise invalid(f"action {self.name}: no parameter has id {param.param_id}")
            position, size, top, field = found
            if parts[position] is not None:
                raise invalid(f"parameter {field.name} is given twice")
            value = param.value
            plain = len(value) == size and value[0] <= top
            parts[position] = value if plain else widen(value, field.bits, field.name)
        try:
            return b"".join(parts)  # type: ignore[arg-type]
        except TypeError:
            missing = next(
                p.name for p, part in zip(self._params, parts, strict=True) if part is None
            )
            raise invalid(f"parameter {missing} is missing") from None

    def decode(self, data: bytes) -> p4r.Action:
        """The message of this action with these parameters."""
        action, position = p4r.Action(action_id=self.id), 0
        for param in self._params:
            size = octets(param.bits)
            action.params.add(param_id=param.id, value=narrow(data[position : position + size]))
            position += size
        return action


class ActionSet:
    """The actions that one table or profile may use, by P4Info id and by data-plane id."""

    def __init__(
        self, actions: Mapping[int, ActionInfo], resolve: Callable[[str], int], owner: str
    ) -> None:
        """`resolve` gives the data plane's id of an action's name."""
        self._owner = owner
        codecs: Iterable[ActionCodec] = [
            ActionCodec(info, resolve(info.name)) for info in actions.values()
        ]
        self.by_id = {codec.id: codec for codec in codecs}
        self._by_dataplane_id = {codec.dataplane_id: codec for codec in self.by_id.values()}

    def find(self, action_id: int) -> ActionCodec:
        """The action of a P4Info id. Raises INVALID_ARGUMENT if it is none of these."""
        codec = self.by_id.get(action_id)
        if codec is None:
            raise invalid(f"{self._owner} has no action {action_id:#010x}")
        return codec

    def decode(self, dataplane_id: int, params: bytes) -> p4r.Action:
        """The message of what the data plane holds."""
        return self._by_dataplane_id[dataplane_id].decode(params)
