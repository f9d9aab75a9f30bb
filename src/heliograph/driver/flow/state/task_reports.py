"""The state of whole tasks by their newest reports: issues, clusters that they find unavailable, counters."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.diagnostics import warning
from heliograph.driver.steps.issues import TaskIssues, brief
from heliograph.model import counted
from heliograph.status.partition_status import KNOWN_FOR_S
from heliograph.status.task_status import UNKNOWN_GAUGES, RestartReason, TaskCounts, TaskGauges, TaskRow
from heliograph.status.windows import LatencyHistogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.diagnostics import Diagnostic
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.model import Flow, TopicPartition


class TaskShare(NamedTuple):
    """The issues of a task that its partitions share: of the task, and of clusters that are unavailable."""

    task_issue: Diagnostic | None
    unavailable: Diagnostic | None

    @classmethod
    def of(cls, report: TaskReport) -> TaskShare:
        """Return what a report says of the whole task."""
        of_task = [*report.unavailable_clusters, *report.issue]
        return cls(
            warning(brief(of_task)) if of_task else None,
            warning(brief(report.unavailable_clusters)) if report.unavailable_clusters else None,
        )


class _OfTask(NamedTuple):
    """The part of the newest report of a task that holds for all its partitions."""

    reported_at: float
    unavailable_clusters: tuple[str, ...]
    issues: tuple[Diagnostic, ...]


@dataclass(slots=True)
class TaskTotals:
    """The counters of one task over all its runs, and the values of its current run."""

    finished: TaskCounts = field(default_factory=TaskCounts)  # runs that have ended, and all records and bytes
    current: TaskCounts = field(default_factory=TaskCounts)
    gauges: TaskGauges = field(default_factory=TaskGauges)
    reported_at: float | None = None  # by the current run
    restarts: Counter[RestartReason] = field(default_factory=Counter)

    @property
    def counts(self) -> TaskCounts:
        """The sums over all runs."""
        return self.finished.plus(self.current)

    def take(self, report: TaskReport, records: int, size: int, now: float) -> None:
        """Take a report, in which so many records and bytes are new."""
        before = self.finished
        self.finished = before._replace(records=before.records + records, bytes=before.bytes + size)
        self.current, self.gauges, self.reported_at = report.counts, report.gauges, now

    def begin_run(self) -> None:
        """Note that a run has been started: nothing is known of it until it reports."""
        self.end_run()
        self.gauges = UNKNOWN_GAUGES

    def end_run(self) -> None:
        """Add the counters of a run that has ended."""
        self.finished, self.current = self.counts, TaskCounts()
        self.gauges, self.reported_at = TaskGauges(), None

    def known_gauges(self, now: float) -> TaskGauges:
        """Return the values of the current run, all zero without one; unknown ones unless it reports."""
        is_silent = self.reported_at is not None and now - self.reported_at > KNOWN_FOR_S
        return UNKNOWN_GAUGES if is_silent else self.gauges


class TaskReports:
    """The tasks of one flow, by the ids of their runs; `totals` by their numbers."""

    def __init__(self, flow: Flow, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._issues = TaskIssues(flow)
        self._has_recovered = False
        self._of_tasks: dict[str, _OfTask] = {}
        self._totals: defaultdict[int, TaskTotals] = defaultdict(TaskTotals)
        self._begin_again: dict[int, RestartReason] = {}  # the tasks of the last run of the flow

    def take(self, task_id: str, report: TaskReport, share: TaskShare, growth: tuple[int, int] = (0, 0)) -> None:
        """Keep what a task's newest report says of the whole task; `growth` are the new records and bytes in it."""
        with self._lock:
            self._totals[task_number(task_id)].take(report, *growth, self._clock())
            issues = tuple(each for each in share if each is not None)
            self._of_tasks[task_id] = _OfTask(self._clock(), tuple(report.unavailable_clusters), issues)
            logged = report.unavailable_clusters or report.issue  # the rest follows from it, and differs by task
            others = [*(report.issue if report.unavailable_clusters else ()), *_waiting(report)]
            self._has_recovered |= self._issues.note(task_id, logged, others)

    def task_ended(self, task_id: str) -> None:
        """Forget the issues of a task that has ended."""
        with self._lock:
            self._issues.drop(task_id)
            self._of_tasks.pop(task_id, None)
            self._totals[task_number(task_id)].end_run()

    def restart(self, reason: RestartReason) -> None:
        """Keep the counters only: the next run of the flow starts all tasks again."""
        with self._lock:
            self._begin_again = dict.fromkeys(self._totals, reason)
            for totals in self._totals.values():
                totals.end_run()

    def note_start(self, number: int, reason: RestartReason | None) -> None:
        """Count the start of a task by its reason; None: it is the first of this run of the flow."""
        with self._lock:
            totals, of_flow = self._totals[number], self._begin_again.pop(number, None)
            totals.begin_run()
            restarted = reason or of_flow
            if restarted is not None:
                totals.restarts[restarted] += 1

    def note_no_run(self, number: int) -> None:
        """Note that a task that was to begin has not been started."""
        with self._lock:
            if number in self._totals:
                self._totals[number].end_run()

    def note_partition_restarts(self, number: int, reason: RestartReason, count: int) -> None:
        """Count partitions that a running task begins with again."""
        with self._lock:
            self._totals[number].restarts[reason] += count

    def row(self, number: int, state: str, trace: str | None, tps: frozenset[TopicPartition]) -> TaskRow:
        """Return a task in this state with what it has counted."""
        with self._lock:
            totals = self._totals[number] if number in self._totals else TaskTotals()
            gauges = totals.known_gauges(self._clock())
            return TaskRow(number, state, trace, tps, totals.counts, gauges, dict(totals.restarts))

    @property
    def latency(self) -> LatencyHistogram:
        """The latencies of all records that the tasks have copied."""
        with self._lock:
            return LatencyHistogram.sum_of(totals.counts.latency for totals in self._totals.values())

    def take_recovered(self) -> bool:
        """Return whether a lasting issue of a task has cleared since the last call."""
        with self._lock:
            has_recovered, self._has_recovered = self._has_recovered, False
        return has_recovered

    def issue_of(self, task_id: str) -> str | None:
        """Return the issue that a task has had for a while."""
        with self._lock:
            return self._issues.lasting(task_id)

    @property
    def issues(self) -> list[str]:
        """The issues of all tasks, as texts."""
        with self._lock:
            return list(self._issues.texts)

    @property
    def shared_issues(self) -> frozenset[Diagnostic]:
        """The reasons that hold for all partitions of a task."""
        with self._lock:
            return frozenset(issue for task in self._of_tasks.values() for issue in task.issues)

    @property
    def unavailable_clusters(self) -> list[str]:
        """The clusters that a task has found unavailable and that lasts; its report must not be old."""
        with self._lock:
            now = self._clock()
            return list(
                dict.fromkeys(
                    cluster
                    for task_id, task in self._of_tasks.items()
                    if now - task.reported_at <= KNOWN_FOR_S and self._issues.lasting(task_id) is not None
                    for cluster in task.unavailable_clusters
                )
            )


def task_number(task_id: str) -> int:
    """Return the number of a task; ids end with it."""
    number = task_id.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _waiting(report: TaskReport) -> list[str]:
    """Return which partitions of a task wait. If a cluster is unavailable, their last errors would hide it."""
    waiting = [row for row in report.partitions if row.issue and not row.failure]
    if waiting and report.unavailable_clusters:
        return [f"{counted(len(waiting), 'partition')} wait{'' if len(waiting) > 1 else 's'}"]
    return [f"{row.tp} waits: {row.issue}" for row in waiting]
