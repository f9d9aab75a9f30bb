"""Rates of copying over the last seconds, from counters that are sampled now and then."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.status.flow_snapshot import Rates

if TYPE_CHECKING:
    from collections.abc import Iterable


_RATE_WINDOW_S = 5.0


@dataclass(slots=True)
class RateSamples:
    """The counters of a topic over the last seconds."""

    samples: deque[tuple[float, int, int, int, int]] = field(default_factory=deque)

    def add(self, now: float, records: int, size: int, latency_sum: int, latency_count: int) -> None:
        """Add the counters of this moment."""
        self.samples.append((now, records, size, latency_sum, latency_count))
        while len(self.samples) > 2 and self.samples[0][0] < now - _RATE_WINDOW_S:
            self.samples.popleft()

    def rates(self) -> Rates:
        """Return the rates between the oldest sample and the newest."""
        if len(self.samples) < 2:
            return Rates()
        first, last = self.samples[0], self.samples[-1]
        elapsed = max(1e-3, last[0] - first[0])
        batches = last[4] - first[4]
        latency = (last[3] - first[3]) / batches if batches else None
        return Rates((last[1] - first[1]) / elapsed, (last[2] - first[2]) / elapsed, latency)


def sum_of_rates(rates: Iterable[Rates]) -> Rates:
    """Return the sums, and the latency of the slowest topic."""
    listed = list(rates)
    latencies = [each.latency_ms for each in listed if each.latency_ms is not None]
    return Rates(
        sum(each.records_per_s for each in listed),
        sum(each.bytes_per_s for each in listed),
        max(latencies, default=None),
    )
