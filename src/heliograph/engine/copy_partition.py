"""One partition of a copy: what it is to do, how far it has come, and what it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.engine.report import PartitionReport
from heliograph.model import SourceOffset

if TYPE_CHECKING:
    from uuid import UUID

    from heliograph.engine.spec import PartitionSpec
    from heliograph.kafka.outgoing import TargetPartition
    from heliograph.wire.forward import Piece


class CopyPartition:
    """Progress and counters of one partition.

    `acked_offset` is the last source offset that is safe on the target; `passed_offset` the last that was handed on or
    needs no copy (a transaction marker, say). Where nothing is under way, all that was passed is safe.
    """

    __slots__ = (
        "acked_offset",
        "counters",
        "damaged_answers",
        "passed_offset",
        "spec",
        "target",
        "target_end",
        "topic_id",
    )

    def __init__(self, spec: PartitionSpec, target: TargetPartition) -> None:
        self.spec = spec
        self.target = target
        self.acked_offset: int | None = None
        self.passed_offset: int | None = None
        self.target_end: int | None = spec.progress.target_end if spec.progress is not None else None
        self.topic_id: UUID | None = spec.progress.topic_id if spec.progress is not None else None
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
    def progress(self) -> SourceOffset | None:
        """What to commit."""
        offset = self.safe_offset
        return None if offset is None else SourceOffset(self.spec.tp, offset, self.target_end, self.topic_id)

    def note_acked(self, piece: Piece, base_offset: int, now_ms: int) -> None:
        """A batch is safe; `base_offset` is its place on the target, -1 where the broker does not say."""
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
