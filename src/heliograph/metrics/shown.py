"""The part of a snapshot that has series: all of a small flow; of a large one topics, and partitions not copied.

Ten thousand partitions would be some 200,000 series. Above a limit a flow shows its topics, and the partitions that are
not copied; its groups, and their partitions whose checkpoints are behind. Of these, too, at most as many as the limit,
those first that need attention. How many are left out is a metric.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from heliograph.status.partition_status import PartitionState
from heliograph.status.windows import PartitionWindow, Stat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from heliograph.model import TopicPartition
    from heliograph.status.flow_snapshot import FlowSnapshot, Lag
    from heliograph.status.group_status import CheckpointsSnapshot, GroupPartition, GroupStatus
    from heliograph.status.partition_status import PartitionStatus
    from heliograph.status.process_snapshot import ConnectorRow, ProcessSnapshot

NOT_COPIED = (PartitionState.FAILED, PartitionState.RETRYING, PartitionState.WAITING)
"""The states in which nothing is copied although there may be something; those first that last longer."""


class TopicSum:
    """The sums over the partitions of a topic, or of several. A sum is None if a part of it is not known."""

    def __init__(self, topic: str = "") -> None:
        self.topic = topic
        self.remote_topic: str | None = None
        self.partitions = self.not_copied = self.records = self.bytes = 0
        self.known_lag_records = self.unknown_lags = 0
        self.lag_seconds: float | None = 0.0
        self.windows: list[PartitionWindow] = []

    def add(self, partition: PartitionStatus) -> None:
        """Add one partition."""
        self.partitions += 1
        self.records += partition.records
        self.bytes += partition.bytes
        if partition.state in NOT_COPIED:
            self.not_copied += 1
        if self.remote_topic is None:
            self.remote_topic = partition.remote_topic
        if partition.window is not None:
            self.windows.append(partition.window)
        lag, seconds = partition.lag_records, partition.lag_seconds
        if lag is None:
            self.unknown_lags += 1
        else:
            self.known_lag_records += lag
        if seconds is None or self.lag_seconds is None:
            self.lag_seconds = None
        elif seconds > self.lag_seconds:
            self.lag_seconds = seconds

    def add_topic(self, other: TopicSum) -> None:
        """Add all of another topic."""
        self.partitions += other.partitions
        self.records += other.records
        self.bytes += other.bytes
        self.not_copied += other.not_copied
        self.known_lag_records += other.known_lag_records
        self.unknown_lags += other.unknown_lags
        self.windows += other.windows
        if other.lag_seconds is None or self.lag_seconds is None:
            self.lag_seconds = None
        else:
            self.lag_seconds = max(self.lag_seconds, other.lag_seconds)

    @property
    def lag_records(self) -> int | None:
        """The lag of all partitions."""
        return None if self.unknown_lags else self.known_lag_records

    @cached_property
    def window(self) -> PartitionWindow | None:
        """The sums of the rates, and the times of the slowest partitions."""
        if not self.windows:
            return None
        return PartitionWindow(
            sum(window.records_per_s for window in self.windows),
            sum(window.bytes_per_s for window in self.windows),
            slowest(window.age_ms for window in self.windows),
            slowest(window.latency_ms for window in self.windows),
        )


def slowest(stats: Iterable[Stat | None]) -> Stat | None:
    """Return the largest of the last values, of the highest and of the means, and the lowest of all."""
    known = [stat for stat in stats if stat is not None]
    if not known:
        return None
    lows, highs, means = (
        [value for value in column if value is not None] for column in list(zip(*known, strict=True))[1:]
    )
    return Stat(
        max(stat.last for stat in known), min(lows, default=None), max(highs, default=None), max(means, default=None)
    )


class PartitionAt(NamedTuple):
    """A partition with the time of its snapshot and the number of its task; None without any."""

    status: PartitionStatus
    at: float
    task: int | None


class ShownFlow:
    """A flow with the partitions and topics that have series."""

    def __init__(self, flow: FlowSnapshot, limit: int) -> None:
        self.flow = flow
        self._limit = limit
        self.is_limited = len(flow.partitions) > limit

    @cached_property
    def partitions(self) -> list[PartitionAt]:
        """The partitions with series of their own."""
        found: Sequence[PartitionStatus] = self.flow.partitions
        if self.is_limited:
            rank = {state: number for number, state in enumerate(NOT_COPIED)}
            found = sorted(
                (each for each in found if each.state in rank), key=lambda each: (rank[each.state], each.tp)
            )[: self._limit]
        return [PartitionAt(each, self.flow.at, self.task_of.get(each.tp)) for each in found]

    @cached_property
    def lag(self) -> Lag:
        """The lag of the flow, summed up once."""
        return self.flow.lag

    @cached_property
    def task_of(self) -> dict[TopicPartition, int]:
        """The number of the task of each partition that has one."""
        return {tp: task.number for task in self.flow.tasks for tp in task.tps}

    @cached_property
    def topics(self) -> list[TopicSum]:
        """The topics with series: all, or those first with a partition that is not copied, then by name.

        Ordered by lag, other topics would have series at each scrape.
        """
        if not self.has_other_topics:
            return self._all_topics
        return sorted(self._all_topics, key=lambda each: (not each.not_copied, each.topic))[: self._limit]

    @property
    def has_other_topics(self) -> bool:
        """Return whether topics have no series."""
        return len(self._all_topics) > self._limit

    @cached_property
    def other_topics(self) -> TopicSum | None:
        """The sum over the topics without series. Its counts are no counters: its topics change."""
        if not self.has_other_topics:
            return None
        shown = {topic.topic for topic in self.topics}
        total = TopicSum()
        for topic in self._all_topics:
            if topic.topic not in shown:
                total.add_topic(topic)
        return total

    @cached_property
    def _all_topics(self) -> list[TopicSum]:
        topics: dict[str, TopicSum] = {}
        for partition in self.flow.partitions:
            name = partition.tp.topic
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicSum(name)
            topic.add(partition)
        return list(topics.values())

    def left_out(self) -> Iterator[tuple[str, int]]:
        """Yield how many of what have no series."""
        yield "partitions", len(self.flow.partitions) - len(self.partitions)
        yield "topics", len(self._all_topics) - len(self.topics)


class ShownGroup:
    """A group with its sums."""

    def __init__(self, status: GroupStatus, at: float) -> None:
        self.status, self.at = status, at

    @cached_property
    def untranslated(self) -> int:
        """The number of its partitions that have no checkpoint."""
        return sum(each.translated is None for each in self.status.partitions)

    @cached_property
    def slowest_checkpoint(self) -> Stat | None:
        """The checkpoint latency of its slowest partitions."""
        return slowest(each.latency_ms for each in self.status.partitions)


class ShownCheckpoints:
    """The checkpoints of a flow, with the groups and partitions that have series."""

    def __init__(self, checkpoints: CheckpointsSnapshot, limit: int) -> None:
        self.checkpoints = checkpoints
        self._limit = limit
        self._count = sum(len(group.partitions) for group in checkpoints.groups)
        self.is_limited = self._count > limit

    @cached_property
    def groups(self) -> list[ShownGroup]:
        """The groups with series: all, or those first that are behind, or whose state is not known."""
        groups = self.checkpoints.groups
        if len(groups) > self._limit:
            groups = tuple(sorted(groups, key=_attention))[: self._limit]
        return [ShownGroup(group, self.checkpoints.at) for group in groups]

    @cached_property
    def partitions(self) -> list[tuple[str, GroupPartition]]:
        """The partitions with series of their own, with their groups."""
        found = [(group.group, each) for group in self.checkpoints.groups for each in group.partitions]
        if self.is_limited:
            found = sorted((each for each in found if each[1].since is not None), key=lambda each: each[1].since or 0.0)
        return found[: self._limit] if self.is_limited else found

    def left_out(self) -> Iterator[tuple[str, int]]:
        """Yield how many of what have no series."""
        yield "groups", len(self.checkpoints.groups) - len(self.groups)
        yield "group_partitions", self._count - len(self.partitions)


def _attention(group: GroupStatus) -> tuple[bool, float]:
    return group.lag_seconds is not None, -(group.lag_seconds or 0.0)


class Shown:
    """A snapshot of a process with the limits of one page. Parts are computed when a metric needs them."""

    def __init__(self, snapshot: ProcessSnapshot, partitions_max: int) -> None:
        self.snapshot = snapshot
        self.flows = [ShownFlow(flow, partitions_max) for flow in snapshot.flows]
        self.checkpoints = [ShownCheckpoints(each, partitions_max) for each in snapshot.checkpoints]

    @property
    def connectors(self) -> tuple[ConnectorRow, ...]:
        """The connectors that run in this process: none in a worker that does not lead."""
        worker = self.snapshot.worker
        return self.snapshot.connectors if worker is None or worker.is_leader else ()
