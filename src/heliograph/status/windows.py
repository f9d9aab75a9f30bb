"""Measured values of the last minute, as the sensors of Java MM2 keep them, and histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LATENCY_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)
"""Upper bounds of the buckets of a latency histogram; the last bucket has none."""


class Stat(NamedTuple):
    """A measured time in milliseconds: the last value, and the others of the window.

    Without a value in the window only `last` is known.
    """

    last: float
    lowest: float | None = None
    highest: float | None = None
    mean: float | None = None


class PartitionWindow(NamedTuple):
    """A partition over the last minute, as its task has measured it.

    `age_ms` is the age of records when they were fetched, `latency_ms` when the target had acknowledged them; None if
    there was no record yet.
    """

    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    age_ms: Stat | None = None
    latency_ms: Stat | None = None


class LatencyHistogram(NamedTuple):
    """The number of records by the time from their timestamp to the target; `counts` are of each bucket, not cumulated.

    A batch counts with all its records, by the timestamp of its newest.
    """

    counts: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS_S) + 1)
    sum_s: float = 0.0

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(self.counts)

    @classmethod
    def sum_of(cls, histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """Return the sum of several."""
        counts, sum_s = [0] * (len(LATENCY_BOUNDS_S) + 1), 0.0
        for histogram in histograms:
            counts = _added(counts, histogram.counts)
            sum_s += histogram.sum_s
        return cls(tuple(counts), sum_s)


def _added(left: Sequence[int], right: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)]
