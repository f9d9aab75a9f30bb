"""Steps that come again and again: each has a name, an interval and the time when it is due next."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Step = Callable[[], Iterable[str]]


@dataclass(slots=True)
class _Repeated:
    name: str
    step: Step
    interval_s: float
    due_at: float


class Schedule:
    """Says which steps are due; running them is the caller's. A step returns the troubles it met, in sentences."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: list[_Repeated] = []

    def repeat(self, name: str, step: Step, interval_s: float, *, first_in_s: float = 0.0) -> None:
        """Add a step, due at once unless `first_in_s` says later."""
        self._steps.append(_Repeated(name, step, interval_s, self._clock() + first_in_s))

    def clear(self) -> None:
        """Forget all steps."""
        self._steps.clear()

    def hasten_all(self) -> None:
        """Let every step be due now."""
        for repeated in self._steps:
            repeated.due_at = self._clock()

    @property
    def next_at(self) -> float | None:
        """When the next step is due; None where there is none."""
        return min((repeated.due_at for repeated in self._steps), default=None)

    def take_due(self) -> list[tuple[str, Step]]:
        """The steps that are due, in the order they were added. An interval counts from now: no step comes twice to
        make up for one that was late.
        """
        now = self._clock()
        due = [repeated for repeated in self._steps if repeated.due_at <= now]
        for repeated in due:
            repeated.due_at = now + repeated.interval_s
        return [(repeated.name, repeated.step) for repeated in due]

    def hasten(self, name: str, within_s: float) -> None:
        """Let a step come again within this time: what troubled it may be gone long before its interval ends."""
        for repeated in self._steps:
            if repeated.name == name:
                repeated.due_at = min(repeated.due_at, self._clock() + within_s)
