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
        self._params = tuple((p.id, p.name, p.bits, octets(p.bits)) for p in info.params)
        self._positions = {p.id: position for position, p in enumerate(info.params)}

    def encode(self, action: p4r.Action) -> bytes:
        """The parameters' bytes. Raises INVALID_ARGUMENT for unknown, repeated, missing or too wide parameters."""
        params = self._params
        parts: list[bytes | None] = [None] * len(params)
        for param in action.params:
            position = self._positions.get(param.param_id)
            if position is None:
                raise invalid(f"action {self.name}: no parameter has id {param.param_id}")
            if parts[position] is not None:
                raise invalid(f"parameter {params[position][1]} is given twice")
            _, name, bits, size = params[position]
            value = param.value
            # the usual case first: already as wide as the parameter and no spare bits
            parts[position] = value if len(value) == size and not bits & 7 else widen(value, bits, name)
        try:
            return b"".join(parts)  # type: ignore[arg-type]
        except TypeError:
            missing = next(p[1] for p, part in zip(params, parts, strict=True) if part is None)
            raise invalid(f"parameter {missing} is missing") from None

    def decode(self, data: bytes) -> p4r.Action:
        """The message of this action with these parameters."""
        action, position = p4r.Action(action_id=self.id), 0
        for param_id, _, _, size in self._params:
            action.params.add(param_id=param_id, value=narrow(data[position : position + size]))
            position += size
        return action


class ActionSet:
    """The actions that one table or profile may use, by P4Info id and by data-plane id."""

    def __init__(self, actions: Mapping[int, ActionInfo], resolve: Callable[[str], int], owner: str) -> None:
        """`resolve` gives the data plane's id of an action's name."""
        self._owner = owner
        codecs: Iterable[ActionCodec] = [ActionCodec(info, resolve(info.name)) for info in actions.values()]
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
