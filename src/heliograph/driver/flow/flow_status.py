"""The state of a flow as the driver knows it: its partitions, rates, issues, and log lines.

`FlowStatus` collects what the flow's thread, its tasks and the look-ups of log ends report, and may be read from any
thread: by the screen of `run`, REST and the log, which all read its `FlowSnapshot`. `ProgressLines` logs the state of
a flow now and then, for readers of a log.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.diagnostics import problem, warning
from heliograph.driver.steps.issues import StepIssues, TaskIssues, brief
from heliograph.model import counted
from heliograph.status.flow_snapshot import Counts, FlowSnapshot, Lag, Rates, stall_reasons
from heliograph.status.partition_status import (
    KNOWN_FOR_S,
    PartitionFacts,
    PartitionState,
    PartitionStatus,
    judge,
)
from heliograph.status.progress_log import LineKind, ProgressLog
from heliograph.status.rate_samples import RateSamples, sum_of_rates
from heliograph.status.task_status import TaskRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from heliograph.diagnostics import Diagnostic
    from heliograph.driver.flow.flow_task import TaskState
    from heliograph.driver.steps.issues import Change
    from heliograph.executor.contract.task_report import PartitionReport, TaskReport
    from heliograph.executor.contract.task_spec import PartitionSpec
    from heliograph.model import Flow, TopicPartition
    from heliograph.status.losses import Loss


log = logging.getLogger(__name__)

_TASK_STEP = "task "
_SAMPLE_INTERVAL_S = 1.0  # a sample walks all partitions: not for each report of each task
_LOOK_INTERVAL_S = 5.0  # of the log; a look walks all partitions
_STARTING = "STARTING"
_LOOPS = ("checkpoints", "heartbeats")
_MOVING = (PartitionState.COPYING, PartitionState.CAUGHT_UP, PartitionState.DONE)
_SHARED_S = 0.5  # a snapshot of ten thousand partitions takes about 0.1 s


class SourceStep(StrEnum):
    """The steps of a source connector."""

    START = "start"
    TOPICS = "topics"
    ACLS = "ACLs"
    CONFIGS = "configs"
    SYNCS = "offset syncs"
    RESTARTS = "restarts"


def task_step(number: int) -> str:
    """Return the name under which the issues of a task that was given up are kept."""
    return f"{_TASK_STEP}{number}"


def loop_name(flow: Flow, what: str) -> str:
    """Return the name of the `checkpoints` or `heartbeats` of a flow, with which the names of their steps begin."""
    return f"{flow} {what}"


def prevents_copying(step: str) -> bool:
    """Return whether records are not copied while a step has issues: topics do not exist, or a task was given up."""
    return step == SourceStep.TOPICS or step.startswith(_TASK_STEP)


@dataclass(frozen=True, slots=True)
class TopicRow:
    """One topic of a flow on the screen."""

    flow: str
    topic: str
    partitions: int
    failed_partitions: int
    records: int
    bytes: int
    records_per_s: float
    bytes_per_s: float
    lag: Lag
    latency_ms: float | None


@dataclass(slots=True)
class _Row:
    """One partition of the flow."""

    tp: TopicPartition
    remote_topic: str | None = None
    is_replicated: bool = True
    facts: PartitionFacts = field(default_factory=PartitionFacts)
    report: PartitionReport | None = None
    finished: Counts = field(default_factory=Counts)  # of earlier runs
    state: PartitionState = PartitionState.WAITING
    since: float = 0.0
    reason: Diagnostic | None = None
    opening: int = 0  # the newest that its task was asked for
    stopped_since: float | None = None

    @property
    def counts(self) -> Counts:
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
        self, report: PartitionReport, task_issue: Diagnostic | None, unavailable: Diagnostic | None, now: float
    ) -> bool:
        """Take the newest report of its task; return whether it has failed, and not as in the try before.

        An unavailable cluster explains more than the partition's last error.
        """
        self.report = report
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

    def take_log_end(self, log_end: int, at: float) -> None:
        """Take the end of the source's log as it was at a time, unless a newer one is known."""
        if self.facts.log_end_at is None or at >= self.facts.log_end_at:
            self.facts.log_end, self.facts.log_end_at = log_end, at

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


class _OfTask(NamedTuple):
    """The part of the newest report of a task that holds for all its partitions."""

    reported_at: float
    unavailable_clusters: tuple[str, ...]
    issues: tuple[Diagnostic, ...]


class FlowStatus:
    """Collects what is known about one flow; safe to use from any thread. Counts survive the restart of a task.

    `losses` are those that the last run of the flow knew when it ended.
    """

    def __init__(self, flow: Flow, clock: Callable[[], float] = time.monotonic) -> None:
        self.flow = flow
        self.losses: tuple[Loss, ...] = ()
        self._clock = clock
        self._state, self._state_since = _STARTING, clock()
        self._step_issues = StepIssues()
        self._task_issues = TaskIssues(flow)
        self._has_recovered = False
        self._new_failures: dict[TopicPartition, str] = {}
        self._ended_attempts: dict[str, int] = {}
        self._of_tasks: dict[str, _OfTask] = {}
        self._lock = threading.Lock()
        self._rows: dict[TopicPartition, _Row] = {}
        self._samples: dict[str, RateSamples] = {}
        self._sampled_at = -math.inf
        self._sharing = threading.Lock()
        self._shared: FlowSnapshot | None = None
        self._shared_at = 0.0

    # --- what the flow's thread reports -------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state of the flow, in Connect's words."""
        return self._state

    @state.setter
    def state(self, state: str) -> None:
        if state != self._state:
            self._state, self._state_since = state, self._clock()

    def note(self, step: str, issues: Iterable[str]) -> Change:
        """Keep the issues of a step until its next success; return what has changed."""
        return self._step_issues.note(step, issues)

    def take(self, task_id: str, report: TaskReport, attempt: int = 0) -> None:
        """Keep a task's newest report as it arrives, unless its run has ended; the flow's thread may be busy."""
        with self._lock:
            if attempt and attempt <= self._ended_attempts.get(task_id, 0):
                return
            now = self._clock()
            of_task = [*report.unavailable_clusters, *report.issue]
            task_issue = warning(brief(of_task)) if of_task else None
            unavailable = warning(brief(report.unavailable_clusters)) if report.unavailable_clusters else None
            for each in report.partitions:
                if self._row(each.tp).take(each, task_issue, unavailable, now):
                    self._new_failures[each.tp] = str(each.failure)
            shared = tuple(each for each in (task_issue, unavailable) if each is not None)
            self._of_tasks[task_id] = _OfTask(now, tuple(report.unavailable_clusters), shared)
            logged = report.unavailable_clusters or report.issue  # the rest follows from it, and differs by task
            others = [*(report.issue if report.unavailable_clusters else ()), *_waiting(report)]
            self._has_recovered |= self._task_issues.note(task_id, logged, others)
            self._sample_if_due(now)

    def take_recovered(self) -> bool:
        """Return whether a lasting issue of a task has cleared since the last call."""
        with self._lock:
            has_recovered, self._has_recovered = self._has_recovered, False
        return has_recovered

    def take_new_failures(self) -> dict[TopicPartition, str]:
        """Return the partitions that have failed since the last call; not those that were tried again in vain."""
        with self._lock:
            failures, self._new_failures = self._new_failures, {}
        return failures

    def task_ended(self, task_id: str, tps: Iterable[TopicPartition], attempt: int = 0) -> None:
        """Keep the counts of a task that has ended: the next run counts from zero, and a late report changes none."""
        with self._lock:
            self._ended_attempts[task_id] = attempt
            self._task_issues.drop(task_id)
            self._of_tasks.pop(task_id, None)
            for row in (self._rows[tp] for tp in tps if tp in self._rows):
                row.finished = row.counts
                row.report = None
                row.facts.issue = row.facts.task_issue = None

    def hold(self, tps: Iterable[TopicPartition], why: Diagnostic) -> None:
        """Note why no task copies these partitions now: a note is a wait, a warning a retry, an error is final."""
        with self._lock:
            for tp in tps:
                self._row(tp).facts.held = why

    def set_replicated(self, remote_topics: Mapping[TopicPartition, str | None]) -> None:
        """Set the partitions that the flow copies from now on, with their remote topics; of others counts are kept."""
        with self._lock:
            for row in self._rows.values():
                row.is_replicated = row.tp in remote_topics
            for tp, remote_topic in remote_topics.items():
                self._row(tp).remote_topic = remote_topic

    def retry(self, tps: Iterable[TopicPartition]) -> None:
        """Note that partitions are tried again; those that had failed are shown as failed until they copy."""
        with self._lock:
            for row in (self._rows[tp] for tp in tps if tp in self._rows):
                row.facts.retry(self._clock())

    def open_again(
        self, openings: Mapping[TopicPartition, int], why: Diagnostic, *, is_requested: bool = False
    ) -> None:
        """Note that tasks are to begin with partitions again: what they report of earlier openings is over.

        If a user has requested it, their failures are over, too.
        """
        with self._lock:
            for tp, opening in openings.items():
                row = self._row(tp)
                row.opening, row.facts.held = opening, why
                row.facts.retry(self._clock())
                if is_requested:
                    row.facts.retried = None

    def restart(self) -> None:
        """Forget all of a run that has ended but its counts and losses: the next run reports into the same status."""
        for step in self.issues:
            if step in list(SourceStep) or step.startswith(_TASK_STEP):
                self.note(step, ())
        with self._lock:
            for row in self._rows.values():
                row.finished, row.report, row.facts, row.opening = row.counts, None, PartitionFacts(), 0
                row.stopped_since = None
            self._samples.clear()
        self.state = _STARTING
        with self._sharing:
            self._shared = None

    # --- what look-ups report -----------------------------------------------------------------------------------------

    def without_fresh_log_end(self, within_s: float) -> list[TopicPartition]:
        """Return the partitions whose end of the source's log was read longer ago than this."""
        with self._lock:
            oldest = self._clock() - within_s
            return [
                tp
                for tp, row in self._rows.items()
                if row.is_replicated and (row.facts.log_end_at is None or row.facts.log_end_at < oldest)
            ]

    def set_log_ends(self, log_ends: Mapping[TopicPartition, int], read_at: float) -> None:
        """Take the ends of the source's logs that were asked for; `read_at` is the time of the question."""
        with self._lock:
            for tp, log_end in log_ends.items():
                if tp in self._rows:
                    self._rows[tp].take_log_end(log_end, read_at)
                    self._rows[tp].facts.note_lag(self._clock())

    # --- for readers --------------------------------------------------------------------------------------------------

    @property
    def issue(self) -> str | None:
        """The first issues of this moment, of steps and of tasks, as one text; None if there is none."""
        return brief(self._all_issues()) or None

    def issue_of(self, task_id: str) -> str | None:
        """Return the issue that a task has had for a while."""
        with self._lock:
            return self._task_issues.lasting(task_id)

    @property
    def issues(self) -> dict[str, tuple[str, ...]]:
        """The issues of each step that has any."""
        return self._step_issues.issues

    @property
    def failures(self) -> list[str]:
        """The sentence of each failed partition."""
        with self._lock:
            return self._shown_failures(self._current())

    def failures_of(self, tps: Iterable[TopicPartition]) -> list[str]:
        """Return the sentence of each of these partitions that has failed."""
        with self._lock:
            return self._shown_failures(self._rows[tp] for tp in sorted(tps) if tp in self._rows)

    def _shown_failures(self, rows: Iterable[_Row]) -> list[str]:
        now = self._clock()
        return [str(failure) for row in rows if (failure := row.facts.shown_failure(now))]

    def next_offset_of(self, tp: TopicPartition) -> int | None:
        """Return the first source offset that the target is not known to have."""
        with self._lock:
            return self._rows[tp].facts.next_offset if tp in self._rows else None

    def failed_of(self, tps: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return those of these partitions that have failed and are not being tried again."""
        with self._lock:
            return [tp for tp in sorted(tps) if tp in self._rows and self._rows[tp].facts.failure]

    @property
    def counts(self) -> Counts:
        """The counters of all partitions, also of those that are no longer replicated."""
        with self._lock:
            return Counts.sum_of(row.counts for row in self._rows.values())

    @property
    def lag(self) -> Lag:
        """The offsets of the source that the target is not known to have."""
        return Lag.of(self.partitions())

    def records_by_topic(self) -> dict[str, int]:
        """Return the number of records copied, by topic."""
        counts: dict[str, int] = {}
        with self._lock:
            for tp, row in self._rows.items():
                counts[tp.topic] = counts.get(tp.topic, 0) + row.counts.records
        return counts

    def partitions(self) -> tuple[PartitionStatus, ...]:
        """Return the partitions of this moment, by topic and number."""
        with self._lock:
            now, wall = self._clock(), time.time()
            shift = wall - now
            rows = sorted(self._current(), key=lambda row: row.tp)
            return tuple(self._status_of(row, now, shift, int(wall * 1000)) for row in rows)

    def snapshot(
        self, name: str, connector: str, tasks: Sequence[TaskState], suspended_as: str | None = None
    ) -> FlowSnapshot:
        """Return the whole flow at this moment. One that is suspended on request is shown as that, and is ready."""
        partitions = self.partitions()
        with self._lock:
            now = self._clock()
            unavailable = self._unavailable_clusters(now)
            of_tasks = frozenset(issue for task in self._of_tasks.values() for issue in task.issues)
            rates = sum_of_rates(samples.rates() for samples in self._samples.values())
        wall = time.time()
        return FlowSnapshot(
            name=name,
            connector=connector,
            flow=self.flow,
            state=suspended_as or self._state,
            since=wall - (now - self._state_since),
            at=wall,
            issues=tuple(self._all_issues(without=tuple(loop_name(self.flow, what) for what in _LOOPS))),
            unready=() if suspended_as else self._unready(unavailable, partitions, wall),
            partitions=partitions,
            tasks=tuple(TaskRow(task.number, task.state, task.trace, task.tps) for task in tasks),
            counts=self.counts,
            rates=rates,
            losses=self.losses,
            task_issues=of_tasks,
        )

    def shared_snapshot(
        self,
        name: str,
        connector: str,
        tasks: Callable[[], Sequence[TaskState]] = tuple,
        suspended_as: str | None = None,
    ) -> FlowSnapshot:
        """Return a snapshot that callers within a short time share.

        Many requests for ten thousand partitions must not occupy a core.
        """
        with self._sharing:
            now, shared = time.monotonic(), self._shared
            if shared is None or now - self._shared_at > _SHARED_S or shared.connector != connector:
                shared = self._shared = self.snapshot(name, connector, tasks(), suspended_as)
                self._shared_at = now
            return shared

    def rows(self) -> list[TopicRow]:
        """Return one row per topic."""
        by_topic: dict[str, list[PartitionStatus]] = {}
        for partition in self.partitions():
            by_topic.setdefault(partition.tp.topic, []).append(partition)
        with self._lock:
            rates = {topic: self._samples.get(topic, RateSamples()).rates() for topic in by_topic}
        return [self._topic_row(topic, rows, rates[topic]) for topic, rows in by_topic.items()]

    def _topic_row(self, topic: str, rows: list[PartitionStatus], rates: Rates) -> TopicRow:
        return TopicRow(
            flow=str(self.flow),
            topic=topic,
            partitions=len(rows),
            failed_partitions=sum(row.state is PartitionState.FAILED for row in rows),
            records=sum(row.records for row in rows),
            bytes=sum(row.bytes for row in rows),
            records_per_s=rates.records_per_s,
            bytes_per_s=rates.bytes_per_s,
            lag=Lag.of(rows),
            latency_ms=rates.latency_ms,
        )

    def _status_of(self, row: _Row, now: float, shift: float, now_ms: int) -> PartitionStatus:
        """Return one partition; `shift` turns the time of our clock into seconds since 1970."""
        row.judge(now)
        facts, counts = row.facts, row.counts
        log_end = facts.known_log_end(now)
        return PartitionStatus(
            tp=row.tp,
            remote_topic=row.remote_topic,
            state=row.state,
            since=row.since + shift,
            reason=row.reason,
            next_offset=facts.next_offset,
            log_end=log_end,
            log_end_at=None if log_end is None or facts.log_end_at is None else facts.log_end_at + shift,
            lag_records=facts.lag_records(now),
            lag_seconds=facts.lag_seconds(now, now_ms),
            acked_at=None if facts.acked_at is None else facts.acked_at + shift,
            records=counts.records,
            bytes=counts.bytes,
            stopped_since=None if row.stopped_since is None else row.stopped_since + shift,
        )

    def _unready(
        self, unavailable: Sequence[str], partitions: Sequence[PartitionStatus], now: float
    ) -> tuple[str, ...]:
        if self._state not in ("RUNNING", "STOPPING", "STOPPED", "DONE"):
            issues = self.issues.get(SourceStep.START, ())
            return issues or (f"the flow is {self._state}",)
        if unavailable:
            return tuple(unavailable)
        return stall_reasons(partitions, now) if partitions else self.issues.get(SourceStep.TOPICS, ())

    def _unavailable_clusters(self, now: float) -> list[str]:
        """Return the clusters that a task has found unavailable and that lasts; its report must not be old."""
        return list(
            dict.fromkeys(
                cluster
                for task_id, task in self._of_tasks.items()
                if now - task.reported_at <= KNOWN_FOR_S and self._task_issues.lasting(task_id) is not None
                for cluster in task.unavailable_clusters
            )
        )

    def _all_issues(self, without: tuple[str, ...] = ()) -> list[str]:
        with self._lock:
            of_tasks = self._task_issues.texts
        steps = [issues for step, issues in self.issues.items() if not step.startswith(without)]
        return [*(issue for issues in steps for issue in issues), *of_tasks]

    def _row(self, tp: TopicPartition) -> _Row:
        row = self._rows.get(tp)
        if row is None:
            row = self._rows[tp] = _Row(tp)
        return row

    def _current(self) -> list[_Row]:
        return [row for row in self._rows.values() if row.is_replicated]

    def _sample_if_due(self, now: float) -> None:
        if now - self._sampled_at < _SAMPLE_INTERVAL_S:
            return
        self._sampled_at = now
        sums: dict[str, list[int]] = {}
        for tp, row in self._rows.items():
            row.judge(now)
            counts = row.counts
            total = sums.setdefault(tp.topic, [0, 0, 0, 0])
            total[0] += counts.records
            total[1] += counts.bytes
            if row.report is not None:
                total[2] += row.report.latency_sum_ms
                total[3] += row.report.latency_count
        for topic, (records, size, latency_sum, latency_count) in sums.items():
            self._samples.setdefault(topic, RateSamples()).add(now, records, size, latency_sum, latency_count)


class ProgressLines:
    """Logs the state of a flow now and then, for readers of a log; there is no screen beside it."""

    def __init__(self, name: str, status: FlowStatus, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._status, self._clock = name, status, clock
        self._lines = ProgressLog(clock(), status.counts)
        self._look_at = clock() + _LOOK_INTERVAL_S
        self._fields = {"flow": name}

    def report(self) -> None:
        """Log the lines that are due; to be called often."""
        now = self._clock()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_INTERVAL_S
        for kind, text, topic, partition in self._lines.lines(self._status.snapshot(self._name, "", ()), now):
            level = logging.WARNING if kind is LineKind.BEGINS else logging.INFO
            fields = {**self._fields, "topic": topic, "partition": partition}
            log.log(level, "%s: %s", self._name, text, extra=fields)


def resume_summary(partitions: Iterable[PartitionSpec], rows: Iterable[PartitionReport]) -> str:
    """Return where the partitions of a task resume: by their specs, and by what the task found on the target."""
    positions = [partition.position for partition in partitions]
    committed = sum(position is not None for position in positions)
    parts = [f"{committed} after the committed offset"] if committed else []
    if committed < len(positions):
        parts.append(f"{len(positions) - committed} without source offsets")
    text = f"begins with {counted(len(positions), 'partition')}: {', '.join(parts)}"
    already_there = sum(row.already_there for row in rows)
    if not already_there:
        return text
    return f"{text}; {counted(already_there, 'record')} after that found on the target, not copied again"


def _waiting(report: TaskReport) -> list[str]:
    """Return which partitions of a task wait. If a cluster is unavailable, their last errors would hide it."""
    waiting = [row for row in report.partitions if row.issue and not row.failure]
    if waiting and report.unavailable_clusters:
        return [f"{counted(len(waiting), 'partition')} wait{'' if len(waiting) > 1 else 's'}"]
    return [f"{row.tp} waits: {row.issue}" for row in waiting]
