"""The command line: simple_switch_grpc's, and a few options of our own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass

from switch.server.units import bits_per_second, queue_limit

PROGRAM = "echelon-switch"
DEFAULT_ADDRESS = "0.0.0.0:9559"
DEFAULT_DROP_PORT = 511


class UsageError(Exception):
    """A command line that cannot be followed: one line."""


@dataclass(frozen=True)
class Options:
    """What to run."""

    device_id: int
    json: str | None
    """Path of the BMv2 JSON to start with; None with --no-p4."""
    interfaces: dict[int, str]
    """Port -> interface."""
    address: str
    """host:port of the gRPC server."""
    cpu_port: int | None
    drop_port: int
    queues: int
    """Priority queues of a port."""
    port_rates: dict[int, int]
    """Port -> bit/s."""
    queue_packets: int | None
    queue_octets: int | None
    pcap: str | None
    """Directory for capture files."""
    log_console: bool
    log_file: str | None
    log_level: str
    emit_c: str | None
    """Where to write the generated C (`-` is standard output), instead of running."""
    tls: Tls | None
    notes: tuple[str, ...]
    """What was accepted but has no effect here."""


@dataclass(frozen=True)
class Tls:
    """Certificates of the gRPC server, as paths."""

    cert: str
    key: str
    ca: str | None
    client_auth: bool


_IGNORED = {
    "thrift_port": "--thrift-port: there is no Thrift server; use P4Runtime",
    "nanolog": "--nanolog: there is no nanomsg log; use --log-console or --log-file",
    "notifications_addr": "--notifications-addr: notifications go through P4Runtime",
    "debugger": "--debugger: there is none",
    "debugger_addr": "--debugger-addr: there is no debugger",
    "dump_packet_data": "--dump-packet-data: use --pcap",
}

_UNSUPPORTED = {
    "use_files": "--use-files: reading packets from files is not supported; attach interfaces with -i",
    "packet_in": "--packet-in: nanomsg packets are not supported; attach interfaces with -i",
    "restore_state": "--restore-state is not supported",
    "dp_grpc_server_addr": "--dp-grpc-server-addr is not supported; attach interfaces with -i",
}


def parse(arguments: Sequence[str]) -> Options:
    """Options from the arguments after the program's name. Raises UsageError; prints and exits for --help."""
    general, target = _split(list(arguments))
    args = _general_parser().parse_args(_mend_pcap(general))
    extra = _target_parser().parse_args(target)
    for name, message in _UNSUPPORTED.items():
        if getattr(args, name, None) is not None or getattr(extra, name, None) is not None:
            raise UsageError(message)
    if args.json is None and not args.no_p4:
        raise UsageError("give the path of a BMv2 JSON, or --no-p4 to start without a program")
    if args.log_console and args.log_file:
        raise UsageError("--log-console and --log-file exclude each other")
    interfaces = _interfaces(args.interface)
    if extra.cpu_port in interfaces:
        raise UsageError(
            f"port {extra.cpu_port} is the CPU port and cannot have interface {interfaces[extra.cpu_port]}"
        )
    if extra.cpu_port == 0:
        raise UsageError("0 is not a valid CPU port")
    packets, octets = _limits(args.queue_limit or extra.queue_limit)
    return Options(
        device_id=args.device_id,
        json=None if args.no_p4 else args.json,
        interfaces=interfaces,
        address=extra.grpc_server_addr,
        cpu_port=extra.cpu_port,
        drop_port=extra.drop_port,
        queues=extra.priority_queues,
        port_rates=_rates(args.port_rate + extra.port_rate),
        queue_packets=packets,
        queue_octets=octets,
        pcap=args.pcap or None,
        log_console=args.log_console,
        log_file=args.log_file,
        log_level=args.log_level,
        emit_c=args.emit_c or extra.emit_c,
        tls=_tls(extra),
        notes=tuple(note for name, note in _IGNORED.items() if getattr(args, name)),
    )


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], [a for a in arguments[at + 1 :] if a != "--"]


def _mend_pcap(arguments: list[str]) -> list[str]:
    """`--pcap` takes a directory or nothing; what follows it may be the JSON."""
    mended = []
    for position, argument in enumerate(arguments):
        follows = arguments[position + 1 : position + 2]
        if argument == "--pcap" and not (follows and os.path.isdir(follows[0])):
            argument = "--pcap=."
        mended.append(argument)
    return mended


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(message)


def _general_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="A P4Runtime switch that runs BMv2 JSON on packet sockets; takes simple_switch_grpc's command line.",
        epilog="After `--`: options of the target; see `-- --help`.",
    )
    add = parser.add_argument
    add("json", nargs="?", help="BMv2 JSON to start with")
    add(
        "-i",
        "--interface",
        action="append",
        default=[],
        metavar="PORT@IFACE",
        help="attach an interface (repeatable)",
    )
    add("--no-p4", action="store_true", help="start without a program")
    add("--device-id", type=int, default=0, help="P4Runtime device id (default 0)")
    add("--pcap", metavar="DIR", help="capture each interface into DIR (default: here)")
    add("--log-console", action="store_true", help="log to standard output")
    add("--log-file", metavar="FILE", help="log to a file")
    add(
        "-L",
        "--log-level",
        default="trace",
        choices=["trace", "debug", "info", "warn", "error", "off"],
    )
    add("--log-flush", action="store_true", help=argparse.SUPPRESS)
    add("-v", "--version", action="version", version="echelon-switch 0.1.0")
    add("--json-version", action="version", version="2.23")
    for name in (
        "log-file-max-size",
        "log-file-max-files",
        "max-port-count",
        "dump-packet-data",
        "thrift-port",
    ):
        add(f"--{name}", type=int, help=argparse.SUPPRESS)
    for name in (
        "nanolog",
        "notifications-addr",
        "debugger-addr",
        "use-files",
        "packet-in",
        "restore-state",
    ):
        add(f"--{name}", help=argparse.SUPPRESS)
    add("--debugger", action="store_true", help=argparse.SUPPRESS)
    _add_ours(parser)
    return parser


def _target_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=f"{PROGRAM} ... --", description="Options of the target.")
    add = parser.add_argument
    add(
        "--grpc-server-addr",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help=f"default {DEFAULT_ADDRESS}",
    )
    add(
        "--cpu-port",
        type=int,
        metavar="PORT",
        help="port number of the controller; none: no packet I/O",
    )
    add(
        "--drop-port",
        type=int,
        default=DEFAULT_DROP_PORT,
        metavar="PORT",
        help=f"default {DEFAULT_DROP_PORT}",
    )
    add(
        "--priority-queues",
        type=int,
        default=1,
        metavar="N",
        help="queues of a port, the highest served first",
    )
    add("--grpc-server-ssl", action="store_true", help="TLS for the gRPC server")
    add("--grpc-server-cacert", metavar="PEM", help="CA that signs clients")
    add("--grpc-server-cert", metavar="PEM", help="certificate of the server")
    add("--grpc-server-key", metavar="PEM", help="its key")
    add("--grpc-server-with-client-auth", action="store_true", help="clients need a certificate")
    add("--dp-grpc-server-addr", help=argparse.SUPPRESS)
    add("--disable-swap", action="store_true", help=argparse.SUPPRESS)
    for name in ("max-mc-groups", "max-l1-entries", "max-l2-entries"):
        add(f"--{name}", type=int, help=argparse.SUPPRESS)
    _add_ours(parser)
    return parser


def _add_ours(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--port-rate",
        action="append",
        default=[],
        metavar="PORT=RATE",
        help="shape a port, e.g. 1=40mbit (repeatable)",
    )
    add(
        "--queue-limit",
        metavar="LIMIT",
        help="of each queue: 30 (packets), 64kb (bytes), or both with a comma",
    )
    add(
        "--emit-c",
        metavar="FILE",
        help="write the C generated from the JSON (- is standard output) and exit",
    )


def _interfaces(items: Sequence[str]) -> dict[int, str]:
    interfaces: dict[int, str] = {}
    for item in items:
        port, at, name = item.partition("@")
        if not (at and name and port.isdigit()):
            raise UsageError(f"-i {item}: expected PORT@INTERFACE, e.g. 1@veth1")
        if int(port) in interfaces:
            raise UsageError(
                f"-i {item}: port {port} has interface {interfaces[int(port)]} already"
            )
        interfaces[int(port)] = name
    return interfaces


def _rates(items: Sequence[str]) -> dict[int, int]:
    rates = {}
    for item in items:
        port, equals, rate = item.partition("=")
        if not (equals and port.isdigit()):
            raise UsageError(f"--port-rate {item}: expected PORT=RATE, e.g. 1=40mbit")
        try:
            rates[int(port)] = bits_per_second(rate)
        except ValueError as error:
            raise UsageError(f"--port-rate {item}: {error}") from None
    return rates


def _limits(text: str | None) -> tuple[int | None, int | None]:
    try:
        return queue_limit(text) if text else (None, None)
    except ValueError as error:
        raise UsageError(f"--queue-limit: {error}") from None


def _tls(args: argparse.Namespace) -> Tls | None:
    if not args.grpc_server_ssl:
        return None
    if not (args.grpc_server_cert and args.grpc_server_key):
        raise UsageError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    return Tls(
        args.grpc_server_cert,
        args.grpc_server_key,
        args.grpc_server_cacert,
        args.grpc_server_with_client_auth,
    )
