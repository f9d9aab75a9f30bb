"""The partitions of a flow as their tasks report them: one row for each, kept over restarts of tasks and flows."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.diagnostics import problem, warning
from heliograph.executor.contract.task_report import MEASURE_INTERVAL_S
from heliograph.status.flow_snapshot import Counts
from heliograph.status.partition_status import (
    KNOWN_FOR_S,
    PartitionFacts,
    PartitionState,
    PartitionStatus,
    judge,
)
from heliograph.status.windows import PartitionWindow, Stat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.diagnostics import Diagnostic
    from heliograph.executor.contract.task_report import PartitionReport
    from heliograph.model import TopicPartition


_SAMPLE_S = 30.0  # rates are over two samples, as those of Kafka's sensors
_RATES_FOR_S = 2 * _SAMPLE_S
_MEASURED_FOR_S = 2.5 * MEASURE_INTERVAL_S
_MOVING = (PartitionState.COPYING, PartitionState.CAUGHT_UP, PartitionState.DONE)


_NOTHING_COPIED = PartitionWindow()


class TaskRun(NamedTuple):
    """One run of a task; no two have the same."""

    task_id: str
    attempt: int


class _Sample(NamedTuple):
    """The counters at the begin of a sample."""

    at: float
    records: int
    bytes: int


@dataclass(slots=True)
class PartitionRow:
    """One partition of the flow.

    `run` is the one that has sent the report: counts of another are not those of the report that follows them.
    `taken_records` and `taken_bytes` are those of the newest report when it was taken: in tests its sender continues to
    write to it.
    """

    tp: TopicPartition
    remote_topic: str | None = None
    is_replicated: bool = True
    facts: PartitionFacts = field(default_factory=PartitionFacts)
    report: PartitionReport | None = None
    run: TaskRun | None = None
    finished: Counts = field(default_factory=Counts)  # of earlier runs
    state: PartitionState = PartitionState.WAITING
    since: float = 0.0
    reason: Diagnostic | None = None
    opening: int = 0  # the newest that its task was asked for
    first_opening: int = 0  # of the task that copies it now: what another reports is over
    stopped_since: float | None = None
    taken_records: int = 0
    taken_bytes: int = 0
    age_ms: Stat | None = None  # as last measured
    latency_ms: Stat | None = None
    measured_until: float = math.inf
    sample: _Sample | None = None
    sample_before: _Sample | None = None
    next_sample_at: float = -math.inf

    @property
    def counts(self) -> Counts:
        """The counters of all runs."""
        report = self.report
        if report is None:
            return self.finished
        before = self.finished
        return Counts(
            before.records + report.records,
            before.bytes + report.bytes,
            before.lost_offsets + report.lost_offsets,
            before.cut_offsets + report.cut_offsets,
            before.skipped_records + report.skipped_records,
        )

    def take(
        self,
        report: PartitionReport,
        run: TaskRun,
        task_issue: Diagnostic | None,
        unavailable: Diagnostic | None,
        now: float,
    ) -> bool:
        """Take the newest report of its task; return whether it has failed, and not as in the try before.

        An unavailable cluster explains more than the partition's last error.
        """
        if run != self.run:
            self.end_run()
        begins = self.report is None
        self.report, self.run = report, run
        if report.latency_ms is not None or report.age_ms is not None:
            self._measure(report.age_ms, report.latency_ms)
            self.measured_until = now + _MEASURED_FOR_S
        if now >= self.next_sample_at:
            self._begin_sample(now, begins=begins)
        facts = self.facts
        facts.reported_at = now
        if report.opening < self.opening:
            return False  # its task has not begun with it again yet: only the counters are of interest
        failure_before, offset_before = facts.shown_failure(now), facts.next_offset
        facts.held = None
        facts.task_issue = task_issue
        facts.failure = problem(report.failure) if report.failure else None
        facts.issue = (unavailable or warning(report.issue)) if report.issue else None
        facts.stable_end = report.stable_end
        facts.is_done = report.is_done and report.pending_ms is None and report.issue is None
        facts.next_offset = report.next_offset
        if report.acked_age_ms is not None:
            facts.acked_at = now - report.acked_age_ms / 1000
        facts.pending_ms = report.pending_ms
        facts.copied_ms = report.copied_ms if report.copied_ms is not None else facts.copied_ms
        if report.log_end is not None and report.log_end_age_ms is not None:
            self.take_log_end(report.log_end, now - report.log_end_age_ms / 1000)
        facts.note_lag(now)
        facts.end_retry_if_copied(offset_before, now)
        return facts.failure is not None and facts.failure != failure_before

    def _measure(self, age_ms: Stat | None, latency_ms: Stat | None) -> None:
        self.age_ms = age_ms or _last_only(self.age_ms)
        self.latency_ms = latency_ms or _last_only(self.latency_ms)

    def _begin_sample(self, now: float, *, begins: bool) -> None:
        """Begin a sample with a report, which may be the first of its run; one from before a pause is forgotten."""
        before = None if self.sample is None or now - self.sample.at > _RATES_FOR_S else self.sample
        counts = self.finished if before is None and begins else self.counts
        self.sample_before, self.sample = before, _Sample(now, counts.records, counts.bytes)
        self.next_sample_at = now + _SAMPLE_S

    def take_log_end(self, log_end: int, at: float) -> None:
        """Take the end of the source's log as it was at a time, unless a newer one is known."""
        if self.facts.log_end_at is None or at >= self.facts.log_end_at:
            self.facts.log_end, self.facts.log_end_at = log_end, at

    def end_run(self) -> None:
        """Keep the counts of a run that has ended: the next one counts from zero."""
        self.finished = self.counts
        self.report = self.run = None
        self.taken_records = self.taken_bytes = 0
        self._measure(None, None)

    def window(self, counts: Counts, now: float) -> PartitionWindow | None:
        """Return the rates and times of the last minute; None if its task should report and does not.

        As Kafka's rates do, those of a partition that has just begun are over one sample at least.
        """
        facts = self.facts
        if facts.held is None and facts.reported_at is not None and now - facts.reported_at > KNOWN_FOR_S:
            return None
        if now > self.measured_until:
            self._measure(None, None)
        if self.sample is None:
            return _NOTHING_COPIED
        if now - self.sample.at > _RATES_FOR_S:  # no report since: it is held, or it would be silent
            return PartitionWindow(0.0, 0.0, self.age_ms, self.latency_ms)
        oldest = self.sample_before or self.sample
        elapsed_s = max(_SAMPLE_S, now - oldest.at)
        records, size = counts.records - oldest.records, counts.bytes - oldest.bytes
        return PartitionWindow(records / elapsed_s, size / elapsed_s, self.age_ms, self.latency_ms)

    def judge(self, now: float) -> None:
        """Decide its state."""
        facts = self.facts
        facts.note_lag(now)
        state, self.reason = judge(facts, now)
        if state is not self.state or not self.since:
            self.state, self.since = state, now
        if state not in _MOVING:
            self.stopped_since = now if self.stopped_since is None else self.stopped_since
        elif self.stopped_since is not None:
            # A task that starts and fails again and again moves in between only if it gets or learns anything.
            news_at = facts.acked_at if state is PartitionState.COPYING else facts.log_end_at
            has_news = news_at is not None and news_at > self.stopped_since
            if has_news or facts.is_held_back or state is PartitionState.DONE:
                self.stopped_since = None

    def status(self, now: float, shift: float, now_ms: int) -> PartitionStatus:
        """Return it at this moment; `shift` turns the time of our clock into seconds since 1970."""
        self.judge(now)
        facts, counts = self.facts, self.counts
        log_end = facts.known_log_end(now)
        return PartitionStatus(
            tp=self.tp,
            remote_topic=self.remote_topic,
            state=self.state,
            since=self.since + shift,
            reason=self.reason,
            next_offset=facts.next_offset,
            log_end=log_end,
            log_end_at=None if log_end is None or facts.log_end_at is None else facts.log_end_at + shift,
            lag_records=facts.lag_records(now),
            lag_seconds=facts.lag_seconds(now, now_ms),
            acked_at=None if facts.acked_at is None else facts.acked_at + shift,
            records=counts.records,
            bytes=counts.bytes,
            stopped_since=None if self.stopped_since is None else self.stopped_since + shift,
            window=self.window(counts, now),
            copied_ms=facts.copied_ms,
        )


def _last_only(stat: Stat | None) -> Stat | None:
    """Return a measured time whose window has no value any more."""
    return stat if stat is None or stat.mean is None else Stat(stat.last)


class _Rows(dict["TopicPartition", PartitionRow]):
    """Rows that are made on first use."""

    def __missing__(self, tp: TopicPartition) -> PartitionRow:
        row = self[tp] = PartitionRow(tp)
        return row


class PartitionRows:
    """All partitions that the flow copies, or has copied. Hold `lock` to read `by_tp`; the methods take it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.lock = threading.Lock()
        self.by_tp: dict[TopicPartition, PartitionRow] = _Rows()
        self.are_found = False  # by the current run of the flow
        self._clock = clock
        self._new_failures: dict[TopicPartition, str] = {}

    # --- what tasks report --------------------------------------------------------------------------------------------

    def take(
        self,
        run: TaskRun,
        reports: Iterable[PartitionReport],
        task_issue: Diagnostic | None,
        unavailable: Diagnostic | None,
    ) -> tuple[int, int]:
        """Take the newest reports of a run's partitions; return the records and bytes that are new in them."""
        records = size = 0
        with self.lock:
            now = self._clock()
            for each in reports:
                row = self.by_tp[each.tp]
                if each.opening < row.first_opening:
                    continue
                if row.take(each, run, task_issue, unavailable, now):
                    self._new_failures[each.tp] = str(each.failure)
                records += each.records - row.taken_records
                size += each.bytes - row.taken_bytes
                row.taken_records, row.taken_bytes = each.records, each.bytes
        return records, size

    def take_new_failures(self) -> dict[TopicPartition, str]:
        """Return the partitions that have failed since the last call; not those that were tried again in vain."""
        with self.lock:
            failures, self._new_failures = self._new_failures, {}
        return failures

    def task_ended(self, run: TaskRun, tps: Iterable[TopicPartition]) -> None:
        """Keep the counts of a run that has ended, also of partitions that were taken away; its task has these now."""
        with self.lock:
            for row in self.by_tp.values():
                if row.run == run:
                    row.end_run()
            for row in (self.by_tp[tp] for tp in tps if tp in self.by_tp):
                row.facts.issue = row.facts.task_issue = None

    # --- what the flow's thread reports -------------------------------------------------------------------------------

    def hold(self, tps: Iterable[TopicPartition], why: Diagnostic) -> None:
        """Note why no task copies these partitions now: a note is a wait, a warning a retry, an error is final."""
        with self.lock:
            for tp in tps:
                self.by_tp[tp].facts.held = why

    def set_replicated(self, remote_topics: Mapping[TopicPartition, str | None]) -> None:
        """Set the partitions that the flow copies from now on, with their remote topics; of others counts are kept."""
        with self.lock:
            for row in self.by_tp.values():
                row.is_replicated = row.tp in remote_topics
            for tp, remote_topic in remote_topics.items():
                self.by_tp[tp].remote_topic = remote_topic
            self.are_found = True

    def retry(self, tps: Iterable[TopicPartition]) -> None:
        """Note that partitions are tried again; those that had failed are shown as failed until they copy."""
        with self.lock:
            for row in (self.by_tp[tp] for tp in tps if tp in self.by_tp):
                row.facts.retry(self._clock())

    def open_again(
        self,
        openings: Mapping[TopicPartition, int],
        why: Diagnostic,
        *,
        is_requested: bool = False,
        is_released: bool = False,
    ) -> None:
        """Note that tasks are to begin with partitions again: what they report of earlier openings is over.

        If a user has requested it, their failures are over, too. If a task has released them, another will begin with
        them: what the first one has counted is kept, and what it still reports about them is ignored.
        """
        with self.lock:
            for tp, opening in openings.items():
                row = self.by_tp[tp]
                if is_released:
                    row.end_run()
                    row.first_opening, row.facts.issue, row.facts.task_issue = opening, None, None
                row.opening, row.facts.held = opening, why
                row.facts.retry(self._clock())
                if is_requested:
                    row.facts.retried = None

    def restart(self) -> None:
        """Forget all of a run of the flow that has ended but its counts."""
        with self.lock:
            self.are_found = False
            for row in self.by_tp.values():
                row.end_run()
                row.facts, row.stopped_since = PartitionFacts(), None
                row.opening = row.first_opening = 0

    # --- what look-ups report -----------------------------------------------------------------------------------------

    def without_fresh_log_end(self, within_s: float) -> list[TopicPartition]:
        """Return the partitions whose end of the source's log was read longer ago than this."""
        with self.lock:
            oldest = self._clock() - within_s
            return [
                tp
                for tp, row in self.by_tp.items()
                if row.is_replicated and (row.facts.log_end_at is None or row.facts.log_end_at < oldest)
            ]

    def set_log_ends(self, log_ends: Mapping[TopicPartition, int], read_at: float) -> None:
        """Take the ends of the source's logs that were asked for; `read_at` is the time of the question."""
        with self.lock:
            for tp, log_end in log_ends.items():
                if tp in self.by_tp:
                    self.by_tp[tp].take_log_end(log_end, read_at)
                    self.by_tp[tp].facts.note_lag(self._clock())

    # --- for readers --------------------------------------------------------------------------------------------------

    def statuses(self) -> tuple[PartitionStatus, ...]:
        """Return the replicated partitions of this moment, by topic and number."""
        with self.lock:
            now, wall = self._clock(), time.time()
            rows = sorted((row for row in self.by_tp.values() if row.is_replicated), key=lambda row: row.tp)
            return tuple(row.status(now, wall - now, int(wall * 1000)) for row in rows)

    def failures(self, tps: Iterable[TopicPartition] | None = None) -> list[str]:
        """Return the sentence of each of these partitions that has failed; None: of all that are replicated."""
        with self.lock:
            now = self._clock()
            if tps is None:
                rows = [row for row in self.by_tp.values() if row.is_replicated]
            else:
                rows = [self.by_tp[tp] for tp in sorted(tps) if tp in self.by_tp]
            return [str(failure) for row in rows if (failure := row.facts.shown_failure(now))]

    def failed_of(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of these partitions that have failed and are not being tried again."""
        with self.lock:
            return [tp for tp in sorted(tps) if tp in self.by_tp and self.by_tp[tp].facts.failure]

    def next_offset_of(self, tp: TopicPartition) -> int | None:
        """Return the first source offset that the target is not known to have."""
        with self.lock:
            return self.by_tp[tp].facts.next_offset if tp in self.by_tp else None
