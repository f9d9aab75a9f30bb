"""Names and shapes of what MM2 keeps for itself on a cluster: topics, and the ids of its producers.

A topic's name is the policy's (an internal separator may differ), its shape is MM2's: one compacted partition.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config import keys, store_keys
from heliograph.mirror.policy import make_policy
from heliograph.mirror.topics import CreateTopic

if TYPE_CHECKING:
    from heliograph.config.types import Settings

_HOUR_MS, _TEN_MINUTES_MS = "3600000", "600000"


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


def config_topic(settings: Settings) -> CreateTopic:
    """A worker's topic of connectors: one partition, because their order counts."""
    return _compacted(settings[store_keys.CONFIG_STORAGE_TOPIC], settings[store_keys.CONFIG_STORAGE_REPLICATION_FACTOR])


def status_topic(settings: Settings) -> CreateTopic:
    """A worker's topic of states."""
    factor = settings[store_keys.STATUS_STORAGE_REPLICATION_FACTOR]
    topic = _compacted(settings[store_keys.STATUS_STORAGE_TOPIC], factor)
    return replace(topic, partition_count=settings[store_keys.STATUS_STORAGE_PARTITIONS])


def offset_syncs_topic(settings: Settings) -> CreateTopic:
    """The topic of a flow's offset syncs; it lives on the source unless `offset-syncs.topic.location` says target.

    It carries the other cluster's alias, so that flows that share a cluster keep theirs apart.
    """
    on_source = settings[keys.OFFSET_SYNCS_LOCATION] == "source"
    other = settings[keys.TARGET_ALIAS] if on_source else settings[keys.SOURCE_ALIAS]
    topic = _compacted(make_policy(settings).offset_syncs_topic(other), settings[keys.OFFSET_SYNCS_REPLICATION_FACTOR])
    # Our syncs carry the history of a partition in headers; compaction keeps only the last sync of each partition, and
    # would drop that history before groups that lag behind have been translated with it. Yet it must come soon: a busy
    # task writes a hundred syncs a second, and the whole topic is read at a start.
    kept = (("min.compaction.lag.ms", _HOUR_MS), ("segment.ms", _TEN_MINUTES_MS))
    return replace(topic, configs=(*topic.configs, *kept))


def checkpoints_topic(settings: Settings) -> CreateTopic:
    """The topic of a flow's checkpoints, on the target."""
    name = make_policy(settings).checkpoints_topic(settings[keys.SOURCE_ALIAS])
    return _compacted(name, settings[keys.CHECKPOINTS_REPLICATION_FACTOR])


def heartbeats_topic(settings: Settings) -> CreateTopic:
    """The topic of heartbeats, on the target; all flows into a cluster share it."""
    return _compacted(make_policy(settings).heartbeats_topic(), settings[keys.HEARTBEATS_REPLICATION_FACTOR])


def _compacted(name: str, replication_factor: int) -> CreateTopic:
    return CreateTopic(name, 1, replication_factor, (("cleanup.policy", "compact"),))


def leader_transactional_id(settings: Settings) -> str | None:
    """The id under which the leader of a worker's group writes to its config topic, as Connect's; None: under none."""
    is_fenced = settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] != "disabled"  # `preparing` is for this alone
    return f"connect-cluster-{settings[keys.GROUP_ID]}" if is_fenced else None


def transactional_prefix(settings: Settings, connector: str) -> str:
    """What the transactional ids of a source connector's tasks begin with, as Connect's: a task's number follows."""
    group_id = settings[keys.GROUP_ID] or f"{settings[keys.SOURCE_ALIAS]}-mm2"
    return f"{group_id}-{connector}-"
