"""Benchmarks, one folder a part: `python -m bench.PART` writes results/bench/PART.json."""
