"""What waits for what: done, and about to be done."""

from __future__ import annotations

import asyncio

from host_agent.board import Board

A, B = ("job", 0, "a"), ("job", 0, "b")


async def test_waiting_ends_with_the_last_item_at_its_time() -> None:
    board = Board()
    waiting = asyncio.ensure_future(board.when([A, B]))
    board.post(A, 2.0)
    await asyncio.sleep(0)
    assert not waiting.done()
    board.post(B, 1.0)
    assert await waiting == 2.0


async def test_what_is_expected_is_not_done() -> None:
    board = Board()
    done = asyncio.ensure_future(board.when([A]))
    expected = asyncio.ensure_future(board.when_expected([A, B]))
    board.expect(A, 3.0)
    board.post(B, 1.0)
    assert await expected == 3.0
    assert not done.done()
    board.post(A, 3.1)
    assert await done == 3.1


async def test_nothing_to_wait_for_is_done() -> None:
    assert await Board().when([]) == float("-inf")
