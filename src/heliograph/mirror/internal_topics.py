"""Names and shapes of what MM2 keeps for itself on a cluster: topics, and the ids of its producers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.mirror.topics import CreateTopic

if TYPE_CHECKING:
    from heliograph.config.types import Settings

SOURCE_CONNECTOR_NAME = "MirrorSourceConnector"


def offsets_topic(settings: Settings) -> CreateTopic:
    """The topic of a flow's progress on the target: Connect's offset storage."""
    name = settings[keys.OFFSET_STORAGE_TOPIC] or f"mm2-offsets.{settings[keys.SOURCE_ALIAS]}.internal"
    return CreateTopic(
        name,
        settings[keys.OFFSET_STORAGE_PARTITIONS],
        settings[keys.OFFSET_STORAGE_REPLICATION_FACTOR],
        # A segment is compacted only when the next has begun: small ones keep reading progress at a start short.
        (("cleanup.policy", "compact"), ("segment.bytes", str(16 << 20))),
    )


def transactional_prefix(settings: Settings) -> str:
    """What the transactional ids of a flow's source tasks begin with, as Connect's: a task's number follows."""
    group_id = settings[keys.GROUP_ID] or f"{settings[keys.SOURCE_ALIAS]}-mm2"
    return f"{group_id}-{SOURCE_CONNECTOR_NAME}-"
