"""What a task tells its driver about once a second, as plain JSON: counters since the task began, states as they are.

Counters only grow, so a lost report loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from heliograph.model import TopicPartition


@dataclass(slots=True)
class PartitionReport:
    """Where one partition stands."""

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
    """Where one task stands; `events` are sentences for the driver's log since the last report.

    `assignment` is the number of the newest assignment it has taken over, 0 for the partitions of its start.
    `unavailable_clusters` has a sentence for each cluster that cannot be reached or used, `issue` all other sentences.
    """

    partitions: list[PartitionReport] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    issue: list[str] = field(default_factory=list)
    throttled_ms: int = 0
    assignment: int = 0
    unavailable_clusters: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values. Not by `asdict`: its copy of ten thousand partitions takes a third of a second."""
        own = {name: getattr(self, name) for name in _REPORT_FIELDS}
        return own | {"partitions": [{name: getattr(p, name) for name in _PARTITION_FIELDS} for p in self.partitions]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TaskReport:
        """The report a task sent."""
        return cls(
            [PartitionReport(**row) for row in data["partitions"]],
            list(data["events"]),
            list(data["issue"]),
            int(data["throttled_ms"]),
            int(data["assignment"]),
            list(data["unavailable_clusters"]),
        )


_PARTITION_FIELDS = tuple(each.name for each in fields(PartitionReport))
_REPORT_FIELDS = tuple(each.name for each in fields(TaskReport) if each.name != "partitions")
