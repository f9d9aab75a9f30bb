"""The report that a task sends to its driver about once a second: counters since the task's start, and current states.

Counters only grow, so a lost report loses nothing. Reports travel as JSON. Events are for the driver's log. ERROR: a
partition has stopped, or source and target no longer have the same records. WARNING: the copy continues, and records
may have been copied twice, or left out as configured.
"""

from __future__ import annotations

import queue
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from heliograph.diagnostics import Diagnostic, Severity
from heliograph.model import TopicPartition

if TYPE_CHECKING:
    from heliograph.model import Flow


@dataclass(slots=True)
class PartitionReport:
    """The counters and the state of one partition."""

    topic: str
    partition: int
    position: int | None = None
    acked_offset: int | None = None
    committed_offset: int | None = None
    high_watermark: int = 0
    records: int = 0
    bytes: int = 0
    latency_sum_ms: int = 0
    latency_count: int = 0
    latency_max_ms: int = 0
    lost_offsets: int = 0
    cut_offsets: int = 0
    skipped_records: int = 0
    already_there: int = 0
    issue: str | None = None
    failure: str | None = None
    is_done: bool = False

    @property
    def tp(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def lag(self) -> int:
        """Records on the source that are not yet acknowledged by the target."""
        done = self.acked_offset + 1 if self.acked_offset is not None else self.position
        return max(0, self.high_watermark - done) if done is not None else 0


@dataclass(slots=True)
class TaskReport:
    """The state of one task; `events` are for the driver's log, and have happened since the last report.

    `assignment` is the number of the newest assignment that the task follows, 0 for the partitions of its start.
    `unavailable_clusters` has a sentence for each cluster that cannot be reached or used, `issue` all other sentences.
    """

    partitions: list[PartitionReport] = field(default_factory=list)
    events: list[Diagnostic] = field(default_factory=list)
    issue: list[str] = field(default_factory=list)
    throttled_ms: int = 0
    assignment: int = 0
    unavailable_clusters: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values.

        Not by `asdict`: its copy of ten thousand partitions takes a third of a second.
        """
        own = {name: getattr(self, name) for name in _REPORT_FIELDS}
        own["events"] = [[event.severity, event.message] for event in self.events]
        own["partitions"] = [{name: getattr(p, name) for name in _PARTITION_FIELDS} for p in self.partitions]
        return own

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TaskReport:
        """Return the report that `to_json` encoded."""
        return cls(
            [PartitionReport(**row) for row in data["partitions"]],
            [Diagnostic(Severity(severity), message) for severity, message in data["events"]],
            list(data["issue"]),
            int(data["throttled_ms"]),
            int(data["assignment"]),
            list(data["unavailable_clusters"]),
        )


_PARTITION_FIELDS = tuple(each.name for each in fields(PartitionReport))
_REPORT_FIELDS = tuple(each.name for each in fields(TaskReport) if each.name not in ("events", "partitions"))


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
