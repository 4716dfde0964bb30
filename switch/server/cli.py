"""The process: a data plane, its ports and the P4Runtime server, from start to a clean end."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from switch.server.options import PROGRAM, Options, Tls, UsageError, parse
from switch.server.stubs import without_client

if TYPE_CHECKING:
    import grpc

    from switch.dataplane import Dataplane
    from switch.server.device import Device

_LOG = logging.getLogger("switch")

_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "error": 40, "off": 60}
_SHUTDOWN_GRACE_S = 0.2
_SHUTDOWN_PATIENCE_S = 2.0


class StartError(Exception):
    """Why the switch cannot start: one line."""


def main(arguments: list[str] | None = None) -> int:
    """Run the switch until SIGTERM or SIGINT. Exit code: 0 done, 1 it could not start, 2 usage."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
    except UsageError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    # before any thread is made, so that all threads inherit the mask and only `sigwait` sees the signals
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        with ExitStack() as stack:
            _run(options, stack)
        return 0
    except StartError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1


def _run(options: Options, stack: ExitStack) -> None:
    log_fd = _start_log(options, stack)
    for note in options.notes:
        _LOG.warning("ignored: %s", note)
    program = _read_program(options)
    if options.emit_c is not None:
        _emit_c(program, options.emit_c)
        return

    without_client()
    # gRPC's own lines on standard error would add nothing to ours
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # imported here: --help and bad usage need neither gRPC nor the data plane
    from switch.dataplane import Dataplane
    from switch.server.device import Device
    from switch.server.events import EventLoop
    from switch.server.service import serve

    def make_dataplane(log: int | None = None) -> Dataplane:
        return Dataplane(
            queues=options.queues,
            cpu_port=options.cpu_port,
            drop_port=options.drop_port,
            device_id=options.device_id,
            log_fd=log,
        )

    dataplane = make_dataplane(log_fd)
    stack.callback(dataplane.close)
    _attach_ports(dataplane, options)
    if options.pcap is not None:
        _start_capture(options, stack)
    device = Device(options.device_id, dataplane, options.cpu_port, make_dataplane)
    stack.callback(device.close)
    events = EventLoop(device, dataplane.events_fd)
    stack.callback(events.stop)
    try:
        server, port = serve(device, options.address, _credentials(options.tls))
    except OSError as error:
        raise StartError(str(error)) from None
    stack.callback(lambda: server.stop(_SHUTDOWN_GRACE_S).wait(_SHUTDOWN_PATIENCE_S))
    events.start()
    dataplane.start()
    print(f"Server listening on {_bound(options.address, port)}", flush=True)
    # after the port is open: runners wait for that, and compiling a new program can outlast their patience
    if program is not None:
        _load(device, program, options)
    number = signal.sigwait({signal.SIGTERM, signal.SIGINT})
    _LOG.info("%s: shutting down", signal.Signals(number).name)


def _attach_ports(dataplane: Dataplane, options: Options) -> None:
    from switch.dataplane import DataplaneError

    dataplane.set_queue_limits(options.queue_packets, options.queue_octets)
    for port, rate in options.port_rates.items():
        dataplane.set_port_rate(port, rate)
    for port, interface in options.interfaces.items():
        try:
            dataplane.add_port(port, interface)
        except OSError as error:
            raise StartError(
                f"cannot attach interface {interface} as port {port}: {_reason(error)}"
            ) from None
        except DataplaneError as error:  # a port number out of range
            raise StartError(
                f"cannot attach interface {interface} as port {port}: {error}"
            ) from None
        _LOG.info("port %d is interface %s", port, interface)


def _read_program(options: Options) -> bytes | None:
    if options.json is None:
        return None
    try:
        return Path(options.json).read_bytes()
    except OSError as error:
        raise StartError(f"cannot read {options.json}: {_reason(error)}") from None


def _load(device: Device, program: bytes, options: Options) -> None:
    from switch.server.errors import RequestError

    try:
        device.load_program(program)
    except RequestError as error:
        raise StartError(f"{options.json}: {error.message}") from None


def _emit_c(program: bytes | None, path: str) -> None:
    if program is None:
        raise StartError("--emit-c needs a BMv2 JSON")
    from switch.generator import generate
    from switch.program import UnsupportedProgram

    try:
        _, text, _ = generate(program)
    except (UnsupportedProgram, ValueError) as error:
        raise StartError(str(error)) from None
    if path == "-":
        print(text)
    else:
        Path(path).write_text(text)


def _credentials(tls: Tls | None) -> grpc.ServerCredentials | None:
    if tls is None:
        return None
    import grpc

    try:
        pair = (Path(tls.key).read_bytes(), Path(tls.cert).read_bytes())
        authority = Path(tls.ca).read_bytes() if tls.ca else None
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {_reason(error)}") from None
    return grpc.ssl_server_credentials([pair], authority, tls.client_auth)


def _start_capture(options: Options, stack: ExitStack) -> None:
    from switch.server.capture import Capture

    assert options.pcap is not None
    for interface in options.interfaces.values():
        try:
            capture = Capture(interface, Path(options.pcap))
        except OSError as error:
            raise StartError(
                f"cannot capture {interface} into {options.pcap}: {_reason(error)}"
            ) from None
        capture.start()
        stack.callback(capture.stop)


def _start_log(options: Options, stack: ExitStack) -> int | None:
    """Set up logging; the descriptor for the data plane's own lines, None if nothing is logged."""
    if options.log_level == "off" or not (options.log_console or options.log_file):
        logging.basicConfig(level=logging.WARNING, format=f"{PROGRAM}: %(message)s")
        return None
    if options.log_console:
        stream, descriptor = sys.stdout, 1
    else:
        assert options.log_file is not None
        try:
            stream = Path(options.log_file).open("a", buffering=1)  # noqa: SIM115
        except OSError as error:
            raise StartError(f"cannot write {options.log_file}: {_reason(error)}") from None
        stack.callback(stream.close)
        descriptor = stream.fileno()
    logging.basicConfig(
        level=_LEVELS[options.log_level],
        stream=stream,
        format="[%(asctime)s] [%(levelname)s] %(message)s",
    )
    return descriptor


def _bound(address: str, port: int) -> str:
    """The address with the port that the system chose, if it was left to it."""
    return address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{port}"


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
