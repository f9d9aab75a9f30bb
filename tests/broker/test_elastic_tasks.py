"""The number of tasks of a flow follows its load, and so does what Connect shows of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest

from heliograph.connect.runtime.connector_run import task_configs
from heliograph.driver.flow import source_flow
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.flow.state import partition_rows
from heliograph.driver.flow.tasks import flow_balance
from heliograph.driver.spark.spark_engine import LaunchOptions, RunningTask, SparkEngine, TaskEnd
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.executor.copy import copy_loop
from heliograph.mirror.topics import task_scaling
from heliograph.model import TopicPartition
from tests.support.clusters.clients import make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker

PARTITIONS = 8
TASK_BYTES_PER_S = 150_000
RECORD_BYTES = 500


class SlowTasks(ThreadEngine):
    """Each task copies so many bytes a second, as if its core could do no more."""

    def start(
        self,
        spec: TaskSpec,
        on_report: Callable[[TaskSpec, TaskReport], None],
        on_end: Callable[[TaskEnd], None],
        launch: LaunchOptions | None = None,
    ) -> RunningTask:
        return super().start(replace(spec, bytes_per_s=TASK_BYTES_PER_S), on_report, on_end, launch)

    def share(self, task: RunningTask, bytes_per_s: int) -> None:
        """The limit is the core's."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_flow, "_TASKS_INTERVAL_S", 0.3)
    monkeypatch.setattr(copy_loop, "_REPORT_INTERVAL_S", 0.3)
    monkeypatch.setattr(task_scaling, "WATCHED_S", 4.0)
    monkeypatch.setattr(task_scaling, "QUIET_S", 8.0)
    monkeypatch.setattr(task_scaling, "MORE_SLOTS_S", 2.0)
    monkeypatch.setattr(task_scaling, "FEWER_SLOTS_S", 2.0)
    monkeypatch.setattr(task_scaling, "_LEAST_LAG", 500)
    monkeypatch.setattr(task_scaling, "_LEAST_LAG_S", 1.0)
    monkeypatch.setattr(flow_balance, "_WINDOW_S", 5.0)
    monkeypatch.setattr(partition_rows, "_SAMPLE_S", 2.0)
    monkeypatch.setattr(flow_balance, "_LEAST_BYTES_PER_S", 20_000)


@contextmanager
def load(cluster: EmbeddedCluster, topic: str, records_per_s: int) -> Iterator[None]:
    stopping = threading.Event()

    def run() -> None:
        start = 0
        while not stopping.wait(0.2):
            numbers = range(start, start + records_per_s // 5)
            write(cluster, topic, [{"value": b"%0500d" % n, "partition": n % PARTITIONS} for n in numbers])
            start = numbers.stop

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


class Elastic:
    """A flow with a topic of its own."""

    def __init__(self, clusters: Clusters, topic: str, engine: ThreadEngine, *lines: str) -> None:
        make_topic(clusters.source, topic, PARTITIONS)
        self.clusters, self.topic = clusters, topic
        config = clusters.file(topic, *lines)
        self.flow = SourceFlow(config, config.flows[0], cast("SparkEngine", engine), flow_count=2)
        self.flow.start()

    def stop(self) -> None:
        self.flow.stop()
        assert self.flow.join(180)

    @property
    def tasks(self) -> int:
        return len(self.flow.task_states)

    def is_settled_with(self, tasks: int) -> bool:
        states = self.flow.task_states
        assigned = [tp for task in states for tp in task.tps]
        return len(states) == tasks and len(assigned) == PARTITIONS and all(task.tps for task in states)

    def assert_equal(self) -> None:
        remote = f"{self.clusters.alias}.{self.topic}"
        written = read(self.clusters.source, self.topic, PARTITIONS)
        wait_for(lambda: read(self.clusters.target, remote, PARTITIONS) == written, pause_s=0.5)


def test_the_tasks_of_two_flows_follow_their_load(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    engine = SlowTasks(slots=8)
    lines = ("heliograph.tasks.min = 1", "offset.flush.interval.ms = 500")
    busy = Elastic(Clusters(source, target, alias), f"{topic}-busy", engine, *lines)
    idle = Elastic(Clusters(source, target, f"{alias}i"), f"{topic}-idle", engine, *lines)
    try:
        wait_for(lambda: busy.is_settled_with(1) and idle.is_settled_with(1))
        with load(source, busy.topic, 3 * TASK_BYTES_PER_S // RECORD_BYTES), load(source, idle.topic, 20):
            wait_for(lambda: busy.is_settled_with(4))
            configs = task_configs("source", {"name": "c"}, busy.flow)
            assert [config["task.index"] for config in configs] == ["0", "1", "2", "3"]
            assert "the lag of" in str(busy.flow.snapshot("f", "c").tasks_changed)
        wait_for(lambda: busy.is_settled_with(1))
        assert "1 task instead of 2: fewer tasks would have sufficed" in str(busy.flow.snapshot("f", "c").tasks_changed)
        assert idle.tasks == 1
        with load(source, idle.topic, 3 * TASK_BYTES_PER_S // RECORD_BYTES):
            wait_for(lambda: idle.is_settled_with(4))
        assert busy.tasks == 1
        for flow in (busy, idle):
            flow.assert_equal()
    finally:
        busy.stop()
        idle.stop()
    said = [line for line in caplog.messages if " instead of " in line and line.startswith(f"{alias}->")]
    assert [line.split(": ")[1] for line in said] == [
        "2 tasks instead of 1",
        "4 tasks instead of 2",
        "2 tasks instead of 4",
        "1 task instead of 2",
    ]


def test_tasks_follow_slots_that_come_and_go(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    engine = ThreadEngine(slots=4)
    elastic = Elastic(Clusters(source, target, alias), topic, engine)
    try:
        with load(source, topic, 500):
            wait_for(lambda: elastic.is_settled_with(2))
            engine.slots = 6
            wait_for(lambda: elastic.is_settled_with(3))
            engine.slots = 2
            wait_for(lambda: elastic.is_settled_with(1))
        elastic.assert_equal()
    finally:
        elastic.stop()


def test_a_busy_partition_has_a_task_for_itself_if_the_others_together_are_as_busy(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    elastic = Elastic(Clusters(source, target, alias), topic, ThreadEngine(slots=4))
    hot = TopicPartition(topic, 0)
    stopping = threading.Event()

    def run() -> None:
        while not stopping.wait(0.1):
            write(
                source, topic, [{"value": b"x" * 500, "partition": n if n < PARTITIONS else 0} for n in range(14)] * 20
            )

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        wait_for(lambda: any(task.tps == {hot} for task in elastic.flow.task_states))
    finally:
        stopping.set()
        thread.join()
        elastic.stop()
