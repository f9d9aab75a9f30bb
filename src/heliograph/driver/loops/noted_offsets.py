"""Writes the source offsets of checkpoint and heartbeat connectors to Connect's offsets topic.

The offset is always 0 and no connector resumes from it; it is what `/connectors/{name}/offsets` lists. So each
partition is written once per start. For a dedicated-mode file, which has no such endpoint, nothing is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heliograph.driver.clusters.internal_topic_creation import create_offsets_topic
from heliograph.kafka.topics.compacted_topic import StoredTopic
from heliograph.wire.records.connect_offsets import encode_any_key, encode_value, ordered_partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.clusters.cluster_clients import TargetClients
    from heliograph.model import ConnectorKind, Flow


class NotedOffsets:
    """The partitions that one connector has written since its start."""

    def __init__(self, config: MirrorConfig, flow: Flow, written: TargetClients, kind: ConnectorKind) -> None:
        self._connector = config.source_connector(flow) if config.notes_offsets else None
        self._settings = config.settings(flow)
        self._cluster = written.source_offsets
        self._kind = kind
        self._topic: StoredTopic | None = None
        self._noted: set[bytes] = set()

    def note(self, partitions: Iterable[dict[str, Any]]) -> None:
        """Write the partitions that are new."""
        if self._connector is None:
            return
        keys = [encode_any_key(self._connector, ordered_partition(self._kind, each)) for each in partitions]
        new = dict.fromkeys(key for key in keys if key not in self._noted)
        if not new:
            return
        if self._topic is None:
            self._topic = StoredTopic(self._cluster, create_offsets_topic(self._cluster, self._settings).name)
        self._topic.write((key, encode_value(0)) for key in new)
        self._noted |= set(new)
