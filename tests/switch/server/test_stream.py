"""A client that does not read must not cost the switch more than its outbox."""

from __future__ import annotations

from finsy.proto import p4r

from switch.server.device import Device
from switch.server.stream import OUTBOX, Stream
from tests.switch.server.controller import DEVICE_ID
from tests.switch.server.fake_dataplane import FakeDataplane


def test_packets_beyond_the_outbox_are_lost_but_arbitration_is_not(
    dataplane: FakeDataplane,
) -> None:
    stream = Stream(Device(DEVICE_ID, dataplane, None, lambda: dataplane))
    packet = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=b"x"))
    for _ in range(OUTBOX + 10):
        stream.send(packet)
    assert stream.lost == 10
    stream.send(p4r.StreamMessageResponse(arbitration=p4r.MasterArbitrationUpdate(device_id=1)))
    stream.start(iter(()))
    kinds = [response.WhichOneof("update") for response in stream.responses()]
    assert kinds == ["packet"] * OUTBOX + ["arbitration"]
