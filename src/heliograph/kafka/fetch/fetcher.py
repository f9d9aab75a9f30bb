"""Fetches whole batches from the source: one request under way per lane, the next before the last is produced.

A partition's position only moves here, when its records have been handed on, so a lost answer is simply asked for
again. Where a partition has no position, or one outside of the log, both ends of the log are asked for and
`Listener.decide_position` says where to go on: nothing is skipped in silence. A partition is read from its leader, or
from the replica in our rack that the leader names (KIP-392). A request asks for more the longer the round trip is, or
the distance would cap the rate. Records that may be of another log than those before are not handed on (`continuity`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.consumer import FetchRequest, FetchResponse

from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED, Verdict, describe, verdict_of
from heliograph.kafka.fetch import continuity
from heliograph.kafka.fetch.continuity import Continuity
from heliograph.kafka.fetch.fetch_lanes import FetchLanes, FetchPartition
from heliograph.kafka.fetch.log_ends import LogEnds
from heliograph.model import TopicPartition
from heliograph.wire.batches.leader_epochs import UNKNOWN_EPOCH, EpochHistory
from heliograph.wire.messages.fetch_response import (
    MAX_VERSION,
    MIN_VERSION,
    FetchResponseData,
    PartitionData,
    decode_fetch_response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from heliograph.kafka.fetch.fetch_lanes import FetchLane, LaneRequest
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.request_options import FetchLimits


_LEAST_WORTH_ASKING = 4  # of a full request: less room than a fourth is not worth a request
_SHORT_ROUND_TRIP_S = 0.005
_MOST_GROWTH = 8
_LONG_ROUND_TRIP_S = 0.02
_READ_REPLICA_LEASE_S = 300.0
_Topic = FetchRequest.FetchTopic
_Partition = FetchRequest.FetchTopic.FetchPartition
_Forgotten = FetchRequest.ForgottenTopic


class FetchListener(continuity.ContinuityListener, Protocol):
    """Who gets the records."""

    def on_records(self, partition: FetchPartition, data: PartitionData, buffer: Buffer) -> None:
        """Take the records and move `partition.position`; hold the buffer for what is kept."""

    def decide_position(self, partition: FetchPartition, earliest: int, latest: int) -> int | None:
        """Where to read from, given the log's ends; None where the partition was failed."""

    def on_recreated(self, partition: FetchPartition, why: str) -> bool:
        """It is not the topic it was: whether to read the new one, from its start."""

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
        self.in_flight_bytes = 0
        self.throttled_ms = 0
        self.growth = 1
        self._cluster = cluster
        self._network = network
        self.limits = limits
        self._listener = listener
        self._lanes = FetchLanes(lanes, memory_bytes)
        self._homeless: dict[TopicPartition, None] = {}
        self._failing: set[TopicPartition] = set()
        self._seen_version = -1
        self._ends = LogEnds(cluster, network, self)
        self._continuity = Continuity(cluster, network, self, listener)

    def add(
        self,
        tp: TopicPartition,
        position: int | None,
        topic_id: UUID | None = None,
        epochs: EpochHistory | None = None,
    ) -> None:
        """Begin to read a partition, at a position or where `decide_position` says, behind records of these epochs."""
        if tp not in self.partitions:
            self._cluster.watch([tp.topic])
        self.partitions[tp] = FetchPartition(tp, position, topic_id, epochs=epochs or EpochHistory())
        self._homeless[tp] = None

    def remove(self, tp: TopicPartition) -> None:
        """Read a partition no more; an answer under way is dropped when it comes."""
        partition = self.partitions.pop(tp, None)
        if partition is not None and partition.lane is not None:
            partition.lane.remove(tp)
        self._homeless.pop(tp, None)
        self._failing.discard(tp)
        self._ends.forget(tp)
        if partition is not None:
            self._continuity.believe(partition)
            self._cluster.unwatch(tp.topic)

    @property
    def has_retries(self) -> bool:
        """Whether a partition waits for its next try or for a first answer."""
        if self._failing or self._homeless or self._ends.wanted or self._continuity.has_doubts:
            return True
        now = time.monotonic()
        return any(lane.not_before > now for lane in self._lanes)

    def seek(self, tp: TopicPartition, position: int) -> None:
        """Read a partition from another place on."""
        partition = self.partitions.get(tp)
        if partition is not None:
            partition.position = position
            self._continuity.believe(partition)

    def wanted_again(self, tp: TopicPartition) -> None:
        """A partition that was held back may be wanted now."""
        partition = self.partitions.get(tp)
        if partition is not None and partition.lane is not None:
            partition.lane.changed(tp)

    def pump(self, now: float, wants: Callable[[FetchPartition], bool], room_bytes: Callable[[], int]) -> None:
        """Send the requests that are due."""
        self._find_homes(now)
        self._ends.pump(now)
        self._continuity.pump(now)
        for lane in self._lanes:
            if lane.is_busy or lane.not_before > now or not lane.members:
                continue
            connection = self._cluster.connection_to(lane.node_id, lane.number)
            if connection is None:
                if not self._cluster.is_connecting_to(lane.node_id, lane.number):
                    self._leave_replicas(lane)
            elif self._is_far(connection) and self._lanes.spread(lane.node_id):
                self.pump(now, wants, room_bytes)
                return
            else:
                self._ask(lane, connection, now, wants, room_bytes())

    def _ask(
        self,
        lane: FetchLane,
        connection: Connection,
        now: float,
        wants: Callable[[FetchPartition], bool],
        room_bytes: int,
    ) -> None:
        """Ask for what is wanted, if there is room for enough of it."""
        growth = self._growth(connection)
        self.growth = max(self.growth, growth)
        grown_bytes = max(self.limits.max_bytes, min(self.limits.max_bytes * growth, self.limits.grows_to_bytes))
        most_bytes = min(lane.halved(grown_bytes), self._lanes.share_bytes)
        room = min(most_bytes, room_bytes)
        request = lane.next_request(now, wants) if room * _LEAST_WORTH_ASKING >= most_bytes else None
        if request is not None:
            partition_max_bytes = lane.halved(self.limits.partition_max_bytes * growth)
            self._fetch(
                lane, connection, request, min(room, partition_max_bytes * len(lane.known)), partition_max_bytes
            )
            self._lanes.has_asked(lane)

    def _growth(self, connection: Connection) -> int:
        most = _MOST_GROWTH if self.limits.grows_to_bytes else 1
        return max(1, min(most, round(connection.round_trip_s / _SHORT_ROUND_TRIP_S)))

    def _is_far(self, connection: Connection) -> bool:
        return self.limits.grows_to_bytes > 0 and connection.round_trip_s >= _LONG_ROUND_TRIP_S

    # --- where a partition is read ------------------------------------------------------------------------------------

    def _find_homes(self, now: float) -> None:
        """Put each partition on the lane of the broker to ask; all of them again when metadata has come."""
        is_new = self._cluster.version != self._seen_version
        self._seen_version = self._cluster.version
        for tp in list(self.partitions if is_new else self._homeless):
            partition = self.partitions.get(tp)
            if partition is None or (is_new and not self._is_same_topic(partition)):
                continue
            replica = partition.read_replica
            if replica is not None and (partition.read_replica_until < now or not self._cluster.has_broker(replica)):
                partition.read_replica = None
            node_id = self._cluster.leaders.get(tp) if partition.read_replica is None else partition.read_replica
            if node_id is None:
                self._homeless[tp] = None
                self._cluster.want_metadata()
            else:
                self._homeless.pop(tp, None)
                self._move(partition, node_id)

    def _move(self, partition: FetchPartition, node_id: int) -> None:
        lane = self._lanes.put(partition, node_id)
        leader_epoch = self._cluster.leader_epochs.get(partition.tp, UNKNOWN_EPOCH)
        if partition.leader_epoch != leader_epoch:
            partition.leader_epoch = leader_epoch
            lane.changed(partition.tp)
        if partition.needs_ends:
            self._ends.want(partition.tp)

    def _is_same_topic(self, partition: FetchPartition) -> bool:
        topic_id = self._cluster.topic_ids.get(partition.tp.topic)
        if partition.topic_id is None or topic_id is None or topic_id == partition.topic_id:
            partition.topic_id = topic_id or partition.topic_id
            return True
        partition.topic_id = topic_id
        return self.begin_again(partition, "the topic has another id than before")

    def begin_again(self, partition: FetchPartition, why: str) -> bool:
        """It is not the topic it was; whether it is read from its start."""
        is_wanted = self._listener.on_recreated(partition, why)
        if is_wanted:
            self.begin_at(partition, 0)
        return is_wanted

    def begin_at(self, partition: FetchPartition, position: int) -> None:
        """Read on at another place, once the log's ends are known."""
        partition.position, partition.needs_ends = position, True
        self._ends.want(partition.tp)
        self._continuity.believe(partition)

    # --- fetching -----------------------------------------------------------------------------------------------------

    def _fetch(
        self, lane: FetchLane, connection: Connection, asked: LaneRequest, max_bytes: int, partition_max_bytes: int
    ) -> None:
        by_topic: dict[str, list[Any]] = {}
        for tp, place in asked.changed.items():
            by_topic.setdefault(tp.topic, []).append(
                _Partition(
                    partition=tp.partition,
                    current_leader_epoch=place.leader_epoch,
                    fetch_offset=place.position,
                    last_fetched_epoch=-1,
                    log_start_offset=-1,
                    partition_max_bytes=partition_max_bytes,
                )
            )
        forgotten: dict[str, list[int]] = {}
        for tp in asked.forgotten:
            forgotten.setdefault(tp.topic, []).append(tp.partition)
        request = FetchRequest(
            version=connection.version_of(FetchRequest, MAX_VERSION, MIN_VERSION),
            replica_id=-1,
            max_wait_ms=lane.wait_ms(asked, self.limits.max_wait_ms),
            min_bytes=self.limits.min_bytes,
            max_bytes=max_bytes,
            isolation_level=self.limits.isolation_level,
            session_id=asked.session_id,
            session_epoch=asked.session_epoch,
            forgotten_topics_data=[_Forgotten(topic=name, partitions=numbers) for name, numbers in forgotten.items()],
            rack_id=self.limits.rack,
            topics=[_Topic(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()],
        )
        lane.is_busy = True
        self.in_flight_bytes += max_bytes

        def done() -> None:
            lane.is_busy = False
            self.in_flight_bytes -= max_bytes

        def fetched(answer: FetchResponseData, buffer: Buffer) -> None:
            done()
            self._take(lane, answer, buffer)

        def lost(why: str) -> None:
            done()
            self._lost_lane(lane, why)

        deadline = self._cluster.request_deadline
        connection.request(request, FetchResponse, fetched, lost, deadline, decode=decode_fetch_response, pooled=True)
        self._network.flush(connection)

    def _take(self, lane: FetchLane, answer: FetchResponseData, buffer: Buffer) -> None:
        if answer.throttle_time_ms > 0:
            self.throttled_ms += answer.throttle_time_ms
            lane.not_before = time.monotonic() + answer.throttle_time_ms / 1000
        if answer.error_code:
            lane.reset()
            if verdict_of(answer.error_code) is not Verdict.NEW_SESSION:
                self.retry(list(lane.members), describe(answer.error_code))
            return
        lane.answered(answer.session_id)
        for data in answer.partitions:
            tp = TopicPartition(data.topic, data.partition)
            partition = lane.members.get(tp)
            if partition is None or not lane.is_still_wanted(partition):
                continue  # removed, or given another position, while the request was under way
            lane.changed(tp)
            if data.error_code:
                self._refused(partition, data.error_code)
                continue
            partition.high_watermark = data.high_watermark
            partition.log_start = data.log_start_offset
            self._forgive(partition)
            if data.preferred_read_replica >= 0:
                partition.read_replica = data.preferred_read_replica
                partition.read_replica_until = time.monotonic() + _READ_REPLICA_LEASE_S
                self._homeless[tp] = None
            elif data.records is not None:
                lane.to_the_back(tp)
                self._hand_on(partition, data, buffer)
        if answer.session_id == 0:
            lane.reset()

    def _hand_on(self, partition: FetchPartition, data: PartitionData, buffer: Buffer) -> None:
        if self._continuity.admits(partition, data):
            partition.backoff.reset()
            self._listener.on_records(partition, data, buffer)

    def _lost_lane(self, lane: FetchLane, why: str) -> None:
        lane.lost()
        self._leave_replicas(lane)
        self.retry(list(lane.members), why)

    def _leave_replicas(self, lane: FetchLane) -> None:
        """The broker cannot be reached: read from the leaders what was read here because it is near."""
        for partition in lane.members.values():
            if partition.read_replica is not None and partition.retry_at <= time.monotonic():
                self._back_to_leader(partition)
                self.retry([partition.tp], f"the near replica on broker {lane.node_id} cannot be reached")

    def _back_to_leader(self, partition: FetchPartition) -> None:
        partition.read_replica = None
        self._homeless[partition.tp] = None

    def _refused(self, partition: FetchPartition, code: int) -> None:
        verdict = verdict_of(code)
        if partition.read_replica is not None:
            # A follower may lag behind; only the leader's word counts. It may name the same one again: hence the pause.
            self._back_to_leader(partition)
            self.retry([partition.tp], describe(code))
        elif verdict is Verdict.OUT_OF_RANGE:
            partition.needs_ends = True
            self._ends.want(partition.tp)
        elif verdict is Verdict.FAIL_PARTITION:
            needs = "; the principal needs READ on the topic" if code == TOPIC_AUTHORIZATION_FAILED else ""
            why = f"the source broker refused to read it: {describe(code)}{needs}"
            self._listener.on_source_failed(partition.tp, why)
        else:
            self.retry([partition.tp], describe(code))

    def _forgive(self, partition: FetchPartition) -> None:
        partition.issue = None
        self._failing.discard(partition.tp)

    def retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        """Try these partitions again after a pause, with new metadata."""
        now = time.monotonic()
        for tp in tps:
            partition = self.partitions.get(tp)
            if partition is not None:
                partition.retry_at = now + partition.backoff.next_pause_s()
                partition.issue = why
                self._failing.add(tp)
        self._cluster.want_metadata()

    # --- what the log's ends say --------------------------------------------------------------------------------------

    def on_ends(self, tp: TopicPartition, earliest: int, latest: int) -> None:
        """Both ends of a partition's log are known."""
        partition = self.partitions.get(tp)
        if partition is None:
            return
        partition.log_start, partition.high_watermark = earliest, latest
        if self._continuity.reaches(partition, latest):
            self.place(partition)

    def place(self, partition: FetchPartition) -> None:
        """Go on where the listener says, in a log whose ends are known."""
        position = self._listener.decide_position(partition, partition.log_start, partition.high_watermark)
        if position is not None:
            partition.position, partition.needs_ends = position, False
            self._forgive(partition)
            partition.backoff.reset()
            self._continuity.believe(partition)

    def on_ends_refused(self, tp: TopicPartition, code: int) -> None:
        """The broker does not tell the ends of a partition's log."""
        partition = self.partitions.get(tp)
        if partition is not None:
            self._refused(partition, code)

    def is_waiting(self, tp: TopicPartition, now: float) -> bool:
        """Whether a partition's next try is not due yet."""
        partition = self.partitions.get(tp)
        return partition is not None and partition.retry_at > now
