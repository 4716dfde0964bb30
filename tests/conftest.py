"""What a test needs of the machine: said by a marker, checked here, skipped by name where it is missing."""

from __future__ import annotations

import os
import shutil

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run."""
    if item.get_closest_marker("mininet"):
        if os.geteuid() != 0:
            pytest.skip("needs root")
        if shutil.which("mnexec") is None:
            pytest.skip("needs Mininet (make setup)")
    if item.get_closest_marker("bmv2") and shutil.which("simple_switch_grpc") is None:
        pytest.skip("needs simple_switch_grpc on PATH")
