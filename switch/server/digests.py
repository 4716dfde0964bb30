"""Digests: gathered into lists, sent once, and allowed again when acknowledged or timed out.

The data plane reports each distinct sample once until it is told to forget it; this module decides when a list is
full or old enough to send, and when its samples are forgotten (P4Runtime, DigestEntry).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from finsy.proto import p4d, p4r

from switch.dataplane import Dataplane
from switch.server.errors import Code, RequestError, invalid, not_found
from switch.server.p4data import DataCodec
from switch.server.pipeline import DigestInfo

MAX_LIST = 4096
"""Samples in a list when the client sets no limit."""


@dataclass(slots=True)
class _Sent:
    """A list that waits for its acknowledgement."""

    samples: list[bytes]
    expires: float
    """time.monotonic()."""


@dataclass(slots=True)
class _Learning:
    """One enabled digest."""

    config: p4r.DigestEntry.Config
    buffer: list[bytes] = field(default_factory=list)
    first: float = 0.0
    """When the oldest sample of the buffer came (time.monotonic())."""
    sent: dict[int, _Sent] = field(default_factory=dict)
    """By list id."""

    @property
    def full(self) -> int:
        """Samples that make a list."""
        return self.config.max_list_size or MAX_LIST

    @property
    def send_at(self) -> float:
        """When the buffer is old enough to be sent."""
        return self.first + self.config.max_timeout_ns * 1e-9


class Digests:
    """All digests of a program."""

    def __init__(
        self,
        infos: Mapping[int, DigestInfo],
        dataplane: Dataplane,
        types: DataCodec,
        send: Callable[[p4r.DigestList], bool],
    ) -> None:
        """`send` gives a list to the primary clients and says whether there was one."""
        self._infos = infos
        self._dataplane = dataplane
        self._types = types
        self._send = send
        self._ids = {key: dataplane.digest(info.name) for key, info in infos.items()}
        self._by_dataplane_id = {value: key for key, value in self._ids.items()}
        self._learning: dict[int, _Learning] = {}
        self._next_list = 1

    # -- configuration ------------------------------------------------------------------------------------------

    def insert(self, message: p4r.DigestEntry) -> None:
        """Start to report a digest. Raises ALREADY_EXISTS, NOT_FOUND (as BMv2), INVALID_ARGUMENT."""
        info = self._find(message.digest_id)
        if info.id in self._learning:
            raise RequestError(
                Code.ALREADY_EXISTS, f"digest {info.name} is configured already; MODIFY it"
            )
        self._learning[info.id] = _Learning(_checked_config(message, info))
        self._dataplane.enable_digest(self._ids[info.id], True)

    def modify(self, message: p4r.DigestEntry) -> None:
        """Change its configuration. Raises NOT_FOUND, INVALID_ARGUMENT."""
        info = self._find(message.digest_id)
        self._enabled(info).config = _checked_config(message, info)

    def delete(self, message: p4r.DigestEntry) -> None:
        """Stop reporting it. Raises NOT_FOUND."""
        info = self._find(message.digest_id)
        self._enabled(info)
        self._dataplane.enable_digest(self._ids[info.id], False)
        self._dataplane.forget_digests(self._ids[info.id])
        del self._learning[info.id]

    def read(self, request: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
        """One digest's configuration, or all for id 0."""
        if request.digest_id:
            info = self._find(request.digest_id)
            yield p4r.DigestEntry(digest_id=info.id, config=self._enabled(info).config)
            return
        for key, learning in self._learning.items():
            yield p4r.DigestEntry(digest_id=key, config=learning.config)

    # -- what happens -------------------------------------------------------------------------------------------

    def learned(self, dataplane_id: int, samples: Sequence[bytes]) -> None:
        """The data plane has new samples."""
        key = self._by_dataplane_id[dataplane_id]
        learning = self._learning.get(key)
        if learning is None:
            return
        if not learning.buffer:
            learning.first = time.monotonic()
        learning.buffer.extend(samples)
        self._flush(key, learning)

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        """A client has acted on a list: its samples may be reported again. Raises INVALID_ARGUMENT (no such digest);
        an unknown list has timed out, which is no error."""
        if ack.digest_id not in self._infos:
            raise invalid(f"no digest has id {ack.digest_id:#010x}")
        learning = self._learning.get(ack.digest_id)
        sent = learning.sent.pop(ack.list_id, None) if learning else None
        if sent is not None:
            self._dataplane.forget_digests(self._ids[ack.digest_id], sent.samples)

    def tick(self) -> None:
        """Send what has waited long enough, forget what was never acknowledged."""
        now = time.monotonic()
        for key, learning in self._learning.items():
            self._flush(key, learning)
            for list_id in [i for i, sent in learning.sent.items() if sent.expires <= now]:
                self._dataplane.forget_digests(self._ids[key], learning.sent.pop(list_id).samples)

    def next_due(self) -> float | None:
        """When `tick` has something to do (time.monotonic()), None if nothing waits."""
        due = [learning.send_at for learning in self._learning.values() if learning.buffer]
        due += [
            sent.expires for learning in self._learning.values() for sent in learning.sent.values()
        ]
        return min(due, default=None)

    # -- inside -------------------------------------------------------------------------------------------------

    def _flush(self, key: int, learning: _Learning) -> None:
        while len(learning.buffer) >= learning.full or (
            learning.buffer and learning.send_at <= time.monotonic()
        ):
            samples, learning.buffer = (
                learning.buffer[: learning.full],
                learning.buffer[learning.full :],
            )
            learning.first = time.monotonic()
            self._emit(key, learning, samples)

    def _emit(self, key: int, learning: _Learning, samples: list[bytes]) -> None:
        message = p4r.DigestList(digest_id=key, list_id=self._next_list, timestamp=time.time_ns())
        message.data.extend(self._data(key, sample) for sample in samples)
        self._next_list += 1
        wait = learning.config.ack_timeout_ns * 1e-9
        if self._send(message) and wait > 0:
            learning.sent[message.list_id] = _Sent(samples, time.monotonic() + wait)
        else:
            # nobody heard it, or the client asked for no suppression
            self._dataplane.forget_digests(self._ids[key], samples)

    def _data(self, key: int, sample: bytes) -> p4d.P4Data:
        return self._types.decode(self._infos[key].type_spec, sample)

    def _find(self, key: int) -> DigestInfo:
        if key not in self._infos:
            raise not_found(f"no digest has id {key:#010x}")
        return self._infos[key]

    def _enabled(self, info: DigestInfo) -> _Learning:
        if info.id not in self._learning:
            raise not_found(f"digest {info.name} is not configured")
        return self._learning[info.id]


def _checked_config(message: p4r.DigestEntry, info: DigestInfo) -> p4r.DigestEntry.Config:
    config = p4r.DigestEntry.Config()
    config.CopyFrom(message.config)
    if config.max_timeout_ns < 0 or config.max_list_size < 0 or config.ack_timeout_ns < 0:
        raise invalid(f"digest {info.name}: a negative time-out or size")
    return config
