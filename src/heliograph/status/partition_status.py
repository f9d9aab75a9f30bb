"""The state of one partition, decided from what is known about it.

Lag in records is the end of the source's log less the first offset that the target is not known to have. Offsets
without a record (of transaction markers, or compacted away) count until they are passed, and so do records of an open
transaction: they wait for its end, which is no stall. A log that ends before that offset is another log, or was cut:
then the lag is unknown.

Lag in seconds is the age of the oldest record that is not yet copied, by its own timestamp. If that record has been
fetched, or was refused, its batch has the timestamp. If not, the lag is the smaller of two upper bounds: the time since
the target had everything, and the age of the newest record that was copied. Without any of these it is unknown.

What is unknown is None, never zero and never an old value: the end of a log counts as known for `KNOWN_FOR_S` after it
was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.diagnostics import Severity, note
from heliograph.model import counted

if TYPE_CHECKING:
    from heliograph.diagnostics import Diagnostic
    from heliograph.model import TopicPartition
    from heliograph.status.windows import PartitionWindow

KNOWN_FOR_S = 8.0
STALLED_AFTER_S = 8.0
SILENT_AFTER_S = 8.0
RETRY_SHOWN_S = 15.0  # more than a retry takes to fail again

_NOT_STARTED = note("it is not assigned to a running task yet")
_END_UNKNOWN = note("the end of the source's log is not known")
_NO_POSITION = note("it is not known which of the source's records the target has")
_OPEN_TRANSACTION = note("an open transaction of the source holds back what follows")


class PartitionState(StrEnum):
    """The states of a partition of a flow."""

    COPYING = "copying"
    CAUGHT_UP = "caught_up"
    WAITING = "waiting"  # for a slot, for the task, for a cluster: nothing has been refused
    RETRYING = "retrying"  # after an error that may pass
    FAILED = "failed"
    DONE = "done"  # copied up to the end offset of a copy that ends


_STATES = {
    Severity.NOTE: PartitionState.WAITING,
    Severity.WARNING: PartitionState.RETRYING,
    Severity.ERROR: PartitionState.FAILED,
}


@dataclass(slots=True)
class PartitionFacts:
    """The known facts about one partition. Times are seconds of the caller's clock; None is unknown or never.

    `held` is why no task copies it now, `task_issue` an issue of its whole task, such as a cluster that does not
    answer. `retried` is the last failure while it is tried again, until something has been copied: one that fails at
    every try must not look well in between.
    """

    failure: Diagnostic | None = None
    retried: Diagnostic | None = None
    retried_at: float = 0.0
    held: Diagnostic | None = None
    issue: Diagnostic | None = None
    task_issue: Diagnostic | None = None
    is_done: bool = False
    reported_at: float | None = None
    next_offset: int | None = None
    log_end: int | None = None
    log_end_at: float | None = None
    stable_end: int | None = None  # the first offset of the oldest open transaction, or the end of the log
    acked_at: float | None = None
    behind_since: float | None = None
    caught_up_at: float | None = None  # when the target last had everything that the source had
    pending_ms: int | None = None  # timestamp of the oldest record that was fetched and is not acknowledged
    copied_ms: int | None = None  # timestamp of the newest record that was copied

    def known_log_end(self, now: float) -> int | None:
        """Return the end of the source's log, unless it was read too long ago."""
        if self.log_end_at is None or now - self.log_end_at > KNOWN_FOR_S:
            return None
        return self.log_end

    def lag_records(self, now: float) -> int | None:
        """Return how many offsets of the source are not known to be on the target."""
        end = self.known_log_end(now)
        if end is None or self.next_offset is None or end < self.next_offset:
            return None
        return end - self.next_offset

    @property
    def is_held_back(self) -> bool:
        """Return whether what follows belongs to an open transaction of the source."""
        return self.next_offset is not None and self.stable_end is not None and self.next_offset >= self.stable_end

    def lag_seconds(self, now: float, now_ms: int) -> float | None:
        """Return the age of the oldest record that is not yet copied."""
        lag = self.lag_records(now)
        if not lag:
            return None if lag is None else 0.0
        if self.pending_ms is not None:
            return max(0, now_ms - self.pending_ms) / 1000
        bounds = []
        if self.caught_up_at is not None:
            bounds.append(now - self.caught_up_at)
        if self.copied_ms is not None:
            bounds.append(max(0, now_ms - self.copied_ms) / 1000)
        return min(bounds, default=None)

    def shown_failure(self, now: float) -> Diagnostic | None:
        """Return why it has failed, also while it is tried again."""
        if self.failure is not None or now - self.retried_at > RETRY_SHOWN_S:
            return self.failure
        return self.retried

    def retry(self, now: float) -> None:
        """Note that it is tried again."""
        self.failure, self.retried, self.retried_at = None, self.shown_failure(now), now

    def end_retry_if_copied(self, next_offset_before: int | None, now: float) -> None:
        """Forget the failure before a retry once more was copied, or nothing is left to copy."""
        is_ahead = None not in (self.next_offset, next_offset_before) and self.next_offset != next_offset_before
        has_all = self.lag_records(now) == 0 and self.log_end_at is not None and self.log_end_at > self.retried_at
        if self.failure is not None or self.is_done or is_ahead or has_all:
            self.retried = None

    def note_lag(self, now: float) -> None:
        """Note since when it is behind; to be called whenever something was learnt."""
        lag = self.lag_records(now)
        if lag == 0:
            self.behind_since, self.caught_up_at = None, self.log_end_at
        elif lag and self.behind_since is None:
            self.behind_since = now

    def stalled_s(self, now: float) -> float:
        """Return for how long it has been behind without an acknowledgement."""
        if self.behind_since is None:
            return 0.0
        return now - max(self.behind_since, self.acked_at or 0.0)


def judge(facts: PartitionFacts, now: float) -> tuple[PartitionState, Diagnostic | None]:
    """Return the state of a partition and its reason; one that has caught up or is done has none."""
    if facts.is_done and facts.failure is None:
        return PartitionState.DONE, None
    reason = facts.shown_failure(now) or facts.held or _silence(facts, now) or facts.issue or _stall(facts, now)
    if reason is not None:
        return _STATES[reason.severity], reason
    if facts.lag_records(now) == 0:
        return PartitionState.CAUGHT_UP, None
    return PartitionState.COPYING, _OPEN_TRANSACTION if facts.is_held_back else None


def _silence(facts: PartitionFacts, now: float) -> Diagnostic | None:
    """Return that nothing is known of its task, if so."""
    if facts.reported_at is None:
        return _NOT_STARTED
    silent_s = now - facts.reported_at
    return note(f"its task has not reported for {silent_s:.0f} s") if silent_s > SILENT_AFTER_S else None


def _stall(facts: PartitionFacts, now: float) -> Diagnostic | None:
    """Return why nothing moves although the source may have more, if so."""
    lag, stalled_s = facts.lag_records(now), facts.stalled_s(now)
    if lag is None:
        return facts.task_issue or (_END_UNKNOWN if facts.known_log_end(now) is None else _NO_POSITION)
    if lag == 0 or stalled_s < STALLED_AFTER_S or facts.is_held_back:
        return None
    return facts.task_issue or note(
        f"the target has acknowledged nothing for {stalled_s:.0f} s, and the source has {counted(lag, 'more record')}"
    )


class PartitionStatus(NamedTuple):
    """One partition of a flow at one moment. Times are seconds since 1970."""

    tp: TopicPartition
    remote_topic: str | None
    state: PartitionState
    since: float
    reason: Diagnostic | None
    next_offset: int | None
    log_end: int | None
    log_end_at: float | None
    lag_records: int | None
    lag_seconds: float | None
    acked_at: float | None
    records: int
    bytes: int
    stopped_since: float | None = None  # since then it has neither copied a record nor caught up
    window: PartitionWindow | None = None
    copied_ms: int | None = None  # timestamp of the newest record that was copied
