"""Notes in the topic of progress that a checkpoint or heartbeat connector has written for a partition, as Connect does.

The offset is always 0 and nobody goes on from it; it is what `/connectors/{name}/offsets` lists. So each partition is
noted once per start. A dedicated-mode file has no such endpoint, and nothing is noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heliograph.mirror.connector_offsets import ordered_partition
from heliograph.wire.connect_offsets import encode_any_key, encode_value
from heliograph.worker.connect_stores import StoredTopic
from heliograph.worker.internal_topics import create_offsets_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.connector import Kind
    from heliograph.config.mirror_config import MirrorConfig
    from heliograph.model import Flow
    from heliograph.worker.clusters import Written


class NotedOffsets:
    """What one connector has noted since its start."""

    def __init__(self, config: MirrorConfig, flow: Flow, written: Written, kind: Kind) -> None:
        self._connector = config.source_connector(flow) if config.notes_offsets else None
        self._settings = config.settings(flow)
        self._holder = written.progress
        self._kind = kind
        self._topic: StoredTopic | None = None
        self._noted: set[bytes] = set()

    def note(self, partitions: Iterable[dict[str, Any]]) -> None:
        """Note the partitions that are new."""
        if self._connector is None:
            return
        keys = [encode_any_key(self._connector, ordered_partition(self._kind, each)) for each in partitions]
        new = dict.fromkeys(key for key in keys if key not in self._noted)
        if not new:
            return
        if self._topic is None:
            self._topic = StoredTopic(self._holder, create_offsets_topic(self._holder, self._settings).name)
        self._topic.write((key, encode_value(0)) for key in new)
        self._noted |= set(new)
