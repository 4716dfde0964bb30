"""The daemon's configuration file: `echelon controller --config FILE`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from controller.model.errors import BadInput
from controller.scheduling.registry import policy as make_policy


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """YAML. Every key but `network` has a default; unknown keys are refused by name."""

    network: str
    "Path of the network description (`echelon/network/v1`), relative to this file."
    listen: str = "127.0.0.1:50550"
    "Where agents, clients and experiments call: `HOST:PORT` or `unix:PATH`."
    policy: str = "echelon"
    "Policy that decides outside scenarios."
    switches: bool = True
    "Whether to drive the network's P4 switches; without, hosts tag and pace and nobody enforces."
    debounce_s: float = 0.001
    "Events within this many seconds are decided together."
    grant_timeout_s: float = 2.0
    "Seconds after which a host lets a flow that got no answer go in class 0."


def load_config(path: Path) -> Config:
    """Reads a configuration. Raises BadInput naming file, key and what was expected."""
    try:
        config = msgspec.yaml.decode(path.read_bytes(), type=Config)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise BadInput(f"{path}: {error}") from error
    try:
        make_policy(config.policy)
    except BadInput as error:
        raise BadInput(f"{path}: policy: {error}") from None
    for key in ("debounce_s", "grant_timeout_s"):
        if getattr(config, key) < 0:
            raise BadInput(f"{path}: {key}: {getattr(config, key)} is below 0")
    return msgspec.structs.replace(config, network=str(path.parent / config.network))
