"""Reports of tasks that the flow's thread has not handled yet: at most one for each run.

Reports arrive every second on threads of the lease server, while the flow's thread may wait for a cluster for long. The
counters of a report only grow and its states are those of its moment, so a newer report replaces an older one; only the
events and losses of both are kept.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.executor.contract.task_report import TaskReport
    from heliograph.executor.contract.task_spec import TaskSpec


class PendingReports:
    """The newest report of each run. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reports: dict[tuple[str, int], TaskReport] = {}

    def put(self, spec: TaskSpec, report: TaskReport) -> bool:
        """Keep a report; return whether there was none of this run."""
        run = spec.task_id, spec.attempt
        with self._lock:
            before = self._reports.get(run)
            self._reports[run] = report if before is None else before.followed_by(report)
        return before is None

    def take(self, spec: TaskSpec) -> TaskReport:
        """Remove and return the newest report of a run; there must be one."""
        with self._lock:
            return self._reports.pop((spec.task_id, spec.attempt))
