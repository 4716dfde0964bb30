"""Valid jobs and workloads of every shape, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from controller.model import Collective, EchelonFlow, Flow, Job, PlacedJob, Task, Workload
from controller.model.collectives import ALGORITHMS, KINDS, supported

words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8
)
seconds = st.floats(0, 1e6, allow_nan=False)
sizes = st.floats(1e-3, 1e15, exclude_min=True)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A job in which everything waits only for what was drawn before it."""
    workers = tuple(draw(st.lists(words, min_size=2, max_size=4, unique=True)))
    ids = draw(st.lists(words, min_size=0, max_size=10, unique=True))
    worker = st.sampled_from(workers)
    tasks: list[Task] = []
    flows: list[Flow] = []
    collectives: list[Collective] = []
    for i, id_ in enumerate(ids):
        earlier = draw(st.lists(st.sampled_from(ids[:i]), max_size=3, unique=True)) if i else []
        after = tuple(earlier)
        kind = draw(st.sampled_from(["task", "flow", "collective"]))
        if kind == "task":
            tasks.append(Task(id_, draw(worker), draw(seconds), after))
        elif kind == "flow":
            src, dst = draw(st.permutations(workers))[:2]
            flows.append(Flow(id_, src, dst, draw(sizes), after))
        else:
            what = draw(st.sampled_from(KINDS))
            how = draw(st.sampled_from([a for a in ALGORITHMS if supported(what, a)]))
            who = tuple(draw(st.lists(worker, min_size=1, max_size=4, unique=True)))
            collectives.append(Collective(id_, what, how, who, draw(sizes), after))
    groups: list[EchelonFlow] = []
    declare = draw(st.booleans())
    if flows and declare:
        offsets = draw(st.lists(st.floats(-1e3, 1e3), min_size=len(flows), max_size=len(flows)))
        groups = [EchelonFlow(draw(words), tuple(f.id for f in flows), (0.0, *offsets[1:]))]
    return Job(
        draw(words),
        workers,
        tuple(tasks),
        tuple(flows),
        tuple(collectives),
        tuple(groups),
        draw(st.integers(1, 1000)),
        draw(st.none() | st.floats(1, 1e12)),
    )


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Up to three placed jobs with different names."""
    found = draw(st.lists(jobs(), min_size=1, max_size=3, unique_by=lambda job: job.name))
    placed = []
    for job in found:
        placement = {w: draw(words) for w in job.workers} if draw(st.booleans()) else {}
        placed.append(PlacedJob(job, placement, draw(seconds), draw(sizes)))
    return Workload(tuple(placed), draw(words))
