"""Progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

REFRESH_S = 0.25
"Seconds between two looks of the bar: drawing must not disturb what is measured."


class Progress:
    """Tells a person what is going on."""

    def __init__(self, console: Console, total: int) -> None:
        """`total`: number of scenarios times policies."""
        self._console = console
        self._total = total
        self._done = 0

    def say(self, message: str) -> None:
        """One line."""
        self._console.print(message, highlight=False)

    @contextmanager
    def playing(
        self, scenario: str, policy: str, seconds: float
    ) -> Iterator[Callable[[Any], None]]:
        """While one scenario plays under one policy; gives the listener for its events."""
        self._done += 1
        title = f"[{self._done}/{self._total}] {scenario} under {policy}"
        began = time.monotonic()
        if self._console.is_terminal:
            with self._bar(title, seconds):
                yield self._on_event
        else:
            self.say(f"{title}: about {seconds:.0f} s")
            yield self._on_event
        self.say(f"{title}: took {time.monotonic() - began:.1f} s")

    def _on_event(self, event: Any) -> None:
        """Called when the controller reports something; only notes are worth a line."""
        if event.WhichOneof("kind") == "note":
            self.say(f"  note: {event.note.message}")

    @contextmanager
    def _bar(self, title: str, seconds: float) -> Iterator[None]:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        stop = threading.Event()
        with Bar(*columns, console=self._console, transient=True, auto_refresh=False) as bar:
            task = bar.add_task(title, total=seconds)

            def tick() -> None:
                while not stop.wait(REFRESH_S):
                    bar.advance(task, REFRESH_S)
                    bar.refresh()

            ticker = threading.Thread(target=tick, daemon=True)
            ticker.start()
            try:
                yield
            finally:
                stop.set()
                ticker.join()
