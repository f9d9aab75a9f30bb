"""Test data: the same records for every copier, written once per workload."""

from __future__ import annotations

import os
from dataclasses import dataclass

from confluent_kafka import Producer

from bench.measure import admin_of
from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.mirror.topics import CreateTopic

PARTITIONS = 8


@dataclass(frozen=True)
class Workload:
    """Records of one size and codec. `batch_bytes` is the writing producer's batch.size."""

    name: str
    records: int
    record_bytes: int
    compression: str = "none"
    batch_bytes: int = 65_536

    @property
    def topic(self) -> str:
        """Its topic on the source."""
        return f"bench-{self.name}"

    @property
    def data_bytes(self) -> int:
        """Bytes of all values, before compression."""
        return self.records * self.record_bytes


def make_topic(cluster: EmbeddedCluster, topic: str, partitions: int = PARTITIONS) -> None:
    admin = admin_of(cluster)
    failures = admin.create_topics([CreateTopic(topic, partitions, 1, ())])
    assert not failures, failures
    admin.wait_for_leaders({topic: partitions})
    admin.close()


def write(cluster: EmbeddedCluster, workload: Workload, topic: str | None = None) -> None:
    """Create the workload's topic and fill it; half of each value is random, half is not, so that codecs have work."""
    name = topic or workload.topic
    make_topic(cluster, name)
    half = workload.record_bytes // 2
    values = [os.urandom(half) + b"x" * (workload.record_bytes - half) for _ in range(256)]
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "compression.type": workload.compression,
            "batch.size": workload.batch_bytes,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 512 * 1024,
        }
    )
    for number in range(workload.records):
        while True:
            try:
                producer.produce(name, values[number & 255], partition=(number >> 6) % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
        if not number & 1023:
            producer.poll(0)
    producer.flush()
