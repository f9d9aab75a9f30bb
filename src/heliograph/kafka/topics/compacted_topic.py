"""The topics a Connect worker keeps its state in: configs and statuses, written and followed.

Both stores hold what they have read in memory; `refresh` reads what has come since. Whoever writes sees it at once.
Records of Java workers are read as they are; keys we do not know are left alone.

Invariants:
A. A store may be used from several threads; one of them at a time talks to the cluster.
B. Configs are written by who leads (`leader_writes`), over all that was written before its lead; log levels by anyone.
C. What a record asks for (a restart, a log level) is given out once, and only if it came after `load`.


Progress of a source partition as Connect keeps it in `mm2-offsets.A.internal`, byte for byte.

Connect looks offsets up by the key's *bytes* and Java's HashMap gives the members their order, so the order below is
part of the format: with another one, Java MM2 would start from the beginning. The value is the offset of the last
replicated record; replication goes on at +1. Keys go to partitions by Kafka's default partitioner (murmur2), or
compaction could not work. What only we note stands in a record header, which Connect does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.errors import ClusterError
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.request_options import LATEST, READ_COMMITTED
from heliograph.kafka.topics.record_writer import write_records
from heliograph.kafka.topics.topic_reader import LogTail
from heliograph.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.kafka.admin.admin import Admin
    from heliograph.wire.batches.log_records import LogRecord


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Kafka's default partitioner."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2, unsigned."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    length = len(data)
    hashed = (0x9747B28C ^ length) & mask
    for at in range(0, length - length % 4, 4):
        word = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        word = (word ^ (word >> 24)) * multiplier & mask
        hashed = (hashed * multiplier & mask) ^ word
    tail = data[length - length % 4 :]
    if tail:
        hashed = (hashed ^ int.from_bytes(tail, "little")) * multiplier & mask
    hashed = (hashed ^ (hashed >> 13)) * multiplier & mask
    return hashed ^ (hashed >> 15)


if TYPE_CHECKING:
    Put = Callable[[Admin, TopicPartition, list[OwnRecord]], None]


class StoredTopic:
    """A small compacted topic: written by key, read from its beginning and then on."""

    def __init__(self, admin: Admin, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self._tails: list[LogTail] = []
        self._unread: list[LogRecord] = []

    @property
    def restarts(self) -> int:
        """How often the topic was found to have been deleted and created again."""
        return sum(tail.restarts for tail in self._tails)

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has; raises ClusterError where it is not there."""
        if not self._tails:
            count = self._admin.view([self._topic]).partition_counts.get(self._topic)
            if count is None:
                raise ClusterError(f"The topic {self._topic} is not on the worker's cluster any more; create it again.")
            self._tails = [LogTail(self._admin, TopicPartition(self._topic, p)) for p in range(count)]
        return len(self._tails)

    def write(self, records: Iterable[tuple[bytes, bytes | None]], put: Put = write_records) -> None:
        """Write records, those of a partition in order."""
        by_partition: dict[int, list[OwnRecord]] = {}
        for key, value in records:
            partition = partition_for_key(key, self.partition_count)
            by_partition.setdefault(partition, []).append(OwnRecord(key, value))
        for partition, own in by_partition.items():
            put(self._admin, TopicPartition(self._topic, partition), own)

    def read_new(self, isolation: int = READ_COMMITTED) -> list[LogRecord]:
        """What has come since the last call. Mostly nothing has: that takes one question for all partitions.

        Up to the first open transaction, be it of a worker that died in it; READ_UNCOMMITTED waits for its end.
        """
        tps = [TopicPartition(self._topic, p) for p in range(self.partition_count)]
        ends = self._admin.list_offsets(tps, LATEST, isolation)
        for tp in tps:  # what was read before another partition could not be is kept for the next call
            self._unread.extend(self._tails[tp.partition].read_to(ends[tp]))
        found, self._unread = self._unread, []
        return found
