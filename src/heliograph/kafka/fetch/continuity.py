"""Lets records pass only if they continue what was handed on before: a log that was cut is never read on in silence.

A doubt arises where the batch at our position is of another leader's epoch than the record before it, or where the log
ends before our position. The leader is then asked (`epoch_ends`), its answer judged (`wire/leader_epochs.py`), and the
listener told. Until then nothing is read of the partition. In calm times this costs a look at one header per answer.


Asks leaders where an epoch ends in their logs (OffsetForLeaderEpoch): is what was copied still there? (KIP-320)

A question waits for metadata that is newer than the doubt: a topic that was created again is known by its id, and must
not be taken for one whose log was cut. It names the leader's epoch, so that only the leader of now answers. Brokers
before 2.3 want CLUSTER_ACTION for it, and others may not know it at all; the owner hears of that and goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.consumer import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

from heliograph.kafka.error_codes import Verdict, describe, verdict_of
from heliograph.model import TopicPartition
from heliograph.wire.batches.leader_epochs import UNKNOWN_EPOCH, Doubt, Finding, doubt_at, epoch_at, judge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.wire.messages.fetch_response import PartitionData


_NEWEST, _OLDEST = 4, 0
_TELLS_EPOCH = 1  # the oldest version whose answer names the epoch that was found
_CONSUMER = -1
_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


class EpochEndListener(Protocol):
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

    def __init__(self, cluster: Cluster, network: Network, owner: EpochEndListener) -> None:
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


class ContinuityListener(Protocol):
    """Who is told of a log that is not the one it was."""

    def on_cut(self, partition: FetchPartition, offset: int) -> bool:
        """The log was cut at an offset before our position: whether to read on there; if not now, it is asked again."""

    def on_unchecked(self, partition: FetchPartition, why: str) -> None:
        """Others have led since, and nobody can tell whether their log has all that was handed on."""


class Reader(Protocol):
    """Who reads the partitions."""

    partitions: dict[TopicPartition, FetchPartition]

    def place(self, partition: FetchPartition) -> None:
        """Decide where to read, in a log whose ends are known."""

    def begin_at(self, partition: FetchPartition, position: int) -> None:
        """Read on at another place, once the log's ends are known."""

    def begin_again(self, partition: FetchPartition, why: str) -> bool:
        """It is not the topic it was; whether it is read from its start."""

    def wanted_again(self, tp: TopicPartition) -> None:
        """A partition may be read now."""

    def retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        """Try partitions again after a pause."""

    def is_waiting(self, tp: TopicPartition, now: float) -> bool:
        """Whether a partition's next try is not due yet."""


class Continuity:
    """The doubts about the partitions of one task."""

    def __init__(self, cluster: Cluster, network: Network, reader: Reader, listener: ContinuityListener) -> None:
        self._cluster = cluster
        self._reader = reader
        self._listener = listener
        self._ends = EpochEnds(cluster, network, self)

    @property
    def has_doubts(self) -> bool:
        """Whether a partition waits for an answer."""
        return bool(self._ends.wanted)

    def pump(self, now: float) -> None:
        """Ask what is to be asked."""
        self._ends.pump(now)

    def believe(self, partition: FetchPartition) -> None:
        """Doubt a partition no more, whatever its leader will answer."""
        partition.doubt = None
        self._ends.forget(partition.tp)
        self._reader.wanted_again(partition.tp)

    def admits(self, partition: FetchPartition, data: PartitionData) -> bool:
        """Whether fetched records continue what was handed on; if not, or not yet known, they are dropped."""
        assert partition.position is not None
        assert data.records is not None
        epoch = epoch_at(data.records, partition.position)
        doubt = doubt_at(partition.epochs, partition.position, epoch)
        if doubt is not None and epoch != partition.checked_epoch:
            self._doubt(partition, doubt)
            return False
        partition.checked_epoch = UNKNOWN_EPOCH
        return True

    def reaches(self, partition: FetchPartition, latest: int) -> bool:
        """Whether a log that ends at `latest` has our position, or it cannot be known why not.

        Without topic ids a log that was cut cannot be told from one of a topic that was created again.
        """
        position = partition.position
        if position is None or position <= latest or partition.topic_id is None:
            return True
        epoch = partition.epochs.before(position)
        if epoch != UNKNOWN_EPOCH:
            self._doubt(partition, Doubt(position, epoch, None))
        return epoch == UNKNOWN_EPOCH

    def _doubt(self, partition: FetchPartition, doubt: Doubt) -> None:
        partition.doubt = doubt
        self._ends.want(partition.tp, doubt)

    # --- what the leader says -----------------------------------------------------------------------------------------

    def on_epoch_end(self, tp: TopicPartition, doubt: Doubt, epoch: int, end_offset: int) -> None:
        """Where the epoch of what we have ends in the leader's log."""
        partition = self._reader.partitions[tp]
        current_epoch = self._cluster.leader_epochs.get(tp, UNKNOWN_EPOCH)
        finding, cut = judge(doubt, partition.epochs, current_epoch, epoch, end_offset)
        if finding is Finding.CUT:
            if self._listener.on_cut(partition, cut):
                self._reader.begin_at(partition, cut)
            else:
                self._reader.retry([tp], f"its log was cut at offset {cut}; what was read before is still under way")
        elif finding is Finding.UNKNOWN:
            self.on_epochs_refused(tp, doubt, f"its leader keeps no account of the epoch {doubt.epoch}")
        elif finding is Finding.SAME:
            self._continue(partition, doubt)
        elif doubt.seen is None:
            self._reader.place(partition)
        else:
            why = (
                f"its log has come to the leader's epoch {doubt.seen} only, and we have copied records of {doubt.epoch}"
            )
            self._reader.begin_again(partition, why)

    def _continue(self, partition: FetchPartition, doubt: Doubt) -> None:
        if doubt.seen is not None:
            partition.checked_epoch = doubt.seen
        self.believe(partition)
        if doubt.seen is None:
            self._reader.retry([partition.tp], f"its leader does not show yet what lies before offset {doubt.position}")

    def on_epochs_refused(self, tp: TopicPartition, doubt: Doubt, why: str) -> None:
        """The leader does not say: nothing is proven, so reading goes on, and that is told."""
        partition = self._reader.partitions[tp]
        if doubt.seen is None:
            self._reader.place(partition)
        else:
            self._listener.on_unchecked(partition, why)
            self._continue(partition, doubt)

    def retry(self, tps: Iterable[TopicPartition], why: str) -> None:
        """No answer has come."""
        self._reader.retry(tps, why)

    def is_waiting(self, tp: TopicPartition, now: float) -> bool:
        """Whether a partition's next try is not due yet."""
        return self._reader.is_waiting(tp, now)
