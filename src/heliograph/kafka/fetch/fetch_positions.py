"""Finds the offset at which each partition is read, in a log that may have changed.

A partition without a position, or with one outside of the log, is not read until both ends of its log are known
(`log_ends`) and `PositionListener.decide_position` has chosen an offset: nothing is skipped silently. Records that may
belong to another log than those before them are not delivered until the leader has been asked (`continuity`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from heliograph.kafka.fetch.continuity import Continuity, ContinuityListener
from heliograph.kafka.fetch.log_ends import LogEnds

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.fetch.fetch_lanes import FetchPartition, FetchRetries
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.event_loop import Network
    from heliograph.model import TopicPartition
    from heliograph.wire.messages.fetch_response import PartitionData


class PositionListener(ContinuityListener, Protocol):
    """Decides where to read."""

    def decide_position(self, partition: FetchPartition, earliest: int, latest: int) -> int | None:
        """Return the offset to read from, given the ends of the log; None if the partition was failed."""

    def on_recreated(self, partition: FetchPartition, why: str) -> bool:
        """The topic was created again: return whether to read the new one, from its start."""


class FetchPositions:
    """The positions of one fetcher's partitions."""

    def __init__(
        self,
        partitions: dict[TopicPartition, FetchPartition],
        cluster: Cluster,
        network: Network,
        retries: FetchRetries,
        listener: PositionListener,
        on_error: Callable[[FetchPartition, int], None],
    ) -> None:
        self._partitions = partitions
        self._retries = retries
        self._listener = listener
        self._on_error = on_error
        self._ends = LogEnds(cluster, network, retries, self)
        self._continuity = Continuity(partitions, cluster, network, retries, self, listener)

    @property
    def has_pending(self) -> bool:
        """Return whether a broker's response about a log is awaited or due to be requested."""
        return bool(self._ends.wanted) or self._continuity.has_doubts

    def pump(self, now: float) -> None:
        """Send the requests that are due."""
        self._ends.pump(now)
        self._continuity.pump(now)

    def remove(self, partition: FetchPartition) -> None:
        """Stop looking for a partition's position."""
        self._ends.forget(partition.tp)
        self._continuity.clear_doubt(partition)

    def seek(self, partition: FetchPartition, position: int) -> None:
        """Read a partition from another offset, which is known to be in its log."""
        partition.position = position
        self._continuity.clear_doubt(partition)

    def look_up(self, partition: FetchPartition) -> None:
        """Decide a partition's position when the ends of its log are known; it is not read until then."""
        partition.needs_ends = True
        self._ends.want(partition.tp)

    def restart_at(self, partition: FetchPartition, position: int) -> None:
        """Read a partition from another offset, once the ends of its log are known."""
        partition.position = position
        self.look_up(partition)
        self._continuity.clear_doubt(partition)

    def restart_recreated(self, partition: FetchPartition, why: str) -> bool:
        """Read a topic that was created again from its start, if the listener accepts it; return whether it does."""
        is_accepted = self._listener.on_recreated(partition, why)
        if is_accepted:
            self.restart_at(partition, 0)
        return is_accepted

    def admits(self, partition: FetchPartition, data: PartitionData) -> bool:
        """Return whether fetched records continue those that were delivered; if not, they are dropped."""
        return self._continuity.admits(partition, data)

    def on_ends(self, tp: TopicPartition, earliest: int, latest: int) -> None:
        """Take both ends of a partition's log."""
        partition = self._partitions.get(tp)
        if partition is None:
            return
        partition.log_start, partition.high_watermark, partition.high_watermark_at = earliest, latest, time.monotonic()
        if self._continuity.reaches(partition, latest):
            self.decide(partition)

    def on_ends_refused(self, tp: TopicPartition, code: int) -> None:
        """Take the error of a broker that does not return the ends of a partition's log."""
        partition = self._partitions.get(tp)
        if partition is not None:
            self._on_error(partition, code)

    def decide(self, partition: FetchPartition) -> None:
        """Read from the offset that the listener chooses, in a log whose ends are known."""
        position = self._listener.decide_position(partition, partition.log_start, partition.high_watermark)
        if position is not None:
            partition.position, partition.needs_ends = position, False
            self._retries.reset_failures(partition)
            self._continuity.clear_doubt(partition)
