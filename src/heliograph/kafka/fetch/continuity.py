"""Delivers records only if they continue those delivered before, so that a truncated log is never continued silently.

A doubt arises if the batch at our position has another leader epoch than the record before it, or if the log ends
before our position. The partition is then not read until its leader has returned where the epoch of our last record
ends in its log (OffsetForLeaderEpoch, KIP-320); `wire/batches/leader_epochs` judges the response. Without a doubt this
costs a look at one batch header per response.

A request waits for metadata newer than the doubt: a topic that was created again is known by its id, and must not be
taken for one whose log was truncated. It names the leader's epoch, so that only the current leader answers. Brokers
before 2.3 want CLUSTER_ACTION for it and older ones do not know it; reading then continues and the listener is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.consumer import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

from heliograph.kafka.error_codes import Verdict, describe, verdict_of
from heliograph.model import TopicPartition
from heliograph.wire.batches.leader_epochs import UNKNOWN_EPOCH, Doubt, Finding, doubt_at, epoch_at, judge

if TYPE_CHECKING:
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition, FetchRetries
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.wire.messages.fetch_response import PartitionData


_NEWEST, _OLDEST = 4, 0
_NAMES_EPOCH = 1  # the oldest version whose response names the epoch that was found
_CONSUMER = -1
_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


class ContinuityListener(Protocol):
    """Decides about a log that has changed."""

    def on_cut(self, partition: FetchPartition, offset: int) -> bool:
        """The log was truncated before our position: return whether to resume at `offset`; if not, it is retried."""

    def on_unchecked(self, partition: FetchPartition, why: str) -> None:
        """The leader has changed, and no broker can say whether its log has everything that was delivered."""


class PositionChanges(Protocol):
    """Changes the positions of partitions."""

    def decide(self, partition: FetchPartition) -> None:
        """Choose a position, in a log whose ends are known."""

    def restart_at(self, partition: FetchPartition, position: int) -> None:
        """Read from another offset, once the ends of the log are known."""

    def restart_recreated(self, partition: FetchPartition, why: str) -> bool:
        """Read a topic that was created again from its start; return whether the listener accepts it."""


class Continuity:
    """The doubts about the partitions of one task."""

    def __init__(
        self,
        partitions: dict[TopicPartition, FetchPartition],
        cluster: Cluster,
        network: Network,
        retries: FetchRetries,
        positions: PositionChanges,
        listener: ContinuityListener,
    ) -> None:
        self._partitions = partitions
        self._cluster = cluster
        self._retries = retries
        self._positions = positions
        self._listener = listener
        self._epoch_ends = EpochEnds(cluster, network, retries, self)

    @property
    def has_doubts(self) -> bool:
        """Return whether a partition waits for its leader's response."""
        return bool(self._epoch_ends.wanted)

    def pump(self, now: float) -> None:
        """Send the requests that are due."""
        self._epoch_ends.pump(now)

    def admits(self, partition: FetchPartition, data: PartitionData) -> bool:
        """Return whether fetched records continue those that were delivered; if not, or not yet known, drop them."""
        assert partition.position is not None
        assert data.records is not None
        epoch = epoch_at(data.records, partition.position)
        doubt = doubt_at(partition.epochs, partition.position, epoch)
        if doubt is not None and epoch != partition.checked_epoch:
            self._raise_doubt(partition, doubt)
            return False
        partition.checked_epoch = UNKNOWN_EPOCH
        return True

    def reaches(self, partition: FetchPartition, latest: int) -> bool:
        """Return whether a log that ends at `latest` has our position, or the reason that it has not is unknowable.

        Without topic ids a truncated log cannot be distinguished from that of a topic that was created again.
        """
        position = partition.position
        if position is None or position <= latest or partition.topic_id is None:
            return True
        epoch = partition.epochs.before(position)
        if epoch != UNKNOWN_EPOCH:
            self._raise_doubt(partition, Doubt(position, epoch, None))
        return epoch == UNKNOWN_EPOCH

    def _raise_doubt(self, partition: FetchPartition, doubt: Doubt) -> None:
        partition.doubt = doubt
        self._epoch_ends.want(partition.tp, doubt)

    def clear_doubt(self, partition: FetchPartition) -> None:
        """Read a partition again, whatever its leader's response will be."""
        partition.doubt = None
        self._epoch_ends.forget(partition.tp)
        partition.mark_dirty()

    def on_epoch_end(self, tp: TopicPartition, doubt: Doubt, epoch: int, end_offset: int) -> None:
        """Take the offset at which the epoch of our last record ends in the leader's log."""
        partition = self._partitions[tp]
        current_epoch = self._cluster.leader_epochs.get(tp, UNKNOWN_EPOCH)
        finding, cut = judge(doubt, partition.epochs, current_epoch, epoch, end_offset)
        if finding is Finding.CUT:
            if self._listener.on_cut(partition, cut):
                self._positions.restart_at(partition, cut)
            else:
                self._retries.retry([tp], f"its log was cut at offset {cut}; what was read before is still under way")
        elif finding is Finding.UNKNOWN:
            self.on_epochs_refused(tp, doubt, f"its leader keeps no account of the epoch {doubt.epoch}")
        elif finding is Finding.SAME:
            self._continue(partition, doubt)
        elif doubt.seen is None:
            self._positions.decide(partition)
        else:
            why = (
                f"its log has come to the leader's epoch {doubt.seen} only, and we have copied records of {doubt.epoch}"
            )
            self._positions.restart_recreated(partition, why)

    def on_epochs_refused(self, tp: TopicPartition, doubt: Doubt, why: str) -> None:
        """Continue to read, since nothing is proven, and report that."""
        partition = self._partitions[tp]
        if doubt.seen is None:
            self._positions.decide(partition)
        else:
            self._listener.on_unchecked(partition, why)
            self._continue(partition, doubt)

    def _continue(self, partition: FetchPartition, doubt: Doubt) -> None:
        if doubt.seen is not None:
            partition.checked_epoch = doubt.seen
        self.clear_doubt(partition)
        if doubt.seen is None:
            self._retries.retry(
                [partition.tp], f"its leader does not show yet what lies before offset {doubt.position}"
            )


class EpochEndListener(Protocol):
    """Takes the responses of leaders about epochs."""

    def on_epoch_end(self, tp: TopicPartition, doubt: Doubt, epoch: int, end_offset: int) -> None:
        """Take the leader's response; -1 and -1 if it knows no such epoch."""

    def on_epochs_refused(self, tp: TopicPartition, doubt: Doubt, why: str) -> None:
        """The leader does not say, now or later."""


class EpochEnds:
    """The epochs of one cluster's partitions to ask leaders about; each is requested until its doubt is forgotten."""

    def __init__(self, cluster: Cluster, network: Network, retries: FetchRetries, listener: EpochEndListener) -> None:
        self.wanted: dict[TopicPartition, Doubt] = {}
        self._cluster = cluster
        self._network = network
        self._retries = retries
        self._listener = listener
        self._in_flight: dict[TopicPartition, Doubt] = {}
        self._seen_version: dict[TopicPartition, int] = {}

    def want(self, tp: TopicPartition, doubt: Doubt) -> None:
        """Find out where the epoch of a doubt ends."""
        if self.wanted.get(tp) != doubt:
            self.wanted[tp] = doubt
            self._seen_version[tp] = self._cluster.version
            self._in_flight.pop(tp, None)
            self._cluster.want_metadata()

    def forget(self, tp: TopicPartition) -> None:
        """Stop asking about a partition."""
        self.wanted.pop(tp, None)
        self._seen_version.pop(tp, None)
        self._in_flight.pop(tp, None)

    def pump(self, now: float) -> None:
        """Send the requests that are due."""
        by_node: dict[int, list[TopicPartition]] = {}
        for tp in self.wanted:
            node_id = self._cluster.leaders.get(tp)
            is_due = tp not in self._in_flight and self._cluster.version > self._seen_version[tp]
            if is_due and node_id is not None and not self._retries.is_waiting(tp, now):
                by_node.setdefault(node_id, []).append(tp)
        for node_id, tps in by_node.items():
            connection = self._cluster.connection_to(node_id)
            if connection is None:
                continue
            doubts = {tp: self.wanted[tp] for tp in tps}
            if connection.supports(OffsetForLeaderEpochRequest):
                self._in_flight |= doubts
                self._send(connection, doubts)
            else:
                for tp, doubt in doubts.items():
                    self._listener.on_epochs_refused(tp, doubt, f"{connection.address} does not know that request")

    def _send(self, connection: Connection, doubts: dict[TopicPartition, Doubt]) -> None:
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

        def on_response(response: Any, _buffer: Buffer) -> None:
            for topic in response.topics:
                for data in topic.partitions:
                    tp = TopicPartition(topic.topic, data.partition)
                    doubt = doubts.get(tp)
                    if doubt is not None and self._in_flight.get(tp) is doubt:
                        del self._in_flight[tp]
                        self._take(tp, doubt, data, names_epoch=version >= _NAMES_EPOCH)
            on_lost("the leader's response does not name it")

        def on_lost(why: str) -> None:
            unanswered = [tp for tp, doubt in doubts.items() if self._in_flight.get(tp) is doubt]
            for tp in unanswered:
                del self._in_flight[tp]
            if unanswered:
                self._retries.retry(unanswered, why)

        connection.request(request, OffsetForLeaderEpochResponse, on_response, on_lost, self._cluster.request_deadline)
        self._network.flush(connection)

    def _take(self, tp: TopicPartition, doubt: Doubt, data: Any, *, names_epoch: bool) -> None:
        if not data.error_code:
            self._listener.on_epoch_end(tp, doubt, data.leader_epoch if names_epoch else doubt.epoch, data.end_offset)
        elif verdict_of(data.error_code) is Verdict.FAIL_PARTITION:
            self._listener.on_epochs_refused(tp, doubt, describe(data.error_code))
        else:
            self._retries.retry([tp], describe(data.error_code))
