"""Released flows on one big switch under max-min fairness, played in one compiled loop.

Flows between the same two ports have the same rate at every moment, so they are one *pair*, a cell
of a matrix of ports: how far each has come is one number a pair (`served`), and the next to finish
is the top of a heap. An event costs O(ports^2), however many flows there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.scheduling.compiling import compiled
from controller.scheduling.policy import Floats, Ints

Cells = NDArray[np.float64]
"(senders, receivers) numbers."


@compiled
def play(
    release: Floats,
    first: Ints,
    src: Ints,
    dst: Ints,
    size: Floats,
    out_rate: Floats,
    in_rate: Floats,
    instant: float,
) -> tuple[Floats, bool]:
    """Finish of every flow in seconds, and whether all finished.

    Batch g, in order of release, has flows first[g] .. first[g + 1] - 1; flow f moves size[f] bits
    from port src[f] to port dst[f], which send and receive at `out_rate` and `in_rate` bit/s.
    Events closer than `instant` (relative, at least to a second) are one.
    """
    senders, receivers, flows = len(out_rate), len(in_rate), len(size)
    start = np.zeros(senders * receivers + 1, np.int64)  # where each pair's heap starts
    for f in range(flows):
        start[src[f] * receivers + dst[f] + 1] += 1
    for pair in range(senders * receivers):
        start[pair + 1] += start[pair]
    heap, level = np.empty(flows, np.int64), np.empty(flows)  # level: `served` at which it ends
    waiting = np.zeros((senders, receivers), np.int64)
    served, rate = np.zeros((senders, receivers)), np.zeros((senders, receivers))
    top = np.full((senders, receivers), np.inf)  # least level of the pair
    finish = np.full(flows, np.inf)
    left, coming, now = 0, 0, 0.0
    while left or coming < len(release):
        if not left:
            now = max(now, release[coming])
        limit = now + instant * max(1.0, now)
        while coming < len(release) and release[coming] <= limit:
            for f in range(first[coming], first[coming + 1]):
                a, b = src[f], dst[f]
                pair = a * receivers + b
                level[f] = served[a, b] + size[f]
                _push(heap[start[pair] : start[pair + 1]], waiting[a, b], f, level)
                waiting[a, b] += 1
                top[a, b] = level[heap[start[pair]]]
                left += 1
            coming += 1
        share(waiting, out_rate, in_rate, rate)
        step = np.inf
        for a in range(senders):
            for b in range(receivers):
                if rate[a, b] > 0.0:
                    step = min(step, (top[a, b] - served[a, b]) / rate[a, b])
        then = now + step
        if coming < len(release):
            then = min(then, release[coming])
        if then == np.inf:
            return finish, False
        span = then + instant * max(1.0, then) - now
        for a in range(senders):
            for b in range(receivers):
                if rate[a, b] > 0.0:
                    if top[a, b] <= served[a, b] + rate[a, b] * span:
                        pair = a * receivers + b
                        mine = heap[start[pair] : start[pair + 1]]
                        while waiting[a, b] and level[mine[0]] <= served[a, b] + rate[a, b] * span:
                            finish[mine[0]] = then
                            waiting[a, b] -= 1
                            left -= 1
                            _pop(mine, waiting[a, b], level)
                        top[a, b] = level[mine[0]] if waiting[a, b] else np.inf
                    served[a, b] += rate[a, b] * (then - now)
                    if not waiting[a, b]:
                        served[a, b] = 0.0
        now = then
    return finish, True


@compiled
def share(waiting: Ints, out_rate: Floats, in_rate: Floats, rate: Cells) -> None:
    """Max-min rate of one flow of every pair, written to `rate`; `waiting` flows in each.

    Progressive filling (see `scheduling.maxmin`), port by port.
    """
    senders, receivers = rate.shape
    residual = np.concatenate((out_rate, in_rate))
    users = np.zeros(senders + receivers, np.int64)
    for a in range(senders):
        for b in range(receivers):
            rate[a, b] = -1.0 if waiting[a, b] else 0.0
            users[a] += waiting[a, b]
            users[senders + b] += waiting[a, b]
    while True:
        port, least = -1, np.inf
        for i in range(senders + receivers):
            if users[i] and residual[i] < least * users[i]:
                port, least = i, residual[i] / users[i]
        if port < 0:
            break
        least = max(least, 0.0)
        if port < senders:
            for b in range(receivers):
                if rate[port, b] < 0.0:
                    rate[port, b] = least
                    residual[senders + b] -= least * waiting[port, b]
                    users[senders + b] -= waiting[port, b]
        else:
            b = port - senders
            for a in range(senders):
                if rate[a, b] < 0.0:
                    rate[a, b] = least
                    residual[a] -= least * waiting[a, b]
                    users[a] -= waiting[a, b]
        users[port] = 0


@compiled
def _push(heap: Ints, size: int, f: int, level: Floats) -> None:
    i = size
    while i > 0 and level[heap[(i - 1) // 2]] > level[f]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = f


@compiled
def _pop(heap: Ints, size: int, level: Floats) -> None:
    """Remove the top of a heap that then has `size` flows."""
    f = heap[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and level[heap[child + 1]] < level[heap[child]]:
            child += 1
        if level[heap[child]] >= level[f]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = f
