"""`make bench`: Java MirrorMaker 2 (defaults and tuned) and Heliograph in one run; prints ratios, writes JSON.

Both clusters, the copier and the load share this machine. The source topic is filled first; then each copier in turn
is started and copies it. Rates count from the first replicated record to the last, so nobody's start-up is in them;
CPU is counted over the same time, for the copier's whole process tree. Latency is measured afterwards, on a second
topic, with the copier warm.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil
from kafka.admin import KafkaAdminClient

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.ballast import Ballast
from bench.copiers import COPIERS, Copier
from bench.latency import measure_latency, percentile
from bench.load import PARTITIONS, Workload, make_topic, write
from bench.measure import ProcessTree, TopicProgress, admin_of, broker_cpu_s
from heliograph.embedded.cluster import EmbeddedCluster, forget_cluster, start_cluster

WORKLOADS = (
    Workload("500B", 4_000_000, 500),
    Workload("100B", 8_000_000, 100),
    Workload("500B-lz4", 4_000_000, 500, compression="lz4"),
)
PROBE_TOPIC = "probe"
RESULTS = Path(__file__).resolve().parent / "results"


@dataclass
class Figures:
    """What was measured of one copier on one workload."""

    workload: str
    copier: str
    records_per_s: float
    mb_per_s: float
    cpu_s_per_gb: float
    broker_cpu_s_per_gb: float
    peak_mb: float
    first_record_s: float
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    latency_p99_ms: float | None = None


@dataclass
class Bench:
    """The two clusters and where things are written."""

    folder: Path
    source: EmbeddedCluster
    target: EmbeddedCluster
    is_in_memory: bool

    def measure(self, workload: Workload, copier: Copier, *, latency_s: float) -> Figures:
        """Start a copier, let it copy the workload, and measure."""
        admin = admin_of(self.target)
        progress = TopicProgress(admin, copier.remote(workload.topic), PARTITIONS)
        ballast = Ballast(self.folder, workload.data_bytes if self.is_in_memory else 0)
        began = time.monotonic()
        with copier.running(self.folder, self.source, self.target, f"{workload.topic},{PROBE_TOPIC}") as process:
            tree = ProcessTree(psutil.Process(process.pid)).start()
            first_at, first_count = progress.wait_for(1, 120)
            cpu, brokers = tree.cpu_s(), broker_cpu_s(self.source, self.target)
            last_at, _count = progress.wait_for(
                workload.records, 900, lambda count: ballast.keep_ahead_of(count * workload.record_bytes)
            )
            cpu, brokers = tree.cpu_s() - cpu, broker_cpu_s(self.source, self.target) - brokers
            ballast.drop()
            latencies = self._latency(copier, latency_s) if latency_s else []
            tree.stop()
        admin.close()
        copied = workload.records - first_count
        gigabytes = copied * workload.record_bytes / 1e9
        rate = copied / (last_at - first_at)
        figures = Figures(
            workload.name,
            copier.name,
            records_per_s=rate,
            mb_per_s=rate * workload.record_bytes / 1e6,
            cpu_s_per_gb=cpu / gigabytes,
            broker_cpu_s_per_gb=brokers / gigabytes,
            peak_mb=tree.peak_bytes / 1e6,
            first_record_s=first_at - began,
        )
        if latencies:
            figures.latency_p50_ms = percentile(latencies, 0.50)
            figures.latency_p95_ms = percentile(latencies, 0.95)
            figures.latency_p99_ms = percentile(latencies, 0.99)
        return figures

    def _latency(self, copier: Copier, seconds: float) -> list[float]:
        remote = copier.remote(PROBE_TOPIC)
        return measure_latency(
            self.source, self.target, PROBE_TOPIC, remote, rate=200, seconds=seconds, partitions=PARTITIONS
        )

    def drop(self, cluster: EmbeddedCluster, topic: str) -> None:
        """Delete a topic, so that its bytes do not pile up in memory."""
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        client.delete_topics([topic])
        client.close()


def main() -> None:
    arguments = _arguments()
    workloads = [w for w in WORKLOADS if not arguments.workload or w.name in arguments.workload]
    copiers = [c for c in COPIERS if not arguments.copier or c.alias in arguments.copier]
    figures: list[Figures] = []
    is_in_memory = arguments.data is not None and arguments.data == _memory_folder()
    with ExitStack() as cleanup:
        data = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="heliograph-bench-", dir=arguments.data))
        source, target = (_start(name, Path(data), cleanup) for name in ("bench-source", "bench-target"))
        bench = Bench(Path(data), source, target, is_in_memory)
        _warm_up(bench)
        make_topic(bench.source, PROBE_TOPIC)
        for workload in workloads:
            print(
                f"== {workload.name}: writing {workload.records:,} records of {workload.record_bytes} B ...", flush=True
            )
            write(bench.source, workload)
            for copier in copiers:
                is_first = workload is workloads[0]
                row = bench.measure(workload, copier, latency_s=arguments.latency_seconds if is_first else 0)
                figures.append(row)
                print(f"   {_line(row)}", flush=True)
                bench.drop(bench.target, copier.remote(workload.topic))
            bench.drop(bench.source, workload.topic)
    _print_ratios(figures)
    _save(figures, is_in_memory=is_in_memory)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--workload", action="append", choices=[w.name for w in WORKLOADS], help="only this; repeatable"
    )
    parser.add_argument("--copier", action="append", choices=[c.alias for c in COPIERS], help="only this; repeatable")
    parser.add_argument("--latency-seconds", type=float, default=20.0)
    parser.add_argument("--data", default=_memory_folder(), help="folder of the brokers' data (default: memory)")
    return parser.parse_args()


def _memory_folder() -> str | None:
    """A folder in memory where there is one: the copiers are to be compared, not the disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def _start(name: str, data: Path, cleanup: ExitStack) -> EmbeddedCluster:
    cluster = start_cluster(name, data=data / name)
    cleanup.callback(forget_cluster, name)
    cleanup.callback(cluster.stop)
    return cluster


def _warm_up(bench: Bench) -> None:
    """Let the brokers' JVMs compile their hot paths: a broker in production is warm, and no copier shall pay for it."""
    print("== warming up the brokers ...", flush=True)
    warm = Workload("warm-up", 3_000_000, 500)
    write(bench.source, warm)
    java, ours = COPIERS[1], COPIERS[2]
    for copier in (java, *(replace(ours, alias=f"w{number}") for number in range(8))):
        bench.measure(warm, copier, latency_s=0)
        bench.drop(bench.target, copier.remote(warm.topic))
    bench.drop(bench.source, warm.topic)


def _line(row: Figures) -> str:
    latency = ""
    if row.latency_p50_ms is not None:
        latency = f", latency p50/p95/p99 {row.latency_p50_ms:.1f}/{row.latency_p95_ms:.1f}/{row.latency_p99_ms:.1f} ms"
    return (
        f"{row.copier:18} {row.records_per_s:>11,.0f} rec/s {row.mb_per_s:7.1f} MB/s, CPU {row.cpu_s_per_gb:5.2f} s/GB"
        f" (brokers {row.broker_cpu_s_per_gb:.2f}), peak {row.peak_mb:,.0f} MB,"
        f" first record {row.first_record_s:.1f} s{latency}"
    )


def _print_ratios(figures: list[Figures]) -> None:
    by_key = {(row.workload, row.copier): row for row in figures}
    print("\nHeliograph against tuned Java MM2")
    for workload in dict.fromkeys(row.workload for row in figures):
        ours, java = by_key.get((workload, COPIERS[2].name)), by_key.get((workload, COPIERS[1].name))
        if ours is None or java is None:
            continue
        line = (
            f"  {workload:9} rec/s {ours.records_per_s / java.records_per_s:5.1f}x"
            f"   CPU per GB 1/{java.cpu_s_per_gb / ours.cpu_s_per_gb:.1f}"
            f"   memory {ours.peak_mb / java.peak_mb:.2f}x"
            f"   first record {ours.first_record_s:.1f} s against {java.first_record_s:.1f} s"
        )
        if ours.latency_p50_ms and java.latency_p99_ms and ours.latency_p99_ms:
            line += f"   latency p50 {ours.latency_p50_ms:.1f} ms, p99 {ours.latency_p99_ms / java.latency_p99_ms:.2f}x"
        print(line)


def _save(figures: list[Figures], *, is_in_memory: bool) -> None:
    RESULTS.mkdir(exist_ok=True)
    machine = {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "python": platform.python_version(),
        "brokers_data_in": "memory" if is_in_memory else "disk",
    }
    stamp = time.strftime("%Y-%m-%dT%H%M")
    file = RESULTS / f"{stamp}.json"
    file.write_text(
        json.dumps({"at": stamp, "machine": machine, "figures": [asdict(row) for row in figures]}, indent=2) + "\n"
    )
    print(f"\nWritten to {file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}")


if __name__ == "__main__":
    main()
