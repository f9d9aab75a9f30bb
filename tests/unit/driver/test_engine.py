"""The engine beside a Spark that is slow, or gone."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark import TaskContext

from heliograph.driver.spark import spark_engine as engine_module
from heliograph.driver.spark.executor_watch import Executor, ExecutorWatch
from heliograph.driver.spark.spark_engine import LaunchOptions, RunningTask, SparkEngine, TaskEnd
from heliograph.driver.spark.spark_jobs import SparkJobs
from heliograph.driver.spark.spark_session import SparkDriver
from heliograph.errors import EngineError
from heliograph.executor.contract.lease import TaskAssignment, encode_assignment, introduce
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.executor.contract.task_spec import LeaseSpec, PartitionSpec, TaskSpec
from heliograph.executor.copy import copy_task
from heliograph.executor.copy.copy_task import STARTED_TWICE, task_function
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import Address, Flow, TopicPartition
from tests.support.runs.copying import wait_for

CLUSTER = ClusterSpec("a", (Address("a", 1),), Security())
SPEC = TaskSpec("a->b-0", Flow("a", "b"), CLUSTER, CLUSTER, (), "c", "offsets", 1)


class BusySpark:
    """A context whose slots are all taken: a job waits until its group is cancelled."""

    _jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False))

    def __init__(self) -> None:
        self.cancelled: dict[str, threading.Event] = {}
        self._of_thread = threading.local()

    def setJobGroup(self, group: str, _description: str, *, interruptOnCancel: bool) -> None:  # noqa: N802, N803
        assert interruptOnCancel
        self._of_thread.group = group
        self.cancelled[group] = threading.Event()

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        self.cancelled[group].set()

    def parallelize(self, _data: list[int], _slices: int) -> BusySpark:
        return self

    def mapPartitions(self, _function: Any) -> BusySpark:  # noqa: N802
        return self

    def collect(self) -> list[str]:
        assert self.cancelled[self._of_thread.group].wait(60)
        raise RuntimeError("Job 0 cancelled")


def driver_of(spark: BusySpark, context: Callable[..., BusySpark] | None = None) -> SimpleNamespace:
    return SimpleNamespace(
        context=context or (lambda *_: spark),
        current_context=lambda: spark,
        executors=ExecutorWatch(),
        settings=SimpleNamespace(is_local=True),
        stop=lambda: None,
    )


def test_a_task_that_waits_for_a_slot_is_taken_back_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_SILENCE_S", 0.01)
    spark = BusySpark()
    driver = driver_of(spark)
    engine = SparkEngine(cast("SparkDriver", driver), LaunchOptions(lease_timeout_ms=1000))
    ends: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
    first = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    second = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    engine.stop(first, "it is paused")
    assert ends.get(timeout=60) == TaskEnd(first.spec)
    engine.stop(second, "it is paused")
    assert ends.get(timeout=60) == TaskEnd(second.spec)
    assert len(spark.cancelled) == 2, "no two starts share a group of jobs"
    engine.close()


def test_a_task_stopped_before_spark_has_heard_of_it_is_taken_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_SILENCE_S", 0.01)
    spark, is_up = BusySpark(), threading.Event()

    def context(_gives_up: Any) -> BusySpark:
        assert is_up.wait(60)
        return spark

    driver = SimpleNamespace(
        context=context, current_context=lambda: spark, settings=SimpleNamespace(is_local=True), stop=lambda: None
    )
    engine = SparkEngine(cast("SparkDriver", driver), LaunchOptions(lease_timeout_ms=1000))
    ends: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
    task = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    engine.stop(task, "it is paused")
    is_up.set()
    assert ends.get(timeout=60) == TaskEnd(task.spec)
    engine.close()


@contextmanager
def started(spec: TaskSpec) -> Iterator[tuple[SparkEngine, RunningTask]]:
    """A task that Spark has taken, whose runs are the test's."""
    spark = BusySpark()
    driver = driver_of(spark)
    engine = SparkEngine(cast("SparkDriver", driver), LaunchOptions(lease_timeout_ms=1000))
    ended = threading.Event()
    task = engine.start(spec, lambda _spec, _report: None, lambda _end: ended.set())
    yield engine, task
    for group in spark.cancelled:
        spark.cancelJobGroup(group)
    assert ended.wait(60)
    engine.close()


def test_a_task_of_a_lost_executor_ends_though_spark_keeps_it_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = BusySpark()
    driver = driver_of(spark)
    engine = SparkEngine(cast("SparkDriver", driver), LaunchOptions(lease_timeout_ms=1000))
    ends: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
    task = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    engine.take_back_if_lost(task)
    assert "go" in answer_to(task, "r", TaskReport([])), "one that waits for its first slot is not lost"
    now = task.heard_at
    monkeypatch.setattr(engine_module, "time", SimpleNamespace(monotonic=lambda: now + 2.9))
    engine.take_back_if_lost(task)
    assert not task.is_lost
    monkeypatch.setattr(engine_module, "time", SimpleNamespace(monotonic=lambda: now + 3.5))
    wait_for(lambda: engine.take_back_if_lost(task) or not ends.empty())
    end = ends.get(timeout=60)
    assert (end.error, end.is_lost) == ("no report for three lease periods; executor presumed lost.", True)
    engine.close()


def test_each_task_is_lost_after_three_lease_periods_of_its_own_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(SPEC) as (engine, task):
        other = engine.start(SPEC, lambda _spec, _report: None, lambda _end: None, LaunchOptions(lease_timeout_ms=2000))
        assert [each.spec.lease.timeout_ms for each in (task, other) if each.spec.lease] == [1000, 2000]
        for each in (task, other):
            answer_to(each, "r", TaskReport([]))
        now = other.heard_at
        monkeypatch.setattr(engine_module, "time", SimpleNamespace(monotonic=lambda: now + 3.5))
        for each in (task, other):
            engine.take_back_if_lost(each)
        assert (task.is_lost, other.is_lost) == (True, False)


def answer_to(task: RunningTask, run_id: str, report: TaskReport) -> dict[str, Any]:
    """What a run of a task hears over a connection of its own."""
    lease = task.spec.lease
    assert lease is not None
    with socket.create_connection(lease.address, timeout=60) as sock:
        hello = {"task": task.spec.task_id, "attempt": task.spec.attempt, "run": run_id}
        channel = introduce(sock, lease.token, hello)
        channel.send(report.to_json())
        return channel.receive()


def test_an_aborted_task_is_cancelled_at_once_and_its_next_report_ends_it() -> None:
    spark = BusySpark()
    engine = SparkEngine(cast("SparkDriver", driver_of(spark)), LaunchOptions(lease_timeout_ms=1000))
    ends: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
    task = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    assert answer_to(task, "r", TaskReport()) == {"go": True}
    engine.abort(task)
    assert ends.get(timeout=1) == TaskEnd(task.spec), "at once, and not as a failure"
    assert "gone" in answer_to(task, "r", TaskReport()), "also if Spark does not reach it"
    engine.close()


def test_a_task_is_leaving_while_its_executor_is_decommissioned(monkeypatch: pytest.MonkeyPatch) -> None:
    executors = {"a->b-0": "1", "c->d-0": "2"}
    monkeypatch.setattr(SparkJobs, "executor_of", lambda _jobs, spec: executors[spec.task_id])
    with started(SPEC) as (engine, task):
        other = RunningTask(replace(SPEC, task_id="c->d-0"), lambda _spec, _report: None)
        assert not engine.is_leaving(task)
        engine.driver.executors.take((Executor("1", "h1", 2, is_leaving=True), Executor("2", "h2", 2)))
        assert (engine.is_leaving(task), engine.is_leaving(other)) == (True, False)


def test_a_task_of_a_stopped_application_says_so_and_the_next_start_waits_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark, dropped = BusySpark(), list[BusySpark]()
    monkeypatch.setattr(spark, "_jsc", None)
    driver = driver_of(spark)
    driver.drop = dropped.append
    engine = SparkEngine(cast("SparkDriver", driver), LaunchOptions(lease_timeout_ms=1000))
    ends: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
    task = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    wait_for(lambda: spark.cancelled)
    spark.cancelJobGroup(next(iter(spark.cancelled)))
    error = ends.get(timeout=60).error
    assert error is not None
    assert "the Spark application was stopped" in error
    assert (dropped, task.is_lost) == ([spark], False)
    engine.close()


def test_only_one_run_of_a_start_is_heard_however_often_it_connects() -> None:
    with started(SPEC) as (_engine, task):
        assert answer_to(task, "first", TaskReport()) == {"go": True}
        assert answer_to(task, "second", TaskReport()) == {"gone": STARTED_TWICE}
        assert answer_to(task, "first", TaskReport()) == {"go": True}


def test_an_empty_assignment_is_sent_again_until_a_beginning_task_confirms_it() -> None:
    partition = PartitionSpec(TopicPartition("t", 0), "a.t")
    with started(replace(SPEC, partitions=(partition,))) as (engine, task):
        assert answer_to(task, "first", TaskReport()) == {"go": True}
        engine.assign(task, ())
        reported = {"go": True, "assignment": encode_assignment(TaskAssignment(1, ()))}
        assert answer_to(task, "first", TaskReport()) == reported
        assert answer_to(task, "first", TaskReport([PartitionReport("t", 0)])) == reported, "it did not hear it"
        assert answer_to(task, "first", TaskReport(assignment=1)) == {"go": True}


def test_another_share_of_the_limit_is_sent_once_it_changes() -> None:
    partition = PartitionSpec(TopicPartition("t", 0), "a.t")
    with started(replace(SPEC, partitions=(partition,), bytes_per_s=500)) as (engine, task):
        engine.share(task, 500)
        assert answer_to(task, "first", TaskReport()) == {"go": True}
        engine.share(task, 1000)
        reported = {"go": True, "assignment": encode_assignment(TaskAssignment(1, (partition,), 1000))}
        assert answer_to(task, "first", TaskReport()) == reported
        engine.assign(task, ())
        reported = {"go": True, "assignment": encode_assignment(TaskAssignment(2, (), 1000))}
        assert answer_to(task, "first", TaskReport(assignment=1)) == reported


@pytest.mark.parametrize(("number", "outcome"), [(0, {"report": {}, "stopped": None}), (1, {"error": STARTED_TWICE})])
def test_what_spark_runs_again_by_itself_copies_nothing(
    monkeypatch: pytest.MonkeyPatch, number: int, outcome: dict[str, Any]
) -> None:
    monkeypatch.setattr(TaskContext, "get", lambda: SimpleNamespace(attemptNumber=lambda: number))
    monkeypatch.setattr(copy_task, "run_copy", lambda _spec, _lease: {})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lease = LeaseSpec(Address("127.0.0.1", silent.getsockname()[1]), "x")
        assert [json.loads(row) for row in task_function(replace(SPEC, lease=lease))([])] == [outcome]


def test_a_driver_that_cannot_listen_where_spark_says_names_both_settings() -> None:
    settings = {"spark.driver.host": "192.0.2.1"}  # an address that no machine has
    context = SimpleNamespace(getConf=lambda: settings)
    driver = SimpleNamespace(context=lambda *_: context, settings=SimpleNamespace(is_local=False), stop=lambda: None)
    engine = SparkEngine(cast("SparkDriver", driver), LaunchOptions(lease_timeout_ms=1000))
    with pytest.raises(EngineError, match=r"192\.0\.2\.1 .*Set spark\.driver\.bindAddress .*spark\.driver\.host"):
        engine.start(SPEC, lambda _spec, _report: None, lambda _end: None)
