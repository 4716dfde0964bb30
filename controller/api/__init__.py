"""The gRPC interface between the coordinator and the host agents.

The stubs are made from `coordinator.proto` by `make proto`, which runs

    python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. \\
        controller/api/coordinator.proto
"""

PROTOCOL = 1
"""Raised whenever an old agent could misunderstand a new coordinator."""
