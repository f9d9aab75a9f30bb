"""Measures values as the sensors of Java MM2 do: over two samples of 30 s, so that a window is at most a minute old.

Kafka's `SampledStat` keeps a sample for as long as its newest value is of the last minute; here it is dropped a minute
after it began, so no value of a window is older than that. Times and values are milliseconds. Callers pass the time.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from heliograph.status.windows import LATENCY_BOUNDS_S, LatencyHistogram, Stat

SAMPLE_MS = 30_000
_WINDOW_MS = 2 * SAMPLE_MS
_BOUNDS_MS = tuple(int(bound * 1000) for bound in LATENCY_BOUNDS_S)
_NEVER = -math.inf
_EMPTY = (_NEVER, 0, 0.0, math.inf, -math.inf)


class SampledWindow:
    """The values of the last minute; one that is not used costs a comparison."""

    __slots__ = ("_before", "_count", "_highest", "_last", "_lowest", "_next_at", "_started_at", "_sum")

    def __init__(self) -> None:
        self._before = _EMPTY  # start, count, sum, lowest and highest of the sample before
        self._started_at = self._next_at = _NEVER
        self._count = 0
        self._sum = 0.0
        self._last = 0.0
        self._lowest, self._highest = math.inf, -math.inf

    def add(self, now_ms: float, value: float, weight: int = 1) -> None:
        """Add a value that counts as often as its weight says."""
        if now_ms >= self._next_at:
            self._begin_sample(now_ms)
        self._last = value
        self._count += weight
        self._sum += value * weight
        if value < self._lowest:  # noqa: PLR1730  (calls of min and max for every batch would cost more)
            self._lowest = value
        if value > self._highest:  # noqa: PLR1730
            self._highest = value

    def _begin_sample(self, now_ms: float) -> None:
        self._before = self._started_at, self._count, self._sum, self._lowest, self._highest
        self._started_at, self._next_at = now_ms, now_ms + SAMPLE_MS
        self._count, self._sum = 0, 0.0
        self._lowest, self._highest = math.inf, -math.inf

    def stat(self, now_ms: float) -> Stat | None:
        """Return the values of the window, rounded to whole numbers; None if it has none."""
        oldest = now_ms - _WINDOW_MS
        if self._started_at <= oldest:
            return None
        count, total, lowest, highest = self._count, self._sum, self._lowest, self._highest
        before = self._before
        if before[0] > oldest:
            count, total = count + before[1], total + before[2]
            lowest, highest = min(lowest, before[3]), max(highest, before[4])
        return Stat(round(self._last), round(lowest), round(highest), round(total / count)) if count else None


class LatencyCounts:
    """A latency histogram that grows."""

    __slots__ = ("_counts", "_sum_ms")

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS_MS) + 1)
        self._sum_ms = 0

    def add(self, latency_ms: int, records: int) -> None:
        """Count records that were on the target so long after their timestamp."""
        self._counts[bisect_left(_BOUNDS_MS, latency_ms)] += records
        self._sum_ms += latency_ms * records

    @property
    def histogram(self) -> LatencyHistogram:
        """The histogram of this moment."""
        return LatencyHistogram(tuple(self._counts), self._sum_ms / 1000)
