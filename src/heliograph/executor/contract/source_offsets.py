"""Where each partition of a flow goes on: the newest record per key in the topic of progress.

A null value was written by somebody who wants the partition copied again from its beginning. A partition is known by
what its key says, not by the key's bytes: where two keys speak of one, the one that still has a value counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.wire.records.connect_offsets import decode

if TYPE_CHECKING:
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import SourceOffset, TopicPartition


class SourceOffsets(NamedTuple):
    """What is known of a source connector's partitions."""

    offsets: dict[TopicPartition, SourceOffset]
    reset: frozenset[TopicPartition]


def read_source_offsets(holder: Admin, topic: str, connector: str, source: str) -> SourceOffsets:
    """The progress of each partition, and which were forgotten on purpose."""
    newest: dict[bytes | None, tuple[TopicPartition, SourceOffset | None]] = {}
    for record in read_topic(holder, topic):
        decoded = decode(connector, source, record.key, record.value, record.headers)
        if decoded is not None:
            newest[record.key] = decoded
    offsets = {tp: source_offsets for tp, source_offsets in newest.values() if source_offsets is not None}
    return SourceOffsets(offsets, frozenset(tp for tp, _source_offsets in newest.values() if tp not in offsets))


def read_offsets(holder: Admin, topic: str, connector: str, source: str) -> dict[TopicPartition, SourceOffset]:
    """The progress of each partition; those forgotten by a null value are left out."""
    return read_source_offsets(holder, topic, connector, source).offsets
