"""The report that a task sends to its driver about once a second: counters since the task's start, and current states.

Counters only grow, so a lost report loses nothing. Reports travel as JSON. Events are for the driver's log. ERROR: a
partition has stopped, or source and target no longer have the same records. WARNING: the copy continues, and records
may have been copied twice, or left out as configured.
"""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.diagnostics import Severity
from heliograph.model import TopicPartition
from heliograph.status.losses import Loss, loss_members, loss_of
from heliograph.status.task_status import TaskCounts, TaskGauges
from heliograph.status.windows import LatencyHistogram, Stat

if TYPE_CHECKING:
    from uuid import UUID

    from heliograph.model import Flow
    from heliograph.status.losses import LossCause


MEASURE_INTERVAL_S = 5.0
"""The interval of reports with the measured times of busy partitions: one a second would cost the driver too much."""


@dataclass(slots=True)
class PartitionReport:
    """The counters and the state of one partition.

    `next_offset` is the first source offset that the target is not known to have. Ages are those at the time of the
    report, since the clocks of driver and executor may differ: of the last acknowledgement, and of the end of the
    source's log. `stable_end` is its last stable offset, if only committed records are read. `pending_ms` is the
    timestamp of the oldest record that was fetched and is not acknowledged, `copied_ms` that of the newest record that
    was copied. None is unknown. `age_ms` and `latency_ms` are those of the last minute (`PartitionWindow`), in
    reports that measure and of partitions with a record in it: an idle one costs nothing.
    """

    topic: str
    partition: int
    next_offset: int | None = None
    committed_offset: int | None = None
    log_end: int | None = None
    log_end_age_ms: int | None = None
    stable_end: int | None = None
    acked_age_ms: int | None = None
    pending_ms: int | None = None
    copied_ms: int | None = None
    records: int = 0
    bytes: int = 0
    latency_sum_ms: int = 0
    latency_count: int = 0
    lost_offsets: int = 0
    cut_offsets: int = 0
    skipped_records: int = 0
    already_there: int = 0
    issue: str | None = None
    failure: str | None = None
    is_done: bool = False
    opening: int = 0  # of its spec
    age_ms: Stat | None = None
    latency_ms: Stat | None = None

    @property
    def tp(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)


class TaskEvent(NamedTuple):
    """A line for the driver's log; `tp` is the partition that it is about, if it is about one."""

    severity: Severity
    message: str
    tp: TopicPartition | None = None


@dataclass(slots=True)
class TaskReport:
    """The state of one task; `events` are for the driver's log, `losses` for the losses topic: since the last report.

    `assignment` is the number of the newest assignment that the task follows, 0 for the partitions of its start.
    `releasing` are partitions that were taken away and that the task still holds: once a report with the number of the
    assignment that took one away, or a higher one, leaves it out, the task writes nothing of it any more.
    `unavailable_clusters` has a sentence for each cluster that cannot be reached or used, `issue` all other sentences.
    `counts` are of this run; the driver sums up records and bytes from those of the partitions.
    """

    partitions: list[PartitionReport] = field(default_factory=list)
    events: list[TaskEvent] = field(default_factory=list)
    issue: list[str] = field(default_factory=list)
    assignment: int = 0
    unavailable_clusters: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    releasing: list[TopicPartition] = field(default_factory=list)
    counts: TaskCounts = TaskCounts()  # noqa: RUF009  (immutable)
    gauges: TaskGauges = TaskGauges()  # noqa: RUF009  (immutable)

    def followed_by(self, newer: TaskReport) -> TaskReport:
        """Return a newer report with the events and losses of both; nothing else of an older one is needed."""
        if not self.events and not self.losses:
            return newer
        return replace(newer, events=[*self.events, *newer.events], losses=[*self.losses, *newer.losses])

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values; of each partition they are a list, since a task may have thousands."""
        own = {name: getattr(self, name) for name in _REPORT_FIELDS}
        own["events"] = self.events
        own["losses"] = [loss_members(loss) for loss in self.losses]
        own["partitions"] = list(map(_PARTITION_VALUES, self.partitions))
        return own

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TaskReport:
        """Return the report that `to_json` encoded."""
        *counts, (latency_counts, latency_sum_s) = data["counts"]
        return cls(
            [_report_of(row) if row[-1] or row[-2] else PartitionReport(*row) for row in data["partitions"]],
            [TaskEvent(Severity(level), text, tp and TopicPartition(*tp)) for level, text, tp in data["events"]],
            list(data["issue"]),
            int(data["assignment"]),
            list(data["unavailable_clusters"]),
            [loss for members in data["losses"] if (loss := loss_of(members)) is not None],
            [TopicPartition(*tp) for tp in data["releasing"]],
            TaskCounts._make((*counts, LatencyHistogram(tuple(latency_counts), latency_sum_s))),
            TaskGauges(*data["gauges"]),
        )


def _report_of(row: list[Any]) -> PartitionReport:
    """Return the report of a partition that has measured something in the last minute."""
    report = PartitionReport(*row)
    report.age_ms = report.age_ms and Stat(*report.age_ms)
    report.latency_ms = report.latency_ms and Stat(*report.latency_ms)
    return report


_PARTITION_VALUES = attrgetter(*(each.name for each in fields(PartitionReport)))
_REPORT_FIELDS = tuple(each.name for each in fields(TaskReport) if each.name not in ("events", "losses", "partitions"))


class TaskEvents:
    """The events and losses since the last report. Any thread may add one."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._events: queue.SimpleQueue[TaskEvent] = queue.SimpleQueue()
        self._losses: queue.SimpleQueue[Loss] = queue.SimpleQueue()

    def error(self, message: str, tp: TopicPartition) -> None:
        """Add an event of a partition that has stopped, or whose copy has lost or gained records."""
        self._events.put(TaskEvent(Severity.ERROR, f"{self._flow} {tp}: {message}", tp))

    def warn(self, message: str, tp: TopicPartition | None = None) -> None:
        """Add an event of a partition, or of the whole task, that continues."""
        about = f"{self._flow}" if tp is None else f"{self._flow} {tp}"
        self._events.put(TaskEvent(Severity.WARNING, f"{about}: {message}", tp))

    def inform(self, message: str) -> None:
        """Add an event of the whole task that needs no attention."""
        self._events.put(TaskEvent(Severity.NOTE, f"{self._flow}: {message}"))

    def lose(
        self,
        tp: TopicPartition,
        cause: LossCause,
        offsets: tuple[int | None, int | None],
        count: int,
        topic_id: UUID | None = None,
        *,
        is_exact: bool = True,
    ) -> None:
        """Add a loss of records from the first to the last of these source offsets; a negative one is not known."""
        first, last = (None if offset is None or offset < 0 else offset for offset in offsets)
        known_id = None if topic_id is None else str(topic_id)
        at_ms = int(time.time() * 1000)
        self._losses.put(Loss(at_ms, self._flow, *tp, first, last, count, cause, known_id, is_exact))

    @property
    def has_losses(self) -> bool:
        """Return whether there are losses since the last report."""
        return not self._losses.empty()

    def take_losses(self) -> list[Loss]:
        """Return the losses since the last call."""
        return [self._losses.get() for _ in range(self._losses.qsize())]

    def take(self) -> list[TaskEvent]:
        """Return the events since the last call."""
        return [self._events.get() for _ in range(self._events.qsize())]
