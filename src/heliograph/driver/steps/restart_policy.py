"""When to start again what has failed: with growing pauses, and where the user wants it so, not for ever.

Java's Connect leaves a failed task dead until somebody restarts it; a flow for disaster recovery must not be dead over
night. `heliograph.restart.attempts.max` brings Java's way back (0), or something between.

Invariant: failures count only in a row. Whoever has run for a while, and for longer than the longest pause, begins to
count anew.
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
_SOUND_S = 60.0
_TRY_AGAIN_S = 30.0
_PATIENCE = 10


class RestartLimits(NamedTuple):
    """The longest pause, and how often in a row something is started again; -1 is no limit."""

    most_s: float
    attempts_max: int

    @classmethod
    def of(cls, settings: Settings) -> RestartLimits:
        """As the settings say."""
        return cls(settings[keys.RESTART_BACKOFF_MAX_MS] / 1000, settings[keys.RESTART_ATTEMPTS_MAX])

    @property
    def try_again_s(self) -> float:
        """The pause before a step that was troubled comes again, where its own interval is longer."""
        return min(_TRY_AGAIN_S, self.most_s)


NO_RESTARTS = RestartLimits(0.0, 0)


class Restarts:
    """The failures of one task or connector."""

    def __init__(self, limits: RestartLimits, first_s: float = _FIRST_S) -> None:
        self._attempts_max = limits.attempts_max
        self._backoff = Backoff(first_s=min(first_s, limits.most_s), most_s=limits.most_s)

    @classmethod
    def of_partitions(cls, limits: RestartLimits) -> Restarts:
        """For a task of which only some partitions have failed: rarer, since the others stand still for a moment."""
        return cls(limits._replace(most_s=limits.most_s * _PATIENCE), first_s=limits.most_s)

    def pause_s(self, ran_s: float = 0.0) -> float | None:
        """It has failed after running for so long: the pause before the next start; None where there is none."""
        if ran_s > max(_SOUND_S, self._backoff.most_s):
            self._backoff.reset()
        if 0 <= self._attempts_max <= self._backoff.failures:
            return None
        return self._backoff.next_pause_s()

    def reset_failures(self) -> None:
        """Count anew: somebody has asked for it, or has changed something."""
        self._backoff.reset()


def keep_trying(
    step: Callable[[], None],
    limits: RestartLimits,
    stopping: threading.Event,
    on_failure: Callable[[ClusterError], None],
) -> None:
    """Do a step until its clusters let it, or the end is wanted; raises where it may not be tried again."""
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
