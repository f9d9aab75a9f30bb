"""The counters of tasks: kept over runs, and never those of a run that does not report."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from heliograph.diagnostics import note
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.flow.state.task_reports import task_number
from heliograph.driver.flow.tasks.flow_task import TaskState
from heliograph.executor.contract.task_report import MEASURE_INTERVAL_S, PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import FlowSnapshot
from heliograph.status.partition_status import KNOWN_FOR_S
from heliograph.status.task_status import RestartReason, TaskCounts, TaskGauges, TaskRow
from heliograph.status.windows import LatencyHistogram, PartitionWindow, Stat

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GAUGES = TaskGauges(2, 3, 1 << 20, 1000, 50, 12.0, 30.0)


def histogram(records: int, sum_s: float) -> LatencyHistogram:
    return LatencyHistogram((records,) + (0,) * 16, sum_s)


class Flows:
    """A flow of two tasks, each with a partition."""

    def __init__(self) -> None:
        self.clock = SimpleNamespace(now=100.0)
        self.status = FlowStatus(Flow("A", "B"), lambda: self.clock.now)
        self.status.partitions.set_replicated({T0: "A.t", T1: "A.t"})
        self.status.state = "RUNNING"

    def report(self, number: int, records: int, counts: TaskCounts = TaskCounts(), **row: object) -> None:  # noqa: B008
        partition = PartitionReport("t", number, records=records, bytes=10 * records, **row)  # type: ignore[arg-type]
        self.status.take(f"A->B-{number}", TaskReport([partition], counts=counts, gauges=GAUGES))

    def end(self, number: int) -> None:
        self.status.task_ended(f"A->B-{number}", [TopicPartition("t", number)])

    @property
    def snapshot(self) -> FlowSnapshot:
        states = [TaskState(n, "RUNNING", None, frozenset([TopicPartition("t", n)])) for n in range(2)]
        return self.status.snapshot("A->B", "A->B", states)

    def row(self, number: int) -> TaskRow:
        return self.snapshot.tasks[number]


@pytest.fixture
def flow() -> Flows:
    return Flows()


def test_the_counts_of_a_task_are_summed_over_its_runs(flow: Flows) -> None:
    run = TaskCounts(0, 0, 7, 700, 800, 3, 1, 40, 5, histogram(6, 1.5))
    for _run in range(2):
        flow.report(0, 4)
        flow.report(0, 6, run)
        flow.end(0)
    flow.report(1, 9)
    assert flow.row(0).counts == TaskCounts(12, 120, 14, 1400, 1600, 6, 2, 80, 10, histogram(12, 3.0))
    assert (flow.row(1).counts.records, flow.row(1).counts.bytes) == (9, 90)
    assert flow.snapshot.latency == histogram(12, 3.0)
    assert sum(row.counts.records for row in flow.snapshot.tasks) == flow.snapshot.counts.records


def test_another_run_of_the_flow_counts_on(flow: Flows) -> None:
    flow.report(0, 6, TaskCounts(commits=3))
    flow.status.restart()
    flow.report(0, 5, TaskCounts(commits=2))
    assert (flow.row(0).counts.records, flow.row(0).counts.commits) == (11, 5)


def test_a_partition_that_was_taken_away_and_comes_back_counts_on(flow: Flows) -> None:
    """Its topic was excluded, and its task ended without it; the next run of the task has it from its begin."""
    other = PartitionReport("u", 0)

    def report(records: int, attempt: int) -> None:
        rows = [PartitionReport("t", 0, records=records, bytes=10 * records), other]
        flow.status.take("A->B-0", TaskReport(rows, gauges=GAUGES), attempt)

    report(100, 1)
    flow.status.partitions.set_replicated({other.tp: "A.u"})
    flow.status.task_ended("A->B-0", [other.tp], 1)
    flow.status.partitions.set_replicated({T0: "A.t", other.tp: "A.u"})
    report(5, 2)
    assert flow.snapshot.counts.records == flow.row(0).counts.records == 105
    flow.status.take("A->B-1", TaskReport([PartitionReport("t", 0, records=3)]), 3)
    assert (flow.snapshot.counts.records, flow.row(0).counts.records, flow.row(1).counts.records) == (108, 105, 3)


def test_gauges_are_those_of_the_current_run_and_zero_without_one(flow: Flows) -> None:
    flow.report(0, 1)
    assert flow.row(0).gauges == GAUGES
    assert flow.row(1).gauges == TaskGauges()
    flow.end(0)
    assert flow.row(0).gauges == TaskGauges()


def test_of_a_run_that_has_not_reported_yet_no_gauge_is_known(flow: Flows) -> None:
    """Zero bytes of a buffer would look exhausted."""
    flow.status.tasks.note_start(0, None)
    assert set(flow.row(0).gauges) == {None}
    flow.report(0, 1)
    assert flow.row(0).gauges == GAUGES
    flow.end(0)
    flow.status.tasks.note_start(0, RestartReason.FAILED)
    assert set(flow.row(0).gauges) == {None}
    flow.status.tasks.note_no_run(0)
    assert flow.row(0).gauges == TaskGauges(), "it could not be started"
    assert flow.row(0).counts.records == 1


def test_of_a_run_that_does_not_report_nothing_is_known_but_its_counts(flow: Flows) -> None:
    flow.report(0, 5)
    flow.clock.now += KNOWN_FOR_S + 1
    row = flow.row(0)
    assert set(row.gauges) == {None}
    assert row.counts.records == 5
    assert flow.snapshot.partitions[0].window is None


def test_partition_rates_are_of_the_last_minute(flow: Flows) -> None:
    for second in range(121):
        flow.clock.now = 100.0 + second
        flow.report(0, 0 if second <= 60 else 50 * (second - 60))
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert (window.records_per_s, window.bytes_per_s) == (50.0, 500.0)
    assert flow.snapshot.partitions[1].window == PartitionWindow()


def test_the_rate_of_a_partition_that_has_just_begun_is_over_a_sample(flow: Flows) -> None:
    flow.report(0, 300)
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert window.records_per_s == 10.0


def test_rates_continue_over_the_restart_of_a_task(flow: Flows) -> None:
    flow.report(0, 0)
    flow.clock.now += 20
    flow.report(0, 600)
    flow.end(0)
    flow.status.partitions.hold([T0], note("task 0 is started again"))
    flow.clock.now += 20
    flow.report(0, 600)
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert window.records_per_s == 1200 / 40


@pytest.mark.parametrize("is_same_run", [True, False])
def test_rates_after_a_pause_are_those_since_its_end(flow: Flows, is_same_run: bool) -> None:
    def report_each_second(first: int, count: int) -> float:
        for second in range(count):
            flow.report(0, 1000 * (first + second))
            flow.clock.now += 1
        window = flow.snapshot.partitions[0].window
        assert window is not None
        return window.records_per_s

    assert report_each_second(0, 61) == pytest.approx(1000, rel=0.05)
    if not is_same_run:
        flow.end(0)
    flow.status.partitions.hold([T0], note("the connector is stopped on request"))
    flow.clock.now += 90
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert window.records_per_s == 0.0
    flow.clock.now += 3600
    first = 61 if is_same_run else 0
    assert report_each_second(first, 29) == pytest.approx(1000, rel=0.1), "over a sample at least"
    assert report_each_second(first + 29, 6) == pytest.approx(1000, rel=0.05)


def test_measured_times_stay_until_they_are_measured_again_and_then_only_the_last(flow: Flows) -> None:
    age, latency = Stat(20, 10, 90, 30), Stat(40, 20, 200, 50)
    flow.report(0, 1, age_ms=age, latency_ms=latency)
    flow.clock.now += 1
    flow.report(0, 1)
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert (window.age_ms, window.latency_ms) == (age, latency), "not every report measures"
    flow.report(0, 1, latency_ms=latency)
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert (window.age_ms, window.latency_ms) == (Stat(20), latency)
    flow.clock.now += 3 * MEASURE_INTERVAL_S
    flow.report(0, 1)
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert (window.age_ms, window.latency_ms) == (Stat(20), Stat(40))


def test_after_the_end_of_a_run_only_the_last_measured_times_are_known(flow: Flows) -> None:
    flow.report(0, 1, latency_ms=Stat(40, 20, 200, 50))
    flow.end(0)
    flow.status.partitions.hold([T0], note("task 0 is started again"))
    window = flow.snapshot.partitions[0].window
    assert window is not None
    assert window.latency_ms == Stat(40)


def test_restarts_are_counted_by_reason_over_runs_of_the_flow(flow: Flows) -> None:
    tasks = flow.status.tasks
    tasks.note_start(0, None)
    assert flow.row(0).restarts == {}
    flow.report(0, 1)
    tasks.note_start(0, RestartReason.FAILED)
    tasks.note_partition_restarts(0, RestartReason.PARTITION, 3)
    flow.status.state = "FAILED"
    flow.status.restart()
    tasks.note_start(0, None)
    tasks.note_start(1, None)
    assert flow.row(0).restarts == {RestartReason.FAILED: 2, RestartReason.PARTITION: 3}
    assert flow.row(1).restarts == {}, "it has never run"
    flow.status.restart()
    tasks.note_start(0, None)
    assert flow.row(0).restarts[RestartReason.CHANGED] == 1


def test_a_restart_counts_also_if_no_run_before_it_has_reported(flow: Flows) -> None:
    tasks = flow.status.tasks
    tasks.note_start(0, None)
    flow.status.state = "FAILED"
    flow.status.restart()
    for _start in range(2):
        tasks.note_start(0, None)
    assert flow.row(0).restarts == {RestartReason.FAILED: 1}, "one restart of the flow is one of the task"


def test_a_flow_catches_up_as_fast_as_its_lag_falls(flow: Flows) -> None:
    flow.status.partitions.set_replicated({T0: "A.t"})
    for second in range(31):
        flow.clock.now = 100.0 + second
        flow.report(0, 0, next_offset=10 * second, log_end=1000, log_end_age_ms=0, pending_ms=1_000)
    assert flow.snapshot.catch_up_seconds == pytest.approx(70.0)
    assert flow.snapshot.partitions[0].copied_ms is None


@pytest.mark.parametrize(("task_id", "number"), [("A->B-0", 0), ("a-b->c-12", 12), ("connector-1-7", 7)])
def test_the_number_of_a_task_is_the_end_of_its_id(task_id: str, number: int) -> None:
    assert task_number(task_id) == number
