"""A producer of a steady load, and a consumer group that reads it and commits: what makes a flow's metrics move."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Self

from confluent_kafka import Consumer, Producer

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import make_topic


class Load:
    """Writes to a topic, which it creates, and reads it as a group, until it is stopped."""

    def __init__(
        self,
        cluster: EmbeddedCluster,
        topic: str,
        partitions: int,
        *,
        group: str | None = None,
        records_per_s: int = 200,
    ) -> None:
        self.cluster, self.topic, self.partitions = cluster, topic, partitions
        self.is_paused = False
        self._group, self._pause_s = group, 1 / records_per_s
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        make_topic(self.cluster, self.topic, self.partitions)
        for work in (self._produce, *([self._consume] if self._group else [])):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)

    def pause(self) -> None:
        """Write nothing more; return when all that was written is in the log."""
        self._idle.clear()
        self.is_paused = True
        assert self._idle.wait(120)

    def resume(self) -> None:
        """Write again."""
        self.is_paused = False

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "linger.ms": 20})
        for number in itertools.count():
            if self._stopping.wait(self._pause_s):
                break
            while self.is_paused and not self._stopping.is_set():
                producer.flush()
                self._idle.set()
                time.sleep(0.05)
            producer.produce(self.topic, value=b"%0100d" % number, partition=number % self.partitions)
            producer.poll(0)
        producer.purge()
        producer.flush(5)

    def _consume(self) -> None:
        settings = {"bootstrap.servers": self.cluster.bootstrap, "group.id": self._group}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000})
        consumer.subscribe([self.topic])
        while not self._stopping.is_set():
            consumer.consume(500, timeout=0.5)
        consumer.close()
