"""Sums over the partitions of a flow: counters, and rates of its topics over the last seconds."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from heliograph.status.catch_up import CatchUp
from heliograph.status.flow_snapshot import Counts, Rates
from heliograph.status.rate_samples import RateSamples, sum_of_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.driver.flow.state.partition_rows import PartitionRows
    from heliograph.status.flow_snapshot import Lag


_SAMPLE_INTERVAL_S = 1.0  # a sample walks all partitions: not for each report of each task


class FlowSums:
    """The sums of one flow; the partitions of `rows` are its own."""

    def __init__(self, rows: PartitionRows, clock: Callable[[], float]) -> None:
        self.by_topic: dict[str, RateSamples] = {}
        self._rows = rows
        self._clock = clock
        self._lock = threading.Lock()
        self._sampled_at = -math.inf
        self._catch_up = CatchUp()

    def sample_if_due(self) -> None:
        """Take a sample of all counters, if the last one is old enough; to be called with each report."""
        with self._lock, self._rows.lock:
            now = self._clock()
            if now - self._sampled_at < _SAMPLE_INTERVAL_S:
                return
            self._sampled_at = now
            sums: dict[str, list[int]] = {}
            for tp, row in self._rows.by_tp.items():
                row.judge(now)
                counts = row.counts
                total = sums.setdefault(tp.topic, [0, 0, 0, 0])
                total[0] += counts.records
                total[1] += counts.bytes
                if row.report is not None:
                    total[2] += row.report.latency_sum_ms
                    total[3] += row.report.latency_count
            for topic, (records, size, latency_sum, latency_count) in sums.items():
                self.by_topic.setdefault(topic, RateSamples()).add(now, records, size, latency_sum, latency_count)
            if self._catch_up.is_due(now):
                rows = self._rows.by_tp.values()
                self._catch_up.note(now, _sum_or_none(row.facts.lag_records(now) for row in rows if row.is_replicated))

    def catch_up_seconds(self, lag: Lag) -> float | None:
        """Return when the flow will have caught up, by its lag over the last minutes; None if that is not known."""
        with self._lock:
            return self._catch_up.seconds(self._clock(), lag)

    def restart(self) -> None:
        """Begin again with the rates: the next run of the flow counts latencies from zero."""
        with self._lock:
            self.by_topic.clear()
            self._catch_up.clear()

    @property
    def counts(self) -> Counts:
        """The counters of all partitions, also of those that are no longer replicated."""
        with self._rows.lock:
            return Counts.sum_of(row.counts for row in self._rows.by_tp.values())

    def records_by_topic(self) -> dict[str, int]:
        """Return the number of records copied, by topic."""
        counts: dict[str, int] = {}
        with self._rows.lock:
            for tp, row in self._rows.by_tp.items():
                counts[tp.topic] = counts.get(tp.topic, 0) + row.counts.records
        return counts

    @property
    def rates(self) -> Rates:
        """The rates of all topics together."""
        with self._lock:
            return sum_of_rates(samples.rates() for samples in self.by_topic.values())

    def rates_of(self, topics: Iterable[str]) -> dict[str, Rates]:
        """Return the rates of each of these topics."""
        with self._lock:
            return {topic: self.by_topic.get(topic, RateSamples()).rates() for topic in topics}


def _sum_or_none(numbers: Iterable[int | None]) -> int | None:
    """Return a sum; None if a number is not known."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
