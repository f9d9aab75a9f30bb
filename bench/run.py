"""`make bench`: Java MirrorMaker 2 and Heliograph in one run on the same clusters; prints ratios, writes JSON.

Both clusters, the copier and the load share this machine. A row's source topics are filled first; then each copier in
turn is started and copies them. Rates count from the first replicated record to the last, so nobody's start-up is in
them; CPU is counted over the same time, for the copier's whole process tree. Latency is measured afterwards, on topics
of its own, with the copier warm: at 200 records a second, and under a load of half the rate just measured.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from kafka.admin import KafkaAdminClient

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.ballast import Ballast
from bench.copiers import COPIERS, JAVA_DEFAULTS, JAVA_TUNED, OTHER, OURS, Copier
from bench.latency import Latency, measure_latency
from bench.listeners import BrokerListener, Certificates, broker_config, make_certificates
from bench.load import background, make_topics, write
from bench.measure import EndOffsets, ProcessTree, admin_of, broker_cpu_s, count_committed, cpu_s
from bench.plot import write_picture
from bench.proxy import HOST, free_port, running_proxy
from bench.report import Figures, Table, print_ratios, print_targets, print_versions, save
from bench.workloads import WORKLOADS, Workload, selected
from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster

PROBE_TOPIC, LOAD_TOPIC = "probe", "load"
_PROBE_RATE = 200
_MOST_LOAD_BYTES = 2_500_000_000  # on each side, while the row's own topics are still there
_START_TIMEOUT_S, _COPY_TIMEOUT_S = 120, 300
_QUICK_SCALE, _QUICK_LATENCY_S = 0.1, 6.0
_BROKER_CONFIG = {"log.segment.delete.delay.ms": "1000"}  # deleted topics would fill the memory for a minute


@dataclass
class Bench:
    """The two clusters and where things are written."""

    folder: Path
    source: EmbeddedCluster
    target: EmbeddedCluster
    far: BrokerListener  # of the source's brokers, advertised to clients that connect through the proxy
    secured: tuple[BrokerListener, BrokerListener]  # with TLS and SASL, of source and target
    certificates: Certificates
    is_in_memory: bool
    latency_s: float

    def measure(self, workload: Workload, copier: Copier, mark_ms: int) -> Figures:
        """Start a copier, let it copy the workload, and measure."""
        topics = workload.pattern
        if workload.has_latency or workload.has_loaded_latency:
            make_topics(self.source, (PROBE_TOPIC, LOAD_TOPIC), workload.partitions)
            topics += f",{PROBE_TOPIC},{LOAD_TOPIC}"
        if workload.is_secured:
            copier = replace(copier, extra=copier.extra + self.certificates.client_lines(copier.alias, "target"))
        with self._connection(workload) as (source, target, proxy):
            began = time.monotonic()
            with copier.running(self.folder, source, target, topics) as process:
                tree = ProcessTree(psutil.Process(process.pid)).start()
                try:
                    figures = self._copy(workload, copier, mark_ms, tree, began)
                    self._add_latencies(workload, copier, figures)
                finally:
                    tree.stop()
            if proxy is not None:
                figures.proxy_cpu_s_per_gb = cpu_s(proxy) / (workload.data_bytes / 1e9)
        figures.peak_mb, figures.task_peak_mb = tree.peak_bytes / 1e6, tree.task_peak_bytes / 1e6
        return figures

    @contextmanager
    def _connection(self, workload: Workload) -> Iterator[tuple[str, str, psutil.Process | None]]:
        """Yield the bootstrap servers of both sides for a copier, and the proxy of the source if there is one."""
        if workload.is_secured:
            source, target = (f"{HOST}:{listener.port}" for listener in self.secured)
            yield source, target, None
        elif workload.round_trip_ms:
            with running_proxy(self.far.advertised_port, self.far.port, workload.round_trip_ms) as pid:
                yield f"{HOST}:{self.far.advertised_port}", self.target.bootstrap, psutil.Process(pid)
        else:
            yield self.source.bootstrap, self.target.bootstrap, None

    def _copy(self, workload: Workload, copier: Copier, mark_ms: int, tree: ProcessTree, began: float) -> Figures:
        remotes = tuple(copier.remote(topic) for topic in workload.topics)
        admin = admin_of(self.target)
        ends = EndOffsets(admin, remotes, workload.partitions)
        ballast = Ballast(self.folder, workload.data_bytes if self.is_in_memory else 0)
        try:
            first_at, first_count = ends.wait_for(1, _START_TIMEOUT_S)
            cpu, brokers = tree.cpu_s(), broker_cpu_s(self.source, self.target)
            last_at, _count = ends.wait_for(
                workload.records, _COPY_TIMEOUT_S, lambda count: ballast.keep_ahead_of(count * workload.record_bytes)
            )
            if workload.is_exactly_once:
                last_at = ends.wait_for_mark(mark_ms, _COPY_TIMEOUT_S)
            cpu, brokers = tree.cpu_s() - cpu, broker_cpu_s(self.source, self.target) - brokers
            end = ends.total()
        finally:
            ballast.drop()
            admin.close()
        copied = max(1, workload.records - first_count)
        gigabytes = copied * workload.record_bytes / 1e9
        copy_s = max(1e-3, last_at - first_at)
        figures = Figures(
            workload.name,
            copier.name,
            records_per_s=copied / copy_s,
            mb_per_s=copied * workload.record_bytes / 1e6 / copy_s,
            cpu_s_per_gb=cpu / gigabytes,
            broker_cpu_s_per_gb=brokers / gigabytes,
            first_record_s=first_at - began,
            records=workload.records,
            copy_s=copy_s,
        )
        if workload.is_exactly_once:
            figures.committed_records = count_committed(self.target, remotes, workload.partitions)
            figures.transaction_markers = end - figures.committed_records
        return figures

    def _add_latencies(self, workload: Workload, copier: Copier, figures: Figures) -> None:
        if workload.has_latency:
            figures.latency = self._latency(workload, copier, self.latency_s)
        if not workload.has_loaded_latency:
            return
        rate = figures.records_per_s / 2
        seconds = min(self.latency_s, _MOST_LOAD_BYTES / (rate * workload.record_bytes))
        records = int(seconds * rate)
        both_sides = 2 * workload.record_bytes
        ballast = Ballast(self.folder, records * both_sides if self.is_in_memory else 0)
        with background(self.source, workload, LOAD_TOPIC, rate=rate, records=records) as load:
            while not load.records:
                time.sleep(0.01)
            figures.loaded_latency = self._latency(
                workload, copier, seconds, lambda: ballast.keep_ahead_of(load.records * both_sides)
            )
            figures.background_mb_per_s = load.records_per_s * workload.record_bytes / 1e6
        ballast.drop()

    def _latency(
        self, workload: Workload, copier: Copier, seconds: float, on_wait: Callable[[], None] = lambda: None
    ) -> Latency | None:
        return measure_latency(
            self.source,
            self.target,
            PROBE_TOPIC,
            copier.remote(PROBE_TOPIC),
            rate=_PROBE_RATE,
            seconds=seconds,
            partitions=workload.partitions,
            on_wait=on_wait,
        )

    def forget(self, copier: Copier) -> None:
        """Delete what a copier made, so that neither its bytes nor its partitions pile up."""
        ending = f".{copier.alias}.internal"
        _delete(self.target, lambda name: name.startswith(f"{copier.alias}.") or name.endswith(ending))
        _delete(self.source, lambda name: name in (PROBE_TOPIC, LOAD_TOPIC))

    def row(self, number: int, workload: Workload, copiers: list[Copier]) -> list[Figures]:
        """Measure one workload with all copiers; a copier that fails is reported and skipped."""
        print(
            f"== {workload.name}: writing {workload.records:,} records of {workload.record_bytes:,} B ...", flush=True
        )
        mark_ms = write(self.source, workload)
        figures = []
        for copier in (c.for_row(number, workload) for c in copiers):
            try:
                figures.append(self.measure(workload, copier, mark_ms))
                print(f"   {figures[-1].line()}", flush=True)
            except TimeoutError as error:
                tail = (self.folder / f"{copier.alias}.log").read_text(errors="replace").splitlines()[-5:]
                print(f"   {copier.name:18} FAILED: {error}", *tail, sep="\n      ", flush=True)
            self.forget(copier)
        _delete(self.source, lambda name: name in workload.topics)
        return figures


def _delete(cluster: EmbeddedCluster, is_unwanted: Callable[[str], bool]) -> None:
    admin = admin_of(cluster)
    topics = [name for name in admin.view().partition_counts if is_unwanted(name)]
    admin.close()
    if topics:
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        client.delete_topics(topics)
        client.close()


def main() -> None:
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the brokers end too
    scale = arguments.scale or (_QUICK_SCALE if arguments.quick else 1.0)
    warm_ups = arguments.warm_ups if arguments.warm_ups is not None else (1 if arguments.quick else 8)
    figures: list[Figures] = []
    began = time.monotonic()
    with ExitStack() as cleanup:
        bench = _start_bench(arguments, cleanup)
        _warm_up(bench, warm_ups, scale)
        for number, workload in enumerate(selected(arguments.workload, scale)):
            if arguments.against or arguments.scraped:
                chosen = _alternating(arguments)
            else:
                copiers = [c for c in COPIERS if workload.has_java_defaults or c is not JAVA_DEFAULTS]
                chosen = [c for c in copiers if not arguments.copier or c.alias in arguments.copier]
            figures += bench.row(number, workload, chosen)
    if arguments.against or arguments.scraped:
        print_versions(figures)
        return
    table = Table(figures)
    print_ratios(table)
    print_targets(table, scale)
    print(f"\nTook {(time.monotonic() - began) / 60:.1f} minutes.")
    file = save(figures, is_in_memory=bench.is_in_memory, scale=scale)
    if scale >= 1 and not arguments.workload and not arguments.copier:
        write_picture(file)


def _alternating(arguments: argparse.Namespace) -> list[Copier]:
    """Return this version and another one, or this one with and without scrapes, in turn: swapped in every round."""
    copiers: list[Copier] = []
    for number in range(arguments.rounds):
        port = free_port() if arguments.scraped else None
        ours = replace(OURS, alias=f"he{number}r", metrics_port=port)
        pair = [ours, replace(OTHER, alias=f"ot{number}r", python=arguments.against or sys.executable)]
        copiers += pair if number % 2 else reversed(pair)
    return copiers


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--workload",
        action="append",
        default=[],
        choices=[w.name for w in WORKLOADS],
        help="only this row, and the one it is compared with; repeatable",
    )
    parser.add_argument("--copier", action="append", choices=[c.alias for c in COPIERS], help="only this; repeatable")
    parser.add_argument(
        "--against", metavar="PYTHON", help="compare with the Heliograph of another environment instead"
    )
    parser.add_argument(
        "--scraped", action="store_true", help="compare with metrics read every second, and without, instead"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of that comparison, the order swapped in each")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one warm-up, shorter latency")
    parser.add_argument("--scale", type=float, help="this share of the records")
    parser.add_argument("--warm-ups", type=int, help="how often Heliograph copies before anything is measured")
    parser.add_argument("--latency-seconds", type=float)
    parser.add_argument("--data", default=_memory_folder(), help="folder of the brokers' data (default: memory)")
    return parser.parse_args()


def _memory_folder() -> str | None:
    """A folder in memory where there is one: the copiers are to be compared, not the disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def _start_bench(arguments: argparse.Namespace, cleanup: ExitStack) -> Bench:
    data = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="heliograph-bench-", dir=arguments.data)))
    certificates = make_certificates(data)
    far = BrokerListener(advertised_port=free_port())
    secured = (BrokerListener("SASL_SSL"), BrokerListener("SASL_SSL"))
    of_source = broker_config({"FAR": far, "SECURED": secured[0]}, certificates)
    of_target = broker_config({"SECURED": secured[1]}, certificates)
    source = _start("bench-source", data, {**_BROKER_CONFIG, **of_source}, cleanup)
    target = _start("bench-target", data, {**_BROKER_CONFIG, **of_target}, cleanup)
    return Bench(
        folder=data,
        source=source,
        target=target,
        far=far,
        secured=secured,
        certificates=certificates,
        is_in_memory=arguments.data is not None and arguments.data == _memory_folder(),
        latency_s=arguments.latency_seconds or (_QUICK_LATENCY_S if arguments.quick else 20.0),
    )


def _start(name: str, data: Path, config: dict[str, str], cleanup: ExitStack) -> EmbeddedCluster:
    own_name = f"{name}-{os.getpid()}"
    cluster = start_cluster(own_name, data=data / name, config=config)
    cleanup.callback(forget_cluster, own_name)
    cleanup.callback(cluster.stop)
    return cluster


def _warm_up(bench: Bench, times: int, scale: float) -> None:
    """Let the brokers' JVMs compile their hot paths: a broker in production is warm, and no copier shall pay for it."""
    if not times:
        return
    print("== warming up the brokers ...", flush=True)
    warm = Workload("warm-up", 3_000_000, 500).scaled(scale)
    mark_ms = write(bench.source, warm)
    for copier in (replace(JAVA_TUNED, alias="wj"), *(replace(OURS, alias=f"w{number}") for number in range(times))):
        bench.measure(warm, copier, mark_ms)
        bench.forget(copier)
    _delete(bench.source, lambda name: name in warm.topics)


if __name__ == "__main__":
    main()
