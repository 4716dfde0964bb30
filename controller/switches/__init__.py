"""P4Runtime driver (finsy): pipeline, tables, meters, counters. It reconciles and never wipes a running switch."""

from controller.switches.counters import Count, FabricCounters, FlowCount, SwitchCounters
from controller.switches.driver import FabricDriver

__all__ = ["Count", "FabricCounters", "FabricDriver", "FlowCount", "SwitchCounters"]
