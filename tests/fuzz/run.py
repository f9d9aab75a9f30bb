"""`make fuzz-rest`: hostile requests to a running worker on real clusters; MINUTES says how long, SEED which ones."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster
from tests.fuzz.requests import Clusters
from tests.fuzz.worker_fuzz import WorkerFuzz
from tests.support.clusters.certificates import Authority
from tests.support.clusters.clients import make_topic
from tests.support.connect.connect_worker import RunningWorker, free_port, worker_file

HOSTILE_TOPICS = ("a" * 40, "fuzz-orders", "a" * 249)
_MEMORY_MARGIN_BYTES = 150 << 20
_MEMORY_PATIENCE_S = 120.0


@contextmanager
def fuzzed_worker(
    source: EmbeddedCluster, target: EmbeddedCluster, folder: Path, name: str, *lines: str
) -> Iterator[tuple[RunningWorker, tuple[int, int]]]:
    """A worker with a plain and an https listener, both on 127.0.0.1, and topics that patterns meet."""
    for topic in HOSTILE_TOPICS:
        make_topic(source, topic)
    plain, secured = free_port(), free_port()
    tls = {key: value for key, value in Authority(folder).lines().items() if key != "listeners"}
    file = worker_file(folder, target, name, plain, *(f"{key}={value}" for key, value in tls.items()), *lines)
    both = f"http://127.0.0.1:{plain},https://127.0.0.1:{secured}"
    file.write_text(file.read_text().replace(f"listeners=http://127.0.0.1:{plain}", f"listeners={both}"))
    with RunningWorker(file, plain) as worker:
        yield worker.wait_until_ready(), (plain, secured)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--health-limit", type=float, default=1.0, help="seconds that /health may take")
    options = parser.parse_args()
    print(f"Seed {options.seed}, {options.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="heliograph-fuzz-") as text:
        folder = Path(text)
        clusters = [start_cluster(f"fuzz-{os.getpid()}-{name}", data=folder / name) for name in ("source", "target")]
        try:
            with fuzzed_worker(clusters[0], clusters[1], folder, "fuzz-connect") as (worker, ports):
                addresses = Clusters(clusters[0].bootstrap, clusters[1].bootstrap)
                fuzz = WorkerFuzz(worker, ports, addresses, options.seed, options.health_limit)
                fuzz.play(options.minutes * 60, _MEMORY_MARGIN_BYTES, _MEMORY_PATIENCE_S)
                log = worker.output()
        finally:
            for cluster in clusters:
                cluster.stop()
                forget_cluster(cluster.name)
    print(fuzz.report())
    print(f"log of the worker: {log.count(chr(10)):,} lines, {log.count('Traceback')} traces")
    sys.exit(1 if fuzz.violations else 0)


if __name__ == "__main__":
    main()
