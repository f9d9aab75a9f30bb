"""Estimates when a flow will have caught up, from its lag over the last minutes. Callers pass the time."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.status.flow_snapshot import Lag

SAMPLE_INTERVAL_S = 5.0
_WINDOW_S = 180.0
_LEAST_S = 15.0  # over less time a lag says nothing about its direction
_CAUGHT_UP_S = 2.0  # of a busy flow some records are always under way


class CatchUp:
    """The lag of a flow over the last minutes."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()
        self._due_at = -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether it is time for a sample."""
        return now >= self._due_at

    def note(self, now: float, lag_records: int | None) -> None:
        """Add a sample; None is a lag that is not known."""
        self._due_at = now + SAMPLE_INTERVAL_S
        if lag_records is not None:
            self._samples.append((now, lag_records))
        while self._samples and self._samples[0][0] < now - _WINDOW_S:
            self._samples.popleft()

    def clear(self) -> None:
        """Forget all samples: what follows is another run."""
        self._samples.clear()
        self._due_at = -math.inf

    def seconds(self, now: float, lag: Lag) -> float | None:
        """Return the lag divided by the rate at which it falls; infinite if it does not fall, None if not known.

        It is 0 for a flow without lag, and for one of which no record waits for more than a moment.
        """
        if lag.records is None:
            return None
        if not lag.records or (lag.seconds is not None and lag.seconds <= _CAUGHT_UP_S):
            return 0.0
        samples = [each for each in self._samples if each[0] >= now - _WINDOW_S]
        if not samples or now - samples[0][0] < _LEAST_S:
            return None
        fallen = samples[0][1] - lag.records
        return lag.records * (now - samples[0][0]) / fallen if fallen > 0 else math.inf
