"""Sends random P4Runtime messages to a server whose data plane runs under the sanitizers.

    python -m tests.switch.message_fuzz [MESSAGES] [SEED]

Messages are random but near what echelon.p4 understands: its ids, values of the right length and others. Between
them frames run through the data plane. A report of the sanitizers, an INTERNAL error or a server that no longer
answers ends it with a non-zero status.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.switch.stress import sanitized

DEVICE = 1


class Maker:
    """Random messages."""

    def __init__(self, source: random.Random, ids: list[int]) -> None:
        self.source, self.ids = source, ids

    def fill(self, message: Any, depth: int = 8) -> Any:
        """Set about half of a message's fields (one of each oneof)."""
        chosen = {o.name: self.source.choice(o.fields).name for o in message.DESCRIPTOR.oneofs}
        for field in message.DESCRIPTOR.fields:
            oneof = field.containing_oneof
            if oneof is not None and chosen[oneof.name] != field.name:
                continue
            if depth == 0 or self.source.random() < 0.25:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                continue
            self._set(message, field, depth)
        return message

    def change(self, message: Any) -> Any:
        """Set one field, somewhere in a message, anew."""
        while True:
            present = message.ListFields()
            if not present:
                break
            field, value = self.source.choice(present)
            if field.message_type is None or self.source.random() < 0.1:
                break
            if field.is_repeated and not len(value):
                break
            message = self.source.choice(value) if field.is_repeated else value
        fields = [
            f
            for f in message.DESCRIPTOR.fields
            if f.message_type is None or self.source.random() < 0.3
        ]
        if fields:
            self._set(message, self.source.choice(fields), 3)
        return message

    def _set(self, message: Any, field: Any, depth: int) -> None:
        many = self.source.choice((1, 1, 2, 5)) if field.is_repeated else 1
        for _ in range(many):
            if field.message_type is not None:
                inner = getattr(message, field.name)
                self.fill(inner.add() if field.is_repeated else inner, depth - 1)
                if not field.is_repeated:
                    inner.SetInParent()
            elif field.is_repeated:
                getattr(message, field.name).append(self._scalar(field))
            else:
                setattr(message, field.name, self._scalar(field))

    def _scalar(self, field: Any) -> Any:
        source = self.source
        if field.type == field.TYPE_BYTES:
            return source.choice(
                (b"", b"\0", b"\1", source.randbytes(2), source.randbytes(4), source.randbytes(16),
                 source.randbytes(source.randrange(40)))
            )  # fmt: skip
        if field.type == field.TYPE_STRING:
            return source.choice(("", "x", "\u2603" * 9))
        if field.type == field.TYPE_ENUM:
            return source.choice(field.enum_type.values).number
        if field.type == field.TYPE_BOOL:
            return source.random() < 0.5
        if field.type in (field.TYPE_DOUBLE, field.TYPE_FLOAT):
            return source.random()
        bits = 31 if field.type in (field.TYPE_INT32, field.TYPE_UINT32) else 63
        if field.name.endswith("_id") and source.random() < 0.8:
            return source.choice(self.ids)
        return source.choice(
            (0, 1, 2, 3, 7, 510, 511, 65535, (1 << bits) - 1, source.randrange(1 << bits))
        )


def per_update(error: Any) -> list[str]:
    """The codes of the updates of a Write that failed."""
    import grpc
    from finsy.proto import p4r, rpc_status

    codes = {code.value[0]: code.name for code in grpc.StatusCode}
    for item in error.trailing_metadata() or ():
        if item.key == "grpc-status-details-bin":
            details = [
                p4r.Error.FromString(d.value)
                for d in rpc_status.Status.FromString(item.value).details
            ]
            return [codes[d.canonical_code] for d in details if d.canonical_code]
    return []


def fuzz(count: int, seed: int) -> None:
    import grpc
    from finsy.proto import U128, p4r

    from switch.dataplane import Dataplane
    from switch.server.device import Device
    from switch.server.events import EventLoop
    from switch.server.service import serve
    from tests.switch.differential.run import echelon_p4info
    from tests.switch.differential.scenarios import echelon
    from tests.switch.drive.p4runtime import Session

    source, scenario = random.Random(seed), echelon()

    def make() -> Dataplane:
        return Dataplane(queues=8, cpu_port=510, sanitize=True)

    plane = make()
    device = Device(DEVICE, plane, 510, make)
    events = EventLoop(device, plane.events_fd)
    server, port = serve(device, "127.0.0.1:0", None)
    events.start()
    statuses: Counter[str] = Counter()
    updates: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        p4info = echelon_p4info(Path(directory))
        session = Session(f"127.0.0.1:{port}", scenario.json, p4info)
    for command in scenario.commands:
        session.tell(command)
    seeds = [pair for command in scenario.commands for pair in session._entities(command)]
    info = session.info
    parts = (info.tables, info.actions, info.action_profiles, info.counters, info.meters,
             info.registers, info.digests, info.direct_counters, info.direct_meters)  # fmt: skip
    ids = [x.preamble.id for part in parts for x in part] + [1, 2, 3, 4, 5]
    maker = Maker(source, ids)
    stub = session._stub
    frames = scenario.frames(200, seed)
    for number in range(count):
        try:
            if source.random() < 0.8:
                request = p4r.WriteRequest(device_id=DEVICE, election_id=U128.encode(1))
                for _ in range(source.randrange(1, 4)):
                    update = request.updates.add()
                    if source.random() < 0.3:
                        maker.fill(update)
                        continue
                    kind, entity = source.choice(seeds)
                    update.entity.CopyFrom(entity)
                    update.type = source.choice((kind, *p4r.Update.Type.values()))
                    for _ in range(source.randrange(3)):
                        maker.change(update.entity)
                request.atomicity = source.choice((0, 0, 0, 1))  # type: ignore[assignment]
                stub.Write(request, timeout=20)
            else:
                read = p4r.ReadRequest(device_id=DEVICE, entities=[maker.fill(p4r.Entity())])
                for _ in stub.Read(read, timeout=20):
                    pass
            statuses["OK"] += 1
        except grpc.RpcError as error:
            statuses[error.code().name] += 1
            inner = per_update(error)
            updates.update(inner)
            broken = {"INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"} & {error.code().name, *inner}
            if broken or "Exception" in (error.details() or ""):
                raise AssertionError(
                    f"message {number}: {error.code()} {error.details()}"
                ) from error
        if number % 50 == 0:
            for in_port, frame in source.sample(frames, 20):
                plane.process(in_port, frame)
    session.close()
    server.stop(0).wait()
    events.stop()
    device.close()
    print(f"{count} messages: {dict(statuses)}, failed updates {dict(updates)}", flush=True)


def main(arguments: list[str]) -> int:
    count, seed = (arguments + ["5000", "1"][len(arguments) :])[:2]
    if "SANITIZED" in os.environ:
        fuzz(int(count), int(seed))
        return 0
    done = sanitized("tests.switch.message_fuzz", count, seed)
    print(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
