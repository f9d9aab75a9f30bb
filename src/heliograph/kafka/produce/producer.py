"""Produces ready-made batches as an idempotent producer: pipelined, in order per partition, retried for ever.

Rules that keep order and prevent duplicates:
A. A batch gets its sequence when it is first sent; a retry sends the same bytes, and the broker recognises them.
B. A partition stays on its lane, and at most five requests are under way on a lane (the broker remembers five batches
   per producer and partition).
C. After an error a partition sends nothing until every answer it still waits for has come (`draining`); then all
   batches that were not acknowledged go back to the front of the queue, in order.
D. A broker that holds no state of a producer takes whatever sequence comes first. So a partition's first batch travels
   alone until it is acknowledged, and so does the first after an error (the topic may have been created again); after a
   change of leader nothing is sent before every awaited answer has come.
E. A batch is acknowledged exactly once, and in order: `on_acked` is called for the oldest batch first.
F. A batch that may be in the log is given up only with the transaction it may be in, and its sequence is no other's.
G. While the producer is held (`hold`), only what was sent before and what `passes_hold` is sent: a transaction ends
   with what was acknowledged, no more and no less.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka.protocol.producer import ProduceRequest

from heliograph.kafka.error_codes import Verdict, describe, may_be_appended, verdict_of
from heliograph.kafka.net.connection import Pending
from heliograph.kafka.produce.produce_lanes import ProduceLanes, TargetLeaders
from heliograph.kafka.produce.target_partition import (
    DRAINING_STATES,
    Outgoing,
    ProduceListener,
    TargetPartition,
    TargetPartitionState,
)
from heliograph.wire.batches.batch_header import TRANSACTIONAL, compression_of, next_sequence, restamp
from heliograph.wire.messages import produce_messages
from heliograph.wire.messages.produce_messages import ProduceAnswer, decode_produce_response

if TYPE_CHECKING:
    from heliograph.kafka.net.buffers import Buffer, BufferPool
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.net.connection import Connection
    from heliograph.kafka.net.event_loop import Network
    from heliograph.kafka.produce.producer_session import ProducerSession
    from heliograph.kafka.request_options import ProduceLimits
    from heliograph.model import TopicPartition


_OK, _TOPIC_AUTHORIZATION_FAILED, _DUPLICATE_SEQUENCE_NUMBER = 0, 29, 46
_NEWEST_WITH_FIRST_PROTOCOL = 11
_SHORT_PAUSE_S, _MOST_SHORT_PAUSES = 0.005, 20
_OPEN = TargetPartitionState.OPEN


class BatchProducer:
    """Writes the partitions of one task to one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        pool: BufferPool,
        session: ProducerSession,
        listener: ProduceListener,
        limits: ProduceLimits,
    ) -> None:
        self.partitions: dict[TopicPartition, TargetPartition] = {}
        self.unsettled_batches = 0
        self._cluster = cluster
        self._network = network
        self._pool = pool
        self._session = session
        self._listener = listener
        self._limits = limits
        self._lanes = ProduceLanes(cluster, limits.max_in_flight)
        self._ready: dict[TopicPartition, None] = {}
        self._leaders = TargetLeaders(cluster, self._lanes, park=self._park, keep=self._keep)
        self._parking: TopicPartition | None = None
        self._is_held = False

    @property
    def throttled_ms(self) -> int:
        """How long brokers wanted us to be quiet, in all."""
        return self._lanes.throttled_ms

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued or under way."""
        return all(partition.is_idle for partition in self.partitions.values())

    @property
    def has_unsettled(self) -> bool:
        """Whether a batch is queued or waits for its acknowledgement."""
        return bool(self._ready or self.unsettled_batches)

    @property
    def has_retries(self) -> bool:
        """Whether a partition waits for its next try, for a leader, or for the coordinator."""
        if self._lanes.has_pauses or self._leaders.are_missing or self._session.is_busy:
            return True
        return any(not p.in_flight or p.state in DRAINING_STATES for tp in self._ready if (p := self.partitions[tp]))

    def hold(self) -> None:
        """Send nothing new until `release`."""
        self._is_held = True

    def release(self) -> None:
        """Go on."""
        self._is_held = False

    def add_topic_watch(self, topic: str) -> None:
        """Learn a topic's leaders before the first batch for it."""
        self._cluster.watch([topic])

    def add(self, tp: TopicPartition) -> TargetPartition:
        """The state of a target partition, made on first use."""
        partition = self.partitions.get(tp)
        if partition is None:
            partition = self.partitions[tp] = TargetPartition(tp, lane=len(self.partitions) % self._limits.lanes)
        self._leaders.follow(partition)
        return partition

    def enqueue(self, partition: TargetPartition, outgoing: Outgoing) -> None:
        """Queue a checked batch; it is stamped as ours when it leaves."""
        partition.queue.append(outgoing)
        partition.queued_bytes += len(outgoing.view)
        self._ready[partition.tp] = None
        node_id = self._cluster.leaders.get(partition.tp)
        if node_id is not None:
            self._lanes.use((node_id, partition.lane))

    def pump(self, now: float) -> None:
        """Send what may be sent."""
        self._session.pump(now)
        self._lanes.end_pauses(now)
        self._leaders.pump()
        if not self._ready or not self._session.is_ready or self._lanes.are_full:
            return
        by_lane: dict[tuple[int, int], list[TargetPartition]] = {}
        leaders, missing = self._cluster.leaders, self._cluster.missing_since
        for tp in self._ready:
            partition = self.partitions[tp]
            if partition.state is not _OPEN and not partition.may_send(now):
                continue
            node_id = leaders.get(tp) if tp.topic not in missing else None
            if node_id is None:
                self._leaders.miss(partition)  # and not into the transaction, where it would keep out the others
            elif partition.in_flight and not (partition.state is _OPEN and partition.node_id == node_id):
                continue
            elif self._may_leave(partition):
                by_lane.setdefault((node_id, partition.lane), []).append(partition)
        self._leaders.pump()
        self._session.pump(now)  # partitions just found not to be in the transaction are added at once
        for lane, partitions in by_lane.items():
            connection = self._lanes.connection(lane)
            if connection is not None:
                self._fill_pipeline(lane, connection, partitions)
            else:
                self._leaders.cut_off(lane, partitions)

    def _may_leave(self, partition: TargetPartition) -> bool:
        head = partition.queue[0]
        if head.is_sent:
            return True
        return (head.passes_hold or not self._is_held) and self._session.admits(partition.tp)

    def _fill_pipeline(self, lane: tuple[int, int], connection: Connection, partitions: list[TargetPartition]) -> None:
        sent_any = False
        while partitions and self._lanes.has_room(lane):
            self._send_one(lane, connection, partitions)
            sent_any = True
            partitions = [p for p in partitions if p.queue and p.state is _OPEN and self._may_leave(p)]
        if sent_any:
            self._network.flush(connection)

    def _send_one(self, lane: tuple[int, int], connection: Connection, partitions: list[TargetPartition]) -> None:
        """One request with at most one batch of each partition: the protocol's rule."""
        sent = self._take_heads(partitions, lane[0])
        topics: dict[str, list[tuple[int, memoryview | bytes]]] = {}
        for tp, outgoing in sent.items():
            topics.setdefault(tp.topic, []).append((tp.partition, outgoing.view))
        session = self._session
        is_first_protocol = session.transactional_id is not None and not session.uses_second_protocol
        newest = _NEWEST_WITH_FIRST_PROTOCOL if is_first_protocol else produce_messages.MAX_VERSION
        version = connection.version_of(ProduceRequest, newest, produce_messages.MIN_VERSION)
        correlation_id = connection.next_correlation_id()
        parts = produce_messages.encode_produce_request(
            version,
            correlation_id,
            connection.client_id,
            self._limits.request_timeout_ms,
            topics,
            session.transactional_id,
        )
        self._lanes.sent(lane)

        def answered(answer: ProduceAnswer, _buffer: Buffer) -> None:
            self._lanes.answered(lane, answer.throttle_time_ms)
            for tp, code, base_offset in answer.partitions:
                outgoing = sent.pop(tp, None)
                if outgoing is not None:
                    self._answered(self.partitions[tp], outgoing, code, base_offset)
            for tp, outgoing in sent.items():
                self._failed(self.partitions[tp], outgoing, "the broker's answer leaves it out", Verdict.RETRY)

        def lost(why: str) -> None:
            self._lanes.answered(lane)
            for tp, outgoing in sent.items():
                self._failed(self.partitions[tp], outgoing, why, Verdict.RETRY_WITH_METADATA)

        deadline = self._cluster.request_deadline
        is_flexible = version >= produce_messages.FLEXIBLE_FROM
        decode = decode_produce_response
        connection.send(
            parts, Pending(correlation_id, decode, version, is_flexible, answered, lost, deadline, pooled=False)
        )

    def _take_heads(self, partitions: list[TargetPartition], node_id: int) -> dict[TopicPartition, Outgoing]:
        """The oldest queued batch of each partition, stamped, as many as fit into one request."""
        taken: dict[TopicPartition, Outgoing] = {}
        size = 0
        for partition in partitions:
            outgoing = partition.queue[0]
            if taken and size + len(outgoing.view) > self._limits.max_request_bytes:
                break
            if not outgoing.is_sent:
                self._stamp(partition, outgoing)
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

    def _stamp(self, partition: TargetPartition, outgoing: Outgoing) -> None:
        identity = self._session.identity
        assert identity is not None
        if partition.identity != identity:
            partition.identity, partition.sequence = identity, 0
            if partition.state is _OPEN:
                partition.become(TargetPartitionState.FIRST_BATCH_ALONE)
        attributes = compression_of(outgoing.view)
        if self._session.transactional_id is not None:
            attributes |= TRANSACTIONAL
        outgoing.sequence = partition.sequence
        restamp(outgoing.view, attributes, identity.producer_id, identity.epoch, outgoing.sequence)
        partition.sequence = next_sequence(partition.sequence, outgoing.record_count)
        self.unsettled_batches += 1

    # --- what becomes of them -----------------------------------------------------------------------------------------

    def _answered(self, partition: TargetPartition, outgoing: Outgoing, code: int, base_offset: int) -> None:
        if partition.state is TargetPartitionState.FAILED:
            self._bury(partition)
            return
        if code in (_OK, _DUPLICATE_SEQUENCE_NUMBER):
            partition.awaited -= 1
            if partition.state is TargetPartitionState.FIRST_BATCH_ALONE:
                partition.become(_OPEN)
            outgoing.is_acked = True
            outgoing.base_offset = base_offset if code == _OK else -1
            self._pop_acked(partition)
            if partition.state in DRAINING_STATES:
                self._settle(partition)
            return
        verdict = verdict_of(code)
        if verdict is Verdict.OUT_OF_ORDER:
            is_oldest = next((o for o in partition.in_flight if not o.is_acked), None) is outgoing
            verdict = Verdict.FAIL_TASK if is_oldest and partition.state not in DRAINING_STATES else Verdict.RETRY
        self._failed(partition, outgoing, describe(code), verdict, code)

    def _pop_acked(self, partition: TargetPartition) -> None:
        in_flight = partition.in_flight
        while in_flight and in_flight[0].is_acked:
            outgoing = in_flight.popleft()
            self._forget(partition, outgoing)
            self._listener.on_acked(partition.tp, outgoing, outgoing.base_offset)
        partition.backoff.failures = 0
        partition.issue = None

    def _forget(self, partition: TargetPartition, outgoing: Outgoing) -> None:
        partition.queued_bytes -= len(outgoing.view)
        self.unsettled_batches -= outgoing.is_sent
        if outgoing.buffer is not None:
            outgoing.buffer.release()
            outgoing.buffer = None

    def _failed(
        self, partition: TargetPartition, outgoing: Outgoing, why: str, verdict: Verdict, code: int = 0
    ) -> None:
        if partition.state is TargetPartitionState.FAILED:
            self._bury(partition)
            return
        partition.awaited -= 1
        outgoing.is_doubtful = outgoing.is_doubtful or may_be_appended(code)
        if partition.issue is None:
            partition.short_pauses = 0
        partition.issue = why
        if verdict is Verdict.FAIL_TASK:
            self._session.doom(f"the target refused our producer for {partition.tp}: {why}")
        if verdict is Verdict.FAIL_PARTITION:
            sentence = f"the target broker refused it: {why}"
            if code == _TOPIC_AUTHORIZATION_FAILED:
                topic = partition.tp.topic
                sentence = f"the target does not let us write {topic} ({why}); the principal needs WRITE on it"
            self._give_up(partition, outgoing, sentence)
            return
        if verdict is Verdict.TOO_LARGE and partition.too_large is None:
            partition.too_large = outgoing
        if verdict is Verdict.RETRY_WITH_METADATA:
            self._cluster.want_metadata()
        if verdict is not Verdict.RETRY_SOON and partition.state is not TargetPartitionState.DRAINING_TO_BACK_OFF:
            partition.become(TargetPartitionState.DRAINING_TO_BACK_OFF)
        elif partition.state not in DRAINING_STATES:
            partition.become(TargetPartitionState.DRAINING)
        self._settle(partition)

    def _give_up(self, partition: TargetPartition, outgoing: Outgoing, sentence: str) -> None:
        """Forget a partition's batches; those under way keep their memory until their answers have come."""
        if self._session.transactional_id is not None and any(sent.is_doubtful for sent in partition.sent):
            # Committed, a copy that nobody counts would come again after the next start.
            self._doom_doubtful(partition, sentence)
            return
        self._ready.pop(partition.tp, None)
        self._leaders.leave(partition)
        while partition.queue:
            self._forget(partition, partition.queue.pop())
        partition.become(TargetPartitionState.FAILED)
        partition.awaited += 1
        self._bury(partition)
        self._listener.on_target_failed(partition.tp, outgoing, sentence)

    def give_up(self, tp: TopicPartition, why: str) -> None:
        """Try what was sent of a partition no more, where no answer is awaited; it is told as failed."""
        partition = self.partitions[tp]
        if partition.sent and not partition.awaited and partition.state is not TargetPartitionState.FAILED:
            self._give_up(partition, partition.sent[0], why)

    def _doom_doubtful(self, partition: TargetPartition, why: str) -> None:
        self._session.doom(f"{partition.tp}: {why}, and an earlier try of the batch may have come through")

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
        pause_s = _SHORT_PAUSE_S
        partition.short_pauses += 1
        if partition.state is TargetPartitionState.DRAINING_TO_BACK_OFF or partition.short_pauses > _MOST_SHORT_PAUSES:
            self._park(partition)
            pause_s = partition.backoff.next_pause_s()
        partition.become(TargetPartitionState.BACKING_OFF)
        partition.retry_at = time.monotonic() + pause_s
        if partition.queue:
            self._ready[partition.tp] = None
        too_large, partition.too_large = partition.too_large, None
        if too_large is not None and partition.queue and partition.queue[0] is too_large:
            self._replace_head(partition, too_large)

    def _replace_head(self, partition: TargetPartition, refused: Outgoing) -> None:
        """Send other batches in place of one that was too large; none behind it was taken, so sequences begin there."""
        if refused.is_doubtful:
            # Others would get its sequences: a broker that has it would take the next of its size for its repeat.
            self._doom_doubtful(partition, "the target finds it too large")
            return
        instead = self._listener.on_too_large(partition.tp, refused)
        if isinstance(instead, str):
            self._give_up(partition, refused, instead)
            return
        partition.issue = None  # where nothing is left, no success could end it
        partition.sequence = refused.sequence
        self._forget(partition, partition.queue.popleft())
        for outgoing in partition.queue:
            self.unsettled_batches -= outgoing.is_sent
            outgoing.sequence = -1
        for outgoing in reversed(instead):
            outgoing.sequence = -1
            partition.queue.appendleft(outgoing)
            partition.queued_bytes += len(outgoing.view)
        if partition.queue:
            self._ready[partition.tp] = None
        else:
            self._ready.pop(partition.tp, None)

    def _park(self, partition: TargetPartition) -> None:
        """Free the shared memory of a partition that cannot go on: what was not sent is read again, the rest copied."""
        self._parking = partition.tp
        self._listener.on_stuck(partition.tp)
        self._parking = None
        self._set_aside(partition)

    def _keep(self, partition: TargetPartition) -> None:
        """Keep what waits for a pause to end, as far as the memory reaches; the rest is read again."""
        is_aside = all(each.buffer is None or each.buffer.is_parked for each in partition.queue)
        if is_aside or self._pool.has_room_to_park:
            self._set_aside(partition)
        else:
            self._park(partition)

    def _set_aside(self, partition: TargetPartition) -> None:
        """Free the shared memory of what waits in a partition's queue."""
        for outgoing in partition.queue:
            if outgoing.buffer is not None and not outgoing.buffer.is_parked:
                parked = self._pool.park(outgoing.view)
                outgoing.view = parked.view
                outgoing.buffer.release()
                outgoing.buffer = parked

    def discard(self, tp: TopicPartition) -> Outgoing | None:
        """Forget what was not sent yet of a partition, and return the oldest of it.

        What a broker may have seen is still seen through. Unless `on_stuck` calls it, nothing more is to come for the
        partition.
        """
        partition = self.partitions[tp]
        oldest = None
        while partition.queue and not partition.queue[-1].is_sent:
            oldest = partition.queue.pop()
            self._forget(partition, oldest)
        if not partition.queue:
            self._ready.pop(tp, None)
        if self._parking != tp:
            self._leaders.leave(partition)
        return oldest
