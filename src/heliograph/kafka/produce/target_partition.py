"""Batches on their way to the target, and the state of each partition they go to. `producer` moves them.

Produces ready-made batches as an idempotent producer: pipelined, in order per partition, retried for ever.

Rules that keep order and prevent duplicates:
A. A batch gets its sequence when it is first sent; a retry sends the same bytes, and the broker recognises them.
B. A partition stays on its lane, and at most five requests are under way on a lane (the broker remembers five batches
   per producer and partition).
C. After an error a partition sends nothing until every answer it still waits for has come (`draining`); then all
   batches that were not acknowledged go back to the front of the queue, in order.
D. A broker that holds no state of a producer takes whatever sequence comes first. So a partition's first batch travels
   alone until it is acknowledged, and so does the first after an error (the topic may have been created again); after a
   change of leader nothing is sent before every awaited answer has come.
E. A batch is acknowledged exactly once, and in order: `on_acked` of the oldest batch is called first.
F. A batch that may be in the log is given up only with the transaction it may be in, and its sequence is no other's.
G. While the producer is held (`hold`), only what was sent before and what `passes_hold` is sent: a transaction ends
   with what was acknowledged, no more and no less.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from heliograph.kafka.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.produce.producer_session import Identity
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.forward import Piece


class Outgoing:
    """A batch to send. `piece` is the fetched records that it holds, None if the records are our own.

    `on_acked` is called once, when the batch is safe on the target, with its base offset there (-1 if a retry found the
    batch already appended). `buffer` is released when the batch is acknowledged or given up.
    """

    __slots__ = (
        "base_offset",
        "buffer",
        "is_acked",
        "is_doubtful",
        "on_acked",
        "passes_hold",
        "piece",
        "record_count",
        "sequence",
        "view",
    )

    def __init__(
        self,
        view: memoryview,
        record_count: int,
        on_acked: Callable[[TopicPartition, Outgoing, int], None],
        *,
        buffer: Buffer | None = None,
        piece: Piece | None = None,
        passes_hold: bool = False,
    ) -> None:
        self.view = view
        self.record_count = record_count
        self.on_acked = on_acked
        self.buffer = buffer
        self.piece = piece
        self.passes_hold = passes_hold
        self.sequence = -1
        self.base_offset = -1
        self.is_acked = False
        self.is_doubtful = False  # it may be in the log, though no answer has said so

    @property
    def is_sent(self) -> bool:
        """Whether a broker may have seen it."""
        return self.sequence >= 0


@dataclass(slots=True)
class TargetPartition:
    """One target partition being written."""

    tp: TopicPartition
    lane: int = 0
    queue: deque[Outgoing] = field(default_factory=deque)
    in_flight: deque[Outgoing] = field(default_factory=deque)
    identity: Identity | None = None
    sequence: int = 0
    queued_bytes: int = 0
    awaited: int = 0
    node_id: int = -1
    is_known: bool = False
    is_draining: bool = False
    is_patient: bool = False  # the next try comes after a back-off, not in a moment
    is_failed: bool = False
    is_followed: bool = False
    moments: int = 0  # tries in a row that came a moment after the one before
    too_large: Outgoing | None = None
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.1, most_s=2.0))
    issue: str | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued or under way."""
        return not self.queue and not self.in_flight

    @property
    def sent(self) -> list[Outgoing]:
        """What a broker may have seen and has not acknowledged, the oldest first."""
        return [outgoing for outgoing in (*self.in_flight, *self.queue) if outgoing.is_sent]


class ProduceListener(Protocol):
    """Decides what to do about batches that the target does not take; acknowledgements go to `Outgoing.on_acked`."""

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:
        """The target will never take this batch; the partition stops here."""

    def on_stuck(self, tp: TopicPartition) -> None:
        """The partition cannot be written just now; a good moment to `discard` what was not sent."""

    def on_too_large(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | str:
        """The target takes no batch of this size: what to send instead, or why the partition must stop."""
