"""The gRPC interface between the coordinator and the host agents."""
