"""The lanes of a producer and the leaders of its partitions: where a batch can be sent now.

A lane is one connection to one broker. It counts from its first batch on, so that an unused lane does not look full.

A partition without a reachable leader has an issue, which holds its reading back until metadata names a leader that can
be reached: a few kilobytes for an unreachable broker would hold the memory of all other partitions. A partition that
was given up or unassigned is left once it has no batch queued or in flight: its topic may be deleted, and waiting for
it would keep the loop awake for ever and metadata incomplete.

Invariant: a partition is followed while it may get batches or has one that a broker may have seen.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.produce.queue_memory import QueueMemory
    from heliograph.kafka.produce.target_partition import TargetPartition
    from heliograph.model import TopicPartition


Lane = tuple[int, int]

_LONG_S = 1.0  # an idle connection is opened again in less


class ProduceLanes:
    """All lanes of one producer."""

    def __init__(self, cluster: Cluster, most_in_flight: int) -> None:
        self.throttled_ms = 0
        self._cluster = cluster
        self._most_in_flight = most_in_flight
        self._under_way: dict[Lane, int] = {}
        self._paused_until: dict[Lane, float] = {}
        self._closed: dict[Lane, tuple[float, float]] = {}  # when it was first and last found closed

    def use(self, lane: Lane) -> None:
        """Count a lane on which a batch will be sent."""
        self._under_way.setdefault(lane, 0)

    def has_room(self, lane: Lane) -> bool:
        """Return whether another request may be sent."""
        return self._under_way.get(lane, 0) < self._most_in_flight

    def sent(self, lane: Lane) -> None:
        """Count a request."""
        self._under_way[lane] = self._under_way.get(lane, 0) + 1

    def answered(self, lane: Lane, throttle_time_ms: int = 0) -> None:
        """Count the answer to a request, or its loss."""
        self._under_way[lane] -= 1
        if throttle_time_ms > 0:
            self.throttled_ms += throttle_time_ms
            self._paused_until[lane] = time.monotonic() + throttle_time_ms / 1000

    @property
    def are_full(self) -> bool:
        """Return whether every lane has all its requests under way; the partitions need not be examined then."""
        known = [lane for lane in self._under_way if self._cluster.has_broker(lane[0])]
        return bool(known) and not any(map(self.has_room, known))

    def end_pauses(self, now: float) -> None:
        """Drop the pauses that are over."""
        if self._paused_until:
            self._paused_until = {lane: until for lane, until in self._paused_until.items() if until > now}

    @property
    def has_pauses(self) -> bool:
        """Return whether a broker demands a pause."""
        return bool(self._paused_until)

    def is_paused(self, lane: Lane) -> bool:
        """Return whether the broker of this lane demands a pause."""
        return lane in self._paused_until

    def connection(self, lane: Lane) -> Connection | None:
        """Return the connection to send on; None if there is none yet, or the broker demands a pause."""
        connection = self._cluster.connection_to(*lane) if not self.is_paused(lane) else None
        if connection is None:
            now = time.monotonic()
            first, last = self._closed.get(lane, (now, now))
            self._closed[lane] = (first if now - last < _LONG_S else now, now)
        else:
            self._closed.pop(lane, None)
        return connection

    def is_closed_for_long(self, lane: Lane) -> bool:
        """Return whether the batches for this lane should leave the shared memory."""
        first, last = self._closed.get(lane, (0.0, 0.0))
        return last - first > _LONG_S


class TargetLeaders:
    """Tracks the partitions of one producer whose leader is unknown or unreachable."""

    def __init__(self, cluster: Cluster, lanes: ProduceLanes, memory: QueueMemory) -> None:
        self._cluster = cluster
        self._lanes = lanes
        self._memory = memory
        self._followed: set[TopicPartition] = set()
        self._waiting: dict[TopicPartition, TargetPartition] = {}
        self._cut_off: dict[TopicPartition, TargetPartition] = {}
        self._leaving: dict[TopicPartition, TargetPartition] = {}

    @property
    def are_missing(self) -> bool:
        """Return whether a partition waits for a leader or for the connection to it."""
        return bool(self._waiting or self._cut_off)

    def follow(self, partition: TargetPartition) -> None:
        """Watch the topic of a partition that may get batches."""
        self._leaving.pop(partition.tp, None)
        for waiting in (self._waiting, self._cut_off):
            if waiting.get(partition.tp, partition) is not partition:  # it has begun again
                del waiting[partition.tp]
        if partition.tp not in self._followed:
            self._followed.add(partition.tp)
            self._cluster.watch([partition.tp.topic])

    def miss(self, partition: TargetPartition) -> None:
        """Let a partition without a leader wait for one."""
        self._waiting[partition.tp] = partition

    def cut_off(self, lane: Lane, partitions: Iterable[TargetPartition]) -> None:
        """Let the partitions of a lane wait if nothing could be sent on it for some time."""
        if not self._lanes.is_closed_for_long(lane):
            return
        # A pause ends by itself, so the queue is kept: a quota here must not make the source send records twice.
        free = self._memory.keep if self._lanes.is_paused(lane) else self._memory.park
        for partition in partitions:
            if not partition.in_flight:
                self._cut_off[partition.tp] = partition
                partition.issue = self._why_closed(lane)
                free(partition)

    def leave(self, partition: TargetPartition) -> None:
        """Stop watching a partition that gets no more batches, once those it has are settled."""
        if partition.tp in self._followed:
            self._leaving[partition.tp] = partition

    def pump(self) -> None:
        """Update the issue of each waiting partition; its unsent batches are read again when it has a leader."""
        if self._leaving:
            self._leave_idle()
        for tp, partition in list(self._cut_off.items()):
            partition.issue = self._why_cut_off(partition)
            if partition.issue is None:
                del self._cut_off[tp]
        for tp, partition in list(self._waiting.items()):
            if tp in self._cluster.leaders and tp.topic not in self._cluster.missing_since:
                del self._waiting[tp]
                partition.issue = None
            else:
                self._cluster.want_metadata()
                partition.issue = self._why_missing(tp.topic)
                self._memory.park(partition)

    def _why_cut_off(self, partition: TargetPartition) -> str | None:
        node_id = self._cluster.leaders.get(partition.tp)
        if node_id is None or partition.tp.topic in self._cluster.missing_since:
            return None  # another issue, found with its next batch
        lane = (node_id, partition.lane)
        return self._why_closed(lane) if self._lanes.connection(lane) is None else None

    def _why_closed(self, lane: Lane) -> str:
        why = "wants a pause, since we are over its quota" if self._lanes.is_paused(lane) else "cannot be reached"
        return f"broker {lane[0]} {why}"

    def _why_missing(self, topic: str) -> str:
        if topic in self._cluster.hidden:
            return f"the target does not show us {topic}; the principal needs WRITE on the topic"
        if topic in self._cluster.missing_since:
            return f"the target has no topic {topic}; the next topic refresh creates it, if refresh.topics.enabled"
        return "the target has no leader for it"

    def _leave_idle(self) -> None:
        for tp, partition in list(self._leaving.items()):
            if partition.is_idle:
                del self._leaving[tp]
                self._waiting.pop(tp, None)
                self._cut_off.pop(tp, None)
                self._followed.discard(tp)
                self._cluster.unwatch(tp.topic)
