"""The state of whole tasks by their newest reports: issues, and clusters that they find unavailable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from heliograph.diagnostics import warning
from heliograph.driver.steps.issues import TaskIssues, brief
from heliograph.model import counted
from heliograph.status.partition_status import KNOWN_FOR_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.diagnostics import Diagnostic
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.model import Flow


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


class TaskReports:
    """The tasks of one flow, by the ids of their runs."""

    def __init__(self, flow: Flow, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._issues = TaskIssues(flow)
        self._has_recovered = False
        self._of_tasks: dict[str, _OfTask] = {}

    def take(self, task_id: str, report: TaskReport, share: TaskShare) -> None:
        """Keep what a task's newest report says of the whole task."""
        with self._lock:
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


def _waiting(report: TaskReport) -> list[str]:
    """Return which partitions of a task wait. If a cluster is unavailable, their last errors would hide it."""
    waiting = [row for row in report.partitions if row.issue and not row.failure]
    if waiting and report.unavailable_clusters:
        return [f"{counted(len(waiting), 'partition')} wait{'' if len(waiting) > 1 else 's'}"]
    return [f"{row.tp} waits: {row.issue}" for row in waiting]
