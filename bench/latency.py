"""End-to-end latency: records with their time of sending in the value, sent at a steady rate, read on the target."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from heliograph.embedded.kafka_cluster import EmbeddedCluster

_STAMP = struct.Struct(">d")


@dataclass(frozen=True)
class Latency:
    """Milliseconds below which half, 95 % and 99 % of the records were."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    records: int

    def __str__(self) -> str:
        return f"p50/p95/p99 {self.p50_ms:.1f}/{self.p95_ms:.1f}/{self.p99_ms:.1f} ms"


def measure_latency(
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    topic: str,
    remote: str,
    *,
    rate: int,
    seconds: float,
    partitions: int,
    on_wait: Callable[[], None] = lambda: None,
) -> Latency | None:
    """Of each record from before it was sent until it was read; the first two seconds are left out."""
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "bench", "fetch.wait.max.ms": 100})
    ends = [
        TopicPartition(remote, p, consumer.get_watermark_offsets(TopicPartition(remote, p), timeout=30)[1])
        for p in range(partitions)
    ]
    consumer.assign(ends)
    count = int(rate * seconds)
    sender = threading.Thread(target=_send, args=(source, topic, rate, count, partitions), daemon=True)
    latencies: list[float] = []
    sender.start()
    deadline = time.monotonic() + seconds + 30
    while len(latencies) < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        on_wait()
        if message is not None and message.error() is None:
            latencies.append((time.time() - _STAMP.unpack(message.value()[:8])[0]) * 1000)
    consumer.close()
    sender.join()
    counted = latencies[2 * rate :]
    if not counted:
        return None
    return Latency(percentile(counted, 0.50), percentile(counted, 0.95), percentile(counted, 0.99), len(counted))


def _send(source: EmbeddedCluster, topic: str, rate: int, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": source.bootstrap, "linger.ms": 0})
    begin = time.monotonic()
    for number in range(count):
        pause = begin + number / rate - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        producer.produce(topic, _STAMP.pack(time.time()) + b"x" * 92, partition=number % partitions)
        producer.poll(0)
    producer.flush()


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
