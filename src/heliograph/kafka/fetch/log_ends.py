"""Looks up the two ends of partitions' logs (ListOffsets): where reading can begin, and where it ends now.

Each end takes a request; the listener is called when both are known. If a response is an error, is lost, or leaves a
partition out, both are requested again. The end is the high watermark, even if only committed records are read: a
position after an open transaction is still inside the log.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from heliograph.kafka.request_options import EARLIEST, LATEST, READ_UNCOMMITTED
from heliograph.model import TopicPartition

if TYPE_CHECKING:
    from heliograph.kafka.fetch.fetch_lanes import FetchRetries
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network


_NEWEST, _OLDEST = 5, 1


class LogEndListener(Protocol):
    """Takes the ends of logs."""

    def on_ends(self, tp: TopicPartition, earliest: int, latest: int) -> None:
        """Take both ends of a partition's log."""

    def on_ends_refused(self, tp: TopicPartition, code: int) -> None:
        """Take the error of a broker."""


class LogEnds:
    """The look-ups that are wanted or in flight for one cluster."""

    def __init__(self, cluster: Cluster, network: Network, retries: FetchRetries, listener: LogEndListener) -> None:
        self.wanted: dict[TopicPartition, None] = {}
        self._cluster = cluster
        self._network = network
        self._retries = retries
        self._listener = listener
        self._in_flight: set[TopicPartition] = set()
        self._found: dict[TopicPartition, dict[int, int]] = defaultdict(dict)

    def want(self, tp: TopicPartition) -> None:
        """Look up the ends of a partition's log."""
        self.wanted[tp] = None

    def forget(self, tp: TopicPartition) -> None:
        """Stop looking up a partition."""
        self.wanted.pop(tp, None)
        self._in_flight.discard(tp)
        self._found.pop(tp, None)

    def pump(self, now: float) -> None:
        """Send the requests that are due."""
        by_node: dict[int, list[TopicPartition]] = {}
        for tp in self.wanted:
            node_id = self._cluster.leaders.get(tp)
            if tp not in self._in_flight and node_id is not None and not self._retries.is_waiting(tp, now):
                by_node.setdefault(node_id, []).append(tp)
        for node_id, tps in by_node.items():
            connection = self._cluster.connection_to(node_id)
            if connection is not None:
                self._in_flight.update(tps)
                for timestamp in (EARLIEST, LATEST):
                    self._send(connection, tps, timestamp)
                self._network.flush(connection)

    def _send(self, connection: Connection, tps: list[TopicPartition], timestamp: int) -> None:
        topic_class = ListOffsetsRequest.ListOffsetsTopic
        by_topic: dict[str, list[Any]] = {}
        for tp in tps:
            by_topic.setdefault(tp.topic, []).append(
                topic_class.ListOffsetsPartition(
                    partition_index=tp.partition, current_leader_epoch=-1, timestamp=timestamp
                )
            )
        request = ListOffsetsRequest(
            version=connection.version_of(ListOffsetsRequest, _NEWEST, _OLDEST),
            replica_id=-1,
            isolation_level=READ_UNCOMMITTED,
            topics=[topic_class(name=name, partitions=partitions) for name, partitions in by_topic.items()],
        )
        sent_at = time.monotonic()

        def on_response(response: Any, _buffer: Buffer) -> None:
            connection.round_trip_s = min(connection.round_trip_s, time.monotonic() - sent_at)
            self._take(response, timestamp)
            unnamed = [tp for tp in tps if tp in self._in_flight and timestamp not in self._found[tp]]
            if unnamed:
                self._retry(unnamed, "the leader's response does not name it")

        def on_lost(why: str) -> None:
            self._retry(tps, why)

        connection.request(request, ListOffsetsResponse, on_response, on_lost, self._cluster.request_deadline)

    def _retry(self, tps: list[TopicPartition], why: str) -> None:
        self._in_flight.difference_update(tps)
        self._retries.retry(tps, why)

    def _take(self, response: Any, timestamp: int) -> None:
        for topic in response.topics:
            for data in topic.partitions:
                tp = TopicPartition(topic.name, data.partition_index)
                if tp not in self._in_flight:
                    continue  # not wanted any more, or the other end was an error: both are requested again
                if data.error_code:
                    self._in_flight.discard(tp)
                    self._found.pop(tp, None)
                    self._listener.on_ends_refused(tp, data.error_code)
                    continue
                ends = self._found[tp]
                ends[timestamp] = data.offset
                if len(ends) == 2:
                    self.forget(tp)
                    self._listener.on_ends(tp, ends[EARLIEST], ends[LATEST])
