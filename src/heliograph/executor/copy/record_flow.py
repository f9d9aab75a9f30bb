"""Moves records through a task: checks, prepares and queues fetched batches, and counts acknowledgements.

Invariant: a partition that cannot continue is failed with a message that names topic, partition and offset; the others
continue.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from heliograph.errors import CorruptBatchError
from heliograph.executor.copy.log_changes import SourceChanges
from heliograph.executor.copy.offset_commits import refused_commit
from heliograph.kafka.produce.large_batches import LargeBatches, SkippedRecord, TopicLimits
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.status.losses import LossCause
from heliograph.wire.batches.forward import prepare

if TYPE_CHECKING:
    from heliograph.executor.contract.task_report import TaskEvents
    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.executor.copy.copy_clients import CopyClients
    from heliograph.executor.copy.copy_partition import CopyPartition, CopyPartitions
    from heliograph.executor.copy.fetch_budget import ByteRate
    from heliograph.executor.copy.offset_commits import CommitSchedule
    from heliograph.executor.copy.resume import ResumePoint
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.model import TopicPartition
    from heliograph.status.sampled_window import SampledWindow
    from heliograph.wire.batches.forward import Piece
    from heliograph.wire.messages.fetch_response import PartitionData


_MOST_DAMAGED_ANSWERS = 3


class RecordFlow:
    """Listens to the fetcher and to the producers of a task.

    Its methods are theirs (`FetchListener`, `ProduceListener`) and what these share; hence their number.
    """

    def __init__(
        self,
        spec: TaskSpec,
        clients: CopyClients,
        partitions: CopyPartitions,
        rate: ByteRate,
        schedule: CommitSchedule,
        events: TaskEvents,
    ) -> None:
        self._spec = spec
        self._clients = clients
        self._partitions = partitions
        self._rate = rate
        self._schedule = schedule
        self._events = events
        self.fetched_records = 0
        self._changes = SourceChanges(spec, clients.source, self.fail, events)
        limits = TopicLimits(clients.target, clients.network)
        self._large_batches = LargeBatches(limits, clients.pool, leaves_out=spec.tolerates_too_large)

    def add(self, point: ResumePoint) -> None:
        """Copy a partition, too, from its resume point on, unless that says that it must stop."""
        partition = self._partitions.add(point)
        if point.failure is not None:
            partition.lacks_from = point.lacks_from
            self.fail(partition, point.failure)
            self._clients.producer.discard(partition.spec.target, sent_too=True)

    # --- from the fetcher ---------------------------------------------------------------------------------------------

    def on_records(self, fetched: FetchPartition, data: PartitionData, buffer: Buffer) -> None:
        """Check and prepare the batches, and queue them for the target."""
        partition = self._partitions.by_source[fetched.tp]
        assert fetched.position is not None
        assert data.records is not None
        self._rate.spend(len(data.records))
        pieces, position, error, epochs = prepare(data.records, fetched.position, data.aborted)
        if position > fetched.position:
            producer, pool = self._clients.producer, self._clients.pool
            records = 0
            for piece in pieces:
                records += piece.record_count
                if piece.is_shared:
                    buffer.hold()
                producer.enqueue(
                    partition.target,
                    Outgoing(
                        piece.view,
                        piece.record_count,
                        self._on_acked,
                        buffer=buffer if piece.is_shared else pool.own(piece.view),
                        piece=piece,
                    ),
                )
            if pieces:
                self.fetched_records += records
                _measure_ages(partition.age, pieces, records)
            partition.epochs.note_all(epochs)
            partition.damaged_answers = 0
            partition.passed_offset, partition.topic_id = position - 1, fetched.topic_id
            fetched.position = position
            self._end_if_done(partition, position)
        if error is not None and not partition.is_over:
            self._on_damaged(partition, error.offset, error)

    def _on_damaged(self, partition: CopyPartition, offset: int, error: Exception) -> None:
        """Read it again, in case only the response was damaged; then stop the partition."""
        partition.damaged_answers += 1
        if isinstance(error, CorruptBatchError) and partition.damaged_answers < _MOST_DAMAGED_ANSWERS:
            self._clients.fetcher.retry([partition.spec.tp], f"the batch at offset {offset} is damaged: {error}")
            return
        self.fail(partition, f"the batch at offset {offset} cannot be forwarded: {error}")

    def decide_position(self, fetched: FetchPartition, earliest: int, latest: int) -> int | None:
        """Return the offset to continue at, the current one if the source's log still has it; None after a failure."""
        partition = self._partitions.by_source[fetched.tp]
        position = self._changes.position(partition, fetched, earliest, latest)
        if position is None:
            return None
        if position != fetched.position:
            partition.start_offset = position
        is_first_start = partition.spec.source_offsets is None and partition.passed_offset is None
        if is_first_start and partition.target_end is not None:
            # Committed before the first record: a restart then knows where our records begin on the target.
            partition.passed_offset = position - 1
        self._end_if_done(partition, position)
        return position

    def on_recreated(self, fetched: FetchPartition, why: str) -> bool:
        """Return whether to copy the topic that was created again, during the copy or before it."""
        return self._changes.accepts_recreated(self._partitions.by_source[fetched.tp], fetched.topic_id, why)

    def on_cut(self, fetched: FetchPartition, offset: int) -> bool:
        """Return whether to continue in a log that was cut at an offset, under another leader."""
        return self._changes.accepts_cut(self._partitions.by_source[fetched.tp], fetched, offset)

    def on_unchecked(self, fetched: FetchPartition, why: str) -> None:
        """Report that a cut of the source's log would not be noticed."""
        self._changes.unchecked(self._partitions.by_source[fetched.tp], why)

    def on_source_failed(self, tp: TopicPartition, why: str) -> None:
        """Stop a partition that the source does not let us read."""
        self.fail(self._partitions.by_source[tp], why)

    def _end_if_done(self, partition: CopyPartition, position: int) -> None:
        stop_offset = partition.stop_offset
        if stop_offset is not None and position >= stop_offset:
            partition.counters.is_done = True
            self._clients.fetcher.remove(partition.spec.tp)

    def fail(self, partition: CopyPartition, why: str) -> None:
        """Stop a partition; its report says why, or an event if the task does not report it any more."""
        tp = partition.spec.tp
        partition.counters.failure = f"{self._spec.flow} {tp}: {why}."
        if self._partitions.by_source.get(tp) is not partition:
            self._events.error(f"{why}.", tp)
        partition.note_log_end(self._clients.fetcher.partitions.get(tp))
        self._clients.fetcher.remove(tp)

    # --- from the producers -------------------------------------------------------------------------------------------

    def _on_acked(self, tp: TopicPartition, outgoing: Outgoing, base_offset: int) -> None:
        """Count a batch that is safe on the target."""
        assert outgoing.piece is not None
        partition = self._partitions.by_target[tp]
        self._schedule.note_uncommitted()
        partition.note_acked(outgoing.piece, base_offset, int(time.time() * 1000))
        if self._spec.transactional_id is None:
            self._report_runs(partition)

    def on_committed(self) -> None:
        """Report the runs that are there to stay now, and write their offset syncs."""
        for partition in self._partitions.by_target.values():
            self._report_runs(partition)
        if self._clients.syncs is not None:
            self._clients.syncs.flush()

    def _report_runs(self, partition: CopyPartition) -> None:
        syncs = self._clients.syncs
        if syncs is not None and partition.report_runs():
            syncs.wake(partition.spec.tp)

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:
        """Stop a partition of which the target refuses a batch; the task, if the batch holds source offsets."""
        if outgoing.piece is None:
            raise refused_commit(self._spec, tp, why)
        partition = self._partitions.by_target[tp]
        partition.note_pending(outgoing)
        self.fail(partition, f"the batch at offset {outgoing.piece.base_offset} was refused: {why}")

    def on_stuck(self, tp: TopicPartition) -> None:
        """Discard what was not sent of a partition that cannot be written now; it is read again later."""
        partition = self._partitions.by_target.get(tp)
        if partition is None or partition.counters.failure is not None:
            return
        position = self._partitions.discard(partition)
        source = partition.spec.tp
        if position is None or source not in self._partitions.by_source:
            return
        if partition.counters.is_done:
            partition.counters.is_done = False
            self._clients.fetcher.add(source, position, partition.topic_id, partition.epochs)
        else:
            self._clients.fetcher.seek(source, position)

    def on_too_large(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | str:
        """Return smaller batches for one that the target finds too large, or why the partition must stop."""
        instead = self._large_batches.instead_of(tp, outgoing)
        if isinstance(instead, SkippedRecord):
            partition = self._partitions.by_target[tp]
            partition.counters.skipped_records += 1
            self._events.warn(instead, partition.spec.tp)
            assert outgoing.piece is not None
            offset = outgoing.piece.base_offset
            self._events.lose(partition.spec.tp, LossCause.RECORD_TOO_LARGE, (offset, offset), 1, partition.topic_id)
            return []
        return instead


def _measure_ages(ages: SampledWindow, pieces: list[Piece], records: int) -> None:
    """Add the ages of fetched records: those of the first batch, and of all others by the last.

    A response of many batches of one partition is small, and this is called for each.
    """
    now_ms = int(time.time() * 1000)
    first, last = pieces[0], pieces[-1]
    if first is not last and first.max_timestamp_ms >= 0:
        ages.add(now_ms, max(0, now_ms - first.max_timestamp_ms), first.record_count)
        records -= first.record_count
    if last.max_timestamp_ms >= 0:  # messages of before Kafka 0.10 have no time
        ages.add(now_ms, max(0, now_ms - last.max_timestamp_ms), records)
