"""Compiled code is never older than the source it was made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.scheduling import compiling


def test_a_change_of_any_compiled_file_and_of_no_other_asks_for_a_new_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path)
    for folder in ("scheduling", "simulator"):
        (tmp_path / folder).mkdir()
    kernel, helper, plain = (
        tmp_path / name for name in ("scheduling/a.py", "simulator/b.py", "scheduling/c.py")
    )
    kernel.write_text("\n@compiled\ndef a(): return 1\n")
    helper.write_text("\n@bare\ndef b(): return 1\n")
    plain.write_text("def c(): return 1\n")
    before = compiling._cache()
    plain.write_text("def c(): return 2\n")
    assert compiling._cache() == before
    helper.write_text("\n@bare\ndef b(): return 2\n")
    assert compiling._cache() != before


def test_old_caches_are_removed_and_the_present_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, old = tmp_path / f"{compiling.KEPT}now", tmp_path / f"{compiling.KEPT}old"
    for folder in (now, old, tmp_path / "other"):
        folder.mkdir()
    monkeypatch.setattr(compiling, "CACHE", now)
    compiling.remove_old()
    assert {path.name for path in tmp_path.iterdir()} == {now.name, "other"}
