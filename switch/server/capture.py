"""`--pcap`: what enters and leaves an interface, in files that tcpdump and Wireshark read."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path

_SNAPLEN = 65535
_ALL_PROTOCOLS = 0x0003
_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAPLEN, 1)
_OUTGOING = 4
"""PACKET_OUTGOING: frames that the switch sends."""


class Capture:
    """One interface, written to DIR/IFACE_in.pcap (to the switch) and DIR/IFACE_out.pcap, as BMv2 names them."""

    def __init__(self, interface: str, directory: Path) -> None:
        """Raises OSError if the directory or the interface is not there."""
        self._files = [(directory / f"{interface}_{way}.pcap").open("wb") for way in ("in", "out")]
        for file in self._files:
            file.write(_HEADER)
            file.flush()
        self._socket = socket.socket(
            socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)
        )
        self._socket.bind((interface, 0))
        self._socket.settimeout(0.2)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"pcap {interface}", daemon=True)

    def start(self) -> None:
        """Start to write."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the files."""
        self._stopping = True
        self._thread.join()
        self._socket.close()
        for file in self._files:
            file.close()

    def _run(self) -> None:
        while not self._stopping:
            try:
                frame, address = self._socket.recvfrom(_SNAPLEN)
            except TimeoutError:
                for file in self._files:
                    file.flush()
                continue
            except OSError:
                return  # the interface has gone
            now = time.time_ns()
            file = self._files[address[2] == _OUTGOING]
            file.write(
                struct.pack("<IIII", now // 10**9, now % 10**9 // 1000, len(frame), len(frame))
                + frame
            )
