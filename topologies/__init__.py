"""Mininet topologies and the switch, host and link node classes."""
