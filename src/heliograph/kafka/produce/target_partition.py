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
E. A batch is acknowledged exactly once, and in order: `on_acked` is called for the oldest batch first.
F. A batch that may be in the log is given up only with the transaction it may be in, and its sequence is no other's.
G. While the producer is held (`hold`), only what was sent before and what `passes_hold` is sent: a transaction ends
   with what was acknowledged, no more and no less.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

from heliograph.kafka.backoff import Backoff
from heliograph.states import StateMachine

if TYPE_CHECKING:
    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.produce.producer_session import Identity
    from heliograph.model import TopicPartition


class Outgoing:
    """A batch on its way. `tag` is the caller's; `buffer` is released when the batch is acknowledged or given up."""

    __slots__ = (
        "base_offset",
        "buffer",
        "is_acked",
        "is_doubtful",
        "passes_hold",
        "record_count",
        "sequence",
        "tag",
        "view",
    )

    def __init__(
        self, view: memoryview, record_count: int, buffer: Buffer | None, tag: Any, *, passes_hold: bool = False
    ) -> None:
        self.view = view
        self.record_count = record_count
        self.buffer = buffer
        self.tag = tag
        self.passes_hold = passes_hold
        self.sequence = -1
        self.base_offset = -1
        self.is_acked = False
        self.is_doubtful = False  # it may be in the log, though no answer has said so

    @property
    def is_sent(self) -> bool:
        """Whether a broker may have seen it."""
        return self.sequence >= 0


class TargetPartitionState(Enum):
    """The states of a target partition: which batches may leave now, and what the next answer leads to."""

    FIRST_BATCH_ALONE = auto()  # one batch at a time: the broker may hold no state of our producer (rule D)
    OPEN = auto()  # batches are pipelined
    DRAINING = auto()  # after an error that soon passes: nothing leaves until every awaited answer has come (rule C)
    DRAINING_TO_BACK_OFF = auto()  # the same after any other error
    BACKING_OFF = auto()  # nothing leaves until `retry_at`
    FAILED = auto()  # given up; answers that still come only free memory


TARGET_PARTITION_STATES = StateMachine(
    TargetPartitionState.FIRST_BATCH_ALONE,
    {
        TargetPartitionState.FIRST_BATCH_ALONE: (
            TargetPartitionState.OPEN,
            TargetPartitionState.DRAINING,
            TargetPartitionState.DRAINING_TO_BACK_OFF,
            TargetPartitionState.FAILED,
        ),
        TargetPartitionState.OPEN: (
            TargetPartitionState.FIRST_BATCH_ALONE,  # our producer has got another identity
            TargetPartitionState.DRAINING,
            TargetPartitionState.DRAINING_TO_BACK_OFF,
            TargetPartitionState.FAILED,
        ),
        TargetPartitionState.DRAINING: (
            TargetPartitionState.DRAINING_TO_BACK_OFF,
            TargetPartitionState.BACKING_OFF,
            TargetPartitionState.FAILED,
        ),
        TargetPartitionState.DRAINING_TO_BACK_OFF: (
            TargetPartitionState.BACKING_OFF,
            TargetPartitionState.FAILED,
        ),
        TargetPartitionState.BACKING_OFF: (
            TargetPartitionState.FIRST_BATCH_ALONE,
            TargetPartitionState.FAILED,
        ),
        TargetPartitionState.FAILED: (),
    },
)
# Module constants and `is`: a comparison on the hot path costs what testing a flag would.
_FIRST_BATCH_ALONE = TargetPartitionState.FIRST_BATCH_ALONE
_OPEN = TargetPartitionState.OPEN
_BACKING_OFF = TargetPartitionState.BACKING_OFF
DRAINING_STATES = (TargetPartitionState.DRAINING, TargetPartitionState.DRAINING_TO_BACK_OFF)


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
    state: TargetPartitionState = TARGET_PARTITION_STATES.initial
    short_pauses: int = 0  # in a row
    too_large: Outgoing | None = None
    retry_at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.1, most_s=2.0))
    issue: str | None = None

    def become(self, state: TargetPartitionState) -> None:
        """Enter a state; raises IllegalTransitionError if the table does not allow it."""
        self.state = TARGET_PARTITION_STATES.step(self.state, state)

    def may_send(self, now: float) -> bool:
        """Return whether the state allows a batch to leave; ends a back-off that is over."""
        if self.state is _BACKING_OFF and self.retry_at <= now:
            self.become(_FIRST_BATCH_ALONE)
        return self.state is _OPEN or self.state is _FIRST_BATCH_ALONE

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued or under way."""
        return not self.queue and not self.in_flight

    @property
    def sent(self) -> list[Outgoing]:
        """What a broker may have seen and has not acknowledged, the oldest first."""
        return [outgoing for outgoing in (*self.in_flight, *self.queue) if outgoing.is_sent]


class ProduceListener(Protocol):
    """Who wants to know what became of the batches."""

    def on_acked(self, tp: TopicPartition, outgoing: Outgoing, base_offset: int) -> None:
        """The batch is safe on the target; `base_offset` is -1 where a retry found it already there."""

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:
        """The target will never take this batch; the partition stops here."""

    def on_stuck(self, tp: TopicPartition) -> None:
        """The partition cannot be written just now; a good moment to `discard` what was not sent."""

    def on_too_large(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | str:
        """The target takes no batch of this size: what to send instead, or why the partition must stop."""
