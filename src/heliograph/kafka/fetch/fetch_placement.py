"""Decides which broker, and which lane to it, reads a partition: its leader, or a replica in our rack (KIP-392).

The leader names the replica to read from; it is used for a limited time, and left as soon as it fails. With every new
metadata all partitions are placed again, and a topic that has another id than before counts as created again. The
leader of a topic that we may not describe will not be known: the caller fails its partitions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.wire.batches.leader_epochs import UNKNOWN_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.fetch.fetch_lanes import FetchLane, FetchLanes, FetchPartition, FetchRetries
    from heliograph.kafka.fetch.fetch_positions import FetchPositions
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.model import TopicPartition


_READ_REPLICA_LEASE_S = 300.0


class FetchPlacement:
    """Tracks the partitions without a broker to read them from, and puts each on a lane once there is one."""

    def __init__(
        self,
        partitions: dict[TopicPartition, FetchPartition],
        cluster: Cluster,
        lanes: FetchLanes,
        retries: FetchRetries,
        positions: FetchPositions,
        on_hidden: Callable[[FetchPartition], None],
    ) -> None:
        self._partitions = partitions
        self._cluster = cluster
        self._lanes = lanes
        self._retries = retries
        self._positions = positions
        self._on_hidden = on_hidden
        self._unassigned: dict[TopicPartition, None] = {}
        self._seen_version = -1

    @property
    def has_unassigned(self) -> bool:
        """Return whether a partition waits for a broker."""
        return bool(self._unassigned)

    def add(self, tp: TopicPartition) -> None:
        """Place a partition, at once or as soon as its leader is known."""
        self._unassigned[tp] = None

    def remove(self, tp: TopicPartition) -> None:
        """Stop placing a partition."""
        self._unassigned.pop(tp, None)

    def pump(self, now: float) -> None:
        """Assign the partitions without a broker; all partitions again if there is new metadata."""
        is_new = self._cluster.version != self._seen_version
        self._seen_version = self._cluster.version
        for tp in list(self._partitions if is_new else self._unassigned):
            partition = self._partitions.get(tp)
            if partition is not None and (not is_new or self._accepts_topic(partition)):
                self._assign(partition, now)

    def _accepts_topic(self, partition: FetchPartition) -> bool:
        """Return whether a partition's topic has the same id as before, or the listener accepts the new topic."""
        topic_id = self._cluster.topic_ids.get(partition.tp.topic)
        if partition.topic_id is None or topic_id is None or topic_id == partition.topic_id:
            partition.topic_id = topic_id or partition.topic_id
            return True
        partition.topic_id = topic_id
        return self._positions.restart_recreated(partition, "the topic has another id than before")

    def _assign(self, partition: FetchPartition, now: float) -> None:
        replica = partition.read_replica
        if replica is not None and (partition.read_replica_until < now or not self._cluster.has_broker(replica)):
            partition.read_replica = None
        tp = partition.tp
        node_id = self._cluster.leaders.get(tp) if partition.read_replica is None else partition.read_replica
        if node_id is None:
            if tp.topic in self._cluster.hidden:
                self._on_hidden(partition)
                return
            self._unassigned[tp] = None
            self._cluster.want_metadata()
            return
        self._unassigned.pop(tp, None)
        lane = self._lanes.assign(partition, node_id)
        leader_epoch = self._cluster.leader_epochs.get(tp, UNKNOWN_EPOCH)
        if partition.leader_epoch != leader_epoch:
            partition.leader_epoch = leader_epoch
            lane.mark_dirty(tp)
        if partition.needs_ends:
            self._positions.look_up(partition)

    def use_replica(self, partition: FetchPartition, node_id: int) -> None:
        """Read a partition from the replica that its leader names."""
        partition.read_replica = node_id
        partition.read_replica_until = time.monotonic() + _READ_REPLICA_LEASE_S
        self._unassigned[partition.tp] = None

    def return_to_leader(self, partition: FetchPartition, why: str) -> None:
        """Read a partition from its leader again, after a pause: the leader may name the same replica again."""
        partition.read_replica = None
        self._unassigned[partition.tp] = None
        self._retries.retry([partition.tp], why)

    def leave_replicas(self, lane: FetchLane) -> None:
        """Return to their leaders the partitions that were read from a replica on a broker that is unreachable."""
        for partition in lane.members.values():
            if partition.read_replica is not None and partition.retry_at <= time.monotonic():
                self.return_to_leader(partition, f"the near replica on broker {lane.node_id} cannot be reached")
