"""Why a switch for echelon.p4 must be started with eight queues."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Fabric
from test_data_plane import policy, tcp4


@pytest.fixture(scope="module")
def four_queues(target: str) -> Iterator[Fabric]:
    fabric = Fabric(target, queues=4)
    yield fabric
    fabric.close()


@pytest.mark.parametrize(("traffic_class", "arrives"), [(0, 1), (3, 1), (4, 0), (7, 0)])
def test_class_without_a_queue_is_dropped(
    four_queues: Fabric, traffic_class: int, arrives: int
) -> None:
    packet = tcp4()
    four_queues.add(policy(packet, traffic_class, path=3))
    out = four_queues.exchange(1, [bytes(packet)], expect=arrives)
    four_queues.undo()
    assert len(out[3]) == arrives
