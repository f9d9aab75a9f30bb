"""Decides when a task or connector that failed is started again: with growing pauses, and up to a limit of attempts.

Connect leaves a failed task FAILED until a user restarts it; a flow for disaster recovery must not stay down over
night. `heliograph.restart.attempts.max=0` brings back Connect's behaviour.

Invariant: only failures in a row count. After a run of a minute that was also longer than the longest pause, counting
starts again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.errors import ClusterError
from heliograph.kafka.backoff import Backoff

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from heliograph.config.resolve.settings import Settings


_FIRST_S = 0.5
_STABLE_S = 60.0
_TRY_AGAIN_S = 30.0
_PARTITIONS_FACTOR = 10


class RestartLimits(NamedTuple):
    """The longest pause, and the number of restarts in a row; -1 is no limit."""

    most_s: float
    attempts_max: int

    @classmethod
    def of(cls, settings: Settings) -> RestartLimits:
        """Return the limits of the settings."""
        return cls(settings[keys.RESTART_BACKOFF_MAX_MS] / 1000, settings[keys.RESTART_ATTEMPTS_MAX])

    @property
    def try_again_s(self) -> float:
        """The pause before a failed step runs again, if its own interval is longer."""
        return min(_TRY_AGAIN_S, self.most_s)


NO_RESTARTS = RestartLimits(0.0, 0)


class Restarts:
    """The failures of one task or connector."""

    def __init__(self, limits: RestartLimits, first_s: float = _FIRST_S) -> None:
        self._attempts_max = limits.attempts_max
        self._backoff = Backoff(first_s=min(first_s, limits.most_s), most_s=limits.most_s)

    @classmethod
    def of_partitions(cls, limits: RestartLimits, *, pauses_others: bool = True) -> Restarts:
        """Return the retries of a task's failed partitions, with longer pauses if a retry pauses its others."""
        if not pauses_others:
            return cls(limits, first_s=limits.most_s)  # an error for each try: not more often than a failing task
        return cls(limits._replace(most_s=limits.most_s * _PARTITIONS_FACTOR), first_s=limits.most_s)

    def pause_s(self, ran_s: float = 0.0) -> float | None:
        """Count a failure after a run of this length; return the pause before the next start, None if there is none."""
        if ran_s > max(_STABLE_S, self._backoff.most_s):
            self._backoff.reset()
        if 0 <= self._attempts_max <= self._backoff.failures:
            return None
        return self._backoff.next_pause_s()

    def reset_failures(self) -> None:
        """Start counting again: a user requested a restart, or changed something."""
        self._backoff.reset()


def keep_trying(
    step: Callable[[], None],
    limits: RestartLimits,
    stopping: threading.Event,
    on_failure: Callable[[ClusterError], None],
) -> None:
    """Run a step until its clusters allow it, or stopping is set; raise its error after the last attempt."""
    restarts = Restarts(limits)
    while not stopping.is_set():
        try:
            step()
        except ClusterError as error:
            pause_s = restarts.pause_s()
            if pause_s is None:
                raise
            on_failure(error)
            stopping.wait(pause_s)
        else:
            return
