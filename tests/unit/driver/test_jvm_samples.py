"""Samples of Spark's JVM: nobody waits for one, and one that is too old is none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.driver.spark.jvm_samples import JvmSamples, ask_jvm
from heliograph.driver.spark.spark_engine import RunningTask, SparkEngine
from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import Address, Flow
from heliograph.status.process_snapshot import EngineSnapshot, JvmSnapshot
from tests.support.runs.copying import wait_for

JVM = JvmSnapshot(heap_bytes=10, other_bytes=5, gc_seconds=0.5, gc_count=3, threads=20)
CLUSTER = ClusterSpec("a", (Address("a", 1),), Security())
SPEC = TaskSpec("a->b-0", Flow("a", "b"), CLUSTER, CLUSTER, (), "c", "offsets", 1)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def sampled(ask: Callable[[], JvmSnapshot], clock: Clock) -> JvmSamples:
    return JvmSamples(ask, 0.01, clock)


def test_a_jvm_that_stops_answering_is_unknown_after_half_a_minute() -> None:
    clock, answers, is_stopped = Clock(), threading.Event(), threading.Event()

    def ask() -> JvmSnapshot:
        if answers.is_set():
            is_stopped.wait(10)
        return JVM

    samples = sampled(ask, clock)
    wait_for(lambda: samples.latest == JVM)
    answers.set()
    clock.now = 29.0
    assert samples.latest == JVM
    clock.now = 61.0
    assert samples.latest is None
    is_stopped.set()
    answers.clear()
    wait_for(lambda: samples.latest == JVM)
    samples.stop()
    assert samples.latest is None


def test_an_error_ends_no_sampling() -> None:
    errors = iter([ConnectionError("gone"), ValueError("not a number")])

    def ask() -> JvmSnapshot:
        for error in errors:
            raise error
        return JVM

    samples = sampled(ask, Clock())
    wait_for(lambda: samples.latest == JVM)
    samples.stop()


def test_stopping_does_not_wait_for_a_jvm_that_does_not_answer() -> None:
    is_over = threading.Event()
    samples = sampled(lambda: (is_over.wait(60) and JVM) or JVM, Clock())
    samples.stop()
    assert samples._thread.is_alive()
    is_over.set()


def bean(**values: object) -> Any:
    return SimpleNamespace(**{name: lambda value=value: value for name, value in values.items()})


def test_a_collector_that_does_not_count_adds_nothing() -> None:
    beans = bean(
        getMemoryMXBean=bean(getHeapMemoryUsage=bean(getUsed=10), getNonHeapMemoryUsage=bean(getUsed=5)),
        getGarbageCollectorMXBeans=[
            bean(getCollectionTime=500, getCollectionCount=3),
            bean(getCollectionTime=-1, getCollectionCount=-1),
        ],
        getThreadMXBean=bean(getThreadCount=20),
    )
    management = SimpleNamespace(management=SimpleNamespace(ManagementFactory=beans))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=management))
    assert ask_jvm(SimpleNamespace(_jvm=jvm)) == JVM


@pytest.mark.parametrize(("shared", "slots", "jvm"), [(None, None, None), (None, 8, JVM), (2, 2, JVM)])
def test_the_engine_shows_slots_and_tasks_also_while_spark_starts(
    shared: int | None, slots: int | None, jvm: JvmSnapshot | None
) -> None:
    driver = SimpleNamespace(samples=SimpleNamespace(latest=jvm), executors=SimpleNamespace(slots=8))
    engine = SparkEngine(cast("Any", driver))
    engine.shared_slots = shared
    for number, run_id in enumerate((None, "run-1", "run-2")):
        task = RunningTask(SPEC, lambda *_: None)
        task.run_id = run_id
        engine._tasks["a->b-0", number] = task
    with engine._lock:  # held while the first task waits for Spark
        assert engine.snapshot() == EngineSnapshot(slots, 2, 1, jvm)
