"""Link rate and strict priority outside a P4 switch: an HTB tree with one leaf per class, as `tc` commands.

A host's uplink always has one. A BMv2 port needs one because BMv2's own queues know no link rate: only where
packets wait do priorities act. The embedded switch has queues and a shaper of its own.
"""

from __future__ import annotations

import subprocess
from functools import cache

from controller.model.errors import WorkFailed
from controller.model.network import CLASSES

HOST_QUEUE_FRAMES = 1000
"A host's own queue never drops: TCP is told to wait (TSQ)."

UPLINK_HEADROOM = 1.1
"""A host's uplink is this much faster than the link it stands for, so that flows meet in the switch's queue.

At equal rates they meet in the host's, where TCP is throttled and nothing is dropped, so unpaced flows never become
fair; and the queue that a first burst leaves in the switch never drains. Measured for Figure 2 under `fair` on the
embedded switch (40 Mbit/s, unit 1.5 s; model 4.5, 6.5, 7): 3.4, 6.4, 7.0 at 1.0 and 4.4, 6.5, 7.0 at 1.1. Paced flows
keep to their pace either way.
"""

PORT_HEADROOM = 1.05
"""A switch port is this much faster than the link it stands for. Acknowledgements take 2.3 % of a link whose other
direction is full (66 bytes for every second frame of 1514), so that a link of 40 Mbit/s carries 40 Mbit/s of data both
ways, which is what the model knows. The rest keeps the queue short: senders listen to the phantom queue of the P4
program (`p4/mark.p4`), which drains at 1.02 of the link.
"""

PORT_QUEUE_FRAMES = 100
"""Queue of a class of a switch port. Marks keep it shorter; the rest is for what waits while a higher class is served."""

FRAME_BYTES = 1514
"Ethernet header and 1500 bytes; rates count these, without preamble and checksum."

_LEAST_SHARE = 0.005
"What a class is guaranteed, as a part of the link: keeps the connections of class 0 alive."


def class_tree(interface: str, rate_bps: float, leaf: str) -> list[str]:
    """Lines for `tc -batch`: class 7 first, up to the link's rate; IP by DSCP, all else (ARP) in class 7.

    `leaf` is the queueing discipline of each class, as tc spells it. The DSCP is class << 3, so the class is the
    upper three bits of IPv4's TOS byte and of IPv6's traffic class.
    """
    rate = round(rate_bps)
    burst = max(2 * FRAME_BYTES, round(rate_bps / 8 * 0.001))
    htb = f"burst {burst} cburst {burst} quantum {FRAME_BYTES}"
    lines = [
        f"qdisc add dev {interface} root handle 1: htb default {_minor(CLASSES - 1)}",
        f"class add dev {interface} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit {htb}",
    ]
    for class_ in range(CLASSES):
        minor = _minor(class_)
        least = max(8, round(rate * _LEAST_SHARE))
        share = f"rate {least}bit ceil {rate}bit prio {CLASSES - 1 - class_}"
        byte = f"{class_ << 5:#x} 0xe0"
        chosen = f"filter add dev {interface} parent 1:"
        lines += [
            f"class add dev {interface} parent 1:1 classid 1:{minor} htb {share} {htb}",
            f"qdisc add dev {interface} parent 1:{minor} handle {minor}: {leaf}",
            f"{chosen} protocol ip prio 1 u32 match ip tos {byte} flowid 1:{minor}",
            f"{chosen} protocol ipv6 prio 2 u32 match ip6 priority {byte} flowid 1:{minor}",
        ]
    return lines


def _minor(class_: int) -> str:
    return f"{10 + class_}"


def host_leaf() -> str:
    """What queues inside a class of a host: fair queueing where the kernel has it."""
    if "fq" in available_qdiscs():
        return f"fq limit {HOST_QUEUE_FRAMES} flow_limit {HOST_QUEUE_FRAMES}"
    return f"pfifo limit {HOST_QUEUE_FRAMES}"


def port_leaf() -> str:
    """What queues inside a class of a switch port."""
    return f"pfifo limit {PORT_QUEUE_FRAMES}"


_PROBES = {
    "htb": "htb",
    "pfifo": "pfifo limit 10",
    "fq": "fq",
    "netem": "netem delay 1ms",
    "tbf": "tbf rate 1mbit burst 10k latency 10ms",
}


@cache
def available_qdiscs() -> frozenset[str]:
    """Which queueing disciplines this kernel has, found by trying each in a throw-away namespace (needs root)."""
    script = "ip link add probe0 type veth peer name probe1\n"
    for name, command in _PROBES.items():
        script += f"tc qdisc replace dev probe0 root {command} 2>/dev/null && echo {name}\n"
    script += (
        "tc qdisc replace dev probe0 root handle 1: htb && tc filter add dev probe0 parent 1: "
        "protocol ip prio 1 u32 match ip tos 0 0xe0 flowid 1:1 2>/dev/null && echo u32\n"
    )
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    return frozenset(done.stdout.split())


def require_qdiscs(*names: str) -> None:
    """Raises WorkFailed naming the first that this kernel lacks."""
    for name in names:
        if name not in available_qdiscs():
            raise WorkFailed(
                f"this kernel has no {name} (tc): load its module (modprobe sch_{name}) or use a kernel that has it"
            )
