"""One partition of a copy: what it is to do, how far it has come, and what it counts."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from heliograph.executor.contract.task_report import PartitionReport
from heliograph.model import SourceOffset
from heliograph.wire.batches.leader_epochs import EpochHistory

if TYPE_CHECKING:
    from uuid import UUID

    from heliograph.executor.contract.task_spec import PartitionSpec
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.produce.target_partition import TargetPartition
    from heliograph.mirror.groups.offset_syncs import PartitionSyncs
    from heliograph.wire.batches.forward import Piece


class CopyPartition:
    """Progress and counters of one partition.

    `acked_offset` is the last source offset that is safe on the target; `passed_offset` the last that was handed on or
    needs no copy (a transaction marker, say). Where nothing is under way, all that was passed is safe.
    """

    __slots__ = (
        "_untold",
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
        self._untold: array[int] = array("q")
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
        """Whether nothing more is fetched for it."""
        return self.counters.is_done or self.counters.failure is not None

    @property
    def safe_offset(self) -> int | None:
        """The last source offset that need not be copied again; None where this task has not come past any."""
        if self.target.is_idle and self.counters.failure is None:
            return self.passed_offset
        return self.acked_offset

    @property
    def source_offsets(self) -> SourceOffset | None:
        """What to commit."""
        offset = self.safe_offset
        if offset is None:
            return None
        known = self.target_end, self.topic_id, self._run_count(offset), self.epochs.up_to(offset)
        return SourceOffset(self.spec.tp, offset, *known)

    def _run_count(self, offset: int) -> int:
        """How many records up to an offset follow each other on both sides, the last of them being the target's."""
        run = self.syncs.last_run if self.syncs is not None and not self._untold else None
        if run is None or (run.upstream + run.count, run.downstream + run.count) != (offset + 1, self.target_end):
            return 0
        return run.count

    def report_runs(self) -> bool:
        """What was acknowledged is there to stay, with exactly-once once its transaction has ended; if anything."""
        if self.syncs is None or not self._untold:
            return False
        self.syncs.note_all(self._untold)
        self._untold = array("q")
        return True

    def go_back(self, position: int) -> None:
        """Go on at an earlier place, since the source's log was cut there; nothing is under way."""
        self.acked_offset = self.passed_offset = position - 1
        self.is_cut = True

    def decide_end(self, latest: int) -> None:
        """Where a copy of what is there now ends; a log that was cut may never come to where it ended before."""
        if self.is_cut and self.stop_offset is not None:
            self.stop_offset, self.is_cut = latest, False

    def report(self, fetched: FetchPartition | None, committed_offset: int | None) -> PartitionReport:
        """The counters, with where it stands now."""
        counters = self.counters
        if fetched is not None:
            counters.position, counters.high_watermark = fetched.position, fetched.high_watermark
        # Also where nothing more is fetched: what is queued may still wait for the target.
        counters.issue = (fetched.issue if fetched is not None else None) or self.target.issue
        counters.acked_offset = self.safe_offset
        counters.committed_offset = committed_offset
        return counters

    def note_acked(self, piece: Piece, base_offset: int, now_ms: int) -> None:
        """A batch is safe; `base_offset` is its place on the target, -1 where the broker does not say."""
        if base_offset >= 0 and self.syncs is not None:
            self._untold.extend(_flat_runs(piece, base_offset))
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


def _flat_runs(piece: Piece, base_offset: int) -> array[int]:
    """Where the records of a piece went, as triples of an `OffsetRun` in a row."""
    if piece.runs is None:
        return array("q", (piece.base_offset, base_offset, piece.record_count))
    runs = np.empty((len(piece.runs), 3), np.int64)
    runs[:, 0] = piece.runs[:, 0]
    runs[:, 1] = piece.runs[:, 1] + base_offset
    runs[:, 2] = np.diff(piece.runs[:, 1], append=piece.record_count)
    flat = array("q")
    flat.frombytes(runs.tobytes())
    return flat
