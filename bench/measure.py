"""CPU and memory of a copier's whole process tree, and the progress of a topic on the target."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

from heliograph.kafka.admin import Admin
from heliograph.kafka.security import Security
from heliograph.model import Address, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.embedded.cluster import EmbeddedCluster

_SAMPLE_S = 1.0


def admin_of(cluster: EmbeddedCluster) -> Admin:
    """An admin client for an embedded cluster."""
    broker = cluster.brokers[0]
    return Admin(cluster.name, (Address("127.0.0.1", broker.port),), Security(), "bench", timeout_s=30)


def broker_cpu_s(*clusters: EmbeddedCluster) -> float:
    """CPU seconds all brokers have used so far."""
    return sum(_cpu(psutil.Process(broker.pid)) for cluster in clusters for broker in cluster.brokers)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@dataclass
class ProcessTree:
    """CPU (also of children that have ended) and peak memory (proportional set size) of a process and all below it."""

    root: psutil.Process
    peak_bytes: int = 0
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
                self._cpu_by_pid[process.pid] = _cpu(process)
                if memory:
                    total += process.memory_full_info().pss
            except psutil.Error:
                continue
        self.peak_bytes = max(self.peak_bytes, total)


class TopicProgress:
    """How many records a topic on the target has."""

    def __init__(self, admin: Admin, topic: str, partitions: int) -> None:
        self._admin = admin
        self._tps = [TopicPartition(topic, number) for number in range(partitions)]
        self._topic = topic
        self._leader: Address | None = None  # asking the one broker directly keeps the watching cheap

    def count(self) -> int:
        """Records so far; 0 while the topic is not there."""
        if self._leader is None:
            view = self._admin.view([self._topic])
            leaders = {view.leaders.get(tp, -1) for tp in self._tps}
            if -1 in leaders:
                return 0
            (self._leader,) = (view.brokers[leader] for leader in leaders)
        return sum(self._admin.end_offsets_at(self._leader, self._tps).values())

    def wait_for(
        self, records: int, timeout_s: float, on_count: Callable[[int], None] = lambda _count: None
    ) -> tuple[float, int]:
        """The moment the topic has at least so many records, and how many it had then."""
        deadline = time.monotonic() + timeout_s
        while True:
            count = self.count()
            now = time.monotonic()
            on_count(count)
            if count >= records:
                return now, count
            if now > deadline:
                raise TimeoutError(f"{self._topic} has {count} of {records} records after {timeout_s:.0f} s")
            time.sleep(0.02 if count == 0 else 0.05)
