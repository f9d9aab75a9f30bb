"""Measured times under any sequence of values: windows, histograms, and their way to the driver."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.executor.contract.task_spec import PartitionSpec
from heliograph.executor.copy.copy_partition import CopyPartition
from heliograph.kafka.produce.target_partition import Backlog, TargetPartition
from heliograph.model import TopicPartition
from heliograph.status.sampled_window import SAMPLE_MS, LatencyCounts, SampledWindow
from heliograph.status.task_status import TaskCounts, TaskGauges
from heliograph.status.windows import LATENCY_BOUNDS_S, LatencyHistogram, Stat
from heliograph.wire.batches.forward import Piece

NOW_MS = 1_700_000_000_000
TIMES = st.integers(0, 10**9)
ADDED = st.lists(st.tuples(st.integers(0, 70_000), TIMES, st.integers(1, 10_000)), max_size=30)
NUMBERS = st.integers(0, 2**53)


@given(ADDED, st.integers(0, 70_000))
def test_a_window_has_the_extremes_and_the_mean_of_values_of_the_last_minute(
    added: list[tuple[int, int, int]], later_ms: int
) -> None:
    window, now_ms, values = SampledWindow(), NOW_MS, []
    for pause_ms, value, weight in added:
        now_ms += pause_ms
        window.add(now_ms, value, weight)
        values.append((now_ms, value, weight))
    now_ms += later_ms
    stat = window.stat(now_ms)
    surely = [value for at, value, _weight in values if at > now_ms - SAMPLE_MS]
    maybe = [value for at, value, _weight in values if at > now_ms - 2 * SAMPLE_MS]
    if stat is None:
        assert surely == []
        return
    assert stat.lowest is not None
    assert stat.mean is not None
    assert stat.highest is not None
    assert stat.lowest <= stat.mean <= stat.highest
    assert stat.last == values[-1][1]
    assert stat.lowest in maybe
    assert stat.highest in maybe
    assert stat.lowest <= min(surely, default=stat.lowest)
    assert stat.highest >= max(surely, default=stat.highest)


BATCHES = st.lists(
    st.tuples(st.integers(1, 500), st.one_of(st.just(-1), st.integers(NOW_MS - 10**10, NOW_MS + 10**6))), max_size=30
)


@given(BATCHES)
def test_a_histogram_counts_every_acknowledged_record_with_a_timestamp(batches: list[tuple[int, int]]) -> None:
    tp = TopicPartition("t", 0)
    counted = LatencyCounts()
    spec = PartitionSpec(tp, "A.t", None, None)
    partition = CopyPartition(spec, TargetPartition(TopicPartition("A.t", 0), Backlog()), None, counted)
    offset = 0
    for records, timestamp_ms in batches:
        piece = Piece(offset, offset + records - 1, records, timestamp_ms, memoryview(b"x"), is_shared=False)
        partition.note_acked(piece, offset, NOW_MS)
        offset += records
    with_time = [(records, max(0, NOW_MS - at_ms) / 1000) for records, at_ms in batches if at_ms >= 0]
    histogram = counted.histogram
    assert partition.counters.records == offset
    assert histogram.records == sum(records for records, _latency_s in with_time)
    for index, bound in enumerate(LATENCY_BOUNDS_S):
        within = sum(records for records, latency_s in with_time if latency_s <= bound)
        assert sum(histogram.counts[: index + 1]) == within
    latency_ms = partition.latency.stat(NOW_MS)
    assert (latency_ms is None) == (not with_time)
    assert latency_ms is None or (latency_ms.lowest or 0) >= 0, "clocks differ"


STATS = st.one_of(st.none(), st.builds(Stat, NUMBERS, NUMBERS, NUMBERS, NUMBERS))
HISTOGRAMS = st.builds(
    LatencyHistogram,
    st.lists(NUMBERS, min_size=len(LATENCY_BOUNDS_S) + 1, max_size=len(LATENCY_BOUNDS_S) + 1).map(tuple),
    st.floats(0, 1e12),
)
ROWS = st.builds(
    PartitionReport, st.text(min_size=1), st.integers(0, 10_000), records=NUMBERS, age_ms=STATS, latency_ms=STATS
)
REPORTS = st.builds(
    TaskReport,
    st.lists(ROWS, max_size=5),
    counts=st.builds(TaskCounts, *[NUMBERS] * 9, HISTOGRAMS),
    gauges=st.builds(TaskGauges, *[NUMBERS] * 5, st.one_of(st.none(), st.floats(0, 1e9)), st.none()),
)


@given(REPORTS)
def test_a_report_arrives_as_it_was_sent(report: TaskReport) -> None:
    arrived = TaskReport.from_json(json.loads(json.dumps(report.to_json())))
    assert arrived == report
    assert all(isinstance(row.age_ms, Stat | None) for row in arrived.partitions)
