"""The thread that carries what the data plane reports to the clients, and minds the clock."""

from __future__ import annotations

import logging
import os
import select
import threading
import time

from switch.server.device import Device

LONGEST_WAIT_S = 0.1
"""A deadline that a write has just created is noticed after this at the latest."""

_LOG = logging.getLogger(__name__)


class EventLoop:
    """Polls the data plane's event descriptor."""

    def __init__(self, device: Device, events_fd: int) -> None:
        self._device = device
        self._events_fd = events_fd
        self._wake_read, self._wake_write = os.pipe()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread (also if it was never started)."""
        self._stopping = True
        os.write(self._wake_write, b"x")
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._events_fd, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        due: float | None = None
        while not self._stopping:
            wait = LONGEST_WAIT_S if due is None else min(due, LONGEST_WAIT_S)
            try:
                if poll.poll(wait * 1000):
                    self._device.handle_events()
                due = self._device.tick()
            except Exception:  # noqa: BLE001
                # one bad event must not silence all later ones
                _LOG.exception("an event of the data plane could not be handled")
                time.sleep(LONGEST_WAIT_S)
