"""Measured times: windows of the last minute, and histograms of latencies."""

from __future__ import annotations

from heliograph.status.sampled_window import LatencyCounts, SampledWindow
from heliograph.status.windows import LATENCY_BOUNDS_S, Stat

START_MS = 1_700_000_000_000


def test_a_window_without_values_has_none() -> None:
    assert SampledWindow().stat(START_MS) is None


def test_a_value_counts_as_often_as_its_weight_says() -> None:
    window = SampledWindow()
    window.add(START_MS, 100, 3)
    window.add(START_MS + 1, 20)
    assert window.stat(START_MS + 2) == Stat(last=20, lowest=20, highest=100, mean=80)


def test_a_window_has_two_samples_and_no_value_older_than_a_minute() -> None:
    window = SampledWindow()
    window.add(START_MS, 900)
    window.add(START_MS + 40_000, 10)
    assert window.stat(START_MS + 59_999) == Stat(10, 10, 900, 455)
    assert window.stat(START_MS + 60_000) == Stat(10, 10, 10, 10)
    window.add(START_MS + 75_000, 30)
    assert window.stat(START_MS + 75_000) == Stat(30, 10, 30, 20)
    assert window.stat(START_MS + 140_000) is None
    window.add(START_MS + 200_000, 5)
    assert window.stat(START_MS + 200_001) == Stat(5, 5, 5, 5)


def test_a_latency_at_a_bound_is_in_the_bucket_of_that_bound() -> None:
    counts = LatencyCounts()
    for latency_ms in (0, 5, 6, 3_600_000, 3_600_001):
        counts.add(latency_ms, 2)
    histogram = counts.histogram
    shown = {bound: count for bound, count in zip([*LATENCY_BOUNDS_S, None], histogram.counts, strict=True) if count}
    assert shown == {0.005: 4, 0.01: 2, 3_600.0: 2, None: 2}
    assert histogram.records == 10
    assert histogram.sum_s == 2 * (0 + 5 + 6 + 3_600_000 + 3_600_001) / 1000
