"""The embedded switch does with echelon.p4 what BMv2 did when these frames were recorded."""

from __future__ import annotations

from tests.switch.differential import recording
from tests.switch.differential.compare import differences
from tests.switch.differential.run import on_embedded
from tests.switch.differential.scenarios import echelon


def test_every_recorded_frame_comes_out_as_it_did_from_bmv2() -> None:
    frames, theirs = recording.read()
    ours = on_embedded(echelon(), frames)
    assert list(differences(ours, theirs, echelon(), frames)) == []
    assert sum(map(bool, theirs.outcome.frames)) > 500


def test_a_difference_is_seen() -> None:
    frames, theirs = recording.read()
    changed = next(i for i, out in enumerate(theirs.outcome.frames) if out)
    port, frame = theirs.outcome.frames[changed][0]
    theirs.outcome.frames[changed] = [(port, frame[:-1] + bytes([frame[-1] ^ 1]))]
    theirs.counters["EchelonIngress.bad_packets"][1] = (1, 1)
    found = list(differences(on_embedded(echelon(), frames), theirs, echelon(), frames))
    assert len(found) == 2
