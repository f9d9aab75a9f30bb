"""Which target partitions wait for a leader, which for the way to it, and which are followed at all.

A partition that waits has trouble, which holds its reading back, until metadata names a leader and that can be reached:
a few kilobytes for a broker behind a broken line would hold the memory of all the others. One that was given up,
or taken from its task, is left once nothing of it is queued or under way: its topic may be deleted, and waiting for it
would keep the loop awake for ever and metadata incomplete.

Invariant: a partition with a batch that a broker may have seen is followed, and so is each that may get batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from heliograph.kafka.cluster import Cluster
    from heliograph.kafka.outgoing import TargetPartition
    from heliograph.kafka.produce_lanes import Lane, ProduceLanes
    from heliograph.model import TopicPartition


class TargetLeaders:
    """The leaders of one producer's partitions.

    `park` frees the memory of one that waits for an end nobody knows, `keep` of one that will soon go on.
    """

    def __init__(
        self,
        cluster: Cluster,
        lanes: ProduceLanes,
        *,
        park: Callable[[TargetPartition], None],
        keep: Callable[[TargetPartition], None],
    ) -> None:
        self._cluster = cluster
        self._park = park
        self._keep = keep
        self._lanes = lanes
        self._waiting: dict[TopicPartition, TargetPartition] = {}
        self._cut_off: dict[TopicPartition, TargetPartition] = {}
        self._leaving: dict[TopicPartition, TargetPartition] = {}

    @property
    def are_missing(self) -> bool:
        """Whether a partition waits for its leader, or for the way to it."""
        return bool(self._waiting or self._cut_off)

    def follow(self, partition: TargetPartition) -> None:
        """A partition may get batches."""
        self._leaving.pop(partition.tp, None)
        if not partition.is_followed:
            partition.is_followed = True
            self._cluster.watch([partition.tp.topic])

    def miss(self, partition: TargetPartition) -> None:
        """A partition has no leader."""
        self._waiting[partition.tp] = partition

    def cut_off(self, lane: Lane, partitions: Iterable[TargetPartition]) -> None:
        """Nothing can be sent on a lane just now: let its partitions wait, if that has lasted."""
        if not self._lanes.is_closed_for_long(lane):
            return
        # A pause ends by itself: what is queued is kept for it, or a quota here would be paid for by the source.
        free = self._keep if self._lanes.is_paused(lane) else self._park
        for partition in partitions:
            if not partition.in_flight:
                self._cut_off[partition.tp] = partition
                partition.trouble = self._why_closed(lane)
                free(partition)

    def leave(self, partition: TargetPartition) -> None:
        """A partition gets no batches any more; those it has are seen through."""
        if partition.is_followed:
            self._leaving[partition.tp] = partition

    def pump(self) -> None:
        """Wait for the leaders that are missing; what was not sent is read again when they are there."""
        if self._leaving:
            self._leave_idle()
        for tp, partition in list(self._cut_off.items()):
            partition.trouble = self._why_cut_off(partition)
            if partition.trouble is None:
                del self._cut_off[tp]
        for tp, partition in list(self._waiting.items()):
            if tp in self._cluster.leaders and tp.topic not in self._cluster.missing_since:
                del self._waiting[tp]
                partition.trouble = None
            else:
                self._cluster.want_metadata()
                partition.trouble = self._why_missing(tp.topic)
                self._park(partition)

    def _why_cut_off(self, partition: TargetPartition) -> str | None:
        node_id = self._cluster.leaders.get(partition.tp)
        if node_id is None or partition.tp.topic in self._cluster.missing_since:
            return None  # which is another trouble, told with its next batch
        lane = (node_id, partition.lane)
        return self._why_closed(lane) if self._lanes.connection(lane) is None else None

    def _why_closed(self, lane: Lane) -> str:
        why = "wants a pause, since we are over its quota" if self._lanes.is_paused(lane) else "cannot be reached"
        return f"broker {lane[0]} {why}"

    def _why_missing(self, topic: str) -> str:
        if topic in self._cluster.hidden:
            return f"the target does not show us {topic}; the principal needs WRITE on the topic"
        if topic in self._cluster.missing_since:
            return f"the target has no topic {topic}; the next look at topics makes it, if refresh.topics.enabled"
        return "the target has no leader for it"

    def _leave_idle(self) -> None:
        for tp, partition in list(self._leaving.items()):
            if partition.is_idle:
                del self._leaving[tp]
                self._waiting.pop(tp, None)
                self._cut_off.pop(tp, None)
                partition.is_followed = False
                self._cluster.unwatch(tp.topic)
