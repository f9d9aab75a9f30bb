"""One task of a flow as the driver sees it: what it copies, what runs it, and whether and when it is started again.

Nothing here starts anything; `source_flow` does what `restart_at` says. A task that has failed is FAILED until its
successor has spoken up, with the reason: whoever watches states must see it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from heliograph.driver.steps.restart_policy import RestartLimits, Restarts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.driver.spark.spark_engine import RunningTask
    from heliograph.model import TopicPartition
    from heliograph.wire.records.connect_status import State


NO_SLOT = "no slot of Spark has taken it for a minute: all are busy, or no executor starts. Raise --master."
_SLOT_PATIENCE_S = 60.0
_MOST_FAILURES = 20  # a status is a record, and its topic takes none of a megabyte


class TaskState(NamedTuple):
    """What a task is doing, in Connect's words, and why it does not run, or not well."""

    number: int
    state: State
    trace: str | None
    tps: frozenset[TopicPartition]


@dataclass(slots=True)
class FlowTask:
    """One slot of the connector."""

    number: int
    restarts: Restarts
    partition_restarts: Restarts
    tps: frozenset[TopicPartition] = frozenset()
    departed: frozenset[TopicPartition] = frozenset()
    running: RunningTask | None = None
    has_reported: bool = False
    is_beginning_told: bool = False
    started_at: float = 0.0
    restart_at: float | None = None
    retry_partitions_at: float | None = None
    is_done: bool = False
    is_given_up: bool = False
    is_asked_to_restart: bool = False
    is_waiting_told: bool = False
    trace: str | None = None

    @classmethod
    def new(cls, number: int, limits: RestartLimits) -> FlowTask:
        """A task that has nothing yet."""
        return cls(number, Restarts(limits), Restarts.of_partitions(limits))

    def limit(self, limits: RestartLimits) -> None:
        """Other limits than before; what has failed is tried anew."""
        self.restarts, self.partition_restarts = Restarts(limits), Restarts.of_partitions(limits)
        self.retry_partitions_at = None
        if self.is_given_up:
            self.restart_by_hand()

    @property
    def task_id(self) -> str:
        """The name of what runs; empty where nothing does."""
        running = self.running  # another thread may take it away
        return "" if running is None else running.spec.task_id

    def state(self, failures: Sequence[str], issue: str | None = None) -> TaskState:
        """What to tell of it: `failures` of its partitions, or what troubles it while it goes on trying."""
        is_silent = not self.has_reported
        if self.running is None:
            word: State = "FAILED" if self.trace else "UNASSIGNED" if self.restart_at is None else "RESTARTING"
            return TaskState(self.number, word, self.trace, self.tps)
        if self.is_asked_to_restart or (is_silent and self.trace):
            return TaskState(self.number, "RESTARTING", self.trace, self.tps)
        if is_silent:
            return TaskState(self.number, "UNASSIGNED", NO_SLOT if self._waits_for_slot else None, self.tps)
        if failures:
            more = [f"and {len(failures) - _MOST_FAILURES} more"] if len(failures) > _MOST_FAILURES else []
            return TaskState(self.number, "FAILED", "\n".join([*failures[:_MOST_FAILURES], *more]), self.tps)
        return TaskState(self.number, "RUNNING", issue, self.tps)

    @property
    def is_due(self) -> bool:
        """Whether it is to be started now."""
        return self.restart_at is not None and self.restart_at <= time.monotonic()

    @property
    def _waits_for_slot(self) -> bool:
        is_waiting = self.running is not None and not self.has_reported
        return is_waiting and time.monotonic() - self.started_at >= _SLOT_PATIENCE_S

    def waits_for_slot_is_news(self) -> bool:
        """Whether it has waited for long since its last start, said once."""
        was_reported, self.is_waiting_told = self.is_waiting_told, self._waits_for_slot
        return self.is_waiting_told and not was_reported

    def take_over(self, tps: frozenset[TopicPartition]) -> bool:
        """Another share of the partitions; True where it must begin again: a running one cannot be given back what was
        taken away from it, since what it sent of it has used up sequence numbers.
        """
        self.departed |= self.tps - tps
        self.tps = tps
        if self.running is None or not self.departed & tps:
            return False
        self.ask_to_restart()
        return True

    def begin(self) -> None:
        """It is started."""
        self.has_reported = self.is_beginning_told = False
        self.departed = frozenset()
        self.restart_at = None
        self.started_at = time.monotonic()

    def reported(self) -> None:
        """It has spoken up."""
        self.has_reported, self.trace = True, None

    def failed(self, reason: str) -> float | None:
        """It has ended on its own; the pause before its next start, or None where it is given up."""
        now = time.monotonic()
        self.trace, self.is_asked_to_restart = reason, False
        pause_s = self.restarts.pause_s(now - self.started_at)
        self.is_given_up = pause_s is None
        self.restart_at = None if pause_s is None else now + pause_s
        return pause_s

    def restart_by_hand(self) -> None:
        """Somebody wants it to begin again: what has failed before counts no more."""
        self.restarts.forgive()
        self.partition_restarts.forgive()
        self.retry_partitions_at = None
        self.is_given_up = False
        self.ask_to_restart()

    def ask_to_restart(self) -> None:
        """Begin again: at once where it stands still, else as soon as it has ended."""
        if self.running is None:
            self.restart_at, self.trace = time.monotonic(), None
        else:
            self.is_asked_to_restart = True

    def ended_as_asked(self) -> None:
        """It has ended because somebody wants it to begin again."""
        self.is_asked_to_restart, self.trace, self.restart_at = False, None, time.monotonic()

    def is_due_for_failed_partitions(self, failures: Sequence[str]) -> bool:
        """Whether to begin again because some partitions have failed; asked again and again."""
        if self.running is None or self.is_asked_to_restart or not self.has_reported:
            return False
        now = time.monotonic()
        if not failures:
            self.retry_partitions_at = None
        elif self.retry_partitions_at is None:
            pause_s = self.partition_restarts.pause_s(now - self.started_at)
            self.retry_partitions_at = float("inf") if pause_s is None else now + pause_s
        elif now >= self.retry_partitions_at:
            self.retry_partitions_at = None
            return True
        return False
