"""Sends Produce requests and delivers their answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka.protocol.producer import ProduceRequest

from heliograph.kafka.error_codes import NO_ERROR, Verdict, verdict_of
from heliograph.kafka.net.connection import Pending
from heliograph.kafka.produce.target_partition import DRAINING_STATES, TargetPartitionState
from heliograph.wire.messages import produce_messages
from heliograph.wire.messages.produce_messages import decode_produce_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.produce.produce_lanes import Lane, ProduceLanes
    from heliograph.kafka.produce.producer_session import ProducerSession
    from heliograph.kafka.produce.refused_batches import ProduceErrors
    from heliograph.kafka.produce.target_partition import Outgoing, TargetPartition
    from heliograph.kafka.request_options import ProduceLimits
    from heliograph.model import TopicPartition
    from heliograph.wire.messages.produce_messages import ProduceResponseData

_NEWEST_WITH_FIRST_PROTOCOL = 11  # a later version would add partitions to the transaction implicitly (KIP-890)
_OPEN, _FAILED = TargetPartitionState.OPEN, TargetPartitionState.FAILED


def send_produce_request(
    connection: Connection,
    topics: Mapping[str, Sequence[tuple[int, memoryview | bytes]]],
    on_answer: Callable[[ProduceResponseData, Buffer], None],
    on_lost: Callable[[str], None],
    *,
    timeout_ms: int,
    deadline: float,
    transactional_id: str | None = None,
    newest_version: int = produce_messages.MAX_VERSION,
) -> None:
    """Queue one request with one batch per partition on a connection; it leaves with the next flush."""
    version = connection.version_of(ProduceRequest, newest_version, produce_messages.MIN_VERSION)
    correlation_id = connection.next_correlation_id()
    parts = produce_messages.encode_produce_request(
        version, correlation_id, connection.client_id, timeout_ms, topics, transactional_id
    )
    is_flexible = version >= produce_messages.FLEXIBLE_FROM
    connection.send(
        parts,
        Pending(
            correlation_id,
            decode_produce_response,
            version,
            is_flexible,
            on_answer,
            on_lost,
            deadline,
            pooled=False,
            api="Produce",
        ),
    )


class ProduceRequests:
    """The requests of one producer: takes the oldest batches of a lane's partitions, stamps and sends them."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        session: ProducerSession,
        limits: ProduceLimits,
        lanes: ProduceLanes,
        errors: ProduceErrors,
    ) -> None:
        self.is_held = False
        self._cluster = cluster
        self._network = network
        self._session = session
        self._limits = limits
        self._lanes = lanes
        self._errors = errors

    @property
    def all_may_leave(self) -> bool:
        """Return whether `may_leave` is true of every partition, so that it need not be called for each."""
        return not self.is_held and self._session.admits_all

    def may_leave(self, partition: TargetPartition) -> bool:
        """Return whether the oldest queued batch may be sent, as far as `hold` and the transaction are concerned."""
        head = partition.queue[0]
        if head.is_sent:
            return True
        return (head.passes_hold or not self.is_held) and self._session.admits(partition.tp)

    def fill(self, lane: Lane, connection: Connection, partitions: list[TargetPartition]) -> None:
        """Send requests until the lane is full or no batch may leave."""
        sent_any, all_may_leave = False, self.all_may_leave
        while partitions and self._lanes.has_room(lane):
            self._send_one(lane, connection, partitions)
            sent_any = True
            partitions = [
                p for p in partitions if p.queue and p.state is _OPEN and (all_may_leave or self.may_leave(p))
            ]
        if sent_any:
            self._network.flush(connection)

    def _send_one(self, lane: Lane, connection: Connection, partitions: list[TargetPartition]) -> None:
        """Send one request with at most one batch of each partition: the protocol's rule."""
        sent = self._take_heads(partitions, lane[0])
        topics: dict[str, list[tuple[int, memoryview | bytes]]] = {}
        for tp, (_partition, outgoing) in sent.items():
            topics.setdefault(tp.topic, []).append((tp.partition, outgoing.view))

        def answered(answer: ProduceResponseData, _buffer: Buffer) -> None:
            self._lanes.answered(lane, answer.throttle_time_ms)
            connection.throttled_until = time.monotonic() + answer.throttle_time_ms / 1000
            for tp, code, base_offset in answer.partitions:
                if tp in sent:
                    self._deliver(*sent.pop(tp), code, base_offset)
            self._deliver_lost(sent.values(), "the broker's answer leaves it out", Verdict.RETRY)

        def lost(why: str) -> None:
            self._lanes.answered(lane)
            self._deliver_lost(sent.values(), why, Verdict.RETRY_WITH_METADATA)

        session = self._session
        is_first_protocol = session.transactional_id is not None and not session.uses_second_protocol
        send_produce_request(
            connection,
            topics,
            answered,
            lost,
            timeout_ms=self._limits.request_timeout_ms,
            deadline=self._cluster.request_deadline,
            transactional_id=session.transactional_id,
            newest_version=_NEWEST_WITH_FIRST_PROTOCOL if is_first_protocol else produce_messages.MAX_VERSION,
        )
        self._lanes.sent(lane)

    def _take_heads(
        self, partitions: list[TargetPartition], node_id: int
    ) -> dict[TopicPartition, tuple[TargetPartition, Outgoing]]:
        """Take the oldest queued batch of each partition, stamped, as many as fit into one request."""
        identity, is_transactional = self._session.identity, self._session.transactional_id is not None
        assert identity is not None
        taken: dict[TopicPartition, tuple[TargetPartition, Outgoing]] = {}
        size = 0
        for partition in partitions:
            head = partition.queue[0]
            if taken and size + len(head.view) > self._limits.max_request_bytes:
                break
            if head.sequence < 0:  # `is_sent` would cost a call for every batch
                own = partition.session.identity if partition.session is not None else None
                partition.stamp_head(own or identity, is_transactional=is_transactional)
            taken[partition.tp] = (partition, partition.take_head(node_id))
            size += len(head.view)
        return taken

    def _deliver(self, partition: TargetPartition, outgoing: Outgoing, code: int, base_offset: int) -> None:
        if partition.state is _FAILED:
            partition.answered_after_failure()
            return
        if code != NO_ERROR:  # tested first: the verdict of a success costs a call for every batch
            if verdict_of(code) is not Verdict.DUPLICATE:
                self._errors.on_refused(partition, outgoing, code)
                return
            base_offset = -1
        for acked in partition.acknowledge(outgoing, base_offset):
            acked.on_acked(partition.tp, acked, acked.base_offset)
        if partition.state is not _OPEN and partition.state in DRAINING_STATES:
            self._errors.end_drain(partition)

    def _deliver_lost(self, sent: Iterable[tuple[TargetPartition, Outgoing]], why: str, verdict: Verdict) -> None:
        for partition, outgoing in sent:
            if partition.state is _FAILED:
                partition.answered_after_failure()
            else:
                self._errors.on_unanswered(partition, outgoing, why, verdict)
