"""The P4Runtime server of the switch: gRPC in front, `switch.dataplane` behind."""
