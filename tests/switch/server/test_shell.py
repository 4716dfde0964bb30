"""p4runtime-shell, from its own environment (`make shell` makes it), against the server."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from google.protobuf import text_format

from tests.switch.server.conftest import Server
from tests.switch.server.controller import DEVICE_ID
from tests.switch.server.fake_dataplane import FakeDataplane
from tests.switch.server.program import JSON, p4info
from tests.switch.server.running import ROOT

PYTHON = ROOT / ".venv-shell" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="needs .venv-shell (make shell)"),
]

SESSION = """
import os
import sys
import traceback
import p4runtime_sh.shell as sh

def give_up(*error):
    traceback.print_exception(*error)
    os._exit(1)  # the shell's threads would keep the process


sys.excepthook = give_up
address, device_id, info, blob = sys.argv[1:]
sh.setup(
    device_id=int(device_id), grpc_addr=address, election_id=(0, 1),
    config=sh.FwdPipeConfig(info, blob), verbose=False,
)

entry = sh.TableEntry("exact")(action="forward")
entry.match["a"] = "1"
entry.match["b"] = "2"
entry.action["port"] = "3"
entry.action["mac"] = "00:00:00:00:00:04"
entry.insert()
entry.counter_data
entry.meter_config.cir = 1
entry.meter_config.cburst = 2
entry.meter_config.pir = 3
entry.meter_config.pburst = 4
entry.modify()
[read] = list(sh.TableEntry("exact").read())
assert read.action["port"].value == b"\\x03", read

lpm = sh.TableEntry("lpm")(action="drop")
lpm.match["dst"] = "10.0.0.0/8"
lpm.insert()

ternary = sh.TableEntry("ternary")(action="drop")
ternary.match["a"] = "0x12&&&0xff"
ternary.match["b"] = "1..9"
ternary.match["c"] = "5"
ternary.match["d"] = "6"
ternary.priority = 4
ternary.insert()
assert len(list(sh.TableEntry("ternary").read())) == 1

default = sh.TableEntry("lpm")(action="drop", is_default=True)
default.modify()

member = sh.ActionProfileMember("selector")(member_id=1, action="forward")
member.action["port"] = "1"
member.action["mac"] = "00:00:00:00:00:01"
member.insert()
group = sh.ActionProfileGroup("selector")(group_id=1)
group.add(1, weight=2)
group.insert()
selected = sh.TableEntry("selected")(group_id=1)
selected.match["a"] = "1"
selected.insert()
assert len(list(sh.ActionProfileGroup("selector").read())) == 1

counter = sh.CounterEntry("counter")(index=2)
counter.data.packet_count = 5
counter.modify()
counter.read()
assert counter.packet_count == 5

multicast = sh.MulticastGroupEntry(3)
multicast.add(1, 2)
multicast.insert()
clone = sh.CloneSessionEntry(4)
clone.add(5, 6)
clone.insert()

digest = sh.DigestEntry("digest")
digest.max_list_size = 2
digest.insert()

try:
    entry.insert()
except Exception as error:
    assert "ALREADY_EXISTS" in str(error), error
else:
    raise AssertionError("a second insert passed")

packet = sh.PacketOut(b"payload", port="1", pad="0")
packet.send()
entry.delete()
sh.teardown()
print("done")
"""


def test_a_session_of_the_shell(server: Server, dataplane: FakeDataplane, tmp_path: Path) -> None:
    info, blob = tmp_path / "test.p4info.txt", tmp_path / "test.json"
    info.write_text(text_format.MessageToString(p4info()))
    blob.write_bytes(JSON)
    session = subprocess.run(
        [str(PYTHON), "-c", SESSION, server.address, str(DEVICE_ID), str(info), str(blob)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert session.stdout.endswith("done\n"), session.stdout + session.stderr
    assert dataplane.sent == [bytes.fromhex("0080") + b"payload"]
    assert dataplane.multicast == {3: [(1, 2)]}
