"""The process: starts, says in one line why it cannot, and ends without a trace."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tests.switch.server.controller import Controller
from tests.switch.server.running import COMPILED, DEVICE_ID, ROOT, START_PATIENCE_S, pipeline

PROGRAM = str(COMPILED / "features.json")


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "switch", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a switch that ends by itself."""
    process = start(*arguments)
    out, err = process.communicate(timeout=START_PATIENCE_S)
    return process.returncode, out, err


@pytest.fixture
def socket_path(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/grpc.sock"


@pytest.fixture
def switch(socket_path: str) -> Iterator[subprocess.Popen[str]]:
    process = start(
        "--no-p4", "--device-id", str(DEVICE_ID), "--", "--grpc-server-addr", socket_path
    )
    with grpc.insecure_channel(socket_path) as channel:
        grpc.channel_ready_future(channel).result(START_PATIENCE_S)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_with_code_0(switch: subprocess.Popen[str], number: signal.Signals) -> None:
    switch.send_signal(number)
    _, err = switch.communicate(timeout=START_PATIENCE_S)
    assert (switch.returncode, err) == (0, "")


def test_connected_clients_do_not_keep_it_alive(
    switch: subprocess.Popen[str], socket_path: str
) -> None:
    with Controller(socket_path, DEVICE_ID) as controller:
        controller.arbitrate(1)
        controller.arbitration()
        switch.terminate()
        _, err = switch.communicate(timeout=START_PATIENCE_S)
        assert (switch.returncode, err) == (0, "")


def test_it_says_when_it_listens(switch: subprocess.Popen[str], socket_path: str) -> None:
    assert switch.stdout is not None
    assert switch.stdout.readline() == f"Server listening on {socket_path}\n"


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, _, err = run("--no-p4", "--", "--grpc-server-addr", address)
    assert code == 1
    assert address in err
    assert err.count("\n") == 1


def test_two_switches_do_not_share_a_port() -> None:
    first = start("--no-p4", "--", "--grpc-server-addr", "127.0.0.1:0")
    try:
        assert first.stdout is not None
        address = first.stdout.readline().split()[-1]
        code, _, err = run("--no-p4", "--", "--grpc-server-addr", address)
        assert (code, err.count("\n")) == (1, 1)
    finally:
        first.kill()
        first.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_an_unknown_interface_is_one_line() -> None:
    code, _, err = run("--no-p4", "-i", "1@esvnone", "--", "--grpc-server-addr", "127.0.0.1:0")
    assert code == 1
    assert "esvnone" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ([], 2, "--no-p4"),
        (["--no-p4", "-i", "eth0"], 2, "PORT@INTERFACE"),
        (["--no-p4", "--nonsense"], 2, "--nonsense"),
        (["--no-p4", "--port-rate", "1=fast"], 2, "40mbit"),
        (["--no-p4", "-i", "3@veth3", "--", "--cpu-port", "3"], 2, "CPU port"),
        (["/nowhere/program.json"], 1, "/nowhere/program.json"),
        ([__file__], 1, __file__),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments: list[str], code: int, named: str) -> None:
    got, _, err = run(*arguments)
    assert got == code
    assert named in err
    assert err.count("\n") == 1


def test_it_starts_with_a_program_but_without_p4info(socket_path: str) -> None:
    """As in BMv2: the program runs, and P4Runtime waits for a pipeline."""
    process = start(PROGRAM, "--thrift-port", "9090", "--", "--grpc-server-addr", socket_path)
    try:
        with grpc.insecure_channel(socket_path) as channel:
            grpc.channel_ready_future(channel).result(START_PATIENCE_S)
        with Controller(socket_path, 0) as controller:
            controller.arbitrate(1)
            controller.arbitration()
            with pytest.raises(grpc.RpcError) as caught:
                controller.read_tables()
            assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
            controller.set_pipeline(pipeline("features"))
            assert len(controller.read_tables()) == 2
    finally:
        process.terminate()
        _, err = process.communicate(timeout=START_PATIENCE_S)
    assert process.returncode == 0
    assert "thrift" in err.lower()


def test_it_writes_the_c_it_would_run(tmp_path: Path) -> None:
    target = tmp_path / "program.c"
    assert run(PROGRAM, "--emit-c", str(target))[0] == 0
    assert "switching" in target.read_text()
    code, out, _ = run(PROGRAM, "--emit-c", "-")
    assert code == 0
    assert out.rstrip("\n") == target.read_text().rstrip("\n")


def test_a_log_file_tells_what_happened(socket_path: str, tmp_path: Path) -> None:
    log = tmp_path / "switch.log"
    process = start(
        "--no-p4", "--log-file", str(log), "-L", "info", "--", "--grpc-server-addr", socket_path
    )
    with grpc.insecure_channel(socket_path) as channel:
        grpc.channel_ready_future(channel).result(START_PATIENCE_S)
    with Controller(socket_path, 0) as controller:
        controller.arbitrate(1)
        controller.arbitration()
        controller.set_pipeline(pipeline("features"))
    process.terminate()
    process.communicate(timeout=START_PATIENCE_S)
    text = log.read_text()
    assert "pipeline" in text
    assert "shutting down" in text


@pytest.mark.mininet
def test_pcap_files_have_both_directions(tmp_path: Path) -> None:
    from tests.switch.server.running import running
    from tests.switch.server.test_end_to_end import Rig, arrives, frame, switching

    with running("embedded", 2, f"--pcap={tmp_path}") as (process, wires):
        control = process.controller()
        control.arbitrate(1)
        control.arbitration()
        control.set_pipeline(pipeline("features"))
        control.insert(table_entry=switching(2))
        assert arrives(Rig("embedded", process, wires, control), frame()) == (2, frame())
        control.close()
    assert frame() in (tmp_path / "esv1_in.pcap").read_bytes()
    assert frame() in (tmp_path / "esv2_out.pcap").read_bytes()
    assert frame() not in (tmp_path / "esv1_out.pcap").read_bytes()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_tls(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    request = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    subprocess.run(
        [*request.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    tls = ["--grpc-server-ssl", "--grpc-server-cert", str(cert), "--grpc-server-key", str(key)]
    process = start("--no-p4", "--", "--grpc-server-addr", "localhost:0", *tls)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        with grpc.secure_channel(
            address, grpc.ssl_channel_credentials(cert.read_bytes())
        ) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            assert stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version
    finally:
        process.kill()
        process.communicate()


def test_capabilities_answer_without_pipeline(
    switch: subprocess.Popen[str], socket_path: str
) -> None:
    with Controller(socket_path, DEVICE_ID) as controller:
        assert controller.stub.Capabilities(p4r.CapabilitiesRequest()).p4runtime_api_version
