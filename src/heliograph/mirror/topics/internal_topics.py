"""Internal topics of MM2 and of a Connect worker: their names, configs and replication factors; transactional ids.

The policy gives a topic its name; most have one compacted partition, as in MM2. A default replication factor that the
cluster cannot hold is lowered to the number of brokers (MM2 fails); one that the user wrote is not, and the error names
its key.
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
    """Return the topic of a flow's source offsets on the target: Connect's offset storage."""
    name = settings[keys.OFFSET_STORAGE_TOPIC] or f"mm2-offsets.{settings[keys.SOURCE_ALIAS]}.internal"
    return CreateTopic(
        name,
        settings[keys.OFFSET_STORAGE_PARTITIONS],
        settings[keys.OFFSET_STORAGE_REPLICATION_FACTOR],
        # A segment is compacted only when the next one exists: small ones keep the read at a start short.
        (("cleanup.policy", "compact"), ("segment.bytes", str(16 << 20))),
    )


def config_topic(settings: Settings) -> CreateTopic:
    """Return a worker's topic of connector configs: one partition, because their order matters."""
    return _compacted(
        settings[worker_keys.CONFIG_STORAGE_TOPIC], settings[worker_keys.CONFIG_STORAGE_REPLICATION_FACTOR]
    )


def status_topic(settings: Settings) -> CreateTopic:
    """Return a worker's topic of connector and task states."""
    factor = settings[worker_keys.STATUS_STORAGE_REPLICATION_FACTOR]
    topic = _compacted(settings[worker_keys.STATUS_STORAGE_TOPIC], factor)
    return replace(topic, partition_count=settings[worker_keys.STATUS_STORAGE_PARTITIONS])


def offset_syncs_topic(settings: Settings) -> CreateTopic:
    """Return the topic of a flow's offset syncs; it is on the source unless `offset-syncs.topic.location` is target.

    Its name has the other cluster's alias, so that flows that share a cluster have one each.
    """
    on_source = settings[keys.OFFSET_SYNCS_LOCATION] == "source"
    other = settings[keys.TARGET_ALIAS] if on_source else settings[keys.SOURCE_ALIAS]
    topic = _compacted(make_policy(settings).offset_syncs_topic(other), settings[keys.OFFSET_SYNCS_REPLICATION_FACTOR])
    # Our syncs carry the history of a partition in headers. Compaction keeps only the last sync of each partition, and
    # would drop the history that translates groups with a lag. But it must not be late either: a busy task writes a
    # hundred syncs a second, and the whole topic is read at a start.
    kept = (("min.compaction.lag.ms", _HOUR_MS), ("segment.ms", _TEN_MINUTES_MS))
    return replace(topic, configs=(*topic.configs, *kept))


def checkpoints_topic(settings: Settings) -> CreateTopic:
    """Return the topic of a flow's checkpoints, on the target."""
    name = make_policy(settings).checkpoints_topic(settings[keys.SOURCE_ALIAS])
    return _compacted(name, settings[keys.CHECKPOINTS_REPLICATION_FACTOR])


def losses_topic(settings: Settings) -> CreateTopic:
    """Return the topic of a flow's losses, on the target: not compacted, and kept for ever."""
    name = make_policy(settings).losses_topic(settings[keys.SOURCE_ALIAS])
    kept = (("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1"))
    return CreateTopic(name, 1, settings[keys.OFFSET_SYNCS_REPLICATION_FACTOR], kept)


def heartbeats_topic(settings: Settings) -> CreateTopic:
    """Return the topic of heartbeats, on the target; all flows into a cluster share it."""
    return _compacted(make_policy(settings).heartbeats_topic(), settings[keys.HEARTBEATS_REPLICATION_FACTOR])


def _compacted(name: str, replication_factor: int) -> CreateTopic:
    return CreateTopic(name, 1, replication_factor, (("cleanup.policy", "compact"),))


def leader_transactional_id(settings: Settings) -> str | None:
    """Return Connect's transactional id for the leader's writes to the config topic; None if they have none."""
    is_fenced = settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] != "disabled"  # `preparing` is for this alone
    return f"connect-cluster-{settings[keys.GROUP_ID]}" if is_fenced else None


def transactional_prefix(settings: Settings, connector: str) -> str:
    """Return the prefix of the transactional ids of a connector's tasks, as in Connect: a task's number follows."""
    group_id = settings[keys.GROUP_ID] or f"{settings[keys.SOURCE_ALIAS]}-mm2"
    return f"{group_id}-{connector}-"


def possible_factor(wanted: int, broker_count: int, *, is_explicit: bool) -> int:
    """Return the replication factor to create a topic with."""
    return wanted if is_explicit else min(wanted, broker_count)


def bent_sentence(alias: str, what: str, wanted: int, broker_count: int) -> str:
    """Return the sentence that a default factor was lowered for some topics."""
    return (
        f"{alias}: {counted(broker_count, 'broker')} cannot hold {what} with the default replication factor {wanted};"
        f" using {broker_count}"
    )


def too_large_sentence(alias: str, key: str, wanted: int, broker_count: int) -> str:
    """Return the sentence that a factor which the user wrote is more than the cluster can hold."""
    has = counted(broker_count, "broker")
    return f"{key} is {wanted}, but the cluster '{alias}' has {has}; lower {key} or add brokers"
