"""Fluid simulation of a workload under a policy, and lower bounds."""
