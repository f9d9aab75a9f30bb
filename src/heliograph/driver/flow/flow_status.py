"""The state of a flow as the driver knows it: the newest report of each partition, rates, issues, and log lines.

`FlowStatus` collects what the flow's thread notes and may be read from any thread: by the screen of `run`, REST and the
log. `ProgressLines` logs the rate of a connector now and then, for readers of a worker's log, which has no screen.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.driver.steps.issues import StepIssues, TaskIssues, brief
from heliograph.model import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from heliograph.driver.steps.issues import Change
    from heliograph.executor.contract.task_report import PartitionReport, TaskReport
    from heliograph.executor.contract.task_spec import PartitionSpec
    from heliograph.model import Flow, TopicPartition


log = logging.getLogger(__name__)

_TASK_STEP = "task "
_RATE_WINDOW_S = 5.0
_SAMPLE_INTERVAL_S = 1.0  # a sample walks all partitions: not for each report of each task
_INTERVAL_S = 30.0


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
    lag: int
    latency_ms: float | None


class Counts(NamedTuple):
    """The counters of a partition, summed over all runs of its tasks."""

    records: int = 0
    bytes: int = 0
    lost_offsets: int = 0
    cut_offsets: int = 0
    skipped_records: int = 0


_NOTHING = Counts()


@dataclass(slots=True)
class _TopicRate:
    samples: deque[tuple[float, int, int, int, int]] = field(default_factory=deque)

    def add(self, now: float, records: int, size: int, latency_sum: int, latency_count: int) -> None:
        self.samples.append((now, records, size, latency_sum, latency_count))
        while len(self.samples) > 2 and self.samples[0][0] < now - _RATE_WINDOW_S:
            self.samples.popleft()

    def rates(self) -> tuple[float, float, float | None]:
        if len(self.samples) < 2:
            return 0.0, 0.0, None
        first, last = self.samples[0], self.samples[-1]
        elapsed = max(1e-3, last[0] - first[0])
        batches = last[4] - first[4]
        latency = (last[3] - first[3]) / batches if batches else None
        return (last[1] - first[1]) / elapsed, (last[2] - first[2]) / elapsed, latency


class FlowStatus:
    """Collects reports; safe to read from any thread. Counts survive the restart of a task."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.state = "STARTING"
        self._step_issues = StepIssues()
        self._task_issues = TaskIssues()
        self._lock = threading.Lock()
        self._reports: dict[TopicPartition, PartitionReport] = {}
        self._departed: frozenset[TopicPartition] = frozenset()
        self._finished: dict[TopicPartition, Counts] = {}
        self._rates: dict[str, _TopicRate] = {}
        self._sampled_at = -math.inf

    @property
    def issue(self) -> str | None:
        """The first issues of this moment, of steps and of tasks, as one text; None if there is none."""
        with self._lock:
            of_tasks = self._task_issues.texts
        return brief([*(issue for step in self.issues.values() for issue in step), *of_tasks]) or None

    def issue_of(self, task_id: str) -> str | None:
        """Return the issue that a task has had for a while."""
        with self._lock:
            return self._task_issues.lasting(task_id)

    def note(self, step: str, issues: Iterable[str]) -> Change:
        """Keep the issues of a step until its next success; return what has changed."""
        return self._step_issues.note(step, issues)

    @property
    def issues(self) -> dict[str, tuple[str, ...]]:
        """The issues of each step that has any."""
        return self._step_issues.issues

    def take(self, task_id: str, report: TaskReport) -> bool:
        """Keep a task's newest report; return whether an issue that lasted has cleared."""
        with self._lock:
            for row in report.partitions:
                self._reports[row.tp] = row
            has_cleared = self._task_issues.note(task_id, _issues_of(report))
            now = time.monotonic()
            if now - self._sampled_at >= _SAMPLE_INTERVAL_S:
                self._sampled_at = now
                self._sample(now)
        return has_cleared

    def task_ended(self, task_id: str, tps: tuple[TopicPartition, ...]) -> None:
        """Keep the counts of a task that has ended: the next run counts from zero."""
        with self._lock:
            self._task_issues.drop(task_id)
            for tp in tps:
                row = self._reports.get(tp)
                if row is not None:
                    self._finished[tp] = self._counts(tp)
                    row.records = row.bytes = row.lost_offsets = row.cut_offsets = row.skipped_records = 0

    def set_replicated(self, tps: Iterable[TopicPartition]) -> None:
        """Set the partitions that the flow copies from now on; of others only the counts are kept."""
        with self._lock:
            self._departed = frozenset(self._reports).difference(tps)

    def clear_failures(self, tps: Iterable[TopicPartition]) -> None:
        """Clear the failures of partitions that are tried again."""
        with self._lock:
            for row in (self._reports[tp] for tp in tps if tp in self._reports):
                row.failure = None

    @property
    def failures(self) -> list[str]:
        """The sentence of each failed partition."""
        with self._lock:
            return [row.failure for row in self._current() if row.failure]

    def failures_of(self, tps: Iterable[TopicPartition]) -> list[str]:
        """Return the sentence of each of these partitions that has failed."""
        with self._lock:
            failed = {tp: row.failure for tp in tps if (row := self._reports.get(tp)) is not None and row.failure}
        return [failed[tp] for tp in sorted(failed)]

    @property
    def lost_offsets(self) -> int:
        """Offsets that were gone from the source before they could be copied."""
        with self._lock:
            return sum(self._counts(tp).lost_offsets for tp in self._reports)

    @property
    def cut_offsets(self) -> int:
        """Offsets that were copied and then truncated at the source."""
        with self._lock:
            return sum(self._counts(tp).cut_offsets for tp in self._reports)

    @property
    def skipped_records(self) -> int:
        """Records that were skipped because they are too large for the target."""
        with self._lock:
            return sum(self._counts(tp).skipped_records for tp in self._reports)

    @property
    def totals(self) -> tuple[int, int]:
        """Records and bytes copied."""
        with self._lock:
            counts = [self._counts(tp) for tp in self._reports]
        return sum(count.records for count in counts), sum(count.bytes for count in counts)

    @property
    def lag(self) -> int:
        """Records on the source that the target has not acknowledged yet."""
        with self._lock:
            return sum(row.lag for row in self._current())

    def records_by_topic(self) -> dict[str, int]:
        """Return the number of records copied, by topic."""
        counts: dict[str, int] = {}
        with self._lock:
            for tp in self._reports:
                counts[tp.topic] = counts.get(tp.topic, 0) + self._counts(tp).records
        return counts

    def rows(self) -> list[TopicRow]:
        """Return one row per topic."""
        with self._lock:
            by_topic: dict[str, list[PartitionReport]] = {}
            for row in self._current():
                by_topic.setdefault(row.topic, []).append(row)
            return [self._row(topic, rows) for topic, rows in sorted(by_topic.items())]

    def _row(self, topic: str, rows: list[PartitionReport]) -> TopicRow:
        records_per_s, bytes_per_s, latency_ms = self._rates.get(topic, _TopicRate()).rates()
        counts = [self._counts(row.tp) for row in rows]
        return TopicRow(
            flow=str(self.flow),
            topic=topic,
            partitions=len(rows),
            failed_partitions=sum(row.failure is not None for row in rows),
            records=sum(count.records for count in counts),
            bytes=sum(count.bytes for count in counts),
            records_per_s=records_per_s,
            bytes_per_s=bytes_per_s,
            lag=sum(row.lag for row in rows),
            latency_ms=latency_ms,
        )

    def _current(self) -> Iterator[PartitionReport]:
        return (row for tp, row in self._reports.items() if tp not in self._departed)

    def _counts(self, tp: TopicPartition) -> Counts:
        row, before = self._reports[tp], self._finished.get(tp, _NOTHING)
        return Counts(
            before.records + row.records,
            before.bytes + row.bytes,
            before.lost_offsets + row.lost_offsets,
            before.cut_offsets + row.cut_offsets,
            before.skipped_records + row.skipped_records,
        )

    def _sample(self, now: float) -> None:
        sums: dict[str, list[int]] = {}
        for tp, row in self._reports.items():
            records, size, *_rest = self._counts(tp)
            total = sums.setdefault(tp.topic, [0, 0, 0, 0])
            total[0] += records
            total[1] += size
            total[2] += row.latency_sum_ms
            total[3] += row.latency_count
        for topic, (records, size, latency_sum, latency_count) in sums.items():
            self._rates.setdefault(topic, _TopicRate()).add(now, records, size, latency_sum, latency_count)


class ProgressLines:
    """Logs what a connector has copied, at most every half minute, and only if it copied anything."""

    def __init__(self, name: str, status: FlowStatus, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._status, self._clock = name, status, clock
        self._looked_at = clock()
        self._reported = (0, 0)

    def report(self) -> None:
        """Log a line if one is due."""
        elapsed_s = self._clock() - self._looked_at
        if elapsed_s < _INTERVAL_S:
            return
        before, self._reported = self._reported, self._status.totals
        self._looked_at += elapsed_s
        records, size = self._reported[0] - before[0], self._reported[1] - before[1]
        if records > 0:  # counts of topics that are no longer replicated are dropped
            log.info(
                "Connector %s: %s records (%s/s), %s MB (%s MB/s) copied in %.0f s, lag %s",
                self._name,
                f"{records:,}",
                f"{records / elapsed_s:,.0f}",
                f"{size / 1e6:,.1f}",
                f"{size / 1e6 / elapsed_s:,.1f}",
                elapsed_s,
                f"{self._status.lag:,}",
            )


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


def _issues_of(report: TaskReport) -> list[str]:
    """Return the issues of a task. If a cluster is unavailable, the last errors of its partitions would hide it."""
    waiting = [f"{row.tp} waits: {row.issue}" for row in report.partitions if row.issue]
    if waiting and report.unavailable_clusters:
        waiting = [f"{counted(len(waiting), 'partition')} wait{'' if len(waiting) > 1 else 's'}"]
    return [*report.unavailable_clusters, *report.issue, *waiting]
