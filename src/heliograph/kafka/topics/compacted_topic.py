"""A small compacted topic of ours, such as Connect's config, status and offset topics: written by key, and followed.

Keys are assigned to partitions by Kafka's default partitioner (murmur2), as Java does; otherwise compaction would keep
two values of one key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.errors import ClusterError
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.request_options import READ_COMMITTED
from heliograph.kafka.topics.record_writer import write_records
from heliograph.kafka.topics.topic_reader import LogTail
from heliograph.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.kafka.admin.admin import Admin
    from heliograph.wire.batches.log_records import LogRecord

    Put = Callable[[Admin, TopicPartition, list[OwnRecord]], None]


class StoredTopic:
    """Writes a compacted topic by key, and reads it from the beginning and then what is new.

    `recreations` counts how often the topic was found to have been deleted and created again; the records that are
    read next are then those of the new topic, from its beginning.
    """

    def __init__(self, admin: Admin, topic: str) -> None:
        self.recreations = 0
        self._admin = admin
        self._topic = topic
        self._tails: list[LogTail] = []
        self._unread: list[LogRecord] = []

    @property
    def partition_count(self) -> int:
        """The number of partitions; raises ClusterError if the topic does not exist."""
        if not self._tails:
            count = self._admin.view([self._topic]).partition_counts.get(self._topic)
            if count is None:
                raise ClusterError(f"The topic {self._topic} is not on the worker's cluster any more; create it again.")
            self._tails = [LogTail(self._admin, TopicPartition(self._topic, p)) for p in range(count)]
        return len(self._tails)

    def write(self, records: Iterable[tuple[bytes, bytes | None]], put: Put = write_records) -> None:
        """Write records; those of one partition stay in order."""
        by_partition: dict[int, list[OwnRecord]] = {}
        for key, value in records:
            partition = partition_for_key(key, self.partition_count)
            by_partition.setdefault(partition, []).append(OwnRecord(key, value))
        for partition, own in by_partition.items():
            put(self._admin, TopicPartition(self._topic, partition), own)

    def read_new(self, isolation: int = READ_COMMITTED) -> list[LogRecord]:
        """Return the records since the last call; usually none, which takes one request for all partitions.

        Reads up to the first open transaction, even of a worker that died in it; READ_UNCOMMITTED waits for its end.
        """
        ends = self._admin.log_ends([TopicPartition(self._topic, p) for p in range(self.partition_count)], isolation)
        if any(tail.is_recreated(ends) for tail in self._tails):
            self.recreations += 1
            self._unread.clear()
            for tail in self._tails:
                tail.reset()
        for tail in self._tails:  # records read before another partition failed are kept for the next call
            self._unread.extend(tail.read_to(ends))
        found, self._unread = self._unread, []
        return found


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition that Kafka's default partitioner assigns to a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def murmur2(data: bytes) -> int:
    """Return Kafka's 32-bit murmur2 of some bytes, unsigned."""
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
