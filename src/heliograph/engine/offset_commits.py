"""Writes progress to `mm2-offsets.A.internal` through the task's own producer.

Only acknowledged offsets are written, so a crash repeats at most what was acknowledged since the last commit. One
commit is under way at a time: a partition's newer offset never reaches the topic before its older one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from kafka.record.default_records import DefaultRecordBatchBuilder

from heliograph.errors import TaskError
from heliograph.kafka.producer import BatchProducer, Outgoing
from heliograph.model import TopicPartition
from heliograph.wire.connect_offsets import encode_key, encode_value, partition_for_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.engine.spec import TaskSpec

_BATCH_BYTES = 512 * 1024


class OffsetCommits:
    """The committed offsets of a task's partitions."""

    def __init__(self, spec: TaskSpec, producer: BatchProducer) -> None:
        self.committed: dict[TopicPartition, int] = {}
        self._spec = spec
        self._producer = producer
        self._awaited = 0
        self._committing: dict[TopicPartition, int] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no commit is under way."""
        return self._awaited == 0

    def commit(self, acked: Mapping[TopicPartition, int], timestamp_ms: int) -> bool:
        """Write what has moved; False where a commit is still under way and this one must come later."""
        if not self.is_idle or not self._producer.is_ready:
            return False
        self._committing = {tp: offset for tp, offset in acked.items() if self.committed.get(tp) != offset}
        by_partition: dict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
        for tp, offset in self._committing.items():
            key = encode_key(self._spec.connector, self._spec.flow.source, tp)
            by_partition[partition_for_key(key, self._spec.offsets_partition_count)].append((key, encode_value(offset)))
        for number, records in by_partition.items():
            partition = self._producer.add(TopicPartition(self._spec.offsets_topic, number))
            for outgoing in _batches(records, timestamp_ms):
                self._awaited += 1
                self._producer.enqueue(partition, outgoing)
        return True

    def on_acked(self) -> None:
        """One batch of the commit under way is safe; after the last, all of its offsets are committed."""
        self._awaited -= 1
        if self._awaited == 0:
            self.committed |= self._committing

    def on_refused(self, tp: TopicPartition, why: str) -> None:
        """Progress cannot be recorded: going on would mean endless duplicates after the next restart."""
        raise TaskError(f"progress cannot be written to {tp} on '{self._spec.target.alias}': {why}.")


def _batches(records: list[tuple[bytes, bytes]], timestamp_ms: int) -> list[Outgoing]:
    outgoing: list[Outgoing] = []
    at = 0
    while at < len(records):
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=_BATCH_BYTES,
        )
        first = at
        while at < len(records):
            key, value = records[at]
            if builder.append(at - first, timestamp=timestamp_ms, key=key, value=value, headers=[]) is None:
                break
            at += 1
        outgoing.append(Outgoing(memoryview(bytearray(builder.build())), at - first, None, None))
    return outgoing
