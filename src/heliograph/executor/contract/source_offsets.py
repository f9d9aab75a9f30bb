"""Reads the source offsets of a flow's partitions: the newest record of each key in the offsets topic.

A null value resets a partition: it is copied again from its start. Keys with different bytes may name the same
partition; then the one that still has a value counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.wire.records.connect_offsets import decode

if TYPE_CHECKING:
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import SourceOffset, TopicPartition


class SourceOffsets(NamedTuple):
    """The source offsets of a connector's partitions, and the partitions that were reset."""

    offsets: dict[TopicPartition, SourceOffset]
    reset: frozenset[TopicPartition]


def read_source_offsets(cluster: Admin, topic: str, connector: str, source: str) -> SourceOffsets:
    """Return the source offset of each partition, and the partitions that were reset."""
    newest: dict[bytes | None, tuple[TopicPartition, SourceOffset | None]] = {}
    for record in read_topic(cluster, topic):
        decoded = decode(connector, source, record.key, record.value, record.headers)
        if decoded is not None:
            newest[record.key] = decoded
    offsets = {tp: source_offsets for tp, source_offsets in newest.values() if source_offsets is not None}
    return SourceOffsets(offsets, frozenset(tp for tp, _source_offsets in newest.values() if tp not in offsets))


def read_offsets(cluster: Admin, topic: str, connector: str, source: str) -> dict[TopicPartition, SourceOffset]:
    """Return the source offset of each partition, without those that were reset."""
    return read_source_offsets(cluster, topic, connector, source).offsets
