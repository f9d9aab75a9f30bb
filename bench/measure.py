"""CPU and memory of a copier's whole process tree, and the end offsets of its topics on the target."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Place

from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.request_options import READ_COMMITTED
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.embedded.kafka_cluster import EmbeddedCluster

_SAMPLE_S = 1.0


def admin_of(cluster: EmbeddedCluster) -> Admin:
    """An admin client for an embedded cluster."""
    broker = cluster.brokers[0]
    return Admin(cluster.name, (Address("127.0.0.1", broker.port),), Security(), "bench", timeout_s=30)


def broker_cpu_s(*clusters: EmbeddedCluster) -> float:
    """CPU seconds all brokers have used so far."""
    return sum(cpu_s(psutil.Process(broker.pid)) for cluster in clusters for broker in cluster.brokers)


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds a process has used so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _is_spark_worker(process: psutil.Process) -> bool:
    return any(part in ("pyspark.daemon", "pyspark.worker") for part in process.cmdline())


@dataclass
class ProcessTree:
    """CPU (also of children that have ended) and peak memory (proportional set size) of a process and all below it."""

    root: psutil.Process
    peak_bytes: int = 0
    task_peak_bytes: int = 0  # of the largest Python worker of Spark: the process that runs a copy task
    _cpu_by_pid: dict[int, float] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> ProcessTree:
        """Sample in the background until `stop`."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the sampling."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        self._sample(memory=False)
        return sum(self._cpu_by_pid.values())

    def _run(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            self._sample(memory=True)

    def _sample(self, *, memory: bool) -> None:
        total = 0
        try:
            processes = [self.root, *self.root.children(recursive=True)]
        except psutil.Error:
            return
        for process in processes:
            try:
                self._cpu_by_pid[process.pid] = cpu_s(process)
                if memory:
                    size = process.memory_full_info().pss
                    total += size
                    if _is_spark_worker(process):
                        self.task_peak_bytes = max(self.task_peak_bytes, size)
            except psutil.Error:
                continue
        self.peak_bytes = max(self.peak_bytes, total)


class EndOffsets:
    """Watches the end offsets of a workload's topics."""

    def __init__(self, admin: Admin, topics: tuple[str, ...], partitions: int) -> None:
        self._admin = admin
        self._topics = topics
        self._tps = [TopicPartition(topic, number) for topic in topics for number in range(partitions)]
        self._leader: Address | None = None  # requests to the one broker are cheaper than those to the cluster

    def total(self) -> int:
        """Return the sum of all end offsets, with transaction markers; 0 while a topic does not exist."""
        if self._leader is None:
            view = self._admin.view(self._topics)
            leaders = {view.leaders.get(tp, -1) for tp in self._tps}
            if -1 in leaders:
                return 0
            (self._leader,) = (view.brokers[leader] for leader in leaders)
        return sum(self._admin.end_offsets_at(self._leader, self._tps).values())

    def wait_for(
        self, records: int, timeout_s: float, on_count: Callable[[int], None] = lambda _count: None
    ) -> tuple[float, int]:
        """Wait until the sum of the end offsets is at least `records`; return the time and the sum."""
        deadline = time.monotonic() + timeout_s
        while True:
            asked = time.monotonic()
            count = self.total()
            now = time.monotonic()
            on_count(count)
            if count >= records:
                return now, count
            if now > deadline:
                raise TimeoutError(f"{self._topics[0]} has {count} of {records} records after {timeout_s:.0f} s")
            # A request for a thousand partitions takes milliseconds of CPU; it must not take a core from the copier.
            time.sleep(max(0.02 if count == 0 else 0.05, 8 * (now - asked)))

    def wait_for_mark(self, mark_ms: int, timeout_s: float) -> float:
        """Wait until the last record of every partition can be read, committed if in a transaction; return the time.

        Records are copied in order, so the last one proves the whole partition. End offsets alone do not: every
        transaction marker takes one.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            found = self._admin.list_offsets(self._tps, mark_ms, READ_COMMITTED)
            now = time.monotonic()
            if all(offset >= 0 for offset in found.values()):
                return now
            if now > deadline:
                raise TimeoutError(f"{self._topics[0]}: last records are missing after {timeout_s:.0f} s")
            time.sleep(0.02)


def count_committed(cluster: EmbeddedCluster, topics: tuple[str, ...], partitions: int) -> int:
    """Return the records that a read-committed consumer gets: neither markers nor aborted records."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "bench-count",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([Place(topic, number, 0) for topic in topics for number in range(partitions)])
    count, left = 0, len(topics) * partitions
    while left:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is None:
                count += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  (librdkafka's own name for it)
                left -= 1
            else:
                raise RuntimeError(str(message.error()))
    consumer.close()
    return count
