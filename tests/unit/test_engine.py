"""The engine beside a Spark that is slow, or gone."""

from __future__ import annotations

import queue
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from heliograph.engine import engine as engine_module
from heliograph.engine.engine import SparkEngine, TaskEnd
from heliograph.engine.session import SparkDriver, SparkSettings
from heliograph.engine.spec import ClusterSpec, TaskSpec
from heliograph.kafka.security import Security
from heliograph.model import Address, Flow

if TYPE_CHECKING:
    import pytest

CLUSTER = ClusterSpec("a", (Address("a", 1),), Security())
SPEC = TaskSpec("a->b-0", Flow("a", "b"), CLUSTER, CLUSTER, (), "c", "offsets", 1)


class BusySpark:
    """A context whose slots are all taken: a job waits until its group is cancelled."""

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
        assert self.cancelled[self._of_thread.group].wait(30)
        raise RuntimeError("Job 0 cancelled")


def test_a_task_that_waits_for_a_slot_is_taken_back_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_SILENCE_S", 0.01)
    spark = BusySpark()
    driver = SimpleNamespace(context=lambda: spark, settings=SimpleNamespace(is_local=True), stop=lambda: None)
    engine = SparkEngine(cast("SparkDriver", driver), lease_timeout_ms=1000)
    ends: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
    first = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    second = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    engine.stop(first, "it is paused")
    assert ends.get(timeout=30) == TaskEnd(first.spec)
    engine.stop(second, "it is paused")
    assert ends.get(timeout=30) == TaskEnd(second.spec)
    assert len(spark.cancelled) == 2, "no two starts share a group of jobs"
    engine.close()


def test_a_task_stopped_before_spark_has_heard_of_it_is_taken_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_SILENCE_S", 0.01)
    spark, is_up = BusySpark(), threading.Event()

    def context() -> BusySpark:
        assert is_up.wait(30)
        return spark

    driver = SimpleNamespace(context=context, settings=SimpleNamespace(is_local=True), stop=lambda: None)
    engine = SparkEngine(cast("SparkDriver", driver), lease_timeout_ms=1000)
    ends: queue.SimpleQueue[TaskEnd] = queue.SimpleQueue()
    task = engine.start(SPEC, lambda _spec, _report: None, ends.put)
    engine.stop(task, "it is paused")
    is_up.set()
    assert ends.get(timeout=30) == TaskEnd(task.spec)
    engine.close()


def test_a_jvm_that_has_ended_is_an_error() -> None:
    ended: list[int | None] = [None]
    driver = SparkDriver.__new__(SparkDriver)
    driver.settings = SparkSettings("local[1]")
    driver._error, driver._is_stopped = None, False
    driver._context = SimpleNamespace(_gateway=SimpleNamespace(proc=SimpleNamespace(poll=lambda: ended[0])))
    assert driver.error is None
    ended[0] = 137
    assert "Spark's JVM has ended" in str(driver.error)
