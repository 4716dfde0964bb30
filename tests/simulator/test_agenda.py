"""Events come in order of time and number, whatever was scheduled and cancelled before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import PlacedJob
from controller.model.fabrics import big_switch
from controller.scheduling.plan import compile_job
from controller.scheduling.routing import SinglePath
from controller.simulator.agenda import cancel, schedule
from controller.simulator.tables import Run, tables
from tests.simulator.test_simulate import RATE, pipeline


def empty_run(events: int) -> Run:
    fabric = big_switch(2, RATE)
    plan = compile_job(PlacedJob(pipeline("A"), {"w0": "h1", "w1": "h2"}), fabric)
    run = tables([plan], fabric, SinglePath(), keep=False)
    return run._replace(
        when=np.zeros(events), place=np.full(events, -1), heap=np.zeros(events, np.int64)
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=80))
def test_the_next_event_is_always_the_first(steps: list[tuple[int, int]]) -> None:
    """An event that is coming is cancelled, another one scheduled; 9 stands for never."""
    run = empty_run(21)
    coming: dict[int, float] = {}
    for event, time in steps:
        if event in coming:
            cancel(run, event)
            del coming[event]
        else:
            at = float("inf") if time == 9 else float(time)
            schedule(run, event, at)
            if at < float("inf"):
                coming[event] = at
            else:
                cancel(run, event)  # cancelling what never comes changes nothing
        assert run.clock[0]["events"] == len(coming)
        if coming:
            assert run.heap[0] == min(coming, key=lambda event: (coming[event], event))
