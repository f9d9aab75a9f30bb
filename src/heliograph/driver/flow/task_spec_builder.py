"""Builds the spec of a task from the configuration of its flow.

A task reads no other configuration: the spec travels to an executor as one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import client_keys
from heliograph.driver.clusters.cluster_specs import (
    cluster_spec,
    fetch_limits,
    offsets_spec,
    produce_limits,
    records_spec,
)
from heliograph.executor.contract.task_spec import PartitionSpec, SyncsSpec, TaskSpec
from heliograph.mirror.topics.internal_topics import offset_syncs_topic, transactional_prefix
from heliograph.mirror.topics.task_assignment import rate_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.flow.topic_sync import Replicated
    from heliograph.executor.contract.source_offsets import SourceOffsets
    from heliograph.model import CreateTopic, Flow, TopicPartition


def task_spec(
    config: MirrorConfig,
    flow: Flow,
    number: int,
    partitions: tuple[PartitionSpec, ...],
    offsets_topic: CreateTopic,
    task_count: int,
) -> TaskSpec:
    """Return the spec of task `number` of `task_count`; `offsets_topic` is as it exists on the cluster."""
    settings = config.settings(flow)
    consumer, producer = config.client(flow.source, "consumer", flow), config.records_client(flow)
    connector = config.source_connector(flow)
    transaction_timeout_ms = producer[client_keys.TRANSACTION_TIMEOUT_MS]
    is_exactly_once = settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"
    return TaskSpec(
        task_id=f"{config.label(flow)}-{number}",
        flow=flow,
        source=cluster_spec(config, flow.source, "consumer", flow),
        target=records_spec(config, flow),
        partitions=partitions,
        connector=connector,
        offsets_topic=offsets_topic.name,
        offsets_partition_count=offsets_topic.partition_count,
        commit_interval_ms=settings[keys.OFFSET_FLUSH_INTERVAL_MS],
        buffer_bytes=settings[keys.TASK_BUFFER_BYTES],
        offset_reset=consumer[client_keys.AUTO_OFFSET_RESET],
        limits=fetch_limits(consumer, settings),
        produce_limits=produce_limits(producer, settings),
        transactional_id=f"{transactional_prefix(settings, connector)}{number}" if is_exactly_once else None,
        transaction_timeout_ms=transaction_timeout_ms,
        max_commit_interval_ms=transaction_timeout_ms // client_keys.COMMITS_PER_TRANSACTION_TIMEOUT,
        bytes_per_s=rate_share(settings[keys.THROTTLE_BYTES_PER_SECOND], task_count),
        tolerates_too_large=settings[keys.ERRORS_TOLERANCE] == "all",
        syncs=_syncs_spec(config, flow),
        source_offsets=offsets_spec(config, flow),
    )


def partition_specs(
    tps: Iterable[TopicPartition],
    replicated: Replicated,
    source_offsets: SourceOffsets,
    stop_offsets: Mapping[TopicPartition, int],
) -> tuple[PartitionSpec, ...]:
    """Return the partitions of a task: the remote topic of each, where it resumes, and where it ends, if it ends."""
    return tuple(
        PartitionSpec(
            tp,
            replicated.remote_topics[tp.topic],
            source_offsets.offsets.get(tp),
            stop_offsets.get(tp),
            tp in source_offsets.reset,
            actions=replicated.actions[tp.topic],
        )
        for tp in sorted(tps)
    )


def _syncs_spec(config: MirrorConfig, flow: Flow) -> SyncsSpec | None:
    """Return where a flow's tasks write offset syncs; None if they write none."""
    settings = config.settings(flow)
    if not settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
        return None
    cluster = flow.source if settings[keys.OFFSET_SYNCS_LOCATION] == "source" else flow.target
    spec = cluster_spec(config, cluster, "producer", flow)
    return SyncsSpec(spec, offset_syncs_topic(settings).name, settings[keys.OFFSET_LAG_MAX])
