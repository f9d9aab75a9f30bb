"""The status of a flow under any sequence of reports, losses, look-ups and restarts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.diagnostics import note, warning
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.flow.tasks.flow_task import TaskState
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import FlowSnapshot
from heliograph.status.json_views import flow_json
from heliograph.status.sampled_window import LatencyCounts
from heliograph.status.task_status import TaskCounts

TPS = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]
NUMBER = st.integers(0, 2)

HAPPENINGS = st.one_of(
    st.tuples(st.just("acknowledge"), NUMBER, st.integers(1, 50)),
    st.tuples(st.just("produce"), NUMBER, st.integers(1, 80)),
    st.tuples(st.just("fetch"), NUMBER, st.just(0)),
    st.tuples(st.just("look up"), NUMBER, st.just(0)),
    st.tuples(st.just("fail"), NUMBER, st.just(0)),
    st.tuples(st.just("retry"), NUMBER, st.just(0)),
    st.tuples(st.just("truncate"), NUMBER, st.integers(1, 40)),
    st.tuples(st.just("restart"), NUMBER, st.integers(0, 30)),
    st.tuples(st.just("wait"), NUMBER, st.integers(1, 20)),
)


class World:
    """One task for each partition, and what it would report."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.status = FlowStatus(Flow("A", "B"), lambda: self.now)
        self.status.partitions.set_replicated({tp: f"A.{tp.topic}" for tp in TPS})
        self.status.state = "RUNNING"
        self.log_ends = [0] * 3
        self.reports: list[PartitionReport | None] = [None] * 3
        self.latencies = [LatencyCounts() for _tp in TPS]
        self.copied = self.lost = 0

    def happen(self, what: str, number: int, amount: int) -> None:
        tp, row = TPS[number], self.reports[number]
        match what:
            case "produce":
                self.log_ends[number] += amount
            case "truncate":
                self.log_ends[number] = max(0, self.log_ends[number] - amount)
            case "look up":
                self.status.partitions.set_log_ends({tp: self.log_ends[number]}, self.now)
            case "wait":
                self.now += amount
            case "restart":
                if row is not None:
                    self.status.task_ended(str(number), [tp])
                    self.latencies[number] = LatencyCounts()
                    self.status.partitions.hold([tp], note("starts again") if amount % 2 else warning("failed"))
                committed = None if row is None or row.next_offset is None else max(0, row.next_offset - amount)
                self.reports[number] = PartitionReport(*tp, next_offset=committed)
            case _ if row is not None:
                self._report(what, number, row, amount)

    def _report(self, what: str, number: int, row: PartitionReport, amount: int) -> None:
        row.log_end, row.log_end_age_ms = None, None
        if what == "acknowledge" and row.failure is None:
            done = min(self.log_ends[number], (row.next_offset or 0) + amount)
            count = max(0, done - (row.next_offset or 0))
            row.next_offset, row.records = (row.next_offset or 0) + count, row.records + count
            row.acked_age_ms = 0
            self.copied += count
            self.latencies[number].add(37 * amount, count)
        elif what == "fetch":
            row.log_end, row.log_end_age_ms = self.log_ends[number], 0
        elif what == "fail":
            row.failure = "no."
        elif what == "retry":
            row.failure = None
        counts = TaskCounts(commits=row.records // 10, latency=self.latencies[number].histogram)
        report = TaskReport([PartitionReport(**_fields(row))], counts=counts)
        self.status.take(str(number), TaskReport.from_json(json.loads(json.dumps(report.to_json()))))

    @property
    def snapshot(self) -> FlowSnapshot:
        tasks = [TaskState(number, "RUNNING", None, frozenset([tp])) for number, tp in enumerate(TPS)]
        return self.status.snapshot("A->B", "A->B.Source", tasks)


def never_falls(was: TaskCounts, now: TaskCounts) -> None:
    assert all(a <= b for a, b in zip(was[:-1], now[:-1], strict=True))  # type: ignore[operator]
    assert all(a <= b for a, b in zip(was.latency.counts, now.latency.counts, strict=True))
    assert was.latency.sum_s <= now.latency.sum_s


def _fields(row: PartitionReport) -> dict[str, Any]:
    return {name: getattr(row, name) for name in PartitionReport.__slots__}  # type: ignore[attr-defined]


@settings(max_examples=300, deadline=None)
@given(st.lists(HAPPENINGS, max_size=60))
def test_whatever_happens_sums_equal_their_parts_and_the_unknown_is_never_zero(
    happenings: list[tuple[str, int, int]],
) -> None:
    world = World()
    before = world.snapshot
    for what, number, amount in happenings:
        world.happen(what, number, amount)
        after = world.snapshot
        rows = after.partitions
        assert [row.tp for row in rows] == sorted(TPS), "failed and waiting ones are in every list"
        assert sum(after.by_state.values()) == len(rows)
        assert after.counts.records == sum(row.records for row in rows) == world.copied
        assert sum(task.counts.records for task in after.tasks) == world.copied == after.latency.records
        for was, task in zip(before.tasks, after.tasks, strict=True):
            never_falls(was.counts, task.counts)
        assert all(row.window is None or row.window.records_per_s >= 0 for row in rows)
        lags = [row.lag_records for row in rows]
        shown = flow_json(after)
        assert shown["lag_records"] == (None if None in lags else sum(lag or 0 for lag in lags))
        assert shown["partitions_with_unknown_lag"] == lags.count(None)
        assert shown["lag_records_at_least"] == sum(lag or 0 for lag in lags)
        for was, row in zip(before.partitions, rows, strict=True):
            if row.log_end is None or row.next_offset is None:
                assert row.lag_records is None
                assert row.lag_seconds is None
            elif row.log_end < row.next_offset:
                assert row.lag_records is None, "another log, or one that was cut"
            elif was.lag_records is not None and row.lag_records is not None and row.lag_records < was.lag_records:
                assert was.next_offset is not None
                assert was.log_end is not None
                assert row.next_offset > was.next_offset or row.log_end < was.log_end
            assert (row.reason is None) == (row.state in ("copying", "caught_up", "done"))
            assert (row.since <= after.at) and (row.state == was.state or row.since >= before.at - 60)
        before = after
