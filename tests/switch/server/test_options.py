"""simple_switch_grpc's command line, as its users write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from switch.server.options import Options, UsageError, parse
from switch.server.units import bits_per_second, queue_limit


def options(line: str) -> Options:
    return parse(line.split())


def test_the_tutorials_runner() -> None:
    got = options(
        "-i 1@s1-eth1 -i 2@s1-eth2 --pcap . --nanolog ipc:///tmp/bm-0-log.ipc --device-id 3 build/basic.json "
        "--log-console --thrift-port 9090 -- --grpc-server-addr 0.0.0.0:50051 --cpu-port 255 --priority-queues 8"
    )
    assert got.interfaces == {1: "s1-eth1", 2: "s1-eth2"}
    assert (got.device_id, got.json, got.address) == (3, "build/basic.json", "0.0.0.0:50051")
    assert (got.cpu_port, got.queues, got.pcap, got.log_console) == (255, 8, ".", True)
    assert len(got.notes) == 2


def test_without_program() -> None:
    got = options("--no-p4 -- --grpc-server-addr=[::]:9559")
    assert (got.json, got.address, got.cpu_port, got.queues, got.device_id) == (
        None,
        "[::]:9559",
        None,
        1,
        0,
    )
    assert options("--no-p4").address == "0.0.0.0:9559"


def test_pcap_does_not_swallow_the_program(tmp_path: Path) -> None:
    assert options("--pcap program.json").json == "program.json"
    assert options("--pcap program.json").pcap == "."
    assert options(f"--pcap {tmp_path} program.json").pcap == str(tmp_path)
    assert options(f"--pcap={tmp_path} program.json").pcap == str(tmp_path)


def test_our_own_options_stand_on_either_side() -> None:
    for line in (
        "--no-p4 --port-rate 1=40mbit --port-rate 2=1.5gbit --queue-limit 30,64kb",
        "--no-p4 -- --port-rate 1=40mbit --port-rate 2=1.5gbit --queue-limit 30,64kb",
    ):
        got = options(line)
        assert got.port_rates == {1: 40_000_000, 2: 1_500_000_000}
        assert (got.queue_packets, got.queue_octets) == (30, 64_000)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--no-p4 -i 1",
        "--no-p4 -i x@eth0",
        "--no-p4 -i 1@",
        "--no-p4 -i 1@a -i 1@b",
        "--no-p4 --log-console --log-file x",
        "--no-p4 --packet-in ipc:///x",
        "--no-p4 --restore-state x",
        "--no-p4 -- --dp-grpc-server-addr 0.0.0.0:1",
        "--no-p4 -- --cpu-port 0",
        "--no-p4 -- --grpc-server-ssl",
        "--no-p4 --queue-limit many",
        "--no-p4 --port-rate 40mbit",
    ],
)
def test_nonsense_is_refused(line: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(line)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("40mbit", 40e6), ("1.5gbit", 1.5e9), ("100kbit", 1e5), ("9600", 9600), ("10Mbps", 1e7)],
)
def test_rates(text: str, rate: float) -> None:
    assert bits_per_second(text) == rate


@pytest.mark.parametrize(
    ("text", "limit"),
    [("30", (30, None)), ("30p", (30, None)), ("9000b", (None, 9000)), ("1p,64kb", (1, 64000))],
)
def test_queue_limits(text: str, limit: tuple[int | None, int | None]) -> None:
    assert queue_limit(text) == limit


@pytest.mark.parametrize("text", ["", "fast", "-1mbit", "1xbit"])
def test_bad_rates(text: str) -> None:
    with pytest.raises(ValueError, match="not a rate"):
        bits_per_second(text)
