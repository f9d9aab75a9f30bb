"""The metrics that Java MM2 does not have, under `heliograph_`. Units are seconds, bytes and records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from heliograph import __version__
from heliograph.metrics.metric import CountAndSum, Labels, Metric, MetricType, Scope
from heliograph.status.losses import LossCause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heliograph.metrics.metric import Value
    from heliograph.metrics.shown import PartitionAt, Shown, ShownCheckpoints, ShownFlow, ShownGroup, TopicSum
    from heliograph.status.flow_snapshot import LossTotal
    from heliograph.status.group_status import GroupPartition
    from heliograph.status.process_snapshot import Certificate, HeartbeatsSnapshot, ProcessSnapshot, WorkerSnapshot
    from heliograph.status.task_status import TaskRow

T = TypeVar("T")
Series = "Iterator[tuple[Labels, T]]"


def _process(shown: Shown) -> Iterator[tuple[Labels, ProcessSnapshot]]:
    yield (), shown.snapshot


def _version(_shown: Shown) -> Iterator[tuple[Labels, None]]:
    yield (__version__,), None


def _worker(shown: Shown) -> Iterator[tuple[Labels, WorkerSnapshot]]:
    if shown.snapshot.worker is not None:
        yield (), shown.snapshot.worker


def _flows(shown: Shown) -> Iterator[tuple[Labels, ShownFlow]]:
    return (((each.flow.name,), each) for each in shown.flows)


def _flow_identities(shown: Shown) -> Iterator[tuple[Labels, None]]:
    for each in shown.snapshot.flows:
        yield (each.name, each.connector, each.flow.source, each.flow.target), None


def _flow_states(shown: Shown) -> Iterator[tuple[Labels, None]]:
    return (((each.name, each.state), None) for each in shown.snapshot.flows)


def _partition_counts(shown: Shown) -> Iterator[tuple[Labels, int]]:
    for flow in shown.snapshot.flows:
        for state, count in flow.by_state.items():
            yield (flow.name, state.value), count


def _losses(shown: Shown) -> Iterator[tuple[Labels, LossTotal | None]]:
    """Yield all causes once losses are known, so that the first loss is an increase."""
    for flow in shown.snapshot.flows:
        if flow.loss_totals:
            for cause in LossCause:
                yield (flow.name, cause.value), flow.loss_totals.get(cause)


def _heartbeat_paths(shown: Shown) -> Iterator[tuple[Labels, float | None]]:
    """Yield the age of the newest heartbeat along each path; None if none has arrived in this process's time."""
    for flow in shown.snapshot.flows:
        newest: dict[str, int | None] = {"->".join(path): None for path in flow.heartbeat_paths.values()}
        if not newest:
            continue
        for partition in flow.partitions:
            clusters = flow.heartbeat_paths.get(partition.tp.topic)
            if clusters is not None and partition.copied_ms is not None:
                path = "->".join(clusters)
                newest[path] = max(newest[path] or 0, partition.copied_ms)
        for path, copied_ms in newest.items():
            yield (flow.name, path), None if copied_ms is None else max(0.0, flow.at - copied_ms / 1000)


def _left_out(shown: Shown) -> Iterator[tuple[Labels, int]]:
    for flow in shown.flows:
        for what, count in flow.left_out():
            yield (flow.flow.name, what), count
    for each in shown.checkpoints:
        for what, count in each.left_out():
            yield (each.checkpoints.name, what), count


def _topics(shown: Shown) -> Iterator[tuple[Labels, TopicSum]]:
    return (((each.flow.name, topic.topic), topic) for each in shown.flows for topic in each.topics)


def _partitions(shown: Shown) -> Iterator[tuple[Labels, PartitionAt]]:
    for flow in shown.flows:
        name = flow.flow.name
        for each in flow.partitions:
            yield (name, *each.status.tp), each


def _partition_states(shown: Shown) -> Iterator[tuple[Labels, None]]:
    for flow in shown.flows:
        name = flow.flow.name
        for each in flow.partitions:
            yield (name, *each.status.tp, each.status.state.value, each.task), None


def _tasks(shown: Shown) -> Iterator[tuple[Labels, TaskRow]]:
    return (((flow.name, task.number), task) for flow in shown.snapshot.flows for task in flow.tasks)


def _task_states(shown: Shown) -> Iterator[tuple[Labels, None]]:
    return (((flow.name, task.number, task.state), None) for flow in shown.snapshot.flows for task in flow.tasks)


def _restarts(shown: Shown) -> Iterator[tuple[Labels, int]]:
    for flow in shown.snapshot.flows:
        for task in flow.tasks:
            for reason, count in task.restarts.items():
                yield (flow.name, task.number, reason.value), count


def _checkpoints(shown: Shown) -> Iterator[tuple[Labels, ShownCheckpoints]]:
    return (((each.checkpoints.name,), each) for each in shown.checkpoints)


def _groups(shown: Shown) -> Iterator[tuple[Labels, ShownGroup]]:
    for each in shown.checkpoints:
        for group in each.groups:
            yield (each.checkpoints.name, group.status.group), group


def _group_partitions(shown: Shown) -> Iterator[tuple[Labels, GroupPartition]]:
    for each in shown.checkpoints:
        for group, partition in each.partitions:
            yield (each.checkpoints.name, group, *partition.tp), partition


def _heartbeats(shown: Shown) -> Iterator[tuple[Labels, HeartbeatsSnapshot]]:
    for each in shown.snapshot.heartbeats:
        yield (each.connector, each.flow.source, each.flow.target), each


def _certificates(shown: Shown) -> Iterator[tuple[Labels, Certificate]]:
    """Yield the certificates; of several with the same subject that one which expires first."""
    for each in sorted(shown.snapshot.certificates, key=lambda each: each.not_after):
        yield (each.place, each.role, each.subject), each


PROCESS = Scope((), _process)
VERSION = Scope(("version",), _version)
WORKER = Scope((), _worker)
FLOW = Scope(("flow",), _flows)
FLOW_IDENTITY = Scope(("flow", "connector", "source", "target"), _flow_identities)
FLOW_STATE = Scope(("flow", "state"), _flow_states)
PARTITION_COUNT = Scope(("flow", "state"), _partition_counts)
LOSS = Scope(("flow", "cause"), _losses)
HEARTBEAT_PATH = Scope(("flow", "path"), _heartbeat_paths)
LEFT_OUT = Scope(("flow", "kind"), _left_out)
TOPIC = Scope(("flow", "topic"), _topics)
PARTITION = Scope(("flow", "topic", "partition"), _partitions)
PARTITION_STATE = Scope(("flow", "topic", "partition", "state", "task"), _partition_states)
TASK = Scope(("flow", "task"), _tasks)
TASK_STATE = Scope(("flow", "task", "state"), _task_states)
RESTART = Scope(("flow", "task", "reason"), _restarts)
CHECKPOINTS = Scope(("flow",), _checkpoints)
GROUP = Scope(("flow", "group"), _groups)
GROUP_PARTITION = Scope(("flow", "group", "topic", "partition"), _group_partitions)
HEARTBEATS = Scope(("connector", "source", "target"), _heartbeats)
CERTIFICATE = Scope(("place", "role", "subject"), _certificates)


class _Unit(NamedTuple):
    suffix: str
    unit: str


_UNITS = [_Unit(f"_{unit}", unit) for unit in ("seconds", "bytes", "records")]


def _unit_of(name: str) -> str:
    return next((unit for suffix, unit in _UNITS if name.endswith(suffix)), "")


def gauge(scope: Scope[T], name: str, text: str, value: Callable[[T], Value]) -> Metric[T]:
    """Return the row of a gauge; its unit is the end of its name."""
    return Metric(name, MetricType.GAUGE, scope, text, value, _unit_of(name))


def counter(scope: Scope[T], name: str, text: str, value: Callable[[T], Value]) -> Metric[T]:
    """Return the row of a counter, whose name on the page ends with `_total`."""
    return Metric(name, MetricType.COUNTER, scope, text, value, _unit_of(name))


def flag(scope: Scope[Any], name: str, text: str) -> Metric[Any]:
    """Return the row of a metric that is 1 wherever it has a series."""
    return Metric(name, MetricType.GAUGE, scope, text, lambda _item: 1)


def _age(at: float, then: float | None) -> float | None:
    return None if then is None else max(0.0, at - then)


def _milliseconds(value: float | None) -> float | None:
    return None if value is None else value / 1000


_OF_PROCESS: tuple[Metric[Any], ...] = (
    Metric("heliograph_build", MetricType.INFO, VERSION, "The version of Heliograph.", lambda _item: 1),
    gauge(PROCESS, "heliograph_snapshot_timestamp_seconds", "Time of the values of this page.", lambda each: each.at),
    gauge(
        PROCESS,
        "heliograph_spark_slots",
        "Tasks that Spark can run at the same time; NaN until it answers.",
        lambda each: each.engine.slots,
    ),
    gauge(
        PROCESS,
        "heliograph_spark_running_tasks",
        "Tasks that have reported.",
        lambda each: each.engine.running_tasks,
    ),
    gauge(
        PROCESS,
        "heliograph_spark_waiting_tasks",
        "Tasks that were started and have not reported: usually they wait for a slot.",
        lambda each: each.engine.waiting_tasks,
    ),
    gauge(WORKER, "heliograph_worker_leader", "1 in the worker that runs the connectors.", lambda each: each.is_leader),
    gauge(
        WORKER,
        "heliograph_worker_rebalancing",
        "1 while the group of workers elects a leader.",
        lambda each: each.is_rebalancing,
    ),
    gauge(WORKER, "heliograph_worker_generation", "Generation of the group.", lambda each: each.generation),
    counter(WORKER, "heliograph_worker_rebalances", "Rebalances of the group.", lambda each: each.rebalances),
    gauge(
        WORKER,
        "heliograph_worker_rebalanced_timestamp_seconds",
        "Time of the last rebalance.",
        lambda each: each.rebalanced_at,
    ),
    gauge(
        CERTIFICATE,
        "heliograph_certificate_expiry_timestamp_seconds",
        "End of the validity of a certificate of a cluster or of the REST listener. `role` is `own`, `trusted` or "
        "`broker`.",
        lambda each: each.not_after,
    ),
)

_OF_FLOWS: tuple[Metric[Any], ...] = (
    Metric(
        "heliograph_flow",
        MetricType.INFO,
        FLOW_IDENTITY,
        "Connector and clusters of a flow, to join by `flow`.",
        lambda _item: 1,
    ),
    flag(FLOW_STATE, "heliograph_flow_state", "1 for the present state of the flow."),
    gauge(
        FLOW,
        "heliograph_flow_state_since_timestamp_seconds",
        "Time since which the flow has its state.",
        lambda each: each.flow.since,
    ),
    gauge(
        FLOW,
        "heliograph_flow_ready",
        "1 if the flow reaches its clusters and copies something of what is behind, as `/health/ready` decides.",
        lambda each: not each.flow.unready,
    ),
    gauge(
        FLOW,
        "heliograph_flow_issues",
        "What the flow and its checkpoints and heartbeats cannot do now; REST has the texts.",
        lambda each: len(each.flow.issues) + len(each.flow.loop_issues),
    ),
    gauge(PARTITION_COUNT, "heliograph_flow_partitions", "Partitions in each state.", lambda count: count),
    gauge(
        FLOW,
        "heliograph_flow_lag_records",
        "Records of the source that are not known to be on the target; NaN if that of any partition is not known.",
        lambda each: each.lag.records,
    ),
    gauge(
        FLOW,
        "heliograph_flow_known_lag_records",
        "The lag of the partitions whose lag is known: the flow is behind by at least this.",
        lambda each: each.lag.known_records,
    ),
    gauge(
        FLOW,
        "heliograph_flow_unknown_lag_partitions",
        "Partitions whose lag is not known.",
        lambda each: each.lag.unknown_partitions,
    ),
    gauge(
        FLOW,
        "heliograph_flow_lag_seconds",
        "Age of the oldest record that is not copied, the largest of all partitions; NaN if that of any is not known.",
        lambda each: each.lag.seconds,
    ),
    gauge(
        FLOW,
        "heliograph_flow_catch_up_seconds",
        "Estimated time until nothing is behind, at the present rates; +Inf if the lag does not fall.",
        lambda each: each.flow.catch_up_seconds,
    ),
    counter(
        FLOW, "heliograph_flow_records", "Records acknowledged by the target.", lambda each: each.flow.counts.records
    ),
    counter(FLOW, "heliograph_flow_bytes", "Bytes acknowledged by the target.", lambda each: each.flow.counts.bytes),
    Metric(
        "heliograph_flow_latency_seconds",
        MetricType.HISTOGRAM,
        FLOW,
        "Time from a record's timestamp to its acknowledgement by the target; a batch counts with the timestamp of its "
        "newest record.",
        lambda each: each.flow.latency,
        "seconds",
    ),
    counter(
        LOSS,
        "heliograph_loss_events",
        "Events after which source and target did not have the same records, by cause.",
        lambda total: 0 if total is None else total.events,
    ),
    counter(
        LOSS,
        "heliograph_lost_records",
        "Records of these events; estimated if the exact number is not known.",
        lambda total: 0 if total is None else total.records,
    ),
    gauge(
        FLOW,
        "heliograph_flow_throttle_bytes_per_second",
        "The configured limit of the flow's throughput; 0 is none.",
        lambda each: each.flow.throttle_bytes_per_s,
    ),
    gauge(
        HEARTBEAT_PATH,
        "heliograph_heartbeat_age_seconds",
        "Age of the newest heartbeat that was copied along a path of clusters.",
        lambda age: age,
    ),
    gauge(
        LEFT_OUT,
        "heliograph_left_out_series",
        "Partitions, topics, groups and partitions of groups without series of their own, because the flow has more "
        "than `heliograph.metrics.partitions.max`.",
        lambda count: count,
    ),
)

_OF_PARTITIONS: tuple[Metric[Any], ...] = (
    gauge(TOPIC, "heliograph_topic_partitions", "Partitions of the topic.", lambda each: each.partitions),
    gauge(
        TOPIC,
        "heliograph_topic_not_copied_partitions",
        "Partitions that are failed, retrying or waiting.",
        lambda each: each.not_copied,
    ),
    gauge(
        TOPIC,
        "heliograph_topic_lag_records",
        "Lag in records; NaN if a part is unknown.",
        lambda each: each.lag_records,
    ),
    gauge(
        TOPIC,
        "heliograph_topic_known_lag_records",
        "The lag of the partitions whose lag is known.",
        lambda each: each.known_lag_records,
    ),
    gauge(TOPIC, "heliograph_topic_lag_seconds", "Lag in seconds, the largest.", lambda each: each.lag_seconds),
    counter(TOPIC, "heliograph_topic_records", "Records acknowledged by the target.", lambda each: each.records),
    counter(TOPIC, "heliograph_topic_bytes", "Bytes acknowledged by the target.", lambda each: each.bytes),
    flag(
        PARTITION_STATE,
        "heliograph_partition_state",
        "1 for the present state of the partition: `copying`, `caught_up`, `waiting`, `retrying`, `failed` or `done`.",
    ),
    gauge(
        PARTITION,
        "heliograph_partition_state_since_timestamp_seconds",
        "Time since which the partition has its state.",
        lambda each: each.status.since,
    ),
    gauge(
        PARTITION,
        "heliograph_partition_stopped_seconds",
        "For how long the partition has neither copied a record nor caught up, also under a task that is RUNNING; 0 if "
        "it copies or has caught up.",
        lambda each: 0 if each.status.stopped_since is None else max(0.0, each.at - each.status.stopped_since),
    ),
    gauge(
        PARTITION,
        "heliograph_partition_lag_records",
        "The end of the source's log less the first offset that the target is not known to have.",
        lambda each: each.status.lag_records,
    ),
    gauge(
        PARTITION,
        "heliograph_partition_lag_seconds",
        "Age of the oldest record that is not copied.",
        lambda each: each.status.lag_seconds,
    ),
    gauge(
        PARTITION,
        "heliograph_partition_log_end_offset",
        "The end of the source's log (its high watermark).",
        lambda each: each.status.log_end,
    ),
    gauge(
        PARTITION,
        "heliograph_partition_position_offset",
        "The first offset of the source that the target is not known to have.",
        lambda each: each.status.next_offset,
    ),
    counter(
        PARTITION,
        "heliograph_partition_records",
        "Records acknowledged by the target.",
        lambda each: each.status.records,
    ),
    counter(
        PARTITION,
        "heliograph_partition_bytes",
        "Bytes acknowledged by the target.",
        lambda each: each.status.bytes,
    ),
)

_OF_TASKS: tuple[Metric[Any], ...] = (
    flag(TASK_STATE, "heliograph_task_state", "1 for the present state of the task, in Connect's words."),
    gauge(TASK, "heliograph_task_partitions", "Partitions of the task.", lambda each: each.partitions),
    counter(RESTART, "heliograph_task_restarts", "Restarts of the task or of a partition in it.", lambda count: count),
    counter(TASK, "heliograph_task_records", "Records acknowledged by the target.", lambda each: each.counts.records),
    counter(TASK, "heliograph_task_bytes", "Bytes acknowledged by the target.", lambda each: each.counts.bytes),
    counter(
        TASK,
        "heliograph_task_received_bytes",
        "Bytes received from the source's brokers.",
        lambda each: each.counts.received_bytes,
    ),
    counter(
        TASK,
        "heliograph_task_sent_bytes",
        "Bytes sent to the target's brokers.",
        lambda each: each.counts.sent_bytes,
    ),
    counter(
        TASK,
        "heliograph_task_throttled_seconds",
        "Time for which quotas of the clusters throttled the task.",
        lambda each: each.counts.throttled_ms / 1000,
    ),
    Metric(
        "heliograph_task_commit_seconds",
        MetricType.SUMMARY,
        TASK,
        "Commits of source offsets, and the time they took.",
        lambda each: CountAndSum(each.counts.commits, each.counts.commit_sum_ms / 1000),
        "seconds",
    ),
    counter(
        TASK,
        "heliograph_task_failed_commits",
        "Commits of source offsets that failed.",
        lambda each: each.counts.failed_commits,
    ),
    gauge(
        TASK,
        "heliograph_task_longest_commit_seconds",
        "The longest commit of the last minute; NaN without any.",
        lambda each: _milliseconds(each.gauges.commit_highest_ms),
    ),
    gauge(
        TASK,
        "heliograph_task_unacknowledged_records",
        "Records that were fetched and are not acknowledged yet.",
        lambda each: each.gauges.unacknowledged_records,
    ),
    gauge(
        TASK,
        "heliograph_task_buffer_limit_bytes",
        "Memory for records that were fetched and are not acknowledged yet.",
        lambda each: each.gauges.buffer_bytes,
    ),
    gauge(
        TASK,
        "heliograph_task_buffer_used_bytes",
        "The part of it that is in use.",
        lambda each: each.gauges.used_buffer_bytes,
    ),
    gauge(
        TASK,
        "heliograph_task_source_connections",
        "Connections to the source's brokers.",
        lambda each: each.gauges.source_connections,
    ),
    gauge(
        TASK,
        "heliograph_task_target_connections",
        "Connections to the target's brokers.",
        lambda each: each.gauges.target_connections,
    ),
)

_OF_GROUPS: tuple[Metric[Any], ...] = (
    gauge(
        CHECKPOINTS,
        "heliograph_checkpoints_groups",
        "Groups whose offsets are translated.",
        lambda each: len(each.checkpoints.groups),
    ),
    counter(
        CHECKPOINTS,
        "heliograph_checkpoints_written",
        "Checkpoints that this process has written.",
        lambda each: each.checkpoints.written,
    ),
    gauge(
        CHECKPOINTS,
        "heliograph_checkpoints_newest_age_seconds",
        "Time since this process wrote a checkpoint; it grows while no group commits. NaN before the first.",
        lambda each: _age(each.checkpoints.at, each.checkpoints.written_at),
    ),
    gauge(
        CHECKPOINTS,
        "heliograph_checkpoints_complete_age_seconds",
        "Time since every checkpoint was that of its group's committed offset. NaN until then.",
        lambda each: _age(each.checkpoints.at, each.checkpoints.passed_at),
    ),
    gauge(
        GROUP,
        "heliograph_group_partitions",
        "Partitions of the flow in which the group has committed offsets.",
        lambda each: len(each.status.partitions),
    ),
    gauge(
        GROUP,
        "heliograph_group_untranslated_partitions",
        "Partitions of the group without a checkpoint.",
        lambda each: each.untranslated,
    ),
    gauge(
        GROUP,
        "heliograph_group_translation_lag_seconds",
        "For how long checkpoints of the group are behind its committed offsets; 0 if they are not.",
        lambda each: each.status.lag_seconds,
    ),
    gauge(
        GROUP,
        "heliograph_group_read_again_records",
        "Records that the group would read again if it continued on the target now; NaN if not known for a partition.",
        lambda each: each.status.read_again,
    ),
    gauge(
        GROUP_PARTITION,
        "heliograph_group_committed_offset",
        "The committed offset of the group on the source.",
        lambda each: each.committed,
    ),
    gauge(
        GROUP_PARTITION,
        "heliograph_group_translated_offset",
        "The offset of its checkpoint, on the target.",
        lambda each: each.translated,
    ),
    gauge(
        GROUP_PARTITION,
        "heliograph_group_partition_read_again_records",
        "Records of the partition that the group would read again.",
        lambda each: each.read_again,
    ),
    counter(
        HEARTBEATS,
        "heliograph_heartbeats_written",
        "Heartbeats that this process has written.",
        lambda each: each.written,
    ),
    gauge(
        HEARTBEATS,
        "heliograph_heartbeats_written_timestamp_seconds",
        "Time of the last of them; NaN before the first.",
        lambda each: each.written_at,
    ),
)

OWN_METRICS: tuple[Metric[Any], ...] = (*_OF_PROCESS, *_OF_FLOWS, *_OF_PARTITIONS, *_OF_TASKS, *_OF_GROUPS)
"""All of them, in the order of the page."""
