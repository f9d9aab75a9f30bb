"""Sends the fetches of a task: sizes each request, encodes it within its lane's session, and honours throttling.

The longer the round trip, the larger a request may be, or the distance would limit the rate. No request asks for more
than its lane's share of the memory, and none is sent while only a small part of it would fit.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kafka.protocol.consumer import FetchRequest, FetchResponse

from heliograph.wire.messages.fetch_response import MAX_VERSION, MIN_VERSION, FetchResponseData, decode_fetch_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.fetch.fetch_lanes import FetchLane, FetchLanes, FetchPartition, LaneRequest
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.request_options import FetchLimits


_LEAST_PART = 4  # less room than a fourth of a full request is not worth a request
_SHORT_ROUND_TRIP_S = 0.005
_LONG_ROUND_TRIP_S = 0.02
_MAX_GROWTH = 8
_CONSUMER = -1
_UNKNOWN = -1
_Topic = FetchRequest.FetchTopic
_Partition = FetchRequest.FetchTopic.FetchPartition
_Forgotten = FetchRequest.ForgottenTopic


class FetchRequests:
    """The requests of one fetcher that are in flight, at most one for each lane."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        limits: FetchLimits,
        lanes: FetchLanes,
        on_response: Callable[[FetchLane, FetchResponseData, Buffer], None],
        on_lost: Callable[[FetchLane, str], None],
    ) -> None:
        self.limits = limits
        self.in_flight_bytes = 0
        self.throttled_ms = 0
        self.growth = 1  # the largest so far
        self._cluster = cluster
        self._network = network
        self._lanes = lanes
        self._on_response = on_response
        self._on_lost = on_lost

    @property
    def is_throttled(self) -> bool:
        """Return whether a lane waits because its broker asked it to."""
        now = time.monotonic()
        return any(lane.not_before > now for lane in self._lanes)

    def is_distant(self, connection: Connection) -> bool:
        """Return whether a broker's round trip is so long that one connection would be idle too often."""
        return self.limits.grows_to_bytes > 0 and connection.round_trip_s >= _LONG_ROUND_TRIP_S

    def send(
        self,
        lane: FetchLane,
        connection: Connection,
        now: float,
        wants: Callable[[FetchPartition], bool],
        room_bytes: int,
    ) -> None:
        """Send a lane's next request, if a partition is wanted and enough of the response has room."""
        limits = self.limits
        growth = self._growth(connection)
        self.growth = max(self.growth, growth)
        grown_bytes = max(limits.max_bytes, min(limits.max_bytes * growth, limits.grows_to_bytes))
        full_bytes = min(lane.halved(grown_bytes), self._lanes.share_bytes)
        max_bytes = min(full_bytes, room_bytes)
        content = lane.next_request(now, wants) if max_bytes * _LEAST_PART >= full_bytes else None
        if content is not None:
            partition_max_bytes = lane.halved(limits.partition_max_bytes * growth)
            max_bytes = min(max_bytes, partition_max_bytes * len(lane.known))
            self._send(lane, connection, content, max_bytes, partition_max_bytes)
            self._lanes.move_to_back(lane)

    def _growth(self, connection: Connection) -> int:
        most = _MAX_GROWTH if self.limits.grows_to_bytes else 1
        return max(1, min(most, round(connection.round_trip_s / _SHORT_ROUND_TRIP_S)))

    def _send(
        self, lane: FetchLane, connection: Connection, content: LaneRequest, max_bytes: int, partition_max_bytes: int
    ) -> None:
        request = FetchRequest(
            version=connection.version_of(FetchRequest, MAX_VERSION, MIN_VERSION),
            replica_id=_CONSUMER,
            max_wait_ms=lane.wait_ms(content, self.limits.max_wait_ms),
            min_bytes=self.limits.min_bytes,
            max_bytes=max_bytes,
            isolation_level=self.limits.isolation_level,
            session_id=content.session_id,
            session_epoch=content.session_epoch,
            forgotten_topics_data=_forgotten_topics(content),
            rack_id=self.limits.rack,
            topics=_changed_topics(content, partition_max_bytes),
        )
        lane.is_busy = True
        self.in_flight_bytes += max_bytes

        def done() -> None:
            lane.is_busy = False
            self.in_flight_bytes -= max_bytes

        def fetched(response: FetchResponseData, buffer: Buffer) -> None:
            done()
            if response.throttle_time_ms > 0:
                self.throttled_ms += response.throttle_time_ms
                lane.not_before = connection.throttled_until = time.monotonic() + response.throttle_time_ms / 1000
            self._on_response(lane, response, buffer)

        def lost(why: str) -> None:
            done()
            self._on_lost(lane, why)

        deadline = self._cluster.request_deadline
        connection.request(
            request,
            FetchResponse,
            fetched,
            lost,
            deadline,
            decode=decode_fetch_response,
            pooled=True,
            wait_s=request.max_wait_ms / 1000,
        )
        self._network.flush(connection)


def _changed_topics(content: LaneRequest, partition_max_bytes: int) -> list[Any]:
    by_topic: dict[str, list[Any]] = {}
    for tp, position in content.changed.items():
        by_topic.setdefault(tp.topic, []).append(
            _Partition(
                partition=tp.partition,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.position,
                last_fetched_epoch=_UNKNOWN,
                log_start_offset=_UNKNOWN,
                partition_max_bytes=partition_max_bytes,
            )
        )
    return [_Topic(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()]


def _forgotten_topics(content: LaneRequest) -> list[Any]:
    by_topic: dict[str, list[int]] = {}
    for tp in content.forgotten:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    return [_Forgotten(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]
