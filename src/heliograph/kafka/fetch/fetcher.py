"""Fetches whole batches from the source: one request in flight per lane, the next before the last is produced.

`FetchPlacement` assigns partitions to brokers and lanes, `FetchPositions` finds the offset at which to read each,
`FetchRequests` sends the requests of the lanes. The fetcher takes the responses and delivers their records.

Invariant: a partition's position moves only when the listener has taken its records, so a lost response is requested
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED, Verdict, describe, verdict_of
from heliograph.kafka.fetch.fetch_lanes import FetchLanes, FetchPartition, FetchRetries
from heliograph.kafka.fetch.fetch_placement import FetchPlacement
from heliograph.kafka.fetch.fetch_positions import FetchPositions, PositionListener
from heliograph.kafka.fetch.fetch_requests import FetchRequests
from heliograph.model import TopicPartition
from heliograph.wire.batches.leader_epochs import EpochHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from heliograph.kafka.fetch.fetch_lanes import FetchLane
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.request_options import FetchLimits
    from heliograph.wire.messages.fetch_response import FetchResponseData, PartitionData


class FetchListener(PositionListener, Protocol):
    """Takes the records."""

    def on_records(self, partition: FetchPartition, data: PartitionData, buffer: Buffer) -> None:
        """Take the records and move `partition.position`; hold the buffer for what is kept."""

    def on_source_failed(self, tp: TopicPartition, why: str) -> None:
        """The partition cannot be read."""


class Fetcher:
    """Reads the partitions of one task from one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        limits: FetchLimits,
        listener: FetchListener,
        *,
        lanes: int = 1,
        memory_bytes: Callable[[], int] = lambda: 64 << 20,
    ) -> None:
        self.partitions: dict[TopicPartition, FetchPartition] = {}
        self._cluster = cluster
        self._listener = listener
        self._lanes = FetchLanes(lanes, memory_bytes)
        self._retries = FetchRetries(self.partitions, cluster)
        self._positions = FetchPositions(self.partitions, cluster, network, self._retries, listener, self._on_error)
        self._placement = FetchPlacement(
            self.partitions, cluster, self._lanes, self._retries, self._positions, self._on_hidden
        )
        self._requests = FetchRequests(cluster, network, limits, self._lanes, self._on_response, self._on_lost)

    @property
    def limits(self) -> FetchLimits:
        """The limits of the next requests."""
        return self._requests.limits

    @limits.setter
    def limits(self, limits: FetchLimits) -> None:
        self._requests.limits = limits

    @property
    def in_flight_bytes(self) -> int:
        """The most that the responses in flight may bring."""
        return self._requests.in_flight_bytes

    @property
    def throttled_ms(self) -> int:
        """The time that brokers have asked us to wait."""
        return self._requests.throttled_ms

    @property
    def growth(self) -> int:
        """The factor by which a request may exceed its limits over the longest round trip."""
        return self._requests.growth

    @property
    def has_retries(self) -> bool:
        """Return whether a partition waits for its next try or for a first response."""
        return (
            bool(self._retries)
            or self._placement.has_unassigned
            or self._positions.has_pending
            or self._requests.is_throttled
        )

    def add(
        self,
        tp: TopicPartition,
        position: int | None,
        topic_id: UUID | None = None,
        epochs: EpochHistory | None = None,
    ) -> None:
        """Begin to read a partition after records of these epochs; without a position `decide_position` chooses one."""
        if tp not in self.partitions:
            self._cluster.watch([tp.topic])
        self.partitions[tp] = FetchPartition(tp, position, topic_id, epochs=epochs or EpochHistory())
        self._placement.add(tp)

    def remove(self, tp: TopicPartition) -> None:
        """Stop reading a partition; a response in flight is dropped when it comes."""
        partition = self.partitions.pop(tp, None)
        if partition is None:
            return
        if partition.lane is not None:
            partition.lane.remove(tp)
        self._placement.remove(tp)
        self._retries.remove(tp)
        self._positions.remove(partition)
        self._cluster.unwatch(tp.topic)

    def seek(self, tp: TopicPartition, position: int) -> None:
        """Read a partition from another offset, which is known to be in its log."""
        partition = self.partitions.get(tp)
        if partition is not None:
            self._positions.seek(partition, position)

    def retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        """Read partitions again after a pause, with new metadata."""
        self._retries.retry(tps, why)

    def pump(self, now: float, wants: Callable[[FetchPartition], bool], room_bytes: Callable[[], int]) -> None:
        """Send the requests that are due."""
        self._placement.pump(now)
        self._positions.pump(now)
        for lane in self._lanes:
            if lane.is_busy or lane.not_before > now or not lane.members:
                continue
            connection = self._cluster.connection_to(lane.node_id, lane.number)
            if connection is None:
                if not self._cluster.is_connecting_to(lane.node_id, lane.number):
                    self._placement.leave_replicas(lane)
            elif self._requests.is_distant(connection) and self._lanes.spread(lane.node_id):
                self.pump(now, wants, room_bytes)
                return
            else:
                self._requests.send(lane, connection, now, wants, room_bytes())

    def _on_response(self, lane: FetchLane, response: FetchResponseData, buffer: Buffer) -> None:
        if response.error_code:
            lane.reset()
            if verdict_of(response.error_code) is not Verdict.NEW_SESSION:
                self.retry(list(lane.members), describe(response.error_code))
            return
        lane.on_response(response.session_id)
        for data in response.partitions:
            tp = TopicPartition(data.topic, data.partition)
            partition = lane.members.get(tp)
            if partition is None or not lane.is_current(partition):
                continue  # removed, or given another position, while the request was in flight
            lane.mark_dirty(tp)
            if data.error_code:
                self._on_error(partition, data.error_code)
                continue
            partition.high_watermark, partition.high_watermark_at = data.high_watermark, lane.answered_at
            partition.stable_end = data.last_stable_offset if data.last_stable_offset >= 0 else None
            partition.log_start = data.log_start_offset
            self._retries.clear_issue(partition)
            if data.preferred_read_replica >= 0:
                self._placement.use_replica(partition, data.preferred_read_replica)
            elif data.records is not None:
                lane.move_to_back(tp)
                self._deliver(partition, data, buffer)
        if response.session_id == 0:
            lane.reset()

    def _deliver(self, partition: FetchPartition, data: PartitionData, buffer: Buffer) -> None:
        if self._positions.admits(partition, data):
            partition.backoff.reset()
            self._listener.on_records(partition, data, buffer)

    def _on_lost(self, lane: FetchLane, why: str) -> None:
        lane.on_lost()
        self._placement.leave_replicas(lane)
        self.retry(list(lane.members), why)

    def _on_error(self, partition: FetchPartition, code: int) -> None:
        verdict = verdict_of(code)
        if partition.read_replica is not None:
            # A follower may be older than its leader, so only an error of the leader counts.
            self._placement.return_to_leader(partition, describe(code))
        elif verdict is Verdict.OUT_OF_RANGE:
            self._positions.look_up(partition)
        elif verdict is Verdict.FAIL_PARTITION:
            needs = "; the principal needs READ on the topic" if code == TOPIC_AUTHORIZATION_FAILED else ""
            why = f"the source broker refused to read it: {describe(code)}{needs}"
            self._listener.on_source_failed(partition.tp, why)
        else:
            if verdict is Verdict.RETRY_WITH_METADATA:
                self._placement.doubt_topic(partition)
            self.retry([partition.tp], describe(code))

    def _on_hidden(self, partition: FetchPartition) -> None:
        self._on_error(partition, TOPIC_AUTHORIZATION_FAILED)
