"""The partitions of a task: how far each has come, what it counts, and which the task has now.

`CopyPartition` is one source partition with its target; `CopyPartitions` finds them from either side, adds and removes.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from heliograph.errors import TaskError
from heliograph.executor.contract.task_report import PartitionReport
from heliograph.model import SourceOffset
from heliograph.wire.batches.leader_epochs import EpochHistory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from heliograph.executor.contract.task_spec import PartitionSpec
    from heliograph.executor.copy.copy_clients import CopyClients
    from heliograph.executor.copy.resume import ResumePoint
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.produce.target_partition import TargetPartition
    from heliograph.mirror.groups.offset_syncs import PartitionSyncs
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.forward import Piece


class CopyPartition:
    """Offsets and counters of one partition.

    `acked_offset` is the last source offset that is safe on the target; `passed_offset` the last that was queued or
    needs no copy (a transaction marker, for example). While nothing is queued or in flight, both mean the same.
    """

    __slots__ = (
        "_unreported_runs",
        "acked_offset",
        "counters",
        "damaged_answers",
        "epochs",
        "is_cut",
        "passed_offset",
        "spec",
        "stop_offset",
        "syncs",
        "target",
        "target_end",
        "topic_id",
    )

    def __init__(self, spec: PartitionSpec, target: TargetPartition, syncs: PartitionSyncs | None = None) -> None:
        self.spec = spec
        self.syncs = syncs
        self._unreported_runs: array[int] = array("q")
        run = spec.source_offsets.run if spec.source_offsets is not None else None
        if syncs is not None and run is not None:
            syncs.resume(run)
        self.target = target
        self.acked_offset: int | None = None
        self.passed_offset: int | None = None
        self.target_end: int | None = spec.source_offsets.target_end if spec.source_offsets is not None else None
        self.topic_id: UUID | None = spec.source_offsets.topic_id if spec.source_offsets is not None else None
        self.stop_offset = spec.stop_offset
        self.epochs = EpochHistory(spec.source_offsets.epochs if spec.source_offsets is not None else ())
        self.is_cut = False
        self.damaged_answers = 0
        self.counters = PartitionReport(spec.tp.topic, spec.tp.partition)

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is fetched for it."""
        return self.counters.is_done or self.counters.failure is not None

    @property
    def safe_offset(self) -> int | None:
        """Return the last source offset that need not be copied again; None if this task has not passed any."""
        if self.target.is_idle and self.counters.failure is None:
            return self.passed_offset
        return self.acked_offset

    @property
    def source_offsets(self) -> SourceOffset | None:
        """Return what to commit; None if this task has not passed any offset."""
        offset = self.safe_offset
        if offset is None:
            return None
        known = self.target_end, self.topic_id, self._run_count(offset), self.epochs.up_to(offset)
        return SourceOffset(self.spec.tp, offset, *known)

    def _run_count(self, offset: int) -> int:
        """Return how many records up to an offset follow each other on both sides, up to the target's last record."""
        run = self.syncs.last_run if self.syncs is not None and not self._unreported_runs else None
        if run is None or (run.upstream + run.count, run.downstream + run.count) != (offset + 1, self.target_end):
            return 0
        return run.count

    def report_runs(self) -> bool:
        """Hand acknowledged runs (in transactions: committed ones) to the offset syncs; return whether any was new."""
        if self.syncs is None or not self._unreported_runs:
            return False
        self.syncs.note_all(self._unreported_runs)
        self._unreported_runs = array("q")
        return True

    def go_back(self, position: int) -> None:
        """Continue at an earlier offset, at which the source's log was cut; nothing is in flight."""
        self.acked_offset = self.passed_offset = position - 1
        self.is_cut = True

    def decide_end(self, latest: int) -> None:
        """Move the stop offset of a log that was cut: it may never again reach the end that it had."""
        if self.is_cut and self.stop_offset is not None:
            self.stop_offset, self.is_cut = latest, False

    def report(self, fetched: FetchPartition | None, committed_offset: int | None) -> PartitionReport:
        """Return the counters, with the current offsets and issue."""
        counters = self.counters
        if fetched is not None:
            counters.position, counters.high_watermark = fetched.position, fetched.high_watermark
        # Also if nothing more is fetched: queued batches may still wait for the target.
        counters.issue = (fetched.issue if fetched is not None else None) or self.target.issue
        counters.acked_offset = self.safe_offset
        counters.committed_offset = committed_offset
        return counters

    def note_acked(self, piece: Piece, base_offset: int, now_ms: int) -> None:
        """Count a batch that is safe; `base_offset` is its offset on the target, -1 if the broker does not say."""
        if base_offset >= 0 and self.syncs is not None:
            self._unreported_runs.extend(_flat_runs(piece, base_offset))
        self.acked_offset = piece.last_offset
        self.target_end = base_offset + piece.record_count if base_offset >= 0 else None
        counters = self.counters
        counters.records += piece.record_count
        counters.bytes += len(piece.view)
        if piece.max_timestamp_ms >= 0:  # messages of before Kafka 0.10 have no time
            latency_ms = now_ms - piece.max_timestamp_ms
            counters.latency_sum_ms += latency_ms
            counters.latency_count += 1
            counters.latency_max_ms = max(counters.latency_max_ms, latency_ms)


class CopyPartitions:
    """The partitions of a task, by their source and by their target.

    A partition that was taken away stays in `departed` and in `by_target`: what was sent of it is still acknowledged,
    and is committed here.
    """

    def __init__(self, clients: CopyClients) -> None:
        self.by_source: dict[TopicPartition, CopyPartition] = {}
        self.by_target: dict[TopicPartition, CopyPartition] = {}
        self.departed: dict[TopicPartition, CopyPartition] = {}
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

    def add(self, point: ResumePoint) -> None:
        """Copy a partition, too, from its resume point on."""
        spec, clients = point.spec, self._clients
        if spec.target in self.by_target:
            # What was sent before it was taken away has used up sequences; only a new producer can begin again.
            raise TaskError(f"{spec.tp} was taken away and given back; the task begins again.")
        syncs = clients.syncs.add(spec.tp) if clients.syncs is not None else None
        partition = CopyPartition(spec, clients.producer.add(spec.target), syncs)
        partition.target_end = point.target_end
        partition.passed_offset = point.resumed_after
        partition.counters.already_there = point.already_there
        self.by_source[spec.tp] = partition
        self.by_target[spec.target] = partition
        clients.fetcher.add(spec.tp, spec.position, partition.topic_id, partition.epochs)

    def retain(self, wanted: Iterable[TopicPartition]) -> None:
        """Stop copying all partitions but the wanted ones."""
        kept = frozenset(wanted)
        for tp in [tp for tp in self.by_source if tp not in kept]:
            self._clients.fetcher.remove(tp)
            self.departed[tp] = self.by_source.pop(tp)
            self.discard(self.departed[tp])

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
        everyone = self.by_source | self.departed
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
