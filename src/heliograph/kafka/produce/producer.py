"""Produces ready-made batches as an idempotent producer: pipelined, in order per partition, retried for ever.

`BatchProducer` decides which partitions may send now. `target_partition` has the rules that keep order and prevent
duplicates, `produce_requests` sends and delivers answers, `refused_batches` handles what was not acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.errors import TaskError
from heliograph.kafka.produce.produce_lanes import Lane, ProduceLanes, TargetLeaders
from heliograph.kafka.produce.produce_requests import ProduceRequests
from heliograph.kafka.produce.producer_session import FurtherSessions
from heliograph.kafka.produce.queue_memory import QueueMemory
from heliograph.kafka.produce.refused_batches import ProduceErrors
from heliograph.kafka.produce.target_partition import (
    DRAINING_STATES,
    Backlog,
    TargetPartition,
    TargetPartitionState,
)

if TYPE_CHECKING:
    from heliograph.kafka.net.buffers import BufferPool
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.produce.producer_session import ProducerSession
    from heliograph.kafka.produce.target_partition import Outgoing, ProduceListener
    from heliograph.kafka.request_options import ProduceLimits
    from heliograph.model import TopicPartition

_OPEN = TargetPartitionState.OPEN


class BatchProducer:
    """Writes the partitions of one task to one cluster; the only class of this package that callers need."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        pool: BufferPool,
        session: ProducerSession,
        listener: ProduceListener,
        limits: ProduceLimits,
    ) -> None:
        self.partitions: dict[TopicPartition, TargetPartition] = {}
        self._cluster = cluster
        self._session = session
        self.further_sessions = FurtherSessions(cluster, network)
        self._lane_count = limits.lanes
        self._backlog = Backlog()
        self._memory = QueueMemory(pool, listener)
        self._lanes = ProduceLanes(cluster, limits.max_in_flight)
        self._leaders = TargetLeaders(cluster, self._lanes, self._memory)
        self._errors = ProduceErrors(cluster, session, listener, self._leaders, self._memory)
        self._requests = ProduceRequests(cluster, network, session, limits, self._lanes, self._errors)

    @property
    def throttled_ms(self) -> int:
        """The sum of the pauses that brokers demanded."""
        return self._lanes.throttled_ms

    @property
    def is_idle(self) -> bool:
        """Return whether no batch is queued or in flight."""
        return all(partition.is_idle for partition in self.partitions.values())

    @property
    def unsettled_batches(self) -> int:
        """The number of batches that were sent and are neither acknowledged nor dropped."""
        return self._backlog.unsettled_batches

    @property
    def has_unsettled(self) -> bool:
        """Return whether a batch is queued or waits for its acknowledgement."""
        return bool(self._backlog.ready or self._backlog.unsettled_batches)

    @property
    def has_retries(self) -> bool:
        """Return whether a partition waits for its next try, for a leader, or for the coordinator."""
        if self._lanes.has_pauses or self._leaders.are_missing or self._session.is_busy:
            return True
        return any(not p.in_flight or p.state in DRAINING_STATES for p in self._backlog.ready.values())

    def hold(self) -> None:
        """Send no new batch until `release`."""
        self._requests.is_held = True

    def release(self) -> None:
        """Send new batches again."""
        self._requests.is_held = False

    def add_topic_watch(self, topic: str) -> None:
        """Learn a topic's leaders before the first batch for it."""
        self._cluster.watch([topic])

    def add(self, tp: TopicPartition, *, again: bool = False) -> TargetPartition:
        """Return the state of a target partition, made on first use; `again`: made anew for one that is idle (rule H).

        Only without transactions: a transaction has one producer id.
        """
        partition = self.partitions.get(tp)
        if partition is None:
            lane = len(self.partitions) % self._lane_count
            partition = self.partitions[tp] = TargetPartition(tp, self._backlog, lane)
        elif again:
            if not partition.is_idle or self._session.transactional_id is not None:
                raise TaskError(f"{tp} cannot begin again under another producer id; the task begins again.")
            number = partition.beginning + 1
            session = self.further_sessions.of(number, lambda: {p.beginning for p in self.partitions.values()})
            partition = self.partitions[tp] = TargetPartition(tp, self._backlog, partition.lane, number, session)
        self._leaders.follow(partition)
        return partition

    def enqueue(self, partition: TargetPartition, outgoing: Outgoing) -> None:
        """Queue a checked batch; it is stamped as ours when it is first sent."""
        partition.enqueue(outgoing)
        node_id = self._cluster.leaders.get(partition.tp)
        if node_id is not None:
            self._lanes.use((node_id, partition.lane))

    def pump(self, now: float) -> None:
        """Send the batches that may leave now."""
        self._session.pump(now)
        self.further_sessions.pump(now)
        self._lanes.end_pauses(now)
        self._leaders.pump()
        if not self._backlog.ready or not self._session.is_ready or self._lanes.are_full:
            return
        by_lane = self._sendable_by_lane(now)
        self._leaders.pump()
        self._session.pump(now)  # adds the partitions that were just found not to be in the transaction
        for lane, partitions in by_lane.items():
            connection = self._lanes.connection(lane)
            if connection is not None:
                self._requests.fill(lane, connection, partitions)
            else:
                self._leaders.cut_off(lane, partitions)

    def _sendable_by_lane(self, now: float) -> dict[Lane, list[TargetPartition]]:
        by_lane: dict[Lane, list[TargetPartition]] = {}
        leaders, missing = self._cluster.leaders, self._cluster.missing_since
        all_may_leave = self._requests.all_may_leave
        for tp, partition in self._backlog.ready.items():
            if partition.state is not _OPEN and not partition.may_send(now):
                continue
            node_id = leaders.get(tp) if tp.topic not in missing else None
            if node_id is None:
                self._leaders.miss(partition)  # and not into the transaction, where it would keep out the others
            elif partition.in_flight and not (partition.state is _OPEN and partition.node_id == node_id):
                continue
            elif all_may_leave or self._requests.may_leave(partition):
                by_lane.setdefault((node_id, partition.lane), []).append(partition)
        return by_lane

    def discard(self, tp: TopicPartition, *, sent_too: bool = False) -> Outgoing | None:
        """Drop the batches of a partition that were not sent, and return the oldest of them.

        Those that a broker may have seen are still retried, unless `sent_too`: then no answer counts any more. Unless
        `on_stuck` calls this, no more batches may follow.
        """
        partition = self.partitions[tp]
        oldest = partition.drop_unsent()
        if sent_too and partition.state is not TargetPartitionState.FAILED:
            partition.fail()
        if self._memory.parking != tp:
            self._leaders.leave(partition)
        return oldest

    def give_up(self, tp: TopicPartition, why: str) -> None:
        """Stop retrying the sent batches of a partition if no answer is awaited; it is reported as failed."""
        partition = self.partitions[tp]
        if partition.sent and not partition.awaited and partition.state is not TargetPartitionState.FAILED:
            self._errors.give_up(partition, partition.sent[0], why)
