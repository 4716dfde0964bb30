"""Where the switches of a live network are: `python -m topologies.live s1` prints p4runtime-shell's arguments."""

from __future__ import annotations

import json
import sys

from topologies.runfile import state_directory


def main(name: str) -> int:
    """Print how to reach one switch; 2 if there is no such switch, 1 if there is no live network."""
    path = state_directory() / "network.yaml"
    if not path.exists():
        print(f"no live network ({path} is missing): start `make run` first", file=sys.stderr)
        return 1
    switches = {switch["name"]: switch for switch in json.loads(path.read_text())["switches"]}
    if name not in switches:
        print(f"no switch {name!r}; there are {', '.join(switches)}", file=sys.stderr)
        return 2
    switch = switches[name]
    print(f"--grpc-addr {switch['address']} --device-id {switch['device_id']} --election-id 0,1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
