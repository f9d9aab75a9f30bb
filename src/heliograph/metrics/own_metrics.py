"""The metrics that Java MM2 does not have, under `heliograph_`. Units are seconds, bytes and records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from heliograph.metrics import own_subjects as subjects
from heliograph.metrics.metric import CountAndSum, Metric, MetricType, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.metrics.metric import Value

T = TypeVar("T")


class _Unit(NamedTuple):
    suffix: str
    unit: str


_UNITS = [_Unit(f"_{unit}", unit) for unit in ("seconds", "bytes", "records")]


def _unit_of(name: str) -> str:
    return next((unit for suffix, unit in _UNITS if name.endswith(suffix)), "")


def gauge(subject: Subject[T], name: str, text: str, value: Callable[[T], Value]) -> Metric[T]:
    """Return the row of a gauge; its unit is the end of its name."""
    return Metric(name, MetricType.GAUGE, subject, text, value, _unit_of(name))


def counter(subject: Subject[T], name: str, text: str, value: Callable[[T], Value]) -> Metric[T]:
    """Return the row of a counter, whose name on the page ends with `_total`."""
    return Metric(name, MetricType.COUNTER, subject, text, value, _unit_of(name))


def flag(subject: Subject[Any], name: str, text: str) -> Metric[Any]:
    """Return the row of a metric that is 1 wherever it has a series."""
    return Metric(name, MetricType.GAUGE, subject, text, lambda _item: 1)


def _age(at: float, then: float | None) -> float | None:
    return None if then is None else max(0.0, at - then)


def _milliseconds(value: float | None) -> float | None:
    return None if value is None else value / 1000


_OF_PROCESS: tuple[Metric[Any], ...] = (
    Metric("heliograph_build", MetricType.INFO, subjects.VERSION, "The version of Heliograph.", lambda _item: 1),
    gauge(
        subjects.PROCESS,
        "heliograph_snapshot_timestamp_seconds",
        "Time of the values of this page.",
        lambda each: each.at,
    ),
    gauge(
        subjects.PROCESS,
        "heliograph_spark_slots",
        "Tasks that Spark can run at the same time; NaN until it answers.",
        lambda each: each.engine.slots,
    ),
    gauge(
        subjects.PROCESS,
        "heliograph_spark_running_tasks",
        "Tasks that have reported.",
        lambda each: each.engine.running_tasks,
    ),
    gauge(
        subjects.PROCESS,
        "heliograph_spark_waiting_tasks",
        "Tasks that were started and have not reported: usually they wait for a slot.",
        lambda each: each.engine.waiting_tasks,
    ),
    gauge(
        subjects.WORKER,
        "heliograph_worker_leader",
        "1 in the worker that runs the connectors.",
        lambda each: each.is_leader,
    ),
    gauge(
        subjects.WORKER,
        "heliograph_worker_rebalancing",
        "1 while the group of workers elects a leader.",
        lambda each: each.is_rebalancing,
    ),
    gauge(subjects.WORKER, "heliograph_worker_generation", "Generation of the group.", lambda each: each.generation),
    counter(subjects.WORKER, "heliograph_worker_rebalances", "Rebalances of the group.", lambda each: each.rebalances),
    gauge(
        subjects.WORKER,
        "heliograph_worker_rebalanced_timestamp_seconds",
        "Time of the last rebalance.",
        lambda each: each.rebalanced_at,
    ),
    gauge(
        subjects.CERTIFICATE,
        "heliograph_certificate_expiry_timestamp_seconds",
        "End of the validity of a certificate that this process shows (`role` is `own`) or trusts (`trusted`), for a "
        "cluster or the REST listener. What brokers show is not watched.",
        lambda each: each.not_after,
    ),
)

_OF_FLOWS: tuple[Metric[Any], ...] = (
    Metric(
        "heliograph_flow",
        MetricType.INFO,
        subjects.FLOW_IDENTITY,
        "Connector and clusters of a flow, to join by `flow`.",
        lambda _item: 1,
    ),
    flag(subjects.FLOW_STATE, "heliograph_flow_state", "1 for the present state of the flow."),
    gauge(
        subjects.FLOW,
        "heliograph_flow_state_since_timestamp_seconds",
        "Time since which the flow has its state.",
        lambda each: each.flow.since,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_ready",
        "1 if the flow reaches its clusters and copies something of what is behind, as `/health/ready` decides.",
        lambda each: not each.flow.unready,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_issues",
        "What the flow and its checkpoints and heartbeats cannot do now; REST has the texts.",
        lambda each: len(each.flow.issues) + len(each.flow.loop_issues),
    ),
    gauge(
        subjects.PARTITION_COUNT,
        "heliograph_flow_partitions",
        "Partitions in each state; NaN until the flow has found them.",
        lambda count: count,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_lag_records",
        "Records of the source that are not known to be on the target; NaN if that of any partition is not known, or "
        "the flow has not found its partitions yet.",
        lambda each: each.lag.records,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_known_lag_records",
        "The lag of the partitions whose lag is known: the flow is behind by at least this.",
        lambda each: each.lag.known_records,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_unknown_lag_partitions",
        "Partitions whose lag is not known; NaN until the flow has found its partitions.",
        lambda each: each.lag.unknown_partitions,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_lag_seconds",
        "Age of the oldest record that is not copied, the largest of all partitions; NaN if that of any is not known.",
        lambda each: each.lag.seconds,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_catch_up_seconds",
        "Estimated time until nothing is behind, at the present rates; +Inf if the lag does not fall.",
        lambda each: each.flow.catch_up_seconds,
    ),
    counter(
        subjects.FLOW,
        "heliograph_flow_records",
        "Records acknowledged by the target.",
        lambda each: each.flow.counts.records,
    ),
    counter(
        subjects.FLOW, "heliograph_flow_bytes", "Bytes acknowledged by the target.", lambda each: each.flow.counts.bytes
    ),
    Metric(
        "heliograph_flow_latency_seconds",
        MetricType.HISTOGRAM,
        subjects.FLOW,
        "Time from a record's timestamp to its acknowledgement by the target; a batch counts with the timestamp of its "
        "newest record.",
        lambda each: each.flow.latency,
        "seconds",
    ),
    counter(
        subjects.LOSS,
        "heliograph_loss_events",
        "Events after which source and target did not have the same records, by cause. If earlier ones may not be "
        "read, only those of this process, and only of causes that it has found.",
        lambda total: total.events,
    ),
    counter(
        subjects.LOSS,
        "heliograph_lost_records",
        "Records of these events; estimated if the exact number is not known.",
        lambda total: total.records,
    ),
    gauge(
        subjects.FLOW,
        "heliograph_flow_throttle_bytes_per_second",
        "The configured limit of the flow's throughput; 0 is none.",
        lambda each: each.flow.throttle_bytes_per_s,
    ),
    gauge(
        subjects.HEARTBEAT_PATH,
        "heliograph_heartbeat_age_seconds",
        "Age of the newest heartbeat that was copied along a path of clusters.",
        lambda age: age,
    ),
    gauge(
        subjects.LEFT_OUT,
        "heliograph_left_out_series",
        "Partitions, topics, groups and partitions of groups without series of their own, because the flow has more "
        "than `heliograph.metrics.partitions.max`.",
        lambda count: count,
    ),
)

_OF_PARTITIONS: tuple[Metric[Any], ...] = (
    gauge(subjects.TOPIC, "heliograph_topic_partitions", "Partitions of the topic.", lambda each: each.partitions),
    gauge(
        subjects.TOPIC,
        "heliograph_topic_not_copied_partitions",
        "Partitions that are failed, retrying or waiting.",
        lambda each: each.not_copied,
    ),
    gauge(
        subjects.TOPIC,
        "heliograph_topic_lag_records",
        "Lag in records; NaN if a part is unknown.",
        lambda each: each.lag_records,
    ),
    gauge(
        subjects.TOPIC,
        "heliograph_topic_known_lag_records",
        "The lag of the partitions whose lag is known.",
        lambda each: each.known_lag_records,
    ),
    gauge(
        subjects.TOPIC, "heliograph_topic_lag_seconds", "Lag in seconds, the largest.", lambda each: each.lag_seconds
    ),
    counter(
        subjects.TOPIC, "heliograph_topic_records", "Records acknowledged by the target.", lambda each: each.records
    ),
    counter(subjects.TOPIC, "heliograph_topic_bytes", "Bytes acknowledged by the target.", lambda each: each.bytes),
    flag(
        subjects.PARTITION_STATE,
        "heliograph_partition_state",
        "1 for the present state of the partition: `copying`, `caught_up`, `waiting`, `retrying`, `failed` or `done`.",
    ),
    gauge(
        subjects.PARTITION,
        "heliograph_partition_state_since_timestamp_seconds",
        "Time since which the partition has its state.",
        lambda each: each.status.since,
    ),
    gauge(
        subjects.PARTITION,
        "heliograph_partition_stopped_seconds",
        "For how long the partition has neither copied a record nor caught up, also under a task that is RUNNING; 0 if "
        "it copies or has caught up.",
        lambda each: 0 if each.status.stopped_since is None else max(0.0, each.at - each.status.stopped_since),
    ),
    gauge(
        subjects.PARTITION,
        "heliograph_partition_lag_records",
        "The end of the source's log less the first offset that the target is not known to have.",
        lambda each: each.status.lag_records,
    ),
    gauge(
        subjects.PARTITION,
        "heliograph_partition_lag_seconds",
        "Age of the oldest record that is not copied.",
        lambda each: each.status.lag_seconds,
    ),
    gauge(
        subjects.PARTITION,
        "heliograph_partition_log_end_offset",
        "The end of the source's log (its high watermark).",
        lambda each: each.status.log_end,
    ),
    gauge(
        subjects.PARTITION,
        "heliograph_partition_position_offset",
        "The first offset of the source that the target is not known to have.",
        lambda each: each.status.next_offset,
    ),
    counter(
        subjects.PARTITION,
        "heliograph_partition_records",
        "Records acknowledged by the target.",
        lambda each: each.status.records,
    ),
    counter(
        subjects.PARTITION,
        "heliograph_partition_bytes",
        "Bytes acknowledged by the target.",
        lambda each: each.status.bytes,
    ),
)

_OF_TASKS: tuple[Metric[Any], ...] = (
    flag(subjects.TASK_STATE, "heliograph_task_state", "1 for the present state of the task, in Connect's words."),
    gauge(subjects.TASK, "heliograph_task_partitions", "Partitions of the task.", lambda each: each.partitions),
    counter(
        subjects.RESTART,
        "heliograph_task_restarts",
        "Restarts of the task or of a partition in it.",
        lambda count: count,
    ),
    counter(
        subjects.TASK,
        "heliograph_task_records",
        "Records acknowledged by the target.",
        lambda each: each.counts.records,
    ),
    counter(
        subjects.TASK, "heliograph_task_bytes", "Bytes acknowledged by the target.", lambda each: each.counts.bytes
    ),
    counter(
        subjects.TASK,
        "heliograph_task_received_bytes",
        "Bytes received from the source's brokers.",
        lambda each: each.counts.received_bytes,
    ),
    counter(
        subjects.TASK,
        "heliograph_task_sent_bytes",
        "Bytes sent to the target's brokers.",
        lambda each: each.counts.sent_bytes,
    ),
    counter(
        subjects.TASK,
        "heliograph_task_throttled_seconds",
        "Time for which quotas of the clusters throttled the task.",
        lambda each: each.counts.throttled_ms / 1000,
    ),
    Metric(
        "heliograph_task_commit_seconds",
        MetricType.SUMMARY,
        subjects.TASK,
        "Commits of source offsets, and the time they took.",
        lambda each: CountAndSum(each.counts.commits, each.counts.commit_sum_ms / 1000),
        "seconds",
    ),
    counter(
        subjects.TASK,
        "heliograph_task_failed_commits",
        "Commits of source offsets that failed.",
        lambda each: each.counts.failed_commits,
    ),
    gauge(
        subjects.TASK,
        "heliograph_task_longest_commit_seconds",
        "The longest commit of the last minute; NaN without any.",
        lambda each: _milliseconds(each.gauges.commit_highest_ms),
    ),
    gauge(
        subjects.TASK,
        "heliograph_task_unacknowledged_records",
        "Records that were fetched and are not acknowledged yet.",
        lambda each: each.gauges.unacknowledged_records,
    ),
    gauge(
        subjects.TASK,
        "heliograph_task_buffer_limit_bytes",
        "Memory for records that were fetched and are not acknowledged yet.",
        lambda each: each.gauges.buffer_bytes,
    ),
    gauge(
        subjects.TASK,
        "heliograph_task_buffer_used_bytes",
        "The part of it that is in use.",
        lambda each: each.gauges.used_buffer_bytes,
    ),
    gauge(
        subjects.TASK,
        "heliograph_task_source_connections",
        "Connections to the source's brokers.",
        lambda each: each.gauges.source_connections,
    ),
    gauge(
        subjects.TASK,
        "heliograph_task_target_connections",
        "Connections to the target's brokers.",
        lambda each: each.gauges.target_connections,
    ),
)

_OF_GROUPS: tuple[Metric[Any], ...] = (
    gauge(
        subjects.CHECKPOINTS,
        "heliograph_checkpoints_groups",
        "Groups whose offsets are translated; NaN until a step has read all of them.",
        lambda each: each.checkpoints.group_count,
    ),
    counter(
        subjects.CHECKPOINTS,
        "heliograph_checkpoints_written",
        "Checkpoints that this process has written.",
        lambda each: each.checkpoints.written,
    ),
    gauge(
        subjects.CHECKPOINTS,
        "heliograph_checkpoints_newest_age_seconds",
        "Time since this process wrote a checkpoint; it grows while no group commits. NaN before the first.",
        lambda each: _age(each.checkpoints.at, each.checkpoints.written_at),
    ),
    gauge(
        subjects.CHECKPOINTS,
        "heliograph_checkpoints_complete_age_seconds",
        "Time since every checkpoint was that of its group's committed offset. NaN until then.",
        lambda each: _age(each.checkpoints.at, each.checkpoints.passed_at),
    ),
    gauge(
        subjects.GROUP,
        "heliograph_group_partitions",
        "Partitions of the flow in which the group has committed offsets.",
        lambda each: len(each.status.partitions),
    ),
    gauge(
        subjects.GROUP,
        "heliograph_group_untranslated_partitions",
        "Partitions of the group without a checkpoint.",
        lambda each: each.untranslated,
    ),
    gauge(
        subjects.GROUP,
        "heliograph_group_translation_lag_seconds",
        "For how long checkpoints of the group are behind its committed offsets; 0 if they are not.",
        lambda each: each.status.lag_seconds,
    ),
    gauge(
        subjects.GROUP,
        "heliograph_group_read_again_records",
        "Records that the group would read again if it continued on the target now; NaN if not known for a partition.",
        lambda each: each.status.read_again,
    ),
    gauge(
        subjects.GROUP_PARTITION,
        "heliograph_group_committed_offset",
        "The committed offset of the group on the source.",
        lambda each: each.committed,
    ),
    gauge(
        subjects.GROUP_PARTITION,
        "heliograph_group_translated_offset",
        "The offset of its checkpoint, on the target.",
        lambda each: each.translated,
    ),
    gauge(
        subjects.GROUP_PARTITION,
        "heliograph_group_partition_read_again_records",
        "Records of the partition that the group would read again.",
        lambda each: each.read_again,
    ),
    counter(
        subjects.HEARTBEATS,
        "heliograph_heartbeats_written",
        "Heartbeats that this process has written.",
        lambda each: each.written,
    ),
    gauge(
        subjects.HEARTBEATS,
        "heliograph_heartbeats_written_timestamp_seconds",
        "Time of the last of them; NaN before the first.",
        lambda each: each.written_at,
    ),
)

OWN_METRICS: tuple[Metric[Any], ...] = (*_OF_PROCESS, *_OF_FLOWS, *_OF_PARTITIONS, *_OF_TASKS, *_OF_GROUPS)
"""All of them, in the order of the page."""
