"""A flow's tasks are started again when they fail, within the limits, and take what is new without a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

import pytest

from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.spark.spark_engine import LaunchOptions, RunningTask, SparkEngine, TaskEnd
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.kafka.admin.admin import alter_topic_configs
from heliograph.model import AlterConfigs, ConfigChange
from tests.support.clusters.clients import admin_of, make_topic, transactional_producer, write
from tests.support.runs.copying import wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker


class StumblingEngine(ThreadEngine):
    """Its first tasks fall over at once."""

    def __init__(self, falls: int = 0) -> None:
        super().__init__()
        self.falls = falls
        self.starts = 0

    def start(
        self,
        spec: TaskSpec,
        on_report: Callable[[TaskSpec, TaskReport], None],
        on_end: Callable[[TaskEnd], None],
        launch: LaunchOptions | None = None,
    ) -> RunningTask:
        self.starts += 1
        if self.starts > self.falls:
            return super().start(spec, on_report, on_end, launch)
        task = RunningTask(spec, on_report)
        threading.Timer(0.01, lambda: on_end(TaskEnd(spec, error="it fell over."))).start()
        return task


class KilledInItsCommit(StumblingEngine):
    """Its first task ends with its source offsets in a transaction that nobody ends."""

    def __init__(self, target: EmbeddedCluster) -> None:
        super().__init__(falls=1)
        self._target = target
        self.producers: list[object] = []  # one that is collected aborts its transaction

    def start(
        self,
        spec: TaskSpec,
        on_report: Callable[[TaskSpec, TaskReport], None],
        on_end: Callable[[TaskEnd], None],
        launch: LaunchOptions | None = None,
    ) -> RunningTask:
        if not self.producers:
            assert spec.transactional_id is not None
            producer = transactional_producer(self._target, spec.transactional_id)
            producer.begin_transaction()
            for partition in range(spec.offsets_partition_count):
                producer.produce(spec.offsets_topic, key=b"[]", value=b"{}", partition=partition)
            producer.flush()
            self.producers.append(producer)
        return super().start(spec, on_report, on_end, launch)


@pytest.fixture
def clusters(source: EmbeddedCluster, target: EmbeddedCluster, alias: str) -> Clusters:
    return Clusters(source, target, alias)


def fill(clusters: Clusters, topic: str) -> None:
    make_topic(clusters.source, topic)
    write(clusters.source, topic, ({"value": b"x" * 100 * n, "partition": n % 2} for n in range(30)))


def state_of(flow: SourceFlow) -> tuple[str, str | None] | None:
    return next(((task.state, task.trace) for task in flow.task_states), None)


def test_after_the_last_attempt_a_task_stays_failed_until_it_is_restarted(clusters: Clusters, topic: str) -> None:
    fill(clusters, topic)
    limits = ("tasks.max = 1", "heliograph.restart.backoff.max.ms = 10", "heliograph.restart.attempts.max = 1")
    engine = StumblingEngine(falls=3)
    with clusters.running(clusters.file(topic, *limits), engine) as flow:
        wait_for(lambda: "is not started again" in (flow.status.issue or ""))
        wait_for(lambda: state_of(flow) == ("FAILED", "it fell over."))
        assert engine.starts == 2
        flow.restart_task(0)
        wait_for(lambda: clusters.is_copied(topic))
        wait_for(lambda: (state_of(flow), flow.status.issue) == (("RUNNING", None), None))
        assert engine.starts == 4


def test_a_partition_that_failed_is_tried_again_until_the_target_takes_it(clusters: Clusters, topic: str) -> None:
    remote = f"{clusters.alias}.{topic}"
    make_topic(clusters.target, remote, max_message_bytes="2000")
    fill(clusters, topic)
    with clusters.running(clusters.file(topic, "heliograph.restart.backoff.max.ms = 10"), StumblingEngine()) as flow:
        wait_for(lambda: state_of(flow) is not None and state_of(flow)[0] == "FAILED")  # type: ignore[index]
        admin = admin_of(clusters.target)
        alter_topic_configs(admin, [AlterConfigs(remote, (ConfigChange("max.message.bytes", None, "100000"),))])
        admin.close()
        wait_for(lambda: clusters.is_copied(topic))
        wait_for(lambda: state_of(flow) == ("RUNNING", None))


def test_a_task_that_was_killed_in_its_commit_is_started_again_before_its_transaction_times_out(
    clusters: Clusters, topic: str
) -> None:
    fill(clusters, topic)
    exactly_once = "target.exactly.once.source.support = enabled"
    file = clusters.file(topic, exactly_once, "tasks.max = 1", "heliograph.restart.backoff.max.ms = 10")
    engine = KilledInItsCommit(clusters.target)
    with clusters.running(file, engine):
        wait_for(lambda: clusters.is_copied(topic))
    assert engine.starts == 2


def test_another_choice_of_topics_restarts_no_task(clusters: Clusters, topic: str) -> None:
    first, second = f"{topic}-a", f"{topic}-b"
    fill(clusters, first)
    fill(clusters, second)
    engine = StumblingEngine()
    never = "refresh.topics.enabled = false"
    with clusters.running(clusters.file(first, "tasks.max = 1", never), engine) as flow:
        wait_for(lambda: clusters.is_copied(first))
        flow.adopt(clusters.file(f"{topic}.*", "tasks.max = 1", never))
        wait_for(lambda: clusters.is_copied(second))
        flow.adopt(clusters.file(second, "tasks.max = 1", never))
        wait_for(lambda: {tp.topic for task in flow.task_states for tp in task.tps} == {second})
        assert engine.starts == 1
        flow.adopt(clusters.file(f"{topic}.*", "tasks.max = 1", never))  # what was taken away comes back
        write(clusters.source, first, [{"value": b"late", "partition": 0}])
        wait_for(lambda: clusters.is_copied(first))
        wait_for(lambda: state_of(flow) == ("RUNNING", None))
        assert engine.starts == 1


def test_a_copy_once_ends_when_its_task_is_given_up(clusters: Clusters, topic: str) -> None:
    fill(clusters, topic)
    config = clusters.file(topic, "tasks.max = 1", "heliograph.restart.attempts.max = 0")
    engine = cast("SparkEngine", StumblingEngine(falls=1))
    flow = SourceFlow(config, config.flows[0], engine, flow_count=1, once=True)
    flow.start()
    assert flow.join(180)
    assert flow.status.state == "FAILED"
    assert "It is not started again" in (flow.status.issue or "")
