"""Events of a task for the driver's log, each with a severity.

ERROR: a partition has stopped, or source and target no longer have the same records. WARNING: the copy continues, and
records may have been copied twice or left out as configured.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from heliograph.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from heliograph.model import Flow, TopicPartition


class TaskEvents:
    """The events since the last report. Any thread may add one."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._events: queue.SimpleQueue[Diagnostic] = queue.SimpleQueue()

    def error(self, message: str, tp: TopicPartition) -> None:
        """Add an event of a partition that has stopped, or whose copy has lost or gained records."""
        self._add(Severity.ERROR, f"{self._flow} {tp}: {message}")

    def warn(self, message: str, tp: TopicPartition | None = None) -> None:
        """Add an event of a partition, or of the whole task, that continues."""
        self._add(Severity.WARNING, f"{self._flow}: {message}" if tp is None else f"{self._flow} {tp}: {message}")

    def _add(self, severity: Severity, message: str) -> None:
        self._events.put(Diagnostic(severity, message))

    def take(self) -> list[Diagnostic]:
        """Return the events since the last call."""
        return [self._events.get() for _ in range(self._events.qsize())]
