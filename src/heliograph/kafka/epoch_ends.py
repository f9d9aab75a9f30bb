"""Asks leaders where an epoch ends in their logs (OffsetForLeaderEpoch): is what was copied still there? (KIP-320)

A question waits for metadata that is newer than the doubt: a topic that was created again is known by its id, and must
not be taken for one whose log was cut. It names the leader's epoch, so that only the leader of now answers. Brokers
before 2.3 want CLUSTER_ACTION for it, and others may not know it at all; the owner hears of that and goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.consumer import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

from heliograph.kafka.error_codes import Verdict, describe, verdict_of
from heliograph.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.kafka.buffers import Buffer
    from heliograph.kafka.cluster import Cluster
    from heliograph.kafka.connection import Connection
    from heliograph.kafka.network import Network
    from heliograph.wire.leader_epochs import Doubt

_NEWEST, _OLDEST = 4, 0
_TELLS_EPOCH = 1  # the oldest version whose answer names the epoch that was found
_CONSUMER = -1
_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


class Owner(Protocol):
    """Who has doubts."""

    def on_epoch_end(self, tp: TopicPartition, doubt: Doubt, epoch: int, end_offset: int) -> None:
        """The leader has answered; -1 and -1 where it knows no such epoch."""

    def on_epochs_refused(self, tp: TopicPartition, doubt: Doubt, why: str) -> None:
        """The leader does not tell, now or later."""

    def retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        """The answer was lost, or another broker leads."""

    def is_waiting(self, tp: TopicPartition, now: float) -> bool:
        """Whether the partition's next try is not due yet."""


class EpochEnds:
    """The doubts of one cluster's partitions; each is asked again until its owner forgets it."""

    def __init__(self, cluster: Cluster, network: Network, owner: Owner) -> None:
        self.wanted: dict[TopicPartition, Doubt] = {}
        self._cluster = cluster
        self._network = network
        self._owner = owner
        self._asked: dict[TopicPartition, Doubt] = {}
        self._seen_version: dict[TopicPartition, int] = {}

    def want(self, tp: TopicPartition, doubt: Doubt) -> None:
        """Find out where the epoch of a doubt ends."""
        if self.wanted.get(tp) != doubt:
            self.wanted[tp] = doubt
            self._seen_version[tp] = self._cluster.version
            self._asked.pop(tp, None)
            self._cluster.want_metadata()

    def forget(self, tp: TopicPartition) -> None:
        """There is no doubt any more."""
        self.wanted.pop(tp, None)
        self._seen_version.pop(tp, None)
        self._asked.pop(tp, None)

    def pump(self, now: float) -> None:
        """Send the requests that are due."""
        by_node: dict[int, list[TopicPartition]] = {}
        for tp in self.wanted:
            node_id = self._cluster.leaders.get(tp)
            is_due = tp not in self._asked and self._cluster.version > self._seen_version[tp]
            if is_due and node_id is not None and not self._owner.is_waiting(tp, now):
                by_node.setdefault(node_id, []).append(tp)
        for node_id, tps in by_node.items():
            connection = self._cluster.connection_to(node_id)
            if connection is None:
                continue
            doubts = {tp: self.wanted[tp] for tp in tps}
            if connection.speaks(OffsetForLeaderEpochRequest):
                self._asked |= doubts
                self._ask(connection, doubts)
            else:
                for tp, doubt in doubts.items():
                    self._owner.on_epochs_refused(tp, doubt, f"{connection.address} does not know that request")

    def _ask(self, connection: Connection, doubts: dict[TopicPartition, Doubt]) -> None:
        by_topic: dict[str, list[Any]] = {}
        for tp, doubt in doubts.items():
            by_topic.setdefault(tp.topic, []).append(
                _Topic.OffsetForLeaderPartition(
                    partition=tp.partition,
                    current_leader_epoch=self._cluster.leader_epochs.get(tp, -1),
                    leader_epoch=doubt.epoch,
                )
            )
        version = connection.version_of(OffsetForLeaderEpochRequest, _NEWEST, _OLDEST)
        request = OffsetForLeaderEpochRequest(
            version=version,
            replica_id=_CONSUMER,
            topics=[_Topic(topic=name, partitions=partitions) for name, partitions in by_topic.items()],
        )

        def answered(answer: Any, _buffer: Buffer) -> None:
            for topic in answer.topics:
                for data in topic.partitions:
                    tp = TopicPartition(topic.topic, data.partition)
                    doubt = doubts.get(tp)
                    if doubt is not None and self._asked.get(tp) is doubt:
                        del self._asked[tp]
                        self._learn(tp, doubt, data, tells_epoch=version >= _TELLS_EPOCH)
            lost("the leader's answer does not name it")

        def lost(why: str) -> None:
            still_asked = [tp for tp, doubt in doubts.items() if self._asked.get(tp) is doubt]
            for tp in still_asked:
                del self._asked[tp]
            if still_asked:
                self._owner.retry(still_asked, why)

        connection.request(request, OffsetForLeaderEpochResponse, answered, lost, self._cluster.request_deadline)
        self._network.flush(connection)

    def _learn(self, tp: TopicPartition, doubt: Doubt, data: Any, *, tells_epoch: bool) -> None:
        if not data.error_code:
            self._owner.on_epoch_end(tp, doubt, data.leader_epoch if tells_epoch else doubt.epoch, data.end_offset)
        elif verdict_of(data.error_code) is Verdict.FAIL_PARTITION:
            self._owner.on_epochs_refused(tp, doubt, describe(data.error_code))
        else:
            self._owner.retry([tp], describe(data.error_code))
