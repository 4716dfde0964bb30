"""finsy's protobuf stubs without finsy: its client would cost the switch a fifth of its start and 6 MB."""

from __future__ import annotations

import importlib.util
import sys
import types


def without_client() -> None:
    """Make `finsy.proto` importable without running finsy's own `__init__`, which imports its whole client. Only for
    a process that never uses that client; does nothing once finsy is imported."""
    if "finsy" in sys.modules:
        return
    spec = importlib.util.find_spec("finsy")
    if spec is None:
        raise ModuleNotFoundError("finsy is not installed; `make setup` installs it", name="finsy")
    package = types.ModuleType(
        "finsy", "Stands in for finsy, of which this process needs the stubs only."
    )
    package.__path__ = list(spec.submodule_search_locations or ())
    package.__spec__ = spec
    sys.modules["finsy"] = package
