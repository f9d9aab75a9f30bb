"""Kafka's metrics that users of Java MM2 know, with the meaning that Java gives them.

A row is a metric as Kafka names it; `dialects` derives its names in Prometheus. `WITHOUT_MEANING` lists what the rules
of exporters keep and this process does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from heliograph.metrics import kafka_subjects as subjects
from heliograph.metrics.dialects import KafkaName
from heliograph.status.task_status import RestartReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heliograph.metrics.kafka_subjects import Copied
    from heliograph.metrics.metric import Subject
    from heliograph.metrics.shown import Shown
    from heliograph.status.process_snapshot import ConnectorRow
    from heliograph.status.task_status import TaskRow
    from heliograph.status.windows import Stat

T = TypeVar("T")

MIRROR_DOMAIN = "kafka.connect.mirror"
"""The domain of MM2's own metrics; by KIP-1280 they are of the group `NEW_GROUP`."""
NEW_GROUP = "plugins"


@dataclass(frozen=True, slots=True)
class KafkaMetric(Generic[T]):
    """One metric of Kafka: its name and meaning, and its value for each series of its subject."""

    name: KafkaName
    help: str
    subject: Subject[T]
    value: Callable[[T], Any]
    omits_unknown: bool = False


def _row(
    bean: str, subject: Subject[T], attribute: str, text: str, value: Callable[[T], Any], *, omits_unknown: bool = False
) -> KafkaMetric[T]:
    domain, _, group = bean.partition(":")
    return KafkaMetric(KafkaName(domain, group, attribute, subject.labels), text, subject, value, omits_unknown)


def _text(bean: str, subject: Subject[T], attribute: str, text: str, value: Callable[[T], str]) -> KafkaMetric[T]:
    domain, _, group = bean.partition(":")
    return KafkaMetric(KafkaName(domain, group, attribute, subject.labels, is_text=True), text, subject, value)


_STATISTICS: tuple[tuple[str, str, Callable[[Stat], float | None]], ...] = (
    ("", "the last", lambda stat: stat.last),
    ("-min", "the lowest of the last minute", lambda stat: stat.lowest),
    ("-max", "the highest of the last minute", lambda stat: stat.highest),
    ("-avg", "the mean of the last minute", lambda stat: stat.mean),
)


def _statistics(
    bean: str, subject: Subject[T], attribute: str, text: str, stat_of: Callable[[T], Stat | None]
) -> Iterator[KafkaMetric[T]]:
    for suffix, what, choose in _STATISTICS:
        yield _row(bean, subject, attribute + suffix, f"{text}, in milliseconds: {what}.", _chosen(stat_of, choose))


def _chosen(stat_of: Callable[[T], Stat | None], choose: Callable[[Stat], float | None]) -> Callable[[T], float | None]:
    def value(item: T) -> float | None:
        stat = stat_of(item)
        return None if stat is None else choose(stat)

    return value


def _records_per_s(item: Copied) -> float | None:
    return None if item.window is None else item.window.records_per_s


def _bytes_per_s(item: Copied) -> float | None:
    return None if item.window is None else item.window.bytes_per_s


def _age(item: Copied) -> Stat | None:
    return None if item.window is None else item.window.age_ms


def _latency(item: Copied) -> Stat | None:
    return None if item.window is None else item.window.latency_ms


def _mirror_rows(bean: str, subject: Subject[Copied]) -> Iterator[KafkaMetric[Any]]:
    yield _row(
        bean,
        subject,
        "record-count",
        "Records acknowledged by the target.",
        lambda each: each.records,
        omits_unknown=True,
    )
    yield _row(
        bean,
        subject,
        "record-rate",
        "Records per second, over the last minute; no series while no task measures it.",
        _records_per_s,
        omits_unknown=True,
    )
    yield _row(
        bean, subject, "byte-count", "Bytes acknowledged by the target.", lambda each: each.bytes, omits_unknown=True
    )
    yield _row(
        bean,
        subject,
        "byte-rate",
        "Bytes per second, over the last minute; no series while no task measures it.",
        _bytes_per_s,
        omits_unknown=True,
    )
    yield from _statistics(bean, subject, "record-age-ms", "Age of records when they were fetched", _age)
    yield from _statistics(
        bean, subject, "replication-latency-ms", "Age of records when the target had acknowledged them", _latency
    )


def _checkpoint_rows(bean: str, subject: Subject[Stat | None]) -> Iterator[KafkaMetric[Any]]:
    text = "Time from the begin of a step to the acknowledgement of the checkpoint"
    yield from _statistics(bean, subject, "checkpoint-latency-ms", text, lambda stat: stat)


_OF_MIRRORS = tuple(
    chain(
        _mirror_rows("kafka.connect.mirror:MirrorSourceConnector", subjects.MIRRORED),
        _checkpoint_rows("kafka.connect.mirror:MirrorCheckpointConnector", subjects.CHECKPOINTED),
        _mirror_rows("kafka.connect:plugins", subjects.MIRRORED_BY_PLUGIN),
        _checkpoint_rows("kafka.connect:plugins", subjects.CHECKPOINTED_BY_PLUGIN),
    )
)


def _free(limit: int | None, used: int | None) -> int | None:
    """Return the free memory; None without a run, whose 0 would look exhausted."""
    return None if not limit or used is None else max(0, limit - used)


_FETCHES = "kafka.consumer:consumer-fetch-manager-metrics"
_CONSUMERS = "kafka.consumer:consumer-metrics"
_PRODUCERS = "kafka.producer:producer-metrics"
_OF_CLIENTS: tuple[KafkaMetric[Any], ...] = (
    _row(
        _FETCHES,
        subjects.CONSUMED,
        "records-lag",
        "The end of the source's log less the first offset that the target is not known to have; Java's is less the "
        "position of its consumer.",
        lambda lag: lag,
    ),
    _row(
        _FETCHES,
        subjects.CONSUMER,
        "records-consumed-total",
        "Records fetched from the source.",
        lambda t: t.counts.fetched_records,
    ),
    _row(
        _CONSUMERS,
        subjects.CONSUMER,
        "incoming-byte-total",
        "Bytes received from the source's brokers.",
        lambda task: task.counts.received_bytes,
    ),
    _row(
        _CONSUMERS,
        subjects.CONSUMER,
        "connection-count",
        "Connections to the source's brokers.",
        lambda task: task.gauges.source_connections,
        omits_unknown=True,
    ),
    _row(
        _PRODUCERS,
        subjects.PRODUCER,
        "outgoing-byte-total",
        "Bytes sent to the target's brokers.",
        lambda task: task.counts.sent_bytes,
    ),
    _row(
        _PRODUCERS,
        subjects.PRODUCER,
        "record-send-total",
        "Records acknowledged by the target.",
        lambda task: task.counts.records,
    ),
    _row(
        _PRODUCERS,
        subjects.PRODUCER,
        "buffer-available-bytes",
        "Free memory of the task for records that are not acknowledged yet.",
        lambda task: _free(task.gauges.buffer_bytes, task.gauges.used_buffer_bytes),
        omits_unknown=True,
    ),
    _row(
        _PRODUCERS,
        subjects.PRODUCER,
        "connection-count",
        "Connections to the target's brokers.",
        lambda task: task.gauges.target_connections,
        omits_unknown=True,
    ),
    _row(
        "kafka.admin.client:admin-client-metrics",
        subjects.ADMIN,
        "connection-count",
        "Always NaN: connections of the driver's administrators are not counted.",
        lambda _item: None,
    ),
)


def _task_count(shown: Shown) -> int:
    return sum(len(each.tasks) for each in shown.connectors)


def _in_state(state: str) -> Callable[[ConnectorRow], int]:
    return lambda each: sum(task.state == state for task in each.tasks)


def _since_rebalance(shown: Shown) -> float | None:
    worker, at = shown.snapshot.worker, shown.snapshot.at
    return None if worker is None or worker.rebalanced_at is None else max(0.0, at - worker.rebalanced_at) * 1000


_WORKERS = "kafka.connect:connect-worker-metrics"
_REBALANCES = "kafka.connect:connect-worker-rebalance-metrics"
_OF_WORKERS: tuple[KafkaMetric[Any], ...] = (
    _row(
        _WORKERS,
        subjects.WORKER,
        "connector-count",
        "Connectors that this process runs.",
        lambda shown: len(shown.connectors),
    ),
    _row(_WORKERS, subjects.WORKER, "task-count", "Tasks of these connectors.", _task_count),
    *(
        _row(
            _WORKERS,
            subjects.CONNECTOR,
            f"connector-{state.lower()}-task-count",
            f"Tasks of the connector that are {state}.",
            _in_state(state),
        )
        for state in ("DESTROYED", "FAILED", "PAUSED", "RESTARTING", "RUNNING", "UNASSIGNED")
    ),
    _row(
        _WORKERS,
        subjects.CONNECTOR,
        "connector-total-task-count",
        "Tasks of the connector.",
        lambda each: len(each.tasks),
    ),
    _row(
        _REBALANCES,
        subjects.WORKER,
        "rebalancing",
        "1 while the group of workers elects a leader; a process that runs a file has no group.",
        lambda shown: shown.snapshot.worker is not None and shown.snapshot.worker.is_rebalancing,
    ),
    _row(
        _REBALANCES,
        subjects.WORKER,
        "completed-rebalances-total",
        "Rebalances of the group since the process started.",
        lambda shown: 0 if shown.snapshot.worker is None else shown.snapshot.worker.rebalances,
    ),
    _row(
        _REBALANCES,
        subjects.WORKER,
        "epoch",
        "Generation of the group.",
        lambda shown: None if shown.snapshot.worker is None else shown.snapshot.worker.generation,
        omits_unknown=True,
    ),
    _row(
        _REBALANCES,
        subjects.WORKER,
        "time-since-last-rebalance-ms",
        "Time since the last rebalance.",
        _since_rebalance,
        omits_unknown=True,
    ),
    _row(
        "kafka.connect:connect-coordinator-metrics",
        subjects.COORDINATOR,
        "assigned-connectors",
        "Connectors that this process runs.",
        lambda shown: len(shown.connectors),
    ),
    _row(
        "kafka.connect:connect-coordinator-metrics",
        subjects.COORDINATOR,
        "assigned-tasks",
        "Tasks of these connectors.",
        _task_count,
    ),
)

_CONNECTORS = "kafka.connect:connector-metrics"
_TASKS = "kafka.connect:connector-task-metrics"
_SOURCE_TASKS = "kafka.connect:source-task-metrics"
_ERRORS = "kafka.connect:task-error-metrics"


def _failures(task: TaskRow | None) -> int:
    """Return 0 for a task that copies nothing: sums over all tasks are then known, as Java's are."""
    if task is None:
        return 0
    return task.restarts.get(RestartReason.FAILED, 0) + task.restarts.get(RestartReason.PARTITION, 0)


_OF_CONNECTORS: tuple[KafkaMetric[Any], ...] = (
    _text(
        _CONNECTORS, subjects.CONNECTOR, "status", "1 for the state of the connector.", lambda each: each.state.lower()
    ),
    _text(_CONNECTORS, subjects.CONNECTOR, "connector-class", "Class of the connector.", lambda each: each.class_name),
    _text(_CONNECTORS, subjects.CONNECTOR, "connector-type", "Type of the connector.", lambda each: each.kind),
    _text(_CONNECTORS, subjects.CONNECTOR, "connector-version", "Version of the connector.", lambda each: each.version),
    _text(_TASKS, subjects.CONNECTOR_TASK, "status", "1 for the state of the task.", lambda task: task.state.lower()),
    _row(
        _TASKS,
        subjects.SOURCE_TASK,
        "offset-commit-avg-time-ms",
        "Mean time of a commit of source offsets, over the last minute; no series without any.",
        lambda task: task.gauges.commit_mean_ms,
        omits_unknown=True,
    ),
    _row(
        _TASKS,
        subjects.SOURCE_TASK,
        "offset-commit-max-time-ms",
        "The longest commit of source offsets in the last minute; no series without any.",
        lambda task: task.gauges.commit_highest_ms,
        omits_unknown=True,
    ),
    _row(
        _SOURCE_TASKS,
        subjects.SOURCE_TASK,
        "source-record-poll-total",
        "Records fetched from the source.",
        lambda task: task.counts.fetched_records,
    ),
    _row(
        _SOURCE_TASKS,
        subjects.SOURCE_TASK,
        "source-record-write-total",
        "Records acknowledged by the target.",
        lambda task: task.counts.records,
    ),
    _row(
        _SOURCE_TASKS,
        subjects.SOURCE_TASK,
        "source-record-active-count",
        "Records that were fetched and are not acknowledged yet.",
        lambda task: task.gauges.unacknowledged_records,
        omits_unknown=True,
    ),
    *(
        _row(
            _ERRORS,
            subjects.ANY_TASK,
            attribute,
            "Failures of a task that copies, and of partitions in it; 0 for other tasks.",
            _failures,
        )
        for attribute in ("total-record-failures", "total-record-errors", "total-errors-logged")
    ),
    _row(
        _ERRORS,
        subjects.ANY_TASK,
        "total-retries",
        "Failed partitions that were tried again; 0 for tasks that do not copy.",
        lambda task: 0 if task is None else task.restarts.get(RestartReason.PARTITION, 0),
    ),
)

KAFKA_METRICS: tuple[KafkaMetric[Any], ...] = (*_OF_MIRRORS, *_OF_CLIENTS, *_OF_WORKERS, *_OF_CONNECTORS)
"""All of them, in the order of the page."""


class WithoutMeaning(NamedTuple):
    """Metrics of Java MM2 that do not exist here."""

    bean: str
    attributes: str
    reason: str


WITHOUT_MEANING = (
    WithoutMeaning(
        "kafka.connect.mirror:type=kafka-metrics-count",
        "count",
        "Java counts its own metrics, wrongly with several tasks; Strimzi's reporter ignores it",
    ),
    WithoutMeaning(
        "kafka.*:type=app-info",
        "version, commit-id, start-time-ms",
        "no Java client runs; `heliograph_build_info` has the version, `process_start_time_seconds` the time",
    ),
    WithoutMeaning(
        "kafka.consumer, kafka.producer: all others",
        "such as bytes-consumed-total, request-latency-avg, batch-size-avg, buffer-total-bytes",
        "fetcher and producer are not Java's: batches are passed on as they are, and have no such stages",
    ),
    WithoutMeaning(
        "kafka.consumer, kafka.producer: with node-id",
        "request-total, request-latency-avg and others",
        "executors do not report each broker; an unavailable one is named by the state of its partitions",
    ),
    WithoutMeaning(
        "kafka.admin.client:type=admin-client-metrics",
        "connection-count",
        "exists and is always NaN: connections of the driver's administrators are not counted",
    ),
    WithoutMeaning(
        "clients of internal topics",
        "such as offset-syncs-source-consumer, checkpoint-source-admin, A-mm2-A->B-configs",
        "the driver reads and writes these topics with connections of its own, which it does not count",
    ),
    WithoutMeaning(
        "kafka.connect:type=connect-metrics, connect-node-metrics, connect-coordinator-metrics",
        "all but assigned-connectors, assigned-tasks",
        "of the connection to the group of workers; `heliograph_worker_*` has its state",
    ),
    WithoutMeaning(
        "kafka.connect:type=connect-worker-metrics",
        "connector-startup-*, task-startup-*",
        "a task that does not start is tried again: `heliograph_task_restarts_total`",
    ),
    WithoutMeaning(
        "kafka.connect:type=connect-worker-rebalance-metrics",
        "rebalance-avg-time-ms, rebalance-max-time-ms, connect-protocol, leader-name",
        "a rebalance only elects a leader; `heliograph_worker_leader` is 1 in it",
    ),
    WithoutMeaning(
        "kafka.connect:type=connector-task-metrics",
        "batch-size-avg, pause-ratio, running-ratio, offset-commit-*-percentage",
        "batches are the source's; states and failed commits are in `heliograph_task_state` and "
        "`heliograph_task_failed_commits_total`",
    ),
    WithoutMeaning(
        "kafka.connect:type=source-task-metrics",
        "poll-batch-*, transaction-size-*, *-rate",
        "there is no poll; rates are `rate(...)` of the totals",
    ),
    WithoutMeaning(
        "kafka.connect:type=task-error-metrics",
        "total-records-skipped, last-error-timestamp, deadletterqueue-*",
        'a record that is left out is a loss: `heliograph_lost_records_total{cause="record_too_large"}`',
    ),
    WithoutMeaning(
        "kafka.connect:type=connector-transform-metrics, connector-predicate-metrics",
        "all",
        "there are no transformations",
    ),
    WithoutMeaning(
        "jvm_*",
        "all but memory in use, garbage collection and threads",
        "the JVM of a Connect worker does the work, that of Spark's driver only schedules",
    ),
    WithoutMeaning(
        "container_cpu_usage_seconds_total, container_last_seen",
        "",
        "of the kubelet, not of the process; `process_cpu_seconds_total` is the process's own",
    ),
)
"""Names that exporters make for Java MM2 and that are left out, with the reason."""
