"""Mininet's own command starts a network of P4 switches, under the system's Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.topologies.test_cleaning import traces

ROOT = Path(__file__).resolve().parents[2]

MN = """
import runpy, shutil, sys
import mininet.clean
mininet.clean.cleanup = lambda: sys.exit("mn would clean up the whole machine")
sys.argv = ["mn", *sys.argv[1:]]
runpy.run_path(shutil.which("mn"), run_name="__main__")
"""
"`mn`, but for its habit of killing by broad names when something fails."


@pytest.mark.mininet
@pytest.mark.parametrize("target", ["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def test_mn_starts_a_leaf_spine_of_p4_switches_and_leaves_nothing(
    instance: str, target: str
) -> None:
    before = Path("/proc/sys/net/core/wmem_default").read_text()
    topo = f"leaf-spine,2,1,1,rate=10mbit,target={target}"
    custom = str(ROOT / "topologies/mn.py")
    done = subprocess.run(
        [
            "/usr/bin/python3",
            "-c",
            MN,
            "--custom",
            custom,
            "--topo",
            topo,
            "--controller",
            "none",
            "--wait",
        ],
        input="nodes\nh1 ip -br address\nsh sysctl -n net.core.wmem_default\nexit\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "h1 h2 s1 s2 s3" in done.stdout
    assert f"\nmininet> {before}" in done.stdout  # BMv2's start raised it for a moment
    assert "10.0.0.1/16 fd00::1/64" in done.stdout
    assert traces(instance) == []
