"""The copy of one task: fetch, check, prepare, produce, acknowledge, commit; one thread, one loop.

Nothing here knows Spark: `copy_task` runs it in a Python worker, tests run it directly. Memory is bounded: a new
fetch is asked for only while the memory that holds what is not yet acknowledged leaves room for it in `buffer_bytes`.

Invariants:
A. Only what the target has acknowledged, in order, or what needs no copy, is committed.
B. A partition that cannot go on is failed with a sentence naming topic, partition and offset; the others go on.
C. The loop ends only by: all partitions done (`--once`), the lease's word, a lost lease, or a TaskError.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from heliograph.errors import CorruptBatchError, TaskError
from heliograph.executor.contract.task_report import TaskReport
from heliograph.executor.copy.byte_rate import ByteRate
from heliograph.executor.copy.copy_partition import CopyPartition
from heliograph.executor.copy.lease_client import done_patiently
from heliograph.executor.copy.log_changes import SourceChanges, TargetChanges
from heliograph.executor.copy.offset_commits import CommitSchedule, OffsetCommits
from heliograph.executor.copy.resume import placed_partitions
from heliograph.executor.copy.sync_writer import SyncWriter
from heliograph.executor.copy.task_events import TaskEvents
from heliograph.kafka.fetch.fetcher import Fetcher
from heliograph.kafka.net.buffers import BufferPool
from heliograph.kafka.net.cluster import Cluster
from heliograph.kafka.net.event_loop import Network
from heliograph.kafka.produce.large_batches import LargeBatches, SkippedRecord, TopicLimits
from heliograph.kafka.produce.producer import BatchProducer
from heliograph.kafka.produce.producer_session import ProducerSession
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.wire.batches.forward import prepare, warm_up

if TYPE_CHECKING:
    from heliograph.executor.contract.lease import TaskLease
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.request_options import FetchLimits
    from heliograph.kafka.security.connection_spec import ClusterSpec
    from heliograph.model import SourceOffset, TopicPartition
    from heliograph.wire.messages.fetch_response import PartitionData


_REPORT_INTERVAL_S = 1.0
_RETRY_GRANULARITY_S = 0.05
_CONNECT_TIMEOUT_S = 10.0
_DRAIN_TIMEOUT_S = 20.0
_MOST_QUEUED_BATCHES = 32  # of a partition; behind them batches are better merged than queued
_MOST_DAMAGED_ANSWERS = 3
_LEAST_MOVING_PART = 4


class CopyLoop:
    """Copies a task's partitions until told to stop."""

    def __init__(self, spec: TaskSpec, lease: TaskLease) -> None:
        self.spec = spec
        self.partitions: dict[TopicPartition, CopyPartition] = {}
        self._lease = lease
        self._events = TaskEvents(spec.flow)
        self._pool = BufferPool(spec.buffer_bytes)
        self._network = Network(self._pool, f"heliograph-{spec.task_id}", _CONNECT_TIMEOUT_S)
        self._source = self._cluster(spec.source)
        self._target = self._cluster(spec.target)
        self._rate = ByteRate(spec.bytes_per_s, spec.limits.max_bytes, time.monotonic())
        self._limits = self._fetch_limits()
        lanes, memory_bytes = spec.produce_limits.lanes, self._moving_bytes
        self._fetcher = Fetcher(self._source, self._network, self._limits, self, lanes=lanes, memory_bytes=memory_bytes)
        self._session = ProducerSession(
            self._target,
            self._network,
            transactional_id=spec.transactional_id,
            transaction_timeout_ms=spec.transaction_timeout_ms,
        )
        self._producer = self._make_producer(self._target, self._session)
        self._clusters = [self._source, self._target]
        self._sessions, self._producers = [self._session], [self._producer]
        if spec.source_offsets is not None:
            holder = self._cluster(spec.source_offsets)
            self._clusters.append(holder)
            self._sessions.append(ProducerSession(holder, self._network))
            self._producers.append(self._make_producer(holder, self._sessions[-1]))
        limits = TopicLimits(self._target, self._network)
        self._large_batches = LargeBatches(limits, self._pool, leaves_out=spec.tolerates_too_large)
        self._commits = OffsetCommits(
            spec, self._producers[-1], self._sessions[-1], self._source_offsets, self._on_committed
        )
        self._syncs: SyncWriter | None = None
        if spec.syncs is not None:
            holder = self._cluster(spec.syncs.cluster)
            self._syncs = SyncWriter(holder, self._network, spec.syncs.topic, spec.syncs.lag_max)
        self._changes = SourceChanges(spec, self._source, self._fail, self._events)
        self._target_changes = TargetChanges(spec, self._target, self._producer, self._fail)
        self._by_target: dict[TopicPartition, CopyPartition] = {}
        self._departed: dict[TopicPartition, CopyPartition] = {}
        self._schedule = CommitSchedule(spec)
        self._next_report_at = 0.0

    def _fetch_limits(self) -> FetchLimits:
        if not self._rate.bytes_per_s:
            return self.spec.limits
        return replace(self.spec.limits, max_bytes=self._rate.answer_bytes, grows_to_bytes=0)

    def _cluster(self, spec: ClusterSpec) -> Cluster:
        return Cluster(spec.alias, spec.bootstrap, spec.security, self._network, spec.request_timeout_ms / 1000)

    def _make_producer(self, cluster: Cluster, session: ProducerSession) -> BatchProducer:
        return BatchProducer(cluster, self._network, self._pool, session, self, self.spec.produce_limits)

    def run(self) -> TaskReport:
        """Copy until done or told to stop; then flush, commit and return the last report."""
        try:
            self._begin()
            while not self._is_finished():
                self._step(fetch=True)
            self._drain()
            return self._report()
        finally:
            self._network.close()

    def _begin(self) -> None:
        """Take our place as the producer, find out where each partition goes on, and add them."""
        self._producers[-1].add_topic_watch(self.spec.offsets_topic)
        # On a machine that never ran the kernels, compiling them takes longer than a lease lasts in silence.
        done_patiently(warm_up, self._stay_alive)
        while self.spec.transactional_id is not None and not self._session.is_ready:
            self._lease.check()
            if self._lease.stop_reason is not None:
                return
            self._step(fetch=False)
        for placed in done_patiently(lambda: placed_partitions(self.spec, self._events), self._stay_alive) or ():
            partition = self._add(placed.spec)
            partition.target_end = placed.target_end
            partition.passed_offset = placed.resumed_behind
            partition.counters.already_there = placed.already_there

    def _stay_alive(self) -> bool:
        """Keep the lease; False where we are told to stop."""
        self._lease.check()
        if time.monotonic() >= self._next_report_at:
            self._next_report_at = time.monotonic() + _REPORT_INTERVAL_S
            self._lease.report(self._report())
        return self._lease.stop_reason is None

    def _is_finished(self) -> bool:
        self._lease.check()
        assignment = self._lease.take_assignment()
        if assignment is not None:
            self._reassign(assignment.partitions)
            self._rate.change(assignment.bytes_per_s, time.monotonic())
            self._limits = self._fetcher.limits = self._fetch_limits()
        if self._lease.stop_reason is not None:
            return True
        is_once = all(p.spec.stop_offset is not None for p in self.partitions.values())
        return bool(self.partitions) and is_once and self._is_over()

    def _is_over(self) -> bool:
        return all(partition.is_over for partition in self.partitions.values())

    def _step(self, *, fetch: bool) -> None:
        deadline = (now := time.monotonic()) + self._timeout_s(now)
        while not self._network.poll(deadline - now) and (now := time.monotonic()) < deadline:
            pass
        now = time.monotonic()
        for cluster in self._clusters:
            cluster.maintain(now)
            cluster.raise_refusal()
        self._pump(now)
        if fetch and self._session.is_ready:
            self._fetcher.pump(now, self._wants, self._room_bytes)
        if now >= self._commit_due_at:
            if self._commits.begin(int(time.time() * 1000)):
                self._schedule.begun(now)
            else:
                self._schedule.postponed(now)
            self._pump(now)
        if not self._commits.is_idle:
            self._commits.pump(int(time.time() * 1000))
            self._pump(now)
        if self._syncs is not None:
            self._syncs.pump(now)
        if now >= self._next_report_at:
            self._next_report_at = now + _REPORT_INTERVAL_S
            self._network.maintain(now)
            self._target_changes.look(now, self._by_target.values(), self._departed)
            self._lease.report(self._report())

    def _pump(self, now: float) -> None:
        for producer in self._producers:
            producer.pump(now)

    @property
    def _commit_due_at(self) -> float:
        return self._schedule.due_at(is_quiet=not self._producer.has_unsettled)

    def _timeout_s(self, now: float) -> float:
        until_timer = min(self._commit_due_at, self._next_report_at) - now
        if self._syncs is not None:
            until_timer = min(until_timer, self._syncs.wait_s)
        is_calm = all(session.is_ready for session in self._sessions) and not self._fetcher.has_retries
        is_calm = is_calm and not any(cluster.is_unsettled for cluster in self._clusters)
        is_calm = is_calm and not any(producer.has_retries for producer in self._producers)
        if is_calm and not self._rate.bytes_per_s:
            return max(0.0, until_timer)
        return max(0.0, min(until_timer, _RETRY_GRANULARITY_S))

    def _room_bytes(self) -> int:
        """How much may be asked for now; something always, where nothing that moves fills the memory."""
        in_use = self._pool.held_bytes + self._fetcher.in_flight_bytes
        room = self._moving_bytes() - in_use
        if not in_use:
            room = max(room, self._limits.max_bytes)
        return self._rate.allowed_bytes(time.monotonic(), room)

    def _moving_bytes(self) -> int:
        """The memory for what moves: all but what is parked, and a part of it however much is parked."""
        return max(self.spec.buffer_bytes - self._pool.parked_bytes, self.spec.buffer_bytes // _LEAST_MOVING_PART)

    def _wants(self, fetched: FetchPartition) -> bool:
        target = self.partitions[fetched.tp].target
        # More than one answer's share, or over a long way every other round trip would carry nothing of a partition.
        two_answers = self._limits.partition_max_bytes * self._fetcher.growth * 2
        return (
            target.issue is None
            and target.queued_bytes < max(two_answers, self.spec.buffer_bytes // 8)
            and len(target.queue) < _MOST_QUEUED_BATCHES
        )

    # --- assignment ---------------------------------------------------------------------------------------------------

    def _add(self, spec: PartitionSpec) -> CopyPartition:
        if spec.target in self._by_target:
            # What was sent before it was taken away has used up sequences; only a new producer can begin again.
            raise TaskError(f"{spec.tp} was taken away and given back; the task begins again.")
        syncs = self._syncs.add(spec.tp) if self._syncs is not None else None
        partition = CopyPartition(spec, self._producer.add(spec.target), syncs)
        self.partitions[spec.tp] = partition
        self._by_target[spec.target] = partition
        self._fetcher.add(spec.tp, spec.position, partition.topic_id, partition.epochs)
        return partition

    def _reassign(self, wanted: tuple[PartitionSpec, ...]) -> None:
        by_tp = {spec.tp: spec for spec in wanted}
        for tp in [tp for tp in self.partitions if tp not in by_tp]:
            self._fetcher.remove(tp)
            self._departed[tp] = self.partitions.pop(tp)
            self._discard(self._departed[tp])
        for tp, spec in by_tp.items():
            if tp not in self.partitions:
                self._add(spec)

    def _discard(self, partition: CopyPartition) -> int | None:
        """Forget what was not sent of a partition; where it would go on."""
        oldest = self._producer.discard(partition.spec.target)
        if oldest is None:
            return None
        assert oldest.piece is not None
        position = oldest.piece.base_offset
        partition.passed_offset = position - 1
        return position

    # --- what the fetcher says ----------------------------------------------------------------------------------------

    def on_records(self, fetched: FetchPartition, data: PartitionData, buffer: Buffer) -> None:
        """Check and prepare the batches, and queue them for the target."""
        partition = self.partitions[fetched.tp]
        assert fetched.position is not None
        assert data.records is not None
        self._rate.spend(len(data.records))
        pieces, position, error, epochs = prepare(data.records, fetched.position, data.aborted)
        if position > fetched.position:
            for piece in pieces:
                if piece.is_shared:
                    buffer.hold()
                self._producer.enqueue(
                    partition.target,
                    Outgoing(
                        piece.view,
                        piece.record_count,
                        self._on_acked,
                        buffer=buffer if piece.is_shared else self._pool.own(piece.view),
                        piece=piece,
                    ),
                )
            partition.epochs.note_all(epochs)
            partition.damaged_answers = 0
            partition.passed_offset, partition.topic_id = position - 1, fetched.topic_id
            fetched.position = position
            self._end_if_done(partition, position)
        if error is not None and not partition.is_over:
            self._on_damaged(partition, error.offset, error)

    def _on_damaged(self, partition: CopyPartition, offset: int, error: Exception) -> None:
        """Read it again, in case only the answer was damaged; then stop the partition."""
        partition.damaged_answers += 1
        if isinstance(error, CorruptBatchError) and partition.damaged_answers < _MOST_DAMAGED_ANSWERS:
            self._fetcher.retry([partition.spec.tp], f"the batch at offset {offset} is damaged: {error}")
            return
        self._fail(partition, f"the batch at offset {offset} cannot be forwarded: {error}")

    def decide_position(self, fetched: FetchPartition, earliest: int, latest: int) -> int | None:
        """Go on where we were; say so where the source's log no longer has that place."""
        partition = self.partitions[fetched.tp]
        position = self._changes.position(partition, fetched, earliest, latest)
        if position is None:
            return None
        if (
            partition.spec.source_offsets is None
            and partition.passed_offset is None
            and partition.target_end is not None
        ):
            # Committed before the first record: a restart then knows where our records begin on the target.
            partition.passed_offset = position - 1
        self._end_if_done(partition, position)
        return position

    def on_recreated(self, fetched: FetchPartition, why: str) -> bool:
        """The topic was deleted and created again under our hands, or while we were away."""
        return self._changes.accepts_recreated(self.partitions[fetched.tp], why)

    def on_cut(self, fetched: FetchPartition, offset: int) -> bool:
        """The source's log was cut, and was led by others since."""
        return self._changes.accepts_cut(self.partitions[fetched.tp], fetched, offset)

    def on_unchecked(self, fetched: FetchPartition, why: str) -> None:
        """Nobody can tell whether the source's log was cut."""
        self._changes.unchecked(self.partitions[fetched.tp], why)

    def on_source_failed(self, tp: TopicPartition, why: str) -> None:
        """The source will not let us read a partition."""
        self._fail(self.partitions[tp], why)

    def _end_if_done(self, partition: CopyPartition, position: int) -> None:
        stop_offset = partition.stop_offset
        partition.counters.position = position
        if stop_offset is not None and position >= stop_offset:
            partition.counters.is_done = True
            self._fetcher.remove(partition.spec.tp)

    def _fail(self, partition: CopyPartition, why: str) -> None:
        tp = partition.spec.tp
        partition.counters.failure = f"{self.spec.flow} {tp}: {why}."
        self._events.error(f"{why}.", tp)
        self._fetcher.remove(tp)

    # --- what the producer says ---------------------------------------------------------------------------------------

    def _on_acked(self, tp: TopicPartition, outgoing: Outgoing, base_offset: int) -> None:
        """Count a batch that is safe on the target."""
        assert outgoing.piece is not None
        partition = self._by_target[tp]
        self._schedule.note_news()
        partition.note_acked(outgoing.piece, base_offset, int(time.time() * 1000))
        if self.spec.transactional_id is None:
            self._report_runs(partition)

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:
        """The target will not take a batch."""
        if outgoing.piece is None:
            self._commits.on_refused(tp, why)
            return
        self._fail(self._by_target[tp], f"the batch at offset {outgoing.piece.base_offset} was refused: {why}")

    def on_stuck(self, tp: TopicPartition) -> None:
        """The target does not take a partition's batches just now: read again later what was not sent."""
        partition = self._by_target.get(tp)
        if partition is None or partition.counters.failure is not None:
            return
        position = self._discard(partition)
        source = partition.spec.tp
        if position is None or source not in self.partitions:
            return
        if partition.counters.is_done:
            partition.counters.is_done = False
            self._fetcher.add(source, position, partition.topic_id, partition.epochs)
        else:
            self._fetcher.seek(source, position)

    def on_too_large(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | str:
        """The target finds a batch too large."""
        instead = self._large_batches.instead_of(tp, outgoing)
        if isinstance(instead, SkippedRecord):
            partition = self._by_target[tp]
            partition.counters.skipped_records += 1
            self._events.warn(instead, partition.spec.tp)
            return []
        return instead

    # --- commit, report, end ------------------------------------------------------------------------------------------

    def _source_offsets(self) -> dict[TopicPartition, SourceOffset]:
        everyone = self.partitions | self._departed
        return {tp: source_offsets for tp, p in everyone.items() if (source_offsets := p.source_offsets) is not None}

    def _on_committed(self) -> None:
        self._schedule.ended(time.monotonic())
        for partition in self._by_target.values():
            self._report_runs(partition)
        if self._syncs is not None:
            self._syncs.flush()

    def _report_runs(self, partition: CopyPartition) -> None:
        if self._syncs is not None and partition.report_runs():
            self._syncs.wake(partition.spec.tp)

    def _report(self) -> TaskReport:
        rows = [
            partition.report(self._fetcher.partitions.get(tp), self._commits.committed.get(tp))
            for tp, partition in self.partitions.items()
        ]
        told_by = (*self._clusters, *self._sessions, self._commits, self._syncs)
        issue = [part.issue for part in told_by if part is not None and part.issue]
        return TaskReport(rows, self._events.take(), issue, self._fetcher.throttled_ms + self._producer.throttled_ms)

    def _drain(self) -> None:
        """Wait for what is under way, forget what was not sent, commit; what takes too long is copied again later."""
        deadline = time.monotonic() + _DRAIN_TIMEOUT_S
        is_stopped, is_done, is_committed = self._lease.stop_reason is not None, False, False
        if is_stopped:
            for tp, partition in self.partitions.items():
                self._fetcher.remove(tp)  # or an answer under way would be sent behind the gap of what is forgotten
                self._discard(partition)
        while time.monotonic() < deadline or not is_stopped:
            self._lease.check()
            was_done, is_done = is_done, all(p.is_idle for p in self._producers) and (is_stopped or self._is_over())
            is_settled = all(p.target.is_idle or p.target.issue for p in self.partitions.values())
            # With many partitions dear to ask: not while records are on their way, nor again once none can follow.
            was_committed = is_committed and was_done and is_done
            is_committed = was_committed or (is_settled and self._commits.has_all(self.partitions))
            if is_done and is_committed and self._is_reported():
                return
            if self._lease.stop_reason is not None and not is_stopped:
                is_stopped, deadline = True, time.monotonic() + _DRAIN_TIMEOUT_S
            if self._syncs is not None and is_committed:
                self._syncs.flush_now()
            if self._commits.is_idle and all(p.target.is_idle for p in self.partitions.values()):
                self._schedule.hurry(time.monotonic())
            self._step(fetch=not is_stopped)
        unwritten = self._commits.unwritten(self.partitions)
        if unwritten is not None:
            self._events.warn(unwritten)

    def _is_reported(self) -> bool:
        """Whether the offset syncs are written, or cannot be."""
        return self._syncs is None or self._syncs.is_idle or self._syncs.issue is not None


def run_copy(spec: TaskSpec, lease: TaskLease) -> dict[str, Any]:
    """Run a task to its end; the last report as plain values."""
    return CopyLoop(spec, lease).run().to_json()
