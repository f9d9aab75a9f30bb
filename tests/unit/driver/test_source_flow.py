"""A flow's care for its tasks, without clusters: where partitions go, and when a task that has ended begins again."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.diagnostics import Diagnostic, Severity
from heliograph.driver.flow import flow_task
from heliograph.driver.flow.flow_task import NO_SLOT
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.flow.topic_sync import Replicated
from heliograph.driver.spark.spark_engine import TaskEnd
from heliograph.errors import UnreachableError
from heliograph.executor.contract.source_offsets import SourceOffsets
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import TopicPartition
from tests.unit.config.test_dedicated_file import FakeLookup, minimal

A0, Z0 = TopicPartition("a", 0), TopicPartition("z", 0)


class Engine:
    """Keeps what it is told."""

    slots = 4

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.stopped: list[Any] = []
        self.shares: dict[str, int] = {}

    def start(self, spec: Any, _on_report: Any, _on_end: Any) -> Any:
        self.started.append(SimpleNamespace(spec=spec))
        return self.started[-1]

    def assign(self, task: Any, partitions: Any) -> None:
        task.spec = SimpleNamespace(task_id=task.spec.task_id, attempt=task.spec.attempt, partitions=partitions)

    def share(self, task: Any, bytes_per_s: int) -> None:
        self.shares[task.spec.task_id] = bytes_per_s

    def take_back_if_lost(self, task: Any) -> None:
        """None is."""

    def stop(self, task: Any, _why: str) -> None:
        self.stopped.append(task)


class Flow(SourceFlow):
    """A flow whose topics and progress are the test's."""

    def __init__(self, *tps: TopicPartition, settings: tuple[str, ...] = ("tasks.max=2",)) -> None:
        config = load(minimal(*settings), FakeLookup({}))
        self.engine = Engine()
        super().__init__(config, config.flows[0], self.engine, flow_count=1)  # type: ignore[arg-type]
        self._offsets_topic: Any = SimpleNamespace(name="mm2-offsets.A.internal", partition_count=1)
        self.asked = 0
        self.is_progress_there = True
        self.copy(*tps)

    def _source_offsets(self) -> SourceOffsets:
        self.asked += 1
        if not self.is_progress_there:
            raise UnreachableError("b:1 cannot be reached.")
        return SourceOffsets({}, frozenset())

    def _sync_topics(self) -> Replicated:
        return self._topics_of_now

    def copy(self, *tps: TopicPartition) -> None:
        self._topics_of_now = Replicated(tps, {tp.topic: f"A.{tp.topic}" for tp in tps})
        self._refresh()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(flow_task.time, "monotonic", lambda: clock.now)
    return clock


def test_a_partition_that_comes_back_goes_to_the_task_that_still_drains_it() -> None:
    flow = Flow(A0, Z0)
    assert [task.tps for task in flow._tasks] == [{A0}, {Z0}]
    flow.copy(A0)
    flow.copy(A0, Z0)
    assert [task.tps for task in flow._tasks] == [{A0}, {Z0}]
    assert flow.engine.stopped == [flow.engine.started[1]], "it begins again, once it has committed what it sent"


def test_the_tasks_that_copy_share_the_flows_limit(clock: Any) -> None:
    flow = Flow(A0, Z0, settings=("tasks.max=3", "heliograph.throttle.bytes.per.second=900"))

    def shares_after(event: Any) -> dict[str, int]:
        flow.engine.shares.clear()
        flow._events.put(event)
        flow._wait_and_serve()
        return flow.engine.shares

    assert [task.spec.bytes_per_s for task in flow.engine.started] == [450, 450]
    assert shares_after(lambda: flow.copy(A0, Z0, TopicPartition("m", 0))) == {f"A->B-{n}": 300 for n in range(3)}
    assert flow.engine.started[2].spec.bytes_per_s == 300
    assert shares_after(TaskEnd(flow.engine.started[0].spec, error="no.")) == {"A->B-1": 450, "A->B-2": 450}
    clock.now += 600
    assert shares_after(lambda: None) == {f"A->B-{n}": 300 for n in range(3)}
    assert shares_after(lambda: flow.copy(A0)) == {"A->B-0": 900}


def test_while_progress_cannot_be_read_a_task_is_not_tried_again_without_a_pause(clock: Any) -> None:
    flow = Flow(A0)
    flow._tasks[0].running, flow._tasks[0].restart_at = None, clock.now
    flow.is_progress_there, flow.asked = False, 0
    for _round in range(100):
        clock.now += 0.01
        flow._events.put(lambda: None)
        flow._wait_and_serve()
    assert flow.asked == 1
    assert flow.status.issue == "b:1 cannot be reached."
    flow.is_progress_there = True
    clock.now += 60
    flow._events.put(lambda: None)
    flow._wait_and_serve()
    assert flow._tasks[0].running is not None
    assert flow.status.issue is None


def test_a_troubled_step_comes_again_as_soon_as_the_tasks_go_on(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    flow = Flow(A0)
    flow._steps.repeat("topics", lambda: (), 600)
    flow._steps.report("topics", ["a:1 cannot be reached."])
    spec = flow.engine.started[0].spec
    for _second in range(7):
        flow._on_report(spec, TaskReport([], issue=["cluster 'A': a:1 cannot be reached"]))
        clock.now += 1
    flow._on_report(spec, TaskReport([]))
    flow._wait_and_serve()
    assert flow.status.issue is None
    assert caplog.messages == [
        "A->B: a:1 cannot be reached (will be tried again)",
        "A->B-0: cluster 'A': a:1 cannot be reached (it goes on trying)",
        "A->B-0: it goes on as before.",
        "A->B: topics: it goes on as before.",
    ]


def test_a_task_without_a_slot_is_told_after_a_minute(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(A0)
    clock.now += 59
    flow._look_after_tasks()
    assert flow.task_states[0][1:3] == ("UNASSIGNED", None)
    clock.now += 1
    flow._look_after_tasks()
    flow._look_after_tasks()
    assert flow.task_states[0][1:3] == ("UNASSIGNED", NO_SLOT)
    assert caplog.messages == [f"A->B: task 0: {NO_SLOT}"]


def test_each_start_of_a_task_is_told_once_as_soon_as_it_knows_where_it_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    flow = Flow(A0, Z0)
    first, second = (running.spec for running in flow.engine.started)
    for report in (TaskReport([]), TaskReport([PartitionReport("a", 0, already_there=7)])):
        flow._on_report(first, report)
        flow._on_report(first, report)
    reported = [
        (
            "A->B: task 0 begins with 1 partition: 1 without progress yet;"
            " 7 records behind that found on the target, not copied again"
        )
    ]
    assert caplog.messages == reported, "the other task has not spoken up yet"
    flow._task_ended(TaskEnd(second, TaskReport([PartitionReport("z", 0)])))
    reported.append("A->B: task 1 begins with 1 partition: 1 without progress yet")
    assert caplog.messages[:2] == reported, "also of a task that ends before its first report"
    caplog.clear()
    flow._task_ended(TaskEnd(first, error="it fell over."))
    flow._start(flow._tasks[0], flow._source_offsets())
    flow._on_report(flow.engine.started[-1].spec, TaskReport([PartitionReport("a", 0)]))
    assert caplog.messages[1:] == ["A->B: task 0 begins with 1 partition: 1 without progress yet"]


def test_failures_of_topics_that_are_no_longer_copied_are_forgotten_and_their_counts_kept() -> None:
    flow = Flow(A0, Z0)
    row = PartitionReport("z", 0, records=7, failure="z-0: no.")
    flow.status.take("A->B-1", TaskReport([row]))
    assert flow.status.failures == ["z-0: no."]
    flow.copy(A0)
    assert flow.status.failures == []
    assert flow.status.rows() == []
    assert flow.status.totals[0] == 7


def test_a_status_names_some_of_many_failures() -> None:
    flow = Flow(A0)
    flow._tasks[0].reported()
    state = flow._tasks[0].state([f"t-{p}: no." for p in range(9000)])
    assert state.trace is not None
    assert state.trace.splitlines()[-2:] == ["t-19: no.", "and 8980 more"]


def test_events_of_tasks_are_logged_by_their_severity(caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(A0)
    events = [Diagnostic(Severity.ERROR, "records are lost"), Diagnostic(Severity.WARNING, "a record was left out")]
    flow._on_report(flow.engine.started[0].spec, TaskReport(events=events))
    logged = [(record.levelname, record.message) for record in caplog.records]
    assert logged == [("ERROR", "records are lost"), ("WARNING", "a record was left out")]
