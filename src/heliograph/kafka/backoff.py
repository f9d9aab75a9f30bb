"""Exponential back-off with jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Pauses that double from `first_s` to `most_s`, each shortened at random so that clients do not retry in step."""

    first_s: float = 0.05
    most_s: float = 5.0
    failures: int = 0

    def next_pause_s(self) -> float:
        """Return the pause before the next try, and count the failure."""
        pause = min(self.most_s, self.first_s * (1 << min(self.failures, 20)))
        self.failures += 1
        return pause * random.uniform(0.8, 1.0)  # noqa: S311  (jitter, not a secret)

    def reset(self) -> None:
        """Note that a try succeeded."""
        self.failures = 0
