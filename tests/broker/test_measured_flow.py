"""The numbers of a flow on real brokers, compared with what clients that share nothing with ours measure."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from kafka.admin import KafkaAdminClient

from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.spark.spark_engine import LaunchOptions, RunningTask, TaskEnd
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.model import TopicPartition as Tp
from heliograph.status.flow_snapshot import FlowSnapshot
from heliograph.status.task_status import RestartReason
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.runs.copying import wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker

LATE_S = 5.0
"""Records are written with timestamps so long ago: a latency that ignores them would be a few milliseconds."""


class JsonEngine(ThreadEngine):
    """Reports travel as they do from an executor."""

    def start(
        self,
        spec: TaskSpec,
        on_report: Callable[[TaskSpec, TaskReport], None],
        on_end: Callable[[TaskEnd], None],
        launch: LaunchOptions | None = None,
    ) -> RunningTask:
        def sent(started: TaskSpec, report: TaskReport) -> None:
            on_report(started, TaskReport.from_json(json.loads(json.dumps(report.to_json()))))

        return super().start(spec, sent, on_end, launch)


class Watch:
    """A consumer of a topic that notes for each record how long after its timestamp it could be read."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self.latencies_s: list[float] = []
        self._cluster, self._topic = cluster, topic
        self._is_over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join(60)

    def _run(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._cluster.bootstrap, "group.id": "watch", "fetch.wait.max.ms": 20}
        )
        consumer.assign([TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in range(2)])
        while not self._is_over.is_set():
            for message in consumer.consume(1000, timeout=0.05):
                if message.error() is None:
                    self.latencies_s.append(time.time() - message.timestamp()[1] / 1000)
        consumer.close()


def log_bytes(cluster: EmbeddedCluster, topic: str) -> int:
    """Return the size of a topic's logs, as its brokers see it: one replica, no compaction."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        return sum(
            partition["partition_size"]
            for broker in client.describe_log_dirs()
            for folder in broker["log_dirs"]
            for each in folder["topics"]
            if each["name"] == topic
            for partition in each["partitions"]
        )
    finally:
        client.close()


def end_of(cluster: EmbeddedCluster, topic: str) -> int:
    admin = admin_of(cluster)
    ends = admin.end_offsets([Tp(topic, p) for p in range(2)])
    admin.close()
    return sum(ends.values())


def late_records(count: int) -> Iterator[dict[str, object]]:
    for n in range(count):
        yield {"value": b"x" * 200, "partition": n % 2, "timestamp": int((time.time() - LATE_S) * 1000)}


def seen(flow: SourceFlow) -> FlowSnapshot:
    time.sleep(0.55)  # readers share a snapshot for half a second
    return flow.snapshot("A->B", "connector")


def check_sums(flow: FlowSnapshot) -> None:
    (task,) = flow.tasks
    assert task.counts.records == flow.counts.records == sum(row.records for row in flow.partitions)
    assert task.counts.bytes == flow.counts.bytes == sum(row.bytes for row in flow.partitions)
    assert task.counts.latency == flow.latency


def test_records_bytes_latency_and_lag_are_what_other_clients_measure(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    clusters, remote = Clusters(source, target, alias), f"{alias}.{topic}"
    make_topic(source, topic)
    make_topic(target, remote)
    config = clusters.file(topic, "tasks.max = 1", "offset.flush.interval.ms = 500", "emit.checkpoints.enabled = false")
    watch = Watch(target, remote)
    with clusters.running(config, JsonEngine()) as flow, watch.running():
        wait_for(lambda: flow.snapshot("A->B", "c").lag.records == 0)
        copied = 0
        for round_ in range(2):  # the second by another run of the task
            for _batch in range(20):
                write(source, topic, late_records(10))
                copied += 10
            wait_for(lambda: end_of(target, remote) == copied)  # noqa: B023
            wait_for(lambda: flow.status.counts.records == copied)  # noqa: B023
            found = seen(flow)
            check_sums(found)
            assert found.counts.bytes == log_bytes(target, remote)
            (task,) = found.tasks
            assert task.counts.fetched_records == copied
            assert task.counts.received_bytes > log_bytes(source, topic)
            assert task.counts.sent_bytes > found.counts.bytes
            assert found.latency.records == copied
            wait_for(lambda: len(watch.latencies_s) == copied)  # noqa: B023
            ours, theirs = found.latency.sum_s / copied, sum(watch.latencies_s) / copied
            assert abs(ours - theirs) < 1.0, (ours, theirs)
            assert ours >= LATE_S
            wait_for(lambda: all(_is_measured(row) for row in flow.snapshot("A->B", "c").partitions))
            if not round_:
                flow.restart_task(0)
                wait_for(lambda: seen(flow).tasks[0].restarts == {RestartReason.REQUESTED: 1})
                assert seen(flow).tasks[0].counts.commits
        flow.set_suspended("PAUSED")
        wait_for(lambda: flow.is_suspended)
        write(source, topic, late_records(70))
        behind = end_of(source, topic) - end_of(target, remote)
        assert behind == 70
        wait_for(lambda: flow.snapshot("A->B", "c").lag.records == behind)
        assert flow.snapshot("A->B", "c").tasks[0].gauges.source_connections == 0
        flow.set_suspended(None)
        wait_for(lambda: flow.snapshot("A->B", "c").lag.records == 0)
        wait_for(lambda: flow.status.counts.records == copied + 70 == end_of(target, remote))
        found = seen(flow)
        check_sums(found)
        assert found.counts.bytes == log_bytes(target, remote)
        assert found.catch_up_seconds == 0.0
        assert found.loss_totals
        assert not any(total.events for total in found.loss_totals.values())


def _is_measured(row: object) -> bool:
    window = getattr(row, "window", None)
    if window is None or window.latency_ms is None or window.age_ms is None:
        return False
    times = (window.age_ms, window.latency_ms)
    return all(each.mean is not None and each.mean >= LATE_S * 1000 for each in times) and window.records_per_s > 0


def test_where_the_source_sets_timestamps_latency_is_since_then(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    clusters = Clusters(source, target, alias)
    make_topic(source, topic, message_timestamp_type="LogAppendTime")
    with clusters.running(clusters.file(topic, "tasks.max = 1"), JsonEngine()) as flow:
        wait_for(lambda: flow.snapshot("A->B", "c").lag.records == 0)
        hour_ago_ms = int((time.time() - 3600) * 1000)
        write(source, topic, ({"value": b"x", "partition": n % 2, "timestamp": hour_ago_ms} for n in range(20)))
        wait_for(lambda: flow.status.counts.records == 20)
        latency = seen(flow).latency
        assert latency.records == 20
        assert latency.sum_s / 20 < 600
