"""The P4Runtime controller of the benchmark: echelon.p4 with the entries it measures with."""

from __future__ import annotations

import ipaddress
import queue
import threading
import time
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
from finsy.proto import U128, p4r, p4r_grpc

COMPILED = Path(__file__).resolve().parents[2] / "p4/compiled"
DEVICE = 1
SRC, DST, DPORT, UDP = "10.0.0.1", "10.0.0.2", 5001, 17


def mapped(address: str) -> str:
    """An IPv4 address as flow_policy writes it."""
    return str(ipaddress.IPv6Address(f"::ffff:{address}"))


def flow(number: int, traffic_class: int, protocol: int = UDP) -> fy.P4TableEntry:
    """The flow_policy entry of flow `number` of generate.c."""
    return fy.P4TableEntry(
        "flow_policy",
        match=fy.P4TableMatch(
            src=mapped(SRC), dst=mapped(DST), protocol=protocol, sport=number + 1, dport=DPORT
        ),
        action=fy.P4TableAction("set_policy", traffic_class=traffic_class, path=0),
    )


def route(address: str, port: int) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        "ipv4_forward",
        match=fy.P4TableMatch(dst=f"{address}/32"),
        action=fy.P4TableAction("to_port", port=port),
    )


def ready(address: str, process: Any, seconds: float = 30) -> float:
    """Wait until a P4Runtime server answers; the moment it did. Raises RuntimeError if it ends first."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        channel = grpc.insecure_channel(
            address, options=[("grpc.initial_reconnect_backoff_ms", 20)]
        )
        with channel:
            try:
                p4r_grpc.P4RuntimeStub(channel).Capabilities(
                    p4r.CapabilitiesRequest(), timeout=1, wait_for_ready=False
                )
                return time.monotonic()
            except grpc.RpcError:
                if process.poll() is not None:
                    raise RuntimeError(
                        f"{process.args[0]} ended with {process.returncode}"
                    ) from None
                time.sleep(0.01)
    raise RuntimeError(f"{process.args[0]} does not answer on {address}")


class Controller:
    """The primary controller of one switch."""

    def __init__(self, address: str) -> None:
        self.schema = fy.P4Schema(COMPILED / "echelon.p4info.txtpb", COMPILED / "echelon.json")
        self._channel = grpc.insecure_channel(address)
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        hello = p4r.StreamMessageRequest()
        hello.arbitration.device_id = DEVICE
        hello.arbitration.election_id.low = 1
        self._requests.put(hello)
        answers = self.stub.StreamChannel(iter(self._requests.get, None))
        next(answers)
        threading.Thread(target=self._discard, args=(answers,), daemon=True).start()

    @staticmethod
    def _discard(answers: Any) -> None:
        try:
            for _ in answers:
                pass
        except grpc.RpcError:
            pass  # the switch was stopped

    def configure(self) -> None:
        self.stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=DEVICE,
                election_id=U128.encode(1),
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=self.schema.get_pipeline_config(),
            ),
            timeout=60,
        )

    def request(self, entities: list[Any], kind: str = "INSERT") -> p4r.WriteRequest:
        number = p4r.Update.Type.Value(kind)
        updates = [p4r.Update(type=number, entity=e.encode(self.schema)) for e in entities]
        return p4r.WriteRequest(device_id=DEVICE, election_id=U128.encode(1), updates=updates)

    def write(self, entities: list[Any], kind: str = "INSERT") -> None:
        self.stub.Write(self.request(entities, kind), timeout=60)

    def close(self) -> None:
        self._requests.put(None)
        self._channel.close()
