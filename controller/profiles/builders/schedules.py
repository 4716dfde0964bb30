"""In which order a pipeline stage runs the passes of its micro-batches."""

from __future__ import annotations

from typing import NamedTuple

from controller.profiles.builders.spec import Spec


class Pass(NamedTuple):
    """One pass of a micro-batch through a chunk of the model."""

    direction: str
    "F or B."
    chunk: int
    "Chunk of this stage, from 0."
    micro: int
    "Micro-batch, from 0."


def passes(spec: Spec, stage: int) -> list[Pass]:
    """All passes of one stage, in the order it runs them.

    GPipe (Huang et al., NeurIPS 2019): all forward, then all backward, last micro-batch first.
    1F1B (Narayanan et al., PipeDream, SOSP 2019): warm-up, then one backward after each forward.
    Interleaved 1F1B (Narayanan et al., SC 2021): the same over chunks, in rounds of `pipeline`.
    """
    if spec.schedule == "gpipe":
        every = range(spec.micro_batches)
        return [Pass("F", 0, m) for m in every] + [Pass("B", 0, m) for m in reversed(every)]
    total = spec.micro_batches * spec.chunks
    if spec.schedule == "1f1b":
        warm_up = spec.pipeline - stage - 1
    else:
        warm_up = 2 * (spec.pipeline - stage - 1) + (spec.chunks - 1) * spec.pipeline
    warm_up = min(warm_up, total)
    order = [_nth(spec, "F", k) for k in range(warm_up)]
    for k in range(total - warm_up):
        order += [_nth(spec, "F", warm_up + k), _nth(spec, "B", k)]
    return order + [_nth(spec, "B", k) for k in range(total - warm_up, total)]


def _nth(spec: Spec, direction: str, k: int) -> Pass:
    """The k-th pass in one direction."""
    if spec.chunks == 1:
        return Pass(direction, 0, k)
    round_, place = divmod(k, spec.pipeline * spec.chunks)
    chunk, micro = divmod(place, spec.pipeline)
    if direction == "B":
        chunk = spec.chunks - 1 - chunk
    return Pass(direction, chunk, round_ * spec.pipeline + micro)
