"""One TCP connection for the port-rate benchmark: what a receiver gets of a sender that never stops.

python tcp.py send ADDRESS PORT
python tcp.py receive PORT WARM_UP_SECONDS SECONDS      prints bytes a second
"""

from __future__ import annotations

import socket
import sys
import time

CHUNK = bytes(65536)


def send(address: str, port: int) -> None:
    with socket.socket() as connection:
        # The system's default may be bbr, which paces itself.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        connection.connect((address, port))
        try:
            while True:
                connection.sendall(CHUNK)
        except (ConnectionResetError, BrokenPipeError):
            pass  # the receiver has seen enough


def receive(port: int, warm_up: float, seconds: float) -> float:
    with socket.create_server(("0.0.0.0", port)) as server:
        print("ready", flush=True)
        connection, _ = server.accept()
    buffer = bytearray(1 << 20)
    with connection:
        begin = time.monotonic() + warm_up
        while time.monotonic() < begin:
            connection.recv_into(buffer)
        got, start = 0, time.monotonic()
        while (now := time.monotonic()) < start + seconds:
            got += connection.recv_into(buffer)
        return got / (now - start)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]))
    else:
        print(receive(int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])))
