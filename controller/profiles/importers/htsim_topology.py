"""htsim's `.topo` files (fat-trees of two or three tiers) -> a fabric."""

from __future__ import annotations

from pathlib import Path

from controller.profiles.errors import ProfileError
from controller.profiles.importers.cables import DEFAULT_RATE, Cable, fabric_of
from controller.profiles.importers.head import Head
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "htsim topology"
_MOST = 65536


def recognise(head: Head) -> bool:
    """Lines `Nodes N` and `Tiers N`."""
    words = [line.split()[0].lower() for line in head.lines if not line.startswith("#")]
    return "nodes" in words[:4] and "tiers" in words[:4]


def load(paths: list[Path], options: Options) -> Imported:
    """The fabric. Raises `ProfileError` with line and key."""
    (path,) = paths
    general, tiers = _read(path)
    nodes, count = general.get("nodes", 0), general.get("tiers", 0)

    def need(tier: int, key: str) -> int:
        value = tiers.get(tier, {}).get(key, 0)
        if not 1 <= value <= _MOST:
            raise ProfileError(
                str(path), f"tier {tier} has no {key}: expected 1 to {_MOST}", key=key
            )
        return int(value)

    def rate(tier: int) -> float:
        return tiers.get(tier, {}).get("downlink_speed_gbps", 0) * 1e9 or (
            options.reference_rate or DEFAULT_RATE
        )

    if count not in (2, 3) or not 1 <= nodes <= _MOST:
        raise ProfileError(str(path), f"{count:g} tiers, {nodes:g} nodes: expected 2 or 3 tiers")
    down, up = need(0, "radix_down"), need(0, "radix_up")
    bundle = int(tiers.get(1, {}).get("bundle", 1)) or 1
    hosts = [f"h{i + 1}" for i in range(int(nodes))]
    pod = int(general.get("podsize", 0)) or len(hosts)
    if len(hosts) % down or len(hosts) % pod or pod % down or up % bundle:
        raise ProfileError(
            str(path), f"{len(hosts)} nodes do not fill pods of {pod} and switches of {down}"
        )
    switches: list[str] = []

    def more(n: int) -> list[str]:
        if len(switches) + n > _MOST:
            raise ProfileError(str(path), f"more than {_MOST} switches")
        first = len(switches) + 1
        switches.extend(f"s{first + i}" for i in range(n))
        return switches[-n:]

    edges = more(len(hosts) // down)
    cables: list[Cable] = [(h, edges[i // down], rate(0)) for i, h in enumerate(hosts)]
    per_pod = pod // down
    middle = [more(up // bundle) for _ in range(1 if count == 2 else len(hosts) // pod)]
    for i, edge in enumerate(edges):
        above = middle[0 if count == 2 else i // per_pod]
        cables += [(edge, switch, rate(1) * bundle) for switch in above]
    if count == 3:
        reach = need(1, "radix_up")
        cores = more(len(middle[0]) * reach)
        for aggregates in middle:
            for k, switch in enumerate(aggregates):
                cables += [(switch, core, rate(2)) for core in cores[k * reach : (k + 1) * reach]]
    report = ImportReport(NAME)
    report.understood.append(f"{len(hosts)} hosts, {len(switches)} switches, {count:g} tiers")
    if not any("downlink_speed_gbps" in tier for tier in tiers.values()):
        report.assumed.append(f"links at {rate(0):g} bit/s (--link-rate)")
    return Imported(fabric_of(path.stem, hosts, switches, cables), report)


def _read(path: Path) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    general: dict[str, float] = {}
    tiers: dict[int, dict[str, float]] = {}
    into = general
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            value = float(words[1])
        except (IndexError, ValueError):
            raise ProfileError(str(path), "expected a key and a number", number, words[0]) from None
        if not 0 <= value < 1e12:
            raise ProfileError(str(path), f"{words[1]}: expected a number >= 0", number, words[0])
        if words[0].lower() == "tier":
            into = tiers.setdefault(int(value), {})
        else:
            into[words[0].lower()] = value
    return general, tiers
