"""Packet captures: flows by 5-tuple, iterations by their period -> a job profile with gaps.

The period is the first high peak of the autocorrelation of bytes over time; its height is the
confidence. Packets of a 5-tuple closer than a tenth of the period are one transfer. A sender's pause
since it last sent or received is a task; the median over the iterations counts.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from controller.model import Flow, Job, Task
from controller.model.units import format_rate
from controller.profiles.errors import ProfileError
from controller.profiles.importers import packets
from controller.profiles.importers.head import Head
from controller.profiles.importers.packets import FiveTuple
from controller.profiles.importers.report import Imported, ImportReport, Options

NAME = "packet capture"
_BINS = 8192
_SURE = 0.5
"Height of an autocorrelation peak from which it is taken for a period."
_SMALL = 10_000.0
"Transfers below so many bytes are chatter."
_PAUSE = 0.05
"Seconds between two transfers of one 5-tuple where no period was found."
_MOST_FLOWS = 100_000


@dataclass(frozen=True, slots=True)
class _Transfer:
    flow: FiveTuple
    start: float
    end: float
    bytes: float


def recognise(head: Head) -> bool:
    """The first bytes of a pcap or pcapng."""
    return head.raw[:4] in packets.PCAP or head.raw[:4] == packets.PCAPNG


def load(paths: list[Path], options: Options) -> Imported:
    """The job profile of a capture. Raises `ProfileError`."""
    (path,) = paths
    report = ImportReport(NAME)
    flows = _flows(path)
    period, confidence = find_period(flows)
    transfers = _transfers(flows, period / 10 if period else _PAUSE)
    large = [t for t in transfers if t.bytes >= _SMALL]
    if not large:
        raise ProfileError(str(path), f"no transfer of {_SMALL:.0f} bytes or more")
    first = min(t.start for t in large)
    if period:
        period = _refined(large, period)
        report.understood.append(
            f"iterations of {period:.6g} s, confidence {confidence:.2f} (autocorrelation)"
        )
        usual = _usual(large, first, period)
    else:
        report.understood.append(
            f"no period (confidence {confidence:.2f}): all of the capture is one iteration"
        )
        usual = [_shifted(t, first) for t in large]
        period = max(t.end for t in usual)
    if options.reference_rate is None:
        options = replace(options, reference_rate=_fastest(usual, report))
    job, names = _job(usual, period, path, options)
    report.understood.append(
        f"{len(flows)} 5-tuples, {len(transfers)} transfers, "
        f"{len(job.flows)} of {_SMALL:.0f} bytes and more an iteration"
    )
    report.understood.append(
        "workers: " + ", ".join(f"{w} {address}" for address, w in list(names.items())[:32])
    )
    report.assumed.append("a pause before sending is computing; sizes are bytes on the wire")
    report.unknown.append("what a sender waited for: the last thing that reached it")
    return Imported(job, report)


def _fastest(transfers: list[_Transfer], report: ImportReport) -> float | None:
    """Rate in bit/s of the fastest transfer: the links had at least that. None: all took no time."""
    rates = [t.bytes * 8 / (t.end - t.start) for t in transfers if t.end > t.start]
    if not rates:
        report.unknown.append("the link rate that the sizes belong to (--reference-rate)")
        return None
    report.assumed.append(
        f"links of {format_rate(max(rates))}, as fast as the fastest transfer (--reference-rate)"
    )
    return max(rates)


def _flows(path: Path) -> dict[FiveTuple, NDArray[np.float64]]:
    """5-tuple -> (packets, 2) times and bytes, of directions that carry payload."""
    seen: dict[FiveTuple, array[float]] = {}
    payload: Counter[FiveTuple] = Counter()
    for packet in packets.read(path):
        seen.setdefault(packet.flow, array("d")).extend((packet.time, packet.length))
        payload[packet.flow] += packet.payload
        if len(seen) > _MOST_FLOWS:
            raise ProfileError(str(path), f"more than {_MOST_FLOWS} 5-tuples")
    found = {
        flow: np.frombuffer(values).reshape(-1, 2) for flow, values in seen.items() if payload[flow]
    }
    if not found:
        raise ProfileError(str(path), "holds no TCP or UDP packet with a payload")
    return {flow: rows[np.argsort(rows[:, 0], kind="stable")] for flow, rows in found.items()}


def find_period(flows: dict[FiveTuple, NDArray[np.float64]]) -> tuple[float, float]:
    """(seconds of an iteration, confidence 0..1); 0 seconds where nothing repeats."""
    rows = np.concatenate(list(flows.values()))
    first, last = float(rows[:, 0].min()), float(rows[:, 0].max())
    if not last > first:
        return 0.0, 0.0
    series, _ = np.histogram(rows[:, 0], _BINS, (first, last), weights=rows[:, 1])
    # an iteration moves data: what changes faster is the spacing of packets
    large = sum(float(part[:, 1].sum()) >= _SMALL for part in flows.values())
    least = min(_BINS // 2, max(1, int(_SMALL * large / rows[:, 1].sum() * _BINS)))
    total = np.concatenate(([0.0], np.cumsum(np.pad(series, (0, least - 1)))))
    series = (total[least:] - total[:-least]) / least
    series = series - series.mean()
    spectrum = np.fft.rfft(series, 2 * _BINS)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[:_BINS]
    if not correlation[0] > 0:
        return 0.0, 0.0
    # as many products as there are at each lag
    correlation = correlation / correlation[0] * _BINS / np.arange(_BINS, 0, -1)
    half = correlation[: int(_BINS * 0.6)]
    below = np.flatnonzero(half < 0)
    if not len(below):
        return 0.0, 0.0
    tail = half[below[0] :]
    best = float(tail.max())
    if best < _SURE:
        return 0.0, max(best, 0.0)
    near = np.flatnonzero(tail >= 0.85 * best)[0]  # the first peak, not a multiple of it
    end = near
    while end + 1 < len(tail) and tail[end + 1] >= 0.85 * best:
        end += 1
    lag = below[0] + near + int(np.argmax(tail[near : end + 1]))
    return lag * (last - first) / _BINS, min(best, 1.0)


def _transfers(flows: dict[FiveTuple, NDArray[np.float64]], pause: float) -> list[_Transfer]:
    found = []
    for flow, rows in flows.items():
        cuts = np.flatnonzero(np.diff(rows[:, 0]) > pause) + 1
        for part in np.split(rows, cuts):
            found.append(
                _Transfer(flow, float(part[0, 0]), float(part[-1, 0]), float(part[:, 1].sum()))
            )
    return sorted(found, key=lambda t: t.start)


def _refined(transfers: list[_Transfer], period: float) -> float:
    """The period by the starts of the transfers, finer than the bins of the autocorrelation."""
    starts: dict[FiveTuple, list[float]] = defaultdict(list)
    for transfer in transfers:
        starts[transfer.flow].append(transfer.start)
    length = max(t.start for t in transfers) - min(t.start for t in transfers)
    steps = []
    for times in starts.values():
        each = max(1, round(len(times) * period / (length + period)))
        steps += [
            later - earlier
            for earlier, later in zip(times, times[each:], strict=False)
            if 0.8 * period < later - earlier < 1.2 * period
        ]
    return median(steps) if steps else period


def _usual(transfers: list[_Transfer], first: float, period: float) -> list[_Transfer]:
    """The median iteration: each 5-tuple's n-th transfer, where most iterations have one."""
    held: dict[int, list[_Transfer]] = defaultdict(list)
    for transfer in transfers:
        held[int((transfer.start - first) / period + 0.05)].append(transfer)
    samples: dict[tuple[FiveTuple, int], list[_Transfer]] = defaultdict(list)
    for number, members in held.items():
        nth: Counter[FiveTuple] = Counter()
        for transfer in members:
            samples[transfer.flow, nth[transfer.flow]].append(
                _shifted(transfer, first + number * period)
            )
            nth[transfer.flow] += 1
    kept = [
        _Transfer(
            flow, max(0.0, median(t.start for t in found)), median(t.end for t in found),
            median(t.bytes for t in found),
        )
        for (flow, _), found in samples.items()
        if 2 * len(found) >= len(held)
    ]  # fmt: skip
    return sorted(kept, key=lambda t: t.start)


def _shifted(transfer: _Transfer, by: float) -> _Transfer:
    return _Transfer(transfer.flow, transfer.start - by, transfer.end - by, transfer.bytes)


def _job(
    transfers: list[_Transfer], period: float, path: Path, options: Options
) -> tuple[Job, dict[str, str]]:
    addresses = sorted({end for t in transfers for end in (t.flow.src, t.flow.dst)})
    names = {address: f"w{i}" for i, address in enumerate(addresses)}
    ids = {id(t): f"{i}/{names[t.flow.src]}-{names[t.flow.dst]}" for i, t in enumerate(transfers)}
    tasks: list[Task] = []
    flows: list[Flow] = []
    free = dict.fromkeys(addresses, 0.0)  # since when a worker has been computing
    for t in transfers:
        src = t.flow.src
        arrived = [o for o in transfers if o.flow.dst == src and free[src] <= o.end <= t.start]
        last = max(arrived, key=lambda o: o.end, default=None)
        since = free[src] if last is None else last.end
        task = f"t{ids[id(t)]}"
        after = () if last is None else (ids[id(last)],)
        tasks.append(Task(task, names[src], max(0.0, t.start - since), after))
        flows.append(Flow(ids[id(t)], names[src], names[t.flow.dst], t.bytes, (task,)))
        free[src] = t.start
    for address in addresses:
        arrived = [o for o in transfers if o.flow.dst == address and o.end >= free[address]]
        last = max(arrived, key=lambda o: o.end, default=None)
        since = free[address] if last is None else last.end
        after = () if last is None else (ids[id(last)],)
        tasks.append(Task(f"end/{names[address]}", names[address], max(0.0, period - since), after))
    job = Job(
        options.name or path.stem,
        tuple(names.values()),
        tuple(tasks),
        tuple(flows),
        iterations=options.iterations,
        reference_rate=options.reference_rate,
    )
    return job, names
