"""Parser value sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy.proto import p4r

from switch.dataplane import Dataplane
from switch.server.errors import Code, RequestError, invalid
from switch.server.matches import KeyCodec
from switch.server.pipeline import ValueSetInfo


class ValueSets:
    """All value sets of a program, and what clients wrote to them."""

    def __init__(self, infos: Mapping[int, ValueSetInfo], dataplane: Dataplane) -> None:
        self._infos = infos
        self._dataplane = dataplane
        self._ids = {key: dataplane.value_set(info.name) for key, info in infos.items()}
        self._codecs = {
            key: KeyCodec(info.fields, f"value set {info.name}") for key, info in infos.items()
        }
        self._members: dict[int, list[bytes]] = {key: [] for key in infos}

    def modify(self, message: p4r.ValueSetEntry) -> None:
        """Replace the members. Raises RESOURCE_EXHAUSTED, ALREADY_EXISTS (one listed twice), INVALID_ARGUMENT."""
        info = self._find(message.value_set_id)
        codec = self._codecs[info.id]
        if info.size and len(message.members) > info.size:
            raise RequestError(
                Code.RESOURCE_EXHAUSTED, f"{info.name}: more than {info.size} members"
            )
        keys = [codec.encode(member.match) for member in message.members]
        if len(set(keys)) < len(keys):
            raise RequestError(Code.ALREADY_EXISTS, f"{info.name}: a member is listed twice")
        self._dataplane.value_set_write(self._ids[info.id], [codec.masked(key) for key in keys])
        self._members[info.id] = keys

    def read(self, request: p4r.ValueSetEntry) -> Iterator[p4r.ValueSetEntry]:
        """One value set, or all for id 0."""
        infos = [self._find(request.value_set_id)] if request.value_set_id else self._infos.values()
        for info in infos:
            decode = self._codecs[info.id].decode
            members = [p4r.ValueSetMember(match=decode(key)) for key in self._members[info.id]]
            yield p4r.ValueSetEntry(value_set_id=info.id, members=members)

    def _find(self, key: int) -> ValueSetInfo:
        if key not in self._infos:
            raise invalid(f"no value set has id {key:#010x}")
        return self._infos[key]
