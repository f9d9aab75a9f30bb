"""Names and shapes of the topics MM2 keeps for itself."""

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
        (("cleanup.policy", "compact"),),
    )
