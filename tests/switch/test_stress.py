"""Hostile control: changes while frames flow, and random messages, on a data plane under the sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.switch.stress import sanitized


@pytest.fixture
def sanitizer() -> None:
    library = subprocess.run(
        [shutil.which("cc") or "gcc", "-print-file-name=libasan.so"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if "/" not in library:
        pytest.skip("the C compiler has no address sanitizer (Debian: libasan, with gcc)")


@pytest.mark.mininet
@pytest.mark.usefixtures("sanitizer")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes veth interfaces")
def test_changes_while_frames_flow_under_the_sanitizers() -> None:
    done = sanitized("tests.switch.stress", "4", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    frames, changes = (int(part.split()[0]) for part in done.stdout.split(",")[:2])
    assert frames > 1000
    assert changes > 100


@pytest.mark.usefixtures("sanitizer")
def test_random_messages_break_neither_server_nor_data_plane() -> None:
    done = sanitized("tests.switch.message_fuzz", "1500", "9")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1500 messages" in done.stdout


@pytest.mark.usefixtures("sanitizer")
def test_damaged_frames_cause_neither_a_report_nor_a_leak() -> None:
    done = sanitized("tests.switch.flood", "200000", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200000 frames" in done.stdout
