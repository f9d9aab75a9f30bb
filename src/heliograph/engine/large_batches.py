"""What to send in place of a batch the target finds too large: smaller ones, or nothing, as `errors.tolerance` says.

The topic's limit is asked for only now: hardly any flow ever needs it. Until it is known the batch is tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.errors import CorruptBatchError
from heliograph.kafka.outgoing import Outgoing
from heliograph.kafka.topic_limits import UNKNOWN, TopicLimits
from heliograph.wire.forward import Piece, split

if TYPE_CHECKING:
    from heliograph.kafka.buffers import BufferPool
    from heliograph.model import TopicPartition


class LeftOut(str):
    """The sentence for a record that was left out."""

    __slots__ = ()


class LargeBatches:
    """Cuts batches to what their topics take."""

    def __init__(self, limits: TopicLimits, pool: BufferPool, *, leaves_out: bool) -> None:
        self._limits = limits
        self._pool = pool
        self._leaves_out = leaves_out
        self._tried_again: Outgoing | None = None

    def instead_of(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | LeftOut | str:
        """Batches to send instead, the word that the record is left out, or why the partition must stop."""
        piece: Piece | None = outgoing.tag
        limit = self._limits.max_message_bytes(tp.topic)
        if limit is None:
            return [outgoing]
        size = len(outgoing.view)
        if piece is None or outgoing.record_count == 1:
            if limit >= size and outgoing is not self._tried_again:
                self._tried_again = outgoing  # the limit may have been raised just now
                self._limits.forget(tp.topic)
                return [outgoing]
            return self._single(tp, piece, size, limit)
        if limit == UNKNOWN or limit >= size:
            limit = size // 2
        try:
            parts = split(piece._replace(view=outgoing.view), limit)
        except CorruptBatchError as error:
            return f"it is too large for {tp.topic} on the target and cannot be cut: {error}"
        return [Outgoing(part.view, part.record_count, self._pool.own(part.view), part) for part in parts]

    def _single(self, tp: TopicPartition, piece: Piece | None, size: int, limit: int) -> LeftOut | str:
        is_known = UNKNOWN < limit < size
        takes = (
            f"takes at most {limit} (max.message.bytes)" if is_known else "does not take that (see segment.bytes too)"
        )
        if piece is None:
            return f"our own record needs {size} bytes; {tp.topic} {takes}"
        words = f"its one record needs {size} bytes, but {tp.topic} on the target {takes}"
        if self._leaves_out:
            return LeftOut(f"the record at offset {piece.base_offset} was left out (errors.tolerance=all): {words}.")
        return f"{words}. Raise max.message.bytes of {tp.topic}, or leave such records out with errors.tolerance=all"
