"""Run a workload under several policies on Mininet or the simulator, collect, report."""
