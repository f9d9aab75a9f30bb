"""Produces ready-made batches as an idempotent producer: pipelined, in order per partition, retried for ever.

Rules that keep order and prevent duplicates:
A. A batch gets its sequence when it is queued; a retry sends the same bytes, and the broker recognises them.
B. A partition stays on its lane, and at most five requests are under way on a lane (the broker remembers five batches
   per producer and partition).
C. After an error a partition sends nothing until every answer it still waits for has come (`draining`); then all
   batches that were not acknowledged go back to the front of the queue, in order.
D. A broker that holds no state of a producer takes whatever sequence comes first. So a partition's first batch travels
   alone until it is acknowledged, and after a change of leader nothing is sent before every awaited answer has come.
E. A batch is acknowledged exactly once, and in order: `on_acked` is called for the oldest batch first.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kafka.protocol.producer import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

from heliograph.errors import TaskError
from heliograph.kafka.backoff import Backoff
from heliograph.kafka.connection import Pending
from heliograph.kafka.error_codes import Verdict, describe, verdict_of
from heliograph.model import TopicPartition
from heliograph.wire import produce_request
from heliograph.wire.batch import compression_of, next_sequence, restamp

if TYPE_CHECKING:
    from heliograph.kafka.buffers import Buffer
    from heliograph.kafka.cluster import Cluster
    from heliograph.kafka.connection import Connection
    from heliograph.kafka.network import Network

_NEWEST_INIT, _OLDEST_INIT = 4, 0
_OK, _DUPLICATE_SEQUENCE_NUMBER = 0, 46
_MESSAGE_TOO_LARGE, _RECORD_LIST_TOO_LARGE, _TOPIC_AUTHORIZATION_FAILED = 10, 18, 29


class Outgoing:
    """A batch on its way. `tag` is the caller's; `buffer` is released when the batch is acknowledged or given up."""

    __slots__ = ("base_offset", "buffer", "is_acked", "record_count", "tag", "view")

    def __init__(self, view: memoryview, record_count: int, buffer: Buffer | None, tag: Any) -> None:
        self.view = view
        self.record_count = record_count
        self.buffer = buffer
        self.tag = tag
        self.base_offset = -1
        self.is_acked = False


@dataclass(slots=True)
class TargetPartition:
    """One target partition being written."""

    tp: TopicPartition
    lane: int = 0
    queue: deque[Outgoing] = field(default_factory=deque)
    in_flight: deque[Outgoing] = field(default_factory=deque)
    sequence: int = 0
    queued_bytes: int = 0
    awaited: int = 0
    node_id: int = -1
    is_known: bool = False
    is_draining: bool = False
    is_failed: bool = False
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.1, most_s=2.0))
    trouble: str | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued or under way."""
        return not self.queue and not self.in_flight


class Listener(Protocol):
    """Who wants to know what became of the batches."""

    def on_acked(self, tp: TopicPartition, outgoing: Outgoing, base_offset: int) -> None:
        """The batch is safe on the target; `base_offset` is -1 where a retry found it already there."""

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:
        """The target will never take this batch; the partition stops here."""


def _decode_answer(view: memoryview, version: int) -> Any:
    return ProduceResponse.decode(view, version=version)


def _leave_shared_buffers(partition: TargetPartition) -> None:
    """Copy what waits out of the fetch buffers it shares: a stuck partition must not hold the memory of the others."""
    for outgoing in partition.queue:
        if outgoing.buffer is not None:
            outgoing.view = memoryview(bytearray(outgoing.view))
            outgoing.buffer.release()
            outgoing.buffer = None


class BatchProducer:
    """Writes the partitions of one task to one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        listener: Listener,
        *,
        lanes: int = 1,
        max_in_flight: int = 5,
        max_request_bytes: int = 4 << 20,
        request_timeout_ms: int = 30_000,
    ) -> None:
        self.partitions: dict[TopicPartition, TargetPartition] = {}
        self._cluster = cluster
        self._network = network
        self._listener = listener
        self._lanes = lanes
        self._max_in_flight = max_in_flight
        self._max_request_bytes = max_request_bytes
        self._request_timeout_ms = request_timeout_ms
        self._producer_id = -1
        self._producer_epoch = -1
        self._init_in_flight = False
        self._init_retry_at = 0.0
        self._init_backoff = Backoff(first_s=0.1, most_s=2.0)
        self._requests_by_lane: dict[tuple[int, int], int] = {}
        self._ready: dict[TopicPartition, None] = {}

    @property
    def is_ready(self) -> bool:
        """Whether a producer id is there; batches may be queued only then."""
        return self._producer_id >= 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued or under way."""
        return all(partition.is_idle for partition in self.partitions.values())

    @property
    def has_retries(self) -> bool:
        """Whether a partition waits for its next try, or for a leader."""
        return any(not p.in_flight or p.is_draining for tp in self._ready if (p := self.partitions[tp]))

    def add_topic_watch(self, topic: str) -> None:
        """Learn a topic's leaders before the first batch for it."""
        self._cluster.watch([topic])

    def add(self, tp: TopicPartition) -> TargetPartition:
        """The state of a target partition, made on first use."""
        partition = self.partitions.get(tp)
        if partition is None:
            partition = self.partitions[tp] = TargetPartition(tp, lane=len(self.partitions) % self._lanes)
            self._cluster.watch([tp.topic])
        return partition

    def enqueue(self, partition: TargetPartition, outgoing: Outgoing) -> None:
        """Stamp a batch as ours and queue it."""
        view = outgoing.view
        restamp(view, compression_of(view), self._producer_id, self._producer_epoch, partition.sequence)
        partition.sequence = next_sequence(partition.sequence, outgoing.record_count)
        partition.queue.append(outgoing)
        partition.queued_bytes += len(view)
        self._ready[partition.tp] = None

    def pump(self, now: float) -> None:
        """Send what may be sent."""
        if not self.is_ready:
            self._init_producer_id(now)
            return
        if not self._ready:
            return
        by_lane: dict[tuple[int, int], list[TargetPartition]] = {}
        leaders = self._cluster.leaders
        for tp in self._ready:
            partition = self.partitions[tp]
            if partition.is_draining or partition.retry_at > now:
                continue
            node_id = leaders.get(tp)
            if node_id is None:
                self._cluster.want_metadata()
                partition.trouble = "the target has no leader for it"
                _leave_shared_buffers(partition)
            elif not partition.in_flight or (partition.is_known and partition.node_id == node_id):
                by_lane.setdefault((node_id, partition.lane), []).append(partition)
        for lane, partitions in by_lane.items():
            connection = self._cluster.connection_to(*lane)
            if connection is not None:
                self._fill_pipeline(lane, connection, partitions)

    def _fill_pipeline(self, lane: tuple[int, int], connection: Connection, partitions: list[TargetPartition]) -> None:
        sent_any = False
        while partitions and self._requests_by_lane.get(lane, 0) < self._max_in_flight:
            self._send_one(lane, connection, partitions)
            sent_any = True
            partitions = [partition for partition in partitions if partition.queue and partition.is_known]
        if sent_any:
            self._network.flush(connection)

    def _send_one(self, lane: tuple[int, int], connection: Connection, partitions: list[TargetPartition]) -> None:
        """One request with at most one batch of each partition: the protocol's rule."""
        sent = self._take_heads(partitions, lane[0])
        topics: dict[str, list[tuple[int, memoryview | bytes]]] = {}
        for tp, outgoing in sent.items():
            topics.setdefault(tp.topic, []).append((tp.partition, outgoing.view))
        version = connection.version_of(ProduceRequest, produce_request.MAX_VERSION, produce_request.MIN_VERSION)
        correlation_id = connection.next_correlation_id()
        parts = produce_request.encode_produce_request(
            version, correlation_id, connection.client_id, self._request_timeout_ms, topics
        )
        self._requests_by_lane[lane] = self._requests_by_lane.get(lane, 0) + 1

        def answered(answer: Any, _buffer: Buffer) -> None:
            self._requests_by_lane[lane] -= 1
            for topic in answer.responses:
                for data in topic.partition_responses:
                    tp = TopicPartition(topic.name, data.index)
                    outgoing = sent.pop(tp, None)
                    if outgoing is not None:
                        self._answered(self.partitions[tp], outgoing, data.error_code, data.base_offset)
            for tp, outgoing in sent.items():
                self._failed(self.partitions[tp], outgoing, "the broker's answer leaves it out", Verdict.RETRY)

        def lost(why: str) -> None:
            self._requests_by_lane[lane] -= 1
            for tp, outgoing in sent.items():
                self._failed(self.partitions[tp], outgoing, why, Verdict.RETRY_WITH_METADATA)

        deadline = self._cluster.request_deadline
        is_flexible = version >= produce_request.FLEXIBLE_FROM
        connection.send(
            parts, Pending(correlation_id, _decode_answer, version, is_flexible, answered, lost, deadline, pooled=False)
        )

    def _take_heads(self, partitions: list[TargetPartition], node_id: int) -> dict[TopicPartition, Outgoing]:
        """The oldest queued batch of each partition, as many as fit into one request."""
        taken: dict[TopicPartition, Outgoing] = {}
        size = 0
        for partition in partitions:
            outgoing = partition.queue[0]
            if taken and size + len(outgoing.view) > self._max_request_bytes:
                break
            partition.queue.popleft()
            partition.in_flight.append(outgoing)
            partition.node_id = node_id
            partition.awaited += 1
            size += len(outgoing.view)
            tp = partition.tp
            taken[tp] = outgoing
            del self._ready[tp]
            if partition.queue:
                self._ready[tp] = None  # behind the others: a full request must not starve the rest
        return taken

    def _answered(self, partition: TargetPartition, outgoing: Outgoing, code: int, base_offset: int) -> None:
        if partition.is_failed:
            self._bury(partition)
            return
        if code in (_OK, _DUPLICATE_SEQUENCE_NUMBER):
            partition.awaited -= 1
            partition.is_known = True
            outgoing.is_acked = True
            outgoing.base_offset = base_offset if code == _OK else -1
            self._pop_acked(partition)
            if partition.is_draining:
                self._settle(partition)
            return
        verdict = verdict_of(code)
        if verdict is Verdict.OUT_OF_ORDER:
            is_oldest = next((o for o in partition.in_flight if not o.is_acked), None) is outgoing
            verdict = Verdict.FAIL_TASK if is_oldest and not partition.is_draining else Verdict.RETRY
        self._failed(partition, outgoing, describe(code), verdict, code)

    def _pop_acked(self, partition: TargetPartition) -> None:
        in_flight = partition.in_flight
        while in_flight and in_flight[0].is_acked:
            outgoing = in_flight.popleft()
            self._forget(partition, outgoing)
            self._listener.on_acked(partition.tp, outgoing, outgoing.base_offset)
        partition.backoff.failures = 0
        partition.trouble = None

    def _forget(self, partition: TargetPartition, outgoing: Outgoing) -> None:
        partition.queued_bytes -= len(outgoing.view)
        if outgoing.buffer is not None:
            outgoing.buffer.release()
            outgoing.buffer = None

    def _failed(
        self, partition: TargetPartition, outgoing: Outgoing, why: str, verdict: Verdict, code: int = 0
    ) -> None:
        if partition.is_failed:
            self._bury(partition)
            return
        partition.awaited -= 1
        partition.trouble = why
        if verdict is Verdict.FAIL_TASK:
            raise TaskError(f"the target refused our producer for {partition.tp}: {why}; the task begins again.")
        if verdict is Verdict.FAIL_PARTITION:
            self._give_up(partition, outgoing, why, code)
            return
        if verdict is Verdict.RETRY_WITH_METADATA:
            self._cluster.want_metadata()
        partition.is_draining = True
        self._settle(partition)

    def _give_up(self, partition: TargetPartition, outgoing: Outgoing, why: str, code: int) -> None:
        sentence = f"the target broker refused it: {why}"
        if code in (_MESSAGE_TOO_LARGE, _RECORD_LIST_TOO_LARGE):
            sentence = (
                f"the target takes no batch of {len(outgoing.view)} bytes ({why}); raise max.message.bytes of"
                f" {partition.tp.topic} on the target"
            )
        elif code == _TOPIC_AUTHORIZATION_FAILED:
            sentence = f"the target does not let us write {partition.tp.topic} ({why}); the principal needs WRITE on it"
        self.discard(partition.tp)
        partition.is_failed = True
        partition.awaited += 1
        self._bury(partition)
        self._listener.on_target_failed(partition.tp, outgoing, sentence)

    def _bury(self, partition: TargetPartition) -> None:
        """One answer less to wait for in a partition that was given up; after the last, its buffers are free."""
        partition.awaited -= 1
        if partition.awaited == 0:
            while partition.in_flight:
                self._forget(partition, partition.in_flight.pop())

    def _settle(self, partition: TargetPartition) -> None:
        """Once no answer is awaited, put everything from the first batch without an acknowledgement on back in front.

        A later one that was acknowledged goes again too: the broker knows it, and progress is told in order.
        """
        if partition.awaited:
            return
        for outgoing in partition.in_flight:
            outgoing.is_acked = False
        partition.queue.extendleft(reversed(partition.in_flight))
        partition.in_flight.clear()
        _leave_shared_buffers(partition)
        partition.is_draining = False
        partition.retry_at = time.monotonic() + partition.backoff.next_pause_s()
        if partition.queue:
            self._ready[partition.tp] = None

    def discard(self, tp: TopicPartition) -> None:
        """Forget what is queued of a partition; what is under way is still awaited."""
        partition = self.partitions[tp]
        self._ready.pop(tp, None)
        while partition.queue:
            self._forget(partition, partition.queue.pop())

    def _init_producer_id(self, now: float) -> None:
        if self._init_in_flight or now < self._init_retry_at:
            return
        connection = self._cluster.any_connection()
        if connection is None:
            return
        version = connection.version_of(InitProducerIdRequest, _NEWEST_INIT, _OLDEST_INIT)
        request = InitProducerIdRequest(
            version=version,
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        self._init_in_flight = True
        connection.request(
            request,
            InitProducerIdResponse,
            self._learn_producer_id,
            self._init_lost,
            self._cluster.request_deadline,
        )
        self._network.flush(connection)

    def _init_lost(self, _why: str) -> None:
        self._init_in_flight = False
        self._init_retry_at = time.monotonic() + self._init_backoff.next_pause_s()

    def _learn_producer_id(self, answer: Any, _buffer: Buffer) -> None:
        if answer.error_code == 0:
            self._init_in_flight = False
            self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
            return
        verdict = verdict_of(answer.error_code)
        if verdict in (Verdict.FAIL_PARTITION, Verdict.FAIL_TASK):
            raise TaskError(f"the target gave us no producer id: {describe(answer.error_code)}.")
        self._init_lost(describe(answer.error_code))
