"""Plays p4c's STF scripts against the data plane: `python -m tests.switch.dataplane.stf SAMPLES [NAME ...]`.

SAMPLES is p4c's `testdata/p4_16_samples`; programs are compiled with the p4c-bm2-ss on PATH (kept in a temporary
directory, or in $STF_JSON). Prints passed / all and a reason for each that fails.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from switch.dataplane import Dataplane, MeterConfig, Target, TargetKind
from switch.program import KeyField, UnsupportedProgram


class Failure(AssertionError):
    """A script's expectation that did not hold."""


def number(text: str) -> int:
    return int(text, 0)


class Player:
    """One script on one fresh switch."""

    def __init__(self, json: bytes) -> None:
        self.switch = Dataplane()
        self.switch.load(json)
        program = self.switch.program
        assert program is not None
        self.program = program
        self.received: dict[int, list[str]] = defaultdict(list)
        self.expected: dict[int, list[str]] = defaultdict(list)
        self.nodes: list[tuple[int, list[int]]] = []
        self.groups: dict[int, list[int]] = {}
        self.sessions: dict[int, int] = {}

    def play(self, script: str) -> None:
        script = re.sub(r"\\\n", " ", script)
        for line in script.splitlines():
            line = line.split("#", 1)[0].strip()
            if line:
                word, _, rest = line.partition(" ")
                getattr(self, "do_" + word)(rest.strip())
        self.compare()

    def compare(self) -> None:
        for port in sorted(set(self.expected) | set(self.received)):
            want, have = self.expected[port], self.received[port]
            if len(want) != len(have):
                raise Failure(f"port {port}: expected {len(want)} packets, received {len(have)}: {have[:2]}")
            for pattern, frame in zip(want, have, strict=True):
                exact = pattern.endswith("$")
                body = pattern.rstrip("$")
                regex = body.replace("*", ".") + ("$" if exact else "")
                if not re.match(regex, frame):
                    raise Failure(f"port {port}: expected {pattern}, received {frame}")

    # -- commands

    def do_packet(self, rest: str) -> None:
        port, _, data = rest.partition(" ")
        for out, frame in self.switch.process(number(port), bytes.fromhex("".join(data.split()))):
            self.received[out].append(frame.hex().upper())

    def do_expect(self, rest: str) -> None:
        port, _, data = rest.partition(" ")
        self.expected[number(port)].append("".join(data.split()).upper())

    def do_no_packet(self, rest: str) -> None:
        pass

    def do_wait(self, rest: str) -> None:
        pass

    def do_add(self, rest: str) -> None:
        call = re.match(r"(?P<head>.*?)\s*(?P<action>[\w.$]+)\s*\((?P<args>.*?)\)\s*$", rest)
        assert call, rest
        words = call["head"].split()
        table = self.program.tables[self.table(words[0])]
        priority = 0
        if len(words) > 1 and ":" not in words[1]:
            priority = number(words.pop(1))
        keys = dict(word.split(":", 1) for word in words[1:])
        self.switch.insert(table.id, self.key(table.key, keys), priority,
                           self.target(table.id, call["action"], call["args"]))

    def do_setdefault(self, rest: str) -> None:
        call = re.match(r"(\S+)\s+([\w.$]+)\s*\((.*?)\)\s*$", rest)
        assert call, rest
        table = self.table(call[1])
        self.switch.set_default(table, self.target(table, call[2], call[3]))

    def do_mc_mgrp_create(self, rest: str) -> None:
        self.groups[number(rest)] = []

    def do_mc_node_create(self, rest: str) -> None:
        rid, *ports = [number(word) for word in rest.split()]
        self.nodes.append((rid, ports))

    def do_mc_node_associate(self, rest: str) -> None:
        group, node = [number(word) for word in rest.split()]
        self.groups[group].append(node)
        self.switch.set_multicast(group, self.replicas(group))
        for session, used in self.sessions.items():
            if used == group:
                self.switch.set_clone_session(session, self.replicas(group))

    def replicas(self, group: int) -> list[tuple[int, int]]:
        return [(port, self.nodes[node][0]) for node in self.groups[group] for port in sorted(self.nodes[node][1])]

    def do_mirroring_add(self, rest: str) -> None:
        session, port = [number(word) for word in rest.split()]
        self.switch.set_clone_session(session, [(port, 0)])

    def do_mirroring_add_mc(self, rest: str) -> None:
        session, group = [number(word) for word in rest.split()]
        self.sessions[session] = group
        self.switch.set_clone_session(session, self.replicas(group))

    def do_mirroring_get(self, rest: str) -> None:
        pass

    def do_meter_get_rates(self, rest: str) -> None:
        pass

    def do_meter_set_rates(self, rest: str) -> None:
        name, index, *rates = rest.split()
        self.set_meter(name, number(index), rates)

    def do_meter_array_set_rates(self, rest: str) -> None:
        name, *rates = rest.split()
        meter = self.program.meters[self.switch.meter(name)]
        for index in range(meter.size):
            self.set_meter(name, index, rates)

    def set_meter(self, name: str, index: int, rates: list[str]) -> None:
        (cir, cburst), (pir, pburst) = (rate.split(":") for rate in rates)
        config = MeterConfig(round(float(cir) * 1e6), int(cburst), round(float(pir) * 1e6), int(pburst))
        self.switch.meter_write(self.switch.meter(name), index, config)

    def do_register_read(self, rest: str) -> None:
        name, index = rest.split()
        self.switch.register_read(self.switch.register(name), number(index))

    def do_register_write(self, rest: str) -> None:
        name, index, value = rest.split()
        self.switch.register_write(self.switch.register(name), number(index), number(value))

    def do_register_reset(self, rest: str) -> None:
        register = self.program.registers[self.switch.register(rest)]
        for index in range(register.size):
            self.switch.register_write(register.id, index, 0)

    # -- names and values, as forgiving as p4c's own runner

    def table(self, name: str) -> int:
        for table in self.program.tables:
            if table.name == name or table.name.endswith("." + name):
                return table.id
        raise Failure(f"no table {name}")

    def target(self, table: int, name: str, text: str) -> Target:
        found = next((self.program.actions[a] for a in self.program.tables[table].actions
                      if self.program.actions[a].name == name or self.program.actions[a].name.endswith("." + name)), None)
        if found is None:
            raise Failure(f"no action {name}")
        values = dict(part.strip().split(":", 1) for part in text.split(",") if part.strip())
        params = b"".join(number(values[p.name]).to_bytes((p.bits + 7) // 8, "big") for p in found.parameters)
        return Target(TargetKind.ACTION, found.id, params)

    @staticmethod
    def key(fields: tuple[KeyField, ...], given: dict[str, str]) -> bytes:
        named: dict[int, str] = {}
        for name, value in given.items():
            name = re.sub(r"\$(\d+)", r"[\1]", name)
            matches = [i for i, f in enumerate(fields) if f.name in (name, name + "$", name + ".$valid$")] or [
                i for i, f in enumerate(fields) if f.name.endswith("." + name) or f.name.endswith("." + name + "$")]
            if not matches:
                raise Failure(f"no key field {name} in {[f.name for f in fields]}")
            named[matches[0]] = value
        return b"".join(encode(field, named.get(i)) for i, field in enumerate(fields))


def encode(field: KeyField, text: str | None) -> bytes:
    size = (field.bits + 7) // 8
    full = (1 << field.bits) - 1
    if field.match == "exact":
        return number(text or "0").to_bytes(size, "big")
    if field.match == "lpm":
        value, _, length = (text or "0/0").partition("/")
        return number(value).to_bytes(size, "big") + int(length or field.bits).to_bytes(2, "big")
    if field.match == "range":
        low, _, high = (text or f"0->{full}").partition("->")
        return number(low).to_bytes(size, "big") + number(high).to_bytes(size, "big")
    if text is None:
        return bytes(2 * size)
    value = number(text.replace("*", "0"))
    mask = int(re.sub("[0-9a-fA-F]", "f", text[2:]).replace("*", "0"), 16) if text.startswith("0x") else full
    return (value & mask & full).to_bytes(size, "big") + (mask & full).to_bytes(size, "big")


def compile_program(source: Path, target: Path) -> str:
    """Empty, or why p4c did not produce `target`."""
    if target.exists():
        return ""
    result = subprocess.run([*shlex.split(os.environ.get("P4C", "p4c-bm2-ss")), "--std", "p4-16", str(source),
                             "-o", str(target)], capture_output=True, text=True, check=False)
    if result.returncode or not target.exists():
        target.unlink(missing_ok=True)
        return (result.stderr.strip().splitlines() or ["p4c failed"])[0]
    return ""


def run_one(source: Path, script: str, json: Path) -> str:
    """Empty when the script passes, else the reason."""
    problem = compile_program(source, json)
    if problem:
        return f"p4c: {problem}"
    try:
        Player(json.read_bytes()).play(script)
    except UnsupportedProgram as error:
        return f"refused: {error}"
    except Exception as error:  # noqa: BLE001 - every reason is reported
        return f"{type(error).__name__}: {str(error)[:400]}"
    return ""


def main(arguments: list[str]) -> int:
    samples = Path(arguments[0])
    names = arguments[1:] or sorted(path.stem for path in samples.glob("*.stf"))
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        cache = Path(os.environ.get("STF_JSON", temporary))
        for name in names:
            script = (samples / f"{name}.stf").read_text()
            pid = os.fork()      # a program that crashes must not end the run
            if pid == 0:
                reason = run_one(samples / f"{name}.p4", script, cache / f"{name}.json")
                if reason:
                    print(f"{name}: {reason}", flush=True)
                os._exit(bool(reason))
            status = os.waitpid(pid, 0)[1]
            if os.WIFSIGNALED(status):
                print(f"{name}: killed by signal {os.WTERMSIG(status)}", flush=True)
            results[name] = status == 0
    print(f"{sum(results.values())} / {len(results)} passed")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
