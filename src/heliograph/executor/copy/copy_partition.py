"""The partitions of a task: how far each has come, what it counts, and which the task has now.

`CopyPartition` is one source partition with its target; `CopyPartitions` finds them from either side, adds and removes.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from heliograph.errors import TaskError
from heliograph.executor.contract.task_report import PartitionReport
from heliograph.model import SourceOffset, TargetLog
from heliograph.status.sampled_window import LatencyCounts, SampledWindow
from heliograph.wire.batches.batch_header import base_timestamp_ms
from heliograph.wire.batches.leader_epochs import EpochHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from heliograph.executor.contract.task_spec import PartitionSpec
    from heliograph.executor.copy.copy_clients import CopyClients
    from heliograph.executor.copy.resume import ResumePoint
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.produce.target_partition import Outgoing, TargetPartition
    from heliograph.mirror.groups.offset_syncs import PartitionSyncs
    from heliograph.model import OffsetRun, TopicPartition
    from heliograph.wire.batches.forward import Piece


class CopyPartition:
    """Offsets and counters of one partition.

    `acked_offset` is the last source offset that is safe on the target; `passed_offset` the last that was queued or
    needs no copy (a transaction marker, for example). While nothing is queued or in flight, both mean the same.
    `start_offset` is where it was read from first, or after records that the source no longer has.

    `log_id`, `log_first`, `log_records` and `log_cut_at` become the `TargetLog`. `log_cut_at` is set when the target
    gives a batch an offset that another one had: that batch, and what follows, does not count.

    `age` is the age of records when they were fetched, `latency` when they were acknowledged, over the last minute.
    """

    __slots__ = (
        "_log_end",
        "_pending",
        "_unreported_runs",
        "acked_at_ms",
        "acked_offset",
        "actions",
        "age",
        "counters",
        "damaged_answers",
        "epochs",
        "is_cut",
        "is_log_exact",
        "lacks_from",
        "latency",
        "log_cut_at",
        "log_first",
        "log_id",
        "log_issue",
        "log_records",
        "passed_offset",
        "spec",
        "start_offset",
        "stop_offset",
        "syncs",
        "target",
        "target_end",
        "task_latency",
        "topic_id",
    )

    def __init__(
        self,
        spec: PartitionSpec,
        target: TargetPartition,
        syncs: PartitionSyncs | None = None,
        task_latency: LatencyCounts | None = None,
    ) -> None:
        self.spec = spec
        self.actions = spec.actions
        self.syncs = syncs
        self._unreported_runs: array[int] = array("q")
        run = spec.source_offsets.run if spec.source_offsets is not None else None
        if syncs is not None and run is not None and syncs.last_run is None:
            syncs.resume(run)
        self.target = target
        self.start_offset: int | None = spec.position
        self.acked_offset: int | None = None
        self.acked_at_ms: int | None = None
        self.passed_offset: int | None = None
        self._pending: tuple[int | None, int | None] = (None, None)
        self._log_end: tuple[int, float] | None = None
        self.target_end: int | None = spec.source_offsets.target_end if spec.source_offsets is not None else None
        self.topic_id: UUID | None = spec.source_offsets.topic_id if spec.source_offsets is not None else None
        self.stop_offset = spec.stop_offset
        self.epochs = EpochHistory(spec.source_offsets.epochs if spec.source_offsets is not None else ())
        self.is_cut = False
        log = spec.source_offsets.target_log if spec.source_offsets is not None else None
        self.log_id: UUID | None = log.topic_id if log is not None else None
        self.log_first: int | None = log.first_offset if log is not None else None
        self.log_records = log.records if log is not None else self.target_end or 0
        self.is_log_exact = log.is_exact if log is not None else spec.source_offsets is None
        self.log_cut_at: int | None = None
        self.log_issue: str | None = None
        self.lacks_from: int | None = None  # of one that has stopped: the target lacks what was copied from here on
        self.damaged_answers = 0
        self.age, self.latency = SampledWindow(), SampledWindow()
        self.task_latency = task_latency or LatencyCounts()
        self.counters = PartitionReport(spec.tp.topic, spec.tp.partition, opening=spec.opening)

    def continue_counters(self, earlier: CopyPartition) -> None:
        """Count on from an earlier copy of it in this task; its failure is not reported again."""
        self.counters = replace(
            earlier.counters, opening=self.spec.opening, failure=None, issue=None, is_done=False, already_there=0
        )
        self.age, self.latency = earlier.age, earlier.latency

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is fetched for it."""
        return self.counters.is_done or self.counters.failure is not None

    @property
    def safe_offset(self) -> int | None:
        """Return the last source offset that need not be copied again; None if this task has not passed any."""
        if self.target.is_idle and self.counters.failure is None and self.log_cut_at is None:
            return self.passed_offset
        return self.acked_offset

    @property
    def next_offset(self) -> int | None:
        """Return the first source offset that the target is not known to have; None before the log was looked at."""
        safe = self.safe_offset
        if safe is None or self.start_offset is None:
            return self.start_offset if safe is None else safe + 1
        return max(self.start_offset, safe + 1)

    def note_pending(self, outgoing: Outgoing) -> None:
        """Note the timestamp of the oldest record that is not acknowledged: of a batch in flight, or one refused."""
        timestamp_ms = base_timestamp_ms(outgoing.view)
        self._pending = (self.next_offset, timestamp_ms if timestamp_ms >= 0 else None)

    @property
    def pending_ms(self) -> int | None:
        """Return that timestamp, as long as no later record is the oldest; None if it was not fetched yet."""
        oldest = self.target.oldest
        if oldest is not None and oldest.piece is not None:
            self.note_pending(oldest)
        offset, timestamp_ms = self._pending
        return timestamp_ms if offset is not None and offset == self.next_offset else None

    @property
    def source_offsets(self) -> SourceOffset | None:
        """Return what to commit; None if this task has not passed any offset."""
        offset = self.safe_offset
        if offset is None:
            return None
        first = max(0, offset) if self.log_first is None else self.log_first
        log = TargetLog(self.log_id, first, self.log_records, self.is_log_exact, self.log_cut_at)
        run = self.syncs.last_run if self.syncs is not None and not self._unreported_runs else None
        known = self.target_end, self.topic_id, _run_count(run, offset, self.target_end), self.epochs.up_to(offset), log
        return SourceOffset(self.spec.tp, offset, *known)

    def report_runs(self) -> bool:
        """Hand acknowledged runs (in transactions: committed ones) to the offset syncs; return whether any was new."""
        if self.syncs is None or not self._unreported_runs:
            return False
        self.syncs.begin_log(self.log_id)
        self.syncs.note_all(self._unreported_runs)
        self._unreported_runs = array("q")
        return True

    def pass_over(self, offset: int) -> None:
        """Commit an offset, as soon as nothing is in flight, up to which the source has no more records to copy."""
        self.passed_offset = max(offset, -1 if self.passed_offset is None else self.passed_offset)

    def go_back(self, position: int) -> None:
        """Continue at an earlier offset, at which the source's log was cut; nothing is in flight."""
        self.acked_offset = self.passed_offset = position - 1
        self.start_offset = position
        self.is_cut = True

    def decide_end(self, latest: int) -> None:
        """Move the stop offset of a log that was cut: it may never again reach the end that it had."""
        if self.is_cut and self.stop_offset is not None:
            self.stop_offset, self.is_cut = latest, False

    def note_log_end(self, fetched: FetchPartition | None) -> None:
        """Keep the end of the source's log as it was last read, also after nothing more is fetched."""
        if fetched is not None and fetched.log_end_at is not None:
            self._log_end = fetched.high_watermark, fetched.log_end_at

    def report(
        self, fetched: FetchPartition | None, committed_offset: int | None, *, measures: bool = True
    ) -> PartitionReport:
        """Return the counters, with the current offsets and issue, and the measured times if `measures`."""
        counters, now_ms = self.counters, int(time.time() * 1000)
        self.note_log_end(fetched)
        counters.log_end = counters.log_end_age_ms = None
        if self._log_end is not None:
            counters.log_end, read_at = self._log_end
            counters.log_end_age_ms = int((time.monotonic() - read_at) * 1000)
        counters.stable_end = fetched.stable_end if fetched is not None else None
        # Also if nothing more is fetched: queued batches may still wait for the target.
        counters.issue = (fetched.issue if fetched is not None else None) or self.target.issue or self.log_issue
        counters.next_offset = _reported_offset(self, fetched)
        counters.acked_age_ms = None if self.acked_at_ms is None else max(0, now_ms - self.acked_at_ms)
        counters.pending_ms = self.pending_ms
        counters.committed_offset = committed_offset
        counters.age_ms = self.age.stat(now_ms) if measures else None
        counters.latency_ms = self.latency.stat(now_ms) if measures else None
        return counters

    def note_acked(self, piece: Piece, base_offset: int, now_ms: int) -> None:
        """Count a batch that is safe; `base_offset` is its offset on the target, -1 if the broker does not say."""
        known_end = self.target_end if self.log_cut_at is None else self.log_cut_at
        if known_end is not None and -1 < base_offset < known_end:
            self.log_cut_at = base_offset
            if self.acked_offset is None and self.spec.source_offsets is not None:
                self.acked_offset = self.spec.source_offsets.offset  # to be committed with what was noticed
        if self.log_cut_at is not None:
            return
        self.log_records += piece.record_count
        if self.log_first is None:
            self.log_first = piece.base_offset
        if base_offset >= 0 and self.syncs is not None:
            self._unreported_runs.extend(_flat_runs(piece, base_offset))
        self.acked_offset = piece.last_offset
        self.acked_at_ms = now_ms
        self.target_end = base_offset + piece.record_count if base_offset >= 0 else None
        counters = self.counters
        counters.records += piece.record_count
        counters.bytes += len(piece.view)
        if piece.max_timestamp_ms >= 0:  # messages of before Kafka 0.10 have no time
            latency_ms = max(0, now_ms - piece.max_timestamp_ms)  # clocks differ
            counters.latency_sum_ms += latency_ms
            counters.latency_count += 1
            self.latency.add(now_ms, latency_ms, piece.record_count)
            self.task_latency.add(latency_ms, piece.record_count)
            counters.copied_ms = piece.max_timestamp_ms


def _reported_offset(partition: CopyPartition, fetched: FetchPartition | None) -> int | None:
    """Return the first source offset that the target is not known to have; None until the source's log was seen.

    It may be another log than the one that the committed offset is of. It is not known either while the remote topic
    is missing, with what was copied to it.
    """
    if partition.log_issue is not None and partition.counters.failure is None:
        return None
    is_unseen = fetched is not None and fetched.needs_ends and partition.acked_offset is None
    if is_unseen and partition.counters.failure is None:
        return None
    return partition.next_offset if partition.lacks_from is None else partition.lacks_from


def _run_count(run: OffsetRun | None, offset: int, target_end: int | None) -> int:
    """Return how many records up to an offset follow each other on both sides, up to the target's last record."""
    if run is None or (run.upstream + run.count, run.downstream + run.count) != (offset + 1, target_end):
        return 0
    return run.count


def _begin_again(earlier: CopyPartition, assigned: PartitionSpec) -> PartitionSpec:
    """Return the specification to begin again with: by what was acknowledged, unless a user has moved it."""
    reached = earlier.source_offsets or earlier.spec.source_offsets
    if not assigned.is_moved:
        return replace(
            earlier.spec,
            opening=assigned.opening,
            source_offsets=reached,
            is_moved=False,
            actions=assigned.actions,
        )
    if reached is None or assigned.source_offsets is None:
        return assigned
    # The records of the target's log remain there, and their loss would be reported.
    return replace(assigned, source_offsets=replace(assigned.source_offsets, target_log=reached.target_log))


class CopyPartitions:
    """The partitions of a task, by their source and by their target.

    A partition that was taken away stays in `departed` and in `by_target`: what was sent of it is still acknowledged,
    and is committed here. One that is to begin again is in `closing` until what was sent of it is acknowledged or
    refused, and committed; then its resume point is looked up, as that of a partition that is assigned later.
    """

    def __init__(self, clients: CopyClients) -> None:
        self.by_source: dict[TopicPartition, CopyPartition] = {}
        self.by_target: dict[TopicPartition, CopyPartition] = {}
        self.departed: dict[TopicPartition, CopyPartition] = {}
        self.closing: dict[TopicPartition, CopyPartition] = {}
        self.latency = LatencyCounts()  # of all partitions
        self._missing: dict[TopicPartition, PartitionSpec] = {}  # assigned and not copied
        self._clients = clients

    @property
    def are_over(self) -> bool:
        """Return whether nothing more is fetched for any of them."""
        return all(partition.is_over for partition in self.by_source.values())

    @property
    def are_done(self) -> bool:
        """Return whether all of them, and there are some, were to be copied up to a stop offset and are over."""
        is_once = all(partition.spec.stop_offset is not None for partition in self.by_source.values())
        return bool(self.by_source) and is_once and self.are_over

    @property
    def are_idle(self) -> bool:
        """Return whether no batch of them is queued or unacknowledged."""
        return all(partition.target.is_idle for partition in self.by_source.values())

    @property
    def are_settled(self) -> bool:
        """Return whether each is idle, or waits for the target."""
        return all(partition.target.is_idle or partition.target.issue for partition in self.by_source.values())

    def add(self, point: ResumePoint) -> CopyPartition:
        """Copy a partition, too, from its resume point on."""
        spec, clients = point.spec, self._clients
        earlier = self.by_target.get(spec.target)
        if earlier is not None and (not earlier.target.is_idle or clients.session.transactional_id is not None):
            # What was sent before has used up sequences; only another producer can begin again.
            raise TaskError(f"{spec.tp} was taken away and given back; the task begins again.")
        syncs = clients.syncs.add(spec.tp) if clients.syncs is not None else None
        target = clients.producer.add(spec.target, again=earlier is not None)
        partition = CopyPartition(spec, target, syncs, self.latency)
        if earlier is not None:
            partition.continue_counters(earlier)
        if point.target_end is not None:  # or what was committed counts
            partition.target_end = point.target_end
        partition.passed_offset = point.resumed_after
        if spec.position is None and point.resumed_after is not None:
            partition.start_offset = point.resumed_after + 1
        if spec.is_moved and spec.position is not None:
            partition.passed_offset = spec.position - 1  # committed before the first record
        partition.counters.already_there += point.already_there
        partition.log_id = point.target_id or partition.log_id  # what that means was decided with the point
        self.departed.pop(spec.tp, None)
        self._missing.pop(spec.tp, None)
        self.by_source[spec.tp] = partition
        self.by_target[spec.target] = partition
        clients.fetcher.add(spec.tp, spec.position, partition.topic_id, partition.epochs)
        return partition

    def follow(self, assigned: Iterable[PartitionSpec]) -> None:
        """Stop copying all partitions but the assigned ones, and those of them that are to begin again."""
        self._missing = {spec.tp: spec for spec in assigned}
        for tp in [tp for tp in self.closing if tp not in self._missing]:
            self.departed[tp] = self.closing.pop(tp)
        for tp, partition in list(self.by_source.items()):
            spec = self._missing.get(tp)
            if spec is None:
                self.departed[tp] = self._stop(partition)
            elif spec.opening > partition.spec.opening:
                self.closing[tp] = self._stop(partition)
            else:
                partition.actions = spec.actions
                del self._missing[tp]

    def to_open(self, uncommitted: Callable[[Iterable[TopicPartition]], set[TopicPartition]]) -> list[PartitionSpec]:
        """Return the assigned partitions that are not copied and whose resume point can be looked up now."""
        # Not before the answers have come: what is appended after the look-up would be copied again.
        answered = {tp for tp, partition in self.closing.items() if partition.target.is_idle}
        for tp in answered - uncommitted(answered) if answered else ():
            del self.closing[tp]
        ready = [spec for tp, spec in self._missing.items() if tp not in self.closing]
        earlier = self.by_target
        return [_begin_again(earlier[spec.target], spec) if spec.target in earlier else spec for spec in ready]

    def _stop(self, partition: CopyPartition) -> CopyPartition:
        tp = partition.spec.tp
        self._clients.fetcher.remove(tp)
        del self.by_source[tp]
        self.discard(partition)
        return partition

    def stop_all(self) -> None:
        """Fetch nothing more, and discard what was not sent."""
        for tp, partition in self.by_source.items():
            self._clients.fetcher.remove(tp)  # or a response in flight would be sent after the gap of what is discarded
            self.discard(partition)

    def discard(self, partition: CopyPartition) -> int | None:
        """Discard the batches of a partition that were not sent; return the offset of the first, None without any."""
        oldest = self._clients.producer.discard(partition.spec.target)
        if oldest is None:
            return None
        assert oldest.piece is not None
        position = oldest.piece.base_offset
        partition.passed_offset = position - 1
        return position

    def source_offsets(self) -> dict[TopicPartition, SourceOffset]:
        """Return what to commit: of each partition that has passed an offset, departed ones included."""
        kept = {tp: partition for tp, partition in self.closing.items() if not self._missing[tp].is_moved}
        everyone = self.departed | kept | self.by_source
        return {tp: known for tp, partition in everyone.items() if (known := partition.source_offsets) is not None}


def _flat_runs(piece: Piece, base_offset: int) -> array[int]:
    """Return the offset runs of a piece, flattened: three numbers for each `OffsetRun`."""
    if piece.runs is None:
        return array("q", (piece.base_offset, base_offset, piece.record_count))
    runs = np.empty((len(piece.runs), 3), np.int64)
    runs[:, 0] = piece.runs[:, 0]
    runs[:, 1] = piece.runs[:, 1] + base_offset
    runs[:, 2] = np.diff(piece.runs[:, 1], append=piece.record_count)
    flat = array("q")
    flat.frombytes(runs.tobytes())
    return flat
