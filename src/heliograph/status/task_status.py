"""One task of a flow at one moment: its state, its partitions, and what it has counted."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.status.windows import LatencyHistogram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.model import TopicPartition


class RestartReason(StrEnum):
    """The reasons for which a task, or a partition inside it, is started again."""

    FAILED = "failed"  # the task ended with an error
    LOST = "lost"  # its executor was lost, or killed
    PARTITION = "partition"  # a failed partition was tried again
    REQUESTED = "requested"  # by a user
    CHANGED = "changed"  # its partitions or its configuration changed, or its connector began again


class TaskCounts(NamedTuple):
    """Counters of one task, summed over all its runs since the process started."""

    records: int = 0  # acknowledged by the target
    bytes: int = 0
    fetched_records: int = 0
    received_bytes: int = 0  # from the source's brokers, all of the protocol
    sent_bytes: int = 0  # to the target's brokers
    commits: int = 0
    failed_commits: int = 0
    commit_sum_ms: int = 0
    throttled_ms: int = 0  # by quotas of the clusters
    latency: LatencyHistogram = LatencyHistogram()

    def plus(self, other: TaskCounts) -> TaskCounts:
        """Return the sums."""
        numbers: list[int] = [mine + theirs for mine, theirs in zip(self[:-1], other[:-1], strict=True)]
        return TaskCounts._make((*numbers, LatencyHistogram.sum_of((self.latency, other.latency))))


class TaskGauges(NamedTuple):
    """The values of the current run of a task at this moment; all zero without a run, None until it reports."""

    source_connections: int | None = 0
    target_connections: int | None = 0
    buffer_bytes: int | None = 0
    used_buffer_bytes: int | None = 0
    unacknowledged_records: int | None = 0
    commit_mean_ms: float | None = None  # of the last minute; None without any
    commit_highest_ms: float | None = None


UNKNOWN_GAUGES = TaskGauges(None, None, None, None, None)


class TaskRow(NamedTuple):
    """One task of a flow in Connect's terms.

    `counts` and `restarts` only grow while the process runs.
    """

    number: int
    state: str
    trace: str | None
    tps: frozenset[TopicPartition] = frozenset()
    counts: TaskCounts = TaskCounts()
    gauges: TaskGauges = TaskGauges()
    restarts: Mapping[RestartReason, int] = {}

    @property
    def partitions(self) -> int:
        """The number of its partitions."""
        return len(self.tps)
