"""The embedded switch's data plane inside this process: `Dataplane.process`, no sockets."""

from __future__ import annotations

from pathlib import Path

from switch.dataplane import Dataplane, DataplaneError, Digest, MeterConfig, Target, TargetKind
from switch.program import KeyField, Program, UnsupportedProgram
from tests.switch.drive.commands import (
    Call,
    CloneSession,
    Command,
    Default,
    Entry,
    Frame,
    Group,
    Match,
    MeterRates,
    Multicast,
    Outcome,
    Refused,
    RegisterWrite,
)


class Embedded:
    """A data plane with a program."""

    target = "embedded"

    def __init__(
        self,
        json: Path,
        p4info: Path | None = None,
        *,
        cpu_port: int = 510,
        queues: int = 8,
        sanitize: bool = False,
    ) -> None:
        self.cpu_port = cpu_port
        self.dataplane = Dataplane(queues=queues, cpu_port=cpu_port, sanitize=sanitize)
        try:
            self.dataplane.load(json.read_bytes())
        except UnsupportedProgram as error:
            self.dataplane.close()
            raise Refused(f"the program: {error}") from error
        for digest in self.program.digests:
            self.dataplane.enable_digest(digest.id, True)

    @property
    def program(self) -> Program:
        program = self.dataplane.program
        assert program is not None
        return program

    def tell(self, command: Command) -> None:
        try:
            self._tell(command)
        except (DataplaneError, KeyError) as error:
            raise Refused(f"{type(error).__name__} {error} for {command}") from error

    def _tell(self, command: Command) -> None:
        plane = self.dataplane
        match command:
            case Entry():
                table = plane.table(command.table)
                key = self.program.tables[table].key
                plane.insert(
                    table,
                    b"".join(_encode(field, command.match.get(field.name)) for field in key),
                    command.priority,
                    self._target(table, command.does),
                )
            case Default():
                table = plane.table(command.table)
                plane.set_default(table, self._target(table, command.does))
            case Group():
                profile = plane.action_profile(command.profile)
                for id, call in command.members:
                    action = plane.profile_action(profile, call.action)
                    plane.add_member(profile, id, action, self._params(action, call))
                plane.set_group(profile, command.id, [(id, 1) for id, _ in command.members])
            case Multicast():
                plane.set_multicast(command.id, command.replicas)
            case CloneSession():
                plane.set_clone_session(command.id, command.replicas, packet_length=command.length)
            case MeterRates():
                rates = MeterConfig(command.cir, command.cburst, command.pir, command.pburst)
                plane.meter_write(plane.meter(command.meter), command.index, rates)
            case RegisterWrite():
                register = plane.register(command.register)
                plane.register_write(register, command.index, command.value)

    def _target(self, table: int, does: Call | int) -> Target:
        if isinstance(does, int):
            return Target(TargetKind.GROUP, does)
        action = self.dataplane.action(table, does.action)
        return Target(TargetKind.ACTION, action, self._params(action, does))

    def _params(self, action: int, call: Call) -> bytes:
        return b"".join(
            call.params[p.name].to_bytes((p.bits + 7) // 8, "big")
            for p in self.program.actions[action].parameters
        )

    def play(self, frames: list[Frame]) -> Outcome:
        outcome = Outcome()
        for port, frame in frames:
            out = self.dataplane.process(port, frame)
            outcome.packet_ins += [f for p, f in out if p == self.cpu_port]
            outcome.frames.append(
                sorted(((p, f) for p, f in out if p != self.cpu_port), key=lambda x: x[0])
            )
        while events := self.dataplane.read_events():
            for event in events:
                if isinstance(event, Digest):
                    name, bits = next(
                        (d.name, d.bits) for d in self.program.digests if d.id == event.digest
                    )
                    outcome.digests |= {(name, _numbers(s, bits)) for s in event.samples}
                    self.dataplane.forget_digests(event.digest, event.samples)
        return outcome

    def counter(self, name: str) -> list[tuple[int, int]]:
        return self.dataplane.counter_read_all(self.dataplane.counter(name))

    def direct_counters(self, table: str) -> dict[tuple[int, ...], tuple[int, int]]:
        id = self.dataplane.table(table)
        key = self.program.tables[id].key
        return {
            _key_numbers(encoded, key): self.dataplane.direct_counter(handle)
            for handle, encoded, _, _ in self.dataplane.entries(id)
        }

    def close(self) -> None:
        self.dataplane.close()


def _numbers(encoded: bytes, bits: tuple[int, ...]) -> tuple[int, ...]:
    numbers = []
    for width in bits:
        size = (width + 7) // 8
        numbers.append(int.from_bytes(encoded[:size], "big"))
        encoded = encoded[size:]
    return tuple(numbers)


def _key_numbers(encoded: bytes, key: tuple[KeyField, ...]) -> tuple[int, ...]:
    numbers: list[int] = []
    for field in key:
        size = (field.bits + 7) // 8
        second = {"exact": 0, "valid": 0, "lpm": 2}.get(field.match, size)
        pair = [int.from_bytes(encoded[:size], "big")]
        if second:
            pair.append(int.from_bytes(encoded[size : size + second], "big"))
        dont_care = {"lpm": [0, 0], "range": [0, (1 << field.bits) - 1]}.get(field.match)
        if pair != dont_care and not (field.match in ("ternary", "optional") and pair[1] == 0):
            numbers += pair
        encoded = encoded[size + second :]
    return tuple(numbers)


def _encode(field: KeyField, match: Match | None) -> bytes:
    size = (field.bits + 7) // 8
    whole = (1 << field.bits) - 1
    if match is None:
        match = Match(0, mask=0, prefix=0, high=whole)
    value = match.value.to_bytes(size, "big")
    if field.match == "lpm":
        prefix = field.bits if match.prefix is None else match.prefix
        return value + prefix.to_bytes(2, "big")
    if field.match in ("ternary", "optional"):
        mask = whole if match.mask is None else match.mask
        return (match.value & mask).to_bytes(size, "big") + mask.to_bytes(size, "big")
    if field.match == "range":
        high = match.value if match.high is None else match.high
        return value + high.to_bytes(size, "big")
    return value
