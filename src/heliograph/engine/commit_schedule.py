"""When a task commits: by its interval; in transactions also soon after the last record, and never too late.

Nobody sees the records of a transaction before its end, so it ends as soon as nothing follows. While it ends nothing is
sent, so at full load it may take a tenth of the time.

Invariant: a transaction waits for its commit no longer than a third of the time after which the target aborts it. The
rest is for the commit itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.client_keys import COMMITS_PER_TRANSACTION_TIMEOUT

if TYPE_CHECKING:
    from heliograph.engine.spec import TaskSpec

_QUIET_INTERVAL_S = 0.1
_REST_FACTOR = 9
_RETRY_S = 0.05
_SOON_S = 0.01


class CommitSchedule:
    """The time of the next commit; all times are those of a clock that never goes back, in seconds."""

    def __init__(self, spec: TaskSpec) -> None:
        self._interval_s = spec.commit_interval_ms / 1000
        self._is_transactional = spec.transactional_id is not None
        self._longest_wait_s = spec.transaction_timeout_ms / 1000 / COMMITS_PER_TRANSACTION_TIMEOUT
        if self._is_transactional:
            self._interval_s = min(self._interval_s, self._longest_wait_s)
        self._next_at = 0.0
        self._last_at = 0.0
        self._has_news = False

    def due_at(self, *, is_quiet: bool) -> float:
        """When to begin; `is_quiet` says that no record is on its way."""
        if is_quiet and self._has_news and self._is_transactional:
            return min(self._next_at, self._last_at + _QUIET_INTERVAL_S)
        return self._next_at

    def note_news(self) -> None:
        """There is something to commit."""
        self._has_news = True

    def begun(self, now: float) -> None:
        """A commit has begun."""
        self._next_at, self._last_at, self._has_news = now + self._interval_s, now, False

    def postponed(self, now: float) -> None:
        """A commit could not begin."""
        self._next_at = now + _RETRY_S

    def ended(self, now: float) -> None:
        """The commit that had begun has ended."""
        if self._is_transactional:
            rest_s = min(_REST_FACTOR * (now - self._last_at), self._longest_wait_s)
            self._next_at = max(self._next_at, now + rest_s)

    def hurry(self, now: float) -> None:
        """Nothing follows any more."""
        self._next_at = min(self._next_at, now + _SOON_S)
