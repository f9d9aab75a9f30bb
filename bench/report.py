"""Reports a run: a line for each copier and workload, the ratios between them, and the targets that hold."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import psutil

from bench.copiers import JAVA_TUNED, OTHER, OURS
from bench.latency import Latency
from bench.plot import RESULTS
from bench.workloads import WORKLOADS


@dataclass
class Figures:
    """Measurements of one copier on one workload."""

    workload: str
    copier: str
    records_per_s: float
    mb_per_s: float
    cpu_s_per_gb: float
    broker_cpu_s_per_gb: float
    first_record_s: float
    records: int
    copy_s: float
    peak_mb: float = 0
    task_peak_mb: float = 0
    latency: Latency | None = None
    loaded_latency: Latency | None = None
    background_mb_per_s: float | None = None
    proxy_cpu_s_per_gb: float | None = None
    transaction_markers: int | None = None
    committed_records: int | None = None

    def line(self) -> str:
        """Return all figures in one line."""
        text = (
            f"{self.copier:18} {self.records_per_s:>11,.0f} rec/s {self.mb_per_s:7.1f} MB/s,"
            f" CPU {self.cpu_s_per_gb:5.2f} s/GB (brokers {self.broker_cpu_s_per_gb:.2f}), peak {self.peak_mb:,.0f} MB"
        )
        if self.task_peak_mb:
            text += f" (largest task {self.task_peak_mb:,.0f})"
        text += f", first record {self.first_record_s:.1f} s, copied in {self.copy_s:.1f} s"
        if self.latency:
            text += f", latency {self.latency}"
        if self.loaded_latency:
            text += f", latency under {self.background_mb_per_s:,.0f} MB/s {self.loaded_latency}"
        if self.proxy_cpu_s_per_gb is not None:
            text += f", CPU of the proxy {self.proxy_cpu_s_per_gb:.2f} s/GB"
        if self.transaction_markers is not None:
            text += (
                f", {self.transaction_markers:,} transaction markers,"
                f" {self.committed_records:,} of {self.records:,} records committed"
            )
        return text


class Table:
    """All figures of a run by workload and copier; a comparison without one of its sides is None."""

    def __init__(self, figures: list[Figures]) -> None:
        self._by_key = {(row.workload, row.copier): row for row in figures}
        self.workloads = list(dict.fromkeys(row.workload for row in figures))

    def pair(self, workload: str) -> tuple[Figures, Figures] | None:
        """Return the figures of Heliograph and of tuned Java MM2."""
        ours, java = self._by_key.get((workload, OURS.name)), self._by_key.get((workload, JAVA_TUNED.name))
        return (ours, java) if ours and java else None

    def rate(self, workload: str) -> float | None:
        """Return our rate as a multiple of tuned Java MM2's."""
        pair = self.pair(workload)
        return pair[0].records_per_s / pair[1].records_per_s if pair else None

    def cpu(self, workload: str) -> float | None:
        """Return our CPU seconds per GB as a share of tuned Java MM2's."""
        pair = self.pair(workload)
        return pair[0].cpu_s_per_gb / pair[1].cpu_s_per_gb if pair else None

    def of_own(self, workload: str, copier: str = OURS.name) -> float | None:
        """Return a copier's rate as a share of its own rate on the workload's baseline."""
        baseline = next(w.baseline for w in WORKLOADS if w.name == workload)
        row, base = self._by_key.get((workload, copier)), self._by_key.get((baseline, copier))
        return row.records_per_s / base.records_per_s if row and base else None

    def of_own_transactional(self, workload: str) -> float | None:
        """Return the same, but None if no transaction was seen: the setting had no effect then."""
        row = self._by_key.get((workload, OURS.name))
        return self.of_own(workload) if row and row.transaction_markers else None

    def p50(self, workload: str, *, loaded: bool) -> float | None:
        """Return our median latency."""
        row = self._by_key.get((workload, OURS.name))
        latency = row and (row.loaded_latency if loaded else row.latency)
        return latency.p50_ms if latency else None

    def p99(self, workload: str, *, loaded: bool) -> float | None:
        """Return our 99th percentile as a share of tuned Java MM2's."""
        pair = self.pair(workload)
        if not pair:
            return None
        ours, java = (row.loaded_latency if loaded else row.latency for row in pair)
        return ours.p99_ms / java.p99_ms if ours and java else None


@dataclass(frozen=True)
class Target:
    """A target of the project, and whether a run met it."""

    says: str
    figure: Callable[[Table], float | None]
    limit: float
    unit: str = "x"
    is_least: bool = True

    def verdict(self, table: Table) -> str:
        """Return the result as one line."""
        value = self.figure(table)
        sign = ">=" if self.is_least else "<="
        wanted = f"{self.says} {sign} {self.limit:.3g}{self.unit}"
        if value is None:
            return f"  {'not measured':12}  {wanted}"
        is_kept = value >= self.limit if self.is_least else value <= self.limit
        return f"  {'holds' if is_kept else 'MISSED':12}  {wanted}: {value:.3g}{self.unit}"


def _rate(workload: str, limit: float) -> Target:
    return Target(f"{workload}: rate, of tuned Java MM2's", lambda table: table.rate(workload), limit)


def _cpu(workload: str) -> Target:
    says = f"{workload}: CPU per GB, of tuned Java MM2's"
    return Target(says, lambda table: table.cpu(workload), 1 / 6, is_least=False)


def _latencies(workload: str, when: str, *, loaded: bool) -> tuple[Target, Target]:
    p50, p99 = f"{workload}: latency p50 {when}", f"{workload}: latency p99 {when}, of tuned Java MM2's"
    return (
        Target(p50, lambda table: table.p50(workload, loaded=loaded), 5.0, " ms", is_least=False),
        Target(p99, lambda table: table.p99(workload, loaded=loaded), 0.5, is_least=False),
    )


_PLAIN = ("500B", "100B", "500B-lz4")
TARGETS = (
    *(_rate(workload, 4.0) for workload in _PLAIN),
    *(_cpu(workload) for workload in _PLAIN),
    _rate("100B-one-record-batches", 2.0),
    _rate("500B-50ms", 3.0),
    Target("500B-exactly-once: of our own rate", lambda table: table.of_own_transactional("500B-exactly-once"), 0.85),
    Target("500B-1000-partitions: of our own rate", lambda table: table.of_own("500B-1000-partitions"), 0.80),
    *_latencies("500B", "at 200 rec/s", loaded=False),
    *_latencies("10KB", "at half of full load", loaded=True),
)


def print_ratios(table: Table) -> None:
    print("\nHeliograph against tuned Java MM2")
    for workload in table.workloads:
        pair = table.pair(workload)
        if pair is None:
            continue
        ours, java = pair
        line = (
            f"  {workload:24} rec/s {ours.records_per_s / java.records_per_s:5.1f}x"
            f"   CPU per GB 1/{java.cpu_s_per_gb / max(ours.cpu_s_per_gb, 1e-9):.1f}"
            f"   memory {ours.peak_mb / java.peak_mb:.2f}x"
            f"   first record {ours.first_record_s:.1f} s against {java.first_record_s:.1f} s"
        )
        for what, one, other in (
            ("latency", ours.latency, java.latency),
            ("latency at half load", ours.loaded_latency, java.loaded_latency),
        ):
            if one and other:
                line += f"   {what} p50 {one.p50_ms:.1f} ms, p99 {one.p99_ms / other.p99_ms:.2f}x"
        print(line)
    for row in (w for w in WORKLOADS if w.baseline and w.name in table.workloads):
        shares = {name: table.of_own(row.name, name) for name in (OURS.name, JAVA_TUNED.name)}
        words = [f"{name} {share:.0%}" for name, share in shares.items() if share is not None]
        print(f"  {row.name:24} of our own rate, and Java MM2 of its own, at {row.baseline}: {', '.join(words)}")


_COMPARED: tuple[tuple[str, Callable[[Figures], float | None]], ...] = (
    ("records/s", lambda row: row.records_per_s),
    ("CPU s/GB", lambda row: row.cpu_s_per_gb),
    ("brokers' CPU s/GB", lambda row: row.broker_cpu_s_per_gb),
    ("first record s", lambda row: row.first_record_s),
    ("peak MB", lambda row: row.peak_mb),
    ("latency p50 ms", lambda row: row.latency.p50_ms if row.latency else None),
    ("latency p99 ms", lambda row: row.latency.p99_ms if row.latency else None),
)


def print_versions(figures: list[Figures]) -> None:
    """Print the medians of two versions, and the median and the range of the ratios of neighbouring runs."""
    for workload in dict.fromkeys(row.workload for row in figures):
        ours, other = ([f for f in figures if (f.workload, f.copier) == (workload, c.name)] for c in (OURS, OTHER))
        print(f"\n{workload}: this version, the other, this / other of each round")
        for name, figure in _COMPARED:
            pairs = [(a, b) for a, b in zip(map(figure, ours), map(figure, other), strict=True) if a and b]
            if pairs:
                ratios = sorted(a / b for a, b in pairs)
                mine, others = (median(side) for side in zip(*pairs, strict=True))
                print(
                    f"  {name:18} {mine:12,.2f} {others:12,.2f}   median {median(ratios):.3f},"
                    f" of {len(ratios)} rounds: {', '.join(f'{ratio:.2f}' for ratio in ratios)}"
                )


def print_targets(table: Table, scale: float) -> None:
    print("\nTargets" + (f" (with {scale:.3g} of the records: too short to judge by)" if scale < 1 else ""))
    for target in TARGETS:
        print(target.verdict(table))


def save(figures: list[Figures], *, is_in_memory: bool, scale: float) -> Path:
    """Write the figures of a run; return the file."""
    RESULTS.mkdir(exist_ok=True)
    machine = {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "python": platform.python_version(),
        "brokers_data_in": "memory" if is_in_memory else "disk",
    }
    stamp = time.strftime("%Y-%m-%dT%H%M")
    file = RESULTS / (f"{stamp}.json" if scale >= 1 else f"{stamp}-short.json")
    rows = [asdict(row) for row in figures]
    file.write_text(json.dumps({"at": stamp, "machine": machine, "scale": scale, "figures": rows}, indent=2) + "\n")
    print(f"\nWritten to {file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}")
    return file
