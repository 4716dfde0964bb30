"""P4Runtime driver: pipeline, tables, meters, counters; reconcile, never wipe."""
