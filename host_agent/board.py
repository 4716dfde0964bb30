"""Which tasks and flows are done, and when: what the rest of a job waits for."""

from __future__ import annotations

import asyncio

Item = tuple[str, int, str]
"Job, iteration, id of a task or flow."


class Board:
    """Items are posted once, with the time they were done; whoever waits for them is woken."""

    def __init__(self) -> None:
        self._done: dict[Item, asyncio.Future[float]] = {}

    def post(self, item: Item, at: float) -> None:
        """The item was done `at` (seconds); a second posting changes nothing."""
        future = self._future(item)
        if not future.done():
            future.set_result(at)

    async def when(self, items: list[Item]) -> float:
        """Waits until all are done: the time the last one was, -inf when there are none."""
        latest = float("-inf")
        for item in items:
            # shield: one waiter that is cancelled must not cancel the others' future
            latest = max(latest, await asyncio.shield(self._future(item)))
        return latest

    def _future(self, item: Item) -> asyncio.Future[float]:
        if item not in self._done:
            self._done[item] = asyncio.get_running_loop().create_future()
        return self._done[item]
