"""A flow of numbered records between two clusters: written in parts, watched, and compared record by record.

Record `n` goes to partition `n % partitions`; key, value, size and timestamp follow from `n`, so that the comparison
needs no copy of what was written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Place

from heliograph.errors import HeliographError
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.model import TopicPartition
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.runs.copying import CONNECTOR, PATIENCE_S, wait_for
from tests.support.spark_clusters.brokers import SharedKafka

_NOISE = bytes((n * n + n // 7) % 251 for n in range(4096))
_FIRST_TIME_MS = 1_700_000_000_000


class NumberedCopy:
    """The records of one topic, which `heliograph run` copies with the file of `write_file`."""

    def __init__(self, here: SharedKafka, there: SharedKafka, topic: str, partitions: int) -> None:
        self.topic, self.remote, self.partitions = topic, f"here.{topic}", partitions
        self.written = 0
        self._here, self._there = here, there
        self._admin = admin_of(there.cluster)
        make_topic(here.cluster, topic, partitions)

    def write(self, count: int) -> None:
        """Write the next records; they count as written from now on."""
        part = range(self.written, self.written + count)
        self.written = part.stop
        records = (
            {"partition": n % self.partitions, "key": _key(n), "value": _value(n), "timestamp": _FIRST_TIME_MS + n}
            for n in part
        )
        limits = {"batch.size": 60_000, "queue.buffering.max.messages": 500_000, "enable.idempotence": True}
        write(self._here.cluster, self.topic, records, **limits)

    def write_file(self, folder: Path, *lines: str) -> Path:
        """Write the configuration of the flow."""
        file = folder / f"{self.topic}.properties"
        text = [
            "clusters=here, there",
            *self._here.lines("here"),
            *self._there.lines("there"),
            "here->there.enabled=true",
            f"here->there.topics={self.topic}",
            "emit.heartbeats.enabled=false",
            *lines,
        ]
        file.write_text("\n".join(text) + "\n")
        return file

    def wait_for_first_record(self) -> None:
        """Wait until a record is on the target."""
        places = [TopicPartition(self.remote, p) for p in range(self.partitions)]

        def has_some() -> bool:
            known = self._admin.view([self.remote]).partition_counts.get(self.remote)
            return known == self.partitions and any(self._admin.end_offsets(places).values())

        wait_for(has_some, pause_s=0.1)

    def committed(self) -> dict[int, int]:
        """The records of each partition that are committed as copied."""
        try:
            found = read_offsets(self._admin, "mm2-offsets.here.internal", CONNECTOR, "here")
        except HeliographError:  # the flow creates the topic
            found = {}
        offsets = {p: found.get(TopicPartition(self.topic, p)) for p in range(self.partitions)}
        return {p: 0 if each is None else each.offset + 1 for p, each in offsets.items()}

    def count(self) -> int:
        """The number of records that are committed as copied."""
        return sum(self.committed().values())

    def behind(self, before: dict[int, int]) -> list[int]:
        """The partitions that have committed nothing since, although there was something to copy."""
        now = self.committed()
        return [p for p, offset in before.items() if offset == now[p] < self._written_to(p)]

    def wait_until_all_advance(self, timeout_s: float = PATIENCE_S) -> float:
        """Wait until every partition has committed more than now, or everything; return the seconds."""
        began, before = time.monotonic(), self.committed()
        wait_for(lambda: not self.behind(before), timeout_s, pause_s=0.2)
        return time.monotonic() - began

    def assert_complete(self) -> None:
        """Compare every record of the target: all there, once, in order, unchanged."""
        next_numbers = {p: p for p in range(self.partitions)}
        for message in self._messages():
            partition = message.partition()
            number = next_numbers[partition]
            found = (message.value(), message.key(), message.timestamp()[1])
            assert found == (_value(number), _key(number), _FIRST_TIME_MS + number), (
                f"partition {partition}: record {(message.value() or b'')[:10]!r} instead of {number}"
            )
            next_numbers[partition] = number + self.partitions
        missing = {p: number for p, number in next_numbers.items() if number < self.written}
        assert not missing, f"the records of these partitions are missing from these numbers on: {missing}"

    def _written_to(self, partition: int) -> int:
        return len(range(partition, self.written, self.partitions))

    def _messages(self) -> Iterator[Message]:
        settings = {"bootstrap.servers": self._there.cluster.bootstrap, "group.id": "tests"}
        settings |= {"enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": "read_committed"}
        consumer = Consumer(settings)
        consumer.assign([Place(self.remote, p, OFFSET_BEGINNING) for p in range(self.partitions)])
        wanted, deadline = set(range(self.partitions)), time.monotonic() + 240
        while wanted:
            assert time.monotonic() < deadline, f"partitions {wanted} of {self.remote} did not reach their end"
            for message in consumer.consume(10_000, timeout=0.1):
                if message.error() is None:
                    yield message
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    wanted.discard(message.partition())
        consumer.close()

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()


def _key(number: int) -> bytes:
    return b"%d" % (number % 977)


def _value(number: int) -> bytes:
    """100 to 500 bytes."""
    size, start = 100 + number * 7919 % 401, number * 37 % 3500
    return b"%010d" % number + _NOISE[start : start + size - 10]


def used_slots(counts: Iterable[int]) -> str:
    """Numbers of tasks by machine, as printed."""
    return " + ".join(str(count) for count in counts)
