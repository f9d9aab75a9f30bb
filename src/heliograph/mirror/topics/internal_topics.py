"""Names and shapes of what MM2 keeps for itself on a cluster: topics, and the ids of its producers.

A topic's name is the policy's (an internal separator may differ), its shape is MM2's: one compacted partition.


How many replicas a topic can have: MM2's default factors fail on a small cluster, here they bend.

What the user wrote does not bend; where the cluster cannot hold it, the sentence names the key, the factor and the
number of brokers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import worker_keys
from heliograph.mirror.policy.replication_policy import make_policy
from heliograph.model import CreateTopic, counted

if TYPE_CHECKING:
    from heliograph.config.resolve.settings import Settings


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
    return _compacted(
        settings[worker_keys.CONFIG_STORAGE_TOPIC], settings[worker_keys.CONFIG_STORAGE_REPLICATION_FACTOR]
    )


def status_topic(settings: Settings) -> CreateTopic:
    """A worker's topic of states."""
    factor = settings[worker_keys.STATUS_STORAGE_REPLICATION_FACTOR]
    topic = _compacted(settings[worker_keys.STATUS_STORAGE_TOPIC], factor)
    return replace(topic, partition_count=settings[worker_keys.STATUS_STORAGE_PARTITIONS])


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


def possible_factor(wanted: int, broker_count: int, *, is_explicit: bool) -> int:
    """The factor to create a topic with."""
    return wanted if is_explicit else min(wanted, broker_count)


def bent_sentence(alias: str, what: str, wanted: int, broker_count: int) -> str:
    """Says that a default factor was bent for a kind of topic."""
    return (
        f"{alias}: {counted(broker_count, 'broker')} cannot hold {what} with the default replication factor {wanted};"
        f" using {broker_count}"
    )


def too_large_sentence(alias: str, key: str, wanted: int, broker_count: int) -> str:
    """Says that a factor the user wrote is more than the cluster can hold."""
    has = counted(broker_count, "broker")
    return f"{key} is {wanted}, but the cluster '{alias}' has {has}; lower {key} or add brokers"
