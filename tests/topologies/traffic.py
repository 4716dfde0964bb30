"""TCP between hosts, run inside them: a sink that counts, and a source that sends for a while."""

from __future__ import annotations

import asyncio
import sys

from topologies.emulation import EmulatedNetwork

PORT = 5001

FIRST = ("nice", "-n", "-10")
"Like the switches, traffic goes before other work of the machine."

SINK = f"""
import socket, threading
def serve(connection):
    total = 0
    while chunk := connection.recv(65536):
        total += len(chunk)
    connection.sendall(str(total).encode())
    connection.close()
listener = socket.create_server(("::", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

SEND_BYTES = f"""
import socket, sys
size = int(sys.argv[1])
for address in sys.argv[2:]:
    connection = socket.create_connection((address, {PORT}), timeout=20)
    connection.sendall(bytes(size))
    connection.shutdown(socket.SHUT_WR)
    assert int(connection.recv(100)) == size
"""

SEND_SECONDS = f"""
import socket, sys, time
source_port, address, seconds, late = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
connection = socket.create_connection((address, {PORT}), timeout=30, source_address=("0.0.0.0", source_port))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
time.sleep(late)
end = time.monotonic() + seconds
while time.monotonic() < end:
    connection.send(bytes(8192))
connection.shutdown(socket.SHUT_WR)
print(connection.recv(100).decode())
"""


async def start_sinks(network: EmulatedNetwork) -> None:
    """A sink in every host; returns when they listen."""
    logs = []
    for host in network.network.hosts:
        logs.append(network.directory / f"sink-{host.name}.log")
        network.spawn(host.name, [*FIRST, sys.executable, "-c", SINK], f"sink-{host.name}")
    while not all(log.read_text() for log in logs):
        await asyncio.sleep(0.05)


async def in_host(network: EmulatedNetwork, host: str, *command: str) -> str:
    """Run a command in a host to its end; what it said if it failed, else its output."""
    done = await asyncio.to_thread(network.run, host, [*FIRST, *command])
    assert done.returncode == 0, f"{host}: {' '.join(command)[-60:]}: {done.stdout}{done.stderr}"
    return done.stdout
