"""Asks for the two ends of partitions' logs: where reading can begin, and where it ends just now.

Both ends are asked for in two requests; only when both are known does the owner hear of them. An answer that is an
error, is lost, or leaves a partition out makes both be asked for again. The end is the high watermark, also where only
committed records are read: a position behind an open transaction is still inside of the log.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from heliograph.kafka.request_options import EARLIEST, LATEST
from heliograph.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network


_NEWEST, _OLDEST = 5, 1
_READ_UNCOMMITTED = 0


class LogEndListener(Protocol):
    """Who wants to know the ends."""

    def on_ends(self, tp: TopicPartition, earliest: int, latest: int) -> None:
        """Both ends are known."""

    def on_ends_refused(self, tp: TopicPartition, code: int) -> None:
        """The broker answered with an error."""

    def retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        """The answer was lost."""

    def is_waiting(self, tp: TopicPartition, now: float) -> bool:
        """Whether the partition's next try is not due yet."""


class LogEnds:
    """The look-ups under way for one cluster."""

    def __init__(self, cluster: Cluster, network: Network, owner: LogEndListener) -> None:
        self.wanted: dict[TopicPartition, None] = {}
        self._cluster = cluster
        self._network = network
        self._owner = owner
        self._asked: set[TopicPartition] = set()
        self._found: dict[TopicPartition, dict[int, int]] = defaultdict(dict)

    def want(self, tp: TopicPartition) -> None:
        """Find out the ends of a partition's log."""
        self.wanted[tp] = None

    def forget(self, tp: TopicPartition) -> None:
        """Nobody wants to know any more."""
        self.wanted.pop(tp, None)
        self._asked.discard(tp)
        self._found.pop(tp, None)

    def pump(self, now: float) -> None:
        """Send the requests that are due."""
        by_node: dict[int, list[TopicPartition]] = {}
        for tp in self.wanted:
            node_id = self._cluster.leaders.get(tp)
            if tp not in self._asked and node_id is not None and not self._owner.is_waiting(tp, now):
                by_node.setdefault(node_id, []).append(tp)
        for node_id, tps in by_node.items():
            connection = self._cluster.connection_to(node_id)
            if connection is not None:
                self._asked.update(tps)
                for timestamp in (EARLIEST, LATEST):
                    self._ask(connection, tps, timestamp)
                self._network.flush(connection)

    def _ask(self, connection: Connection, tps: list[TopicPartition], timestamp: int) -> None:
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
            isolation_level=_READ_UNCOMMITTED,
            topics=[topic_class(name=name, partitions=partitions) for name, partitions in by_topic.items()],
        )
        asked_at = time.monotonic()

        def answered(answer: Any, _buffer: Buffer) -> None:
            connection.round_trip_s = min(connection.round_trip_s, time.monotonic() - asked_at)
            self._learn(answer, timestamp)
            unnamed = [tp for tp in tps if tp in self._asked and timestamp not in self._found[tp]]
            if unnamed:
                self._ask_again(unnamed, "the leader's answer does not name it")

        def lost(why: str) -> None:
            self._ask_again(tps, why)

        connection.request(request, ListOffsetsResponse, answered, lost, self._cluster.request_deadline)

    def _ask_again(self, tps: list[TopicPartition], why: str) -> None:
        self._asked.difference_update(tps)
        self._owner.retry(tps, why)

    def _learn(self, answer: Any, timestamp: int) -> None:
        for topic in answer.topics:
            for data in topic.partitions:
                tp = TopicPartition(topic.name, data.partition_index)
                if tp not in self._asked:
                    continue  # nobody waits, or the other end's answer was an error: both are asked for again
                if data.error_code:
                    self._asked.discard(tp)
                    self._found.pop(tp, None)
                    self._owner.on_ends_refused(tp, data.error_code)
                    continue
                ends = self._found[tp]
                ends[timestamp] = data.offset
                if len(ends) == 2:
                    self.forget(tp)
                    self._owner.on_ends(tp, ends[EARLIEST], ends[LATEST])
