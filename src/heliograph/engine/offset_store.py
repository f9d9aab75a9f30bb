"""Where each partition of a flow goes on: the newest record per key in `mm2-offsets.A.internal`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.kafka.topic_log import read_topic
from heliograph.wire.connect_offsets import decode

if TYPE_CHECKING:
    from heliograph.kafka.admin import Admin
    from heliograph.model import SourceOffset, TopicPartition


def read_offsets(target: Admin, topic: str, connector: str, source: str) -> dict[TopicPartition, SourceOffset]:
    """The progress of each partition; those forgotten by a null value are left out."""
    offsets: dict[TopicPartition, SourceOffset] = {}
    for record in read_topic(target, topic):
        decoded = decode(connector, source, record.key, record.value, record.headers)
        if decoded is None:
            continue
        tp, progress = decoded
        if progress is None:
            offsets.pop(tp, None)
        else:
            offsets[tp] = progress
    return offsets
