"""Which tasks and flows are done, and when: what the rest of a job waits for."""

from __future__ import annotations

import asyncio

Item = tuple[str, int, str]
"Job, iteration, id of a task or flow."


Futures = dict[Item, "asyncio.Future[float]"]


class Board:
    """Items are posted once, with the time they were done; whoever waits for them is woken."""

    def __init__(self) -> None:
        self._done: Futures = {}
        self._expected: Futures = {}

    def post(self, item: Item, at: float) -> None:
        """The item was done `at` (seconds); a second posting changes nothing."""
        _settle(self._done, item, at)
        _settle(self._expected, item, at)

    def expect(self, item: Item, at: float) -> None:
        """The item will be done `at`, a few milliseconds ahead: who waits for it may prepare."""
        _settle(self._expected, item, at)

    async def when(self, items: list[Item]) -> float:
        """Waits until all are done: the time the last one was, -inf when there are none."""
        return await _latest(self._done, items)

    async def when_expected(self, items: list[Item]) -> float:
        """Waits until all are done or expected: the time the last one was or will be."""
        return await _latest(self._expected, items)


async def _latest(futures: Futures, items: list[Item]) -> float:
    latest = float("-inf")
    for item in items:
        # shield: one waiter that is cancelled must not cancel the others' future
        latest = max(latest, await asyncio.shield(_future(futures, item)))
    return latest


def _settle(futures: Futures, item: Item, at: float) -> None:
    future = _future(futures, item)
    if not future.done():
        future.set_result(at)


def _future(futures: Futures, item: Item) -> asyncio.Future[float]:
    if item not in futures:
        futures[item] = asyncio.get_running_loop().create_future()
    return futures[item]
