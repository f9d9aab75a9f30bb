"""A target partition that is being written: its batches, their sequences, and its state.

Rules of the producer that keep order and prevent duplicates:
A. A batch gets its sequence when it is first sent; a retry sends the same bytes, and the broker recognises them.
B. A partition stays on its lane, and at most five requests are under way on a lane (the broker remembers five batches
   per producer and partition).
C. After an error a partition sends nothing until every awaited answer has come (`DRAINING`); then all batches that were
   not acknowledged return to the front of the queue, in order.
D. A broker that holds no state of a producer accepts any sequence that comes first. So a partition's first batch
   travels alone until it is acknowledged, and so does the first after an error (the topic may have been created again);
   after a change of leader nothing is sent before every awaited answer has come.
E. A batch is acknowledged exactly once, and in order: `on_acked` of the oldest batch is called first.
F. A batch that may be in the log is given up only with the transaction it may be in, and its sequence is no other's.
G. While the producer is held (`hold`), only batches that were sent before or have `passes_hold` are sent: a transaction
   ends with the acknowledged batches, no more and no less.
H. A partition that has ended begins again only when no answer is awaited, and under a producer id that it never had:
   its sequences begin at 0, and no broker can take a new batch for the repeat of an old one.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from heliograph.kafka.backoff import Backoff
from heliograph.states import StateMachine
from heliograph.wire.batches.batch_header import TRANSACTIONAL, compression_of, next_sequence, restamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heliograph.kafka.net.buffers import Buffer
    from heliograph.kafka.produce.producer_session import Identity, ProducerSession
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.forward import Piece


class TargetPartitionState(Enum):
    """Decides which batches of a target partition may leave, and what their answers lead to."""

    FIRST_BATCH_ALONE = auto()  # one batch at a time: the broker may hold no state of our producer (rule D)
    OPEN = auto()  # batches are pipelined
    DRAINING = auto()  # after an error that passes soon: nothing leaves until every awaited answer has come (rule C)
    DRAINING_TO_BACK_OFF = auto()  # the same after any other error
    BACKING_OFF = auto()  # nothing leaves before `retry_at`
    FAILED = auto()  # given up: the answers that are still awaited only free memory


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
            TargetPartitionState.FIRST_BATCH_ALONE,  # the producer has a new identity
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
DRAINING_STATES = (TargetPartitionState.DRAINING, TargetPartitionState.DRAINING_TO_BACK_OFF)

# The hot path compares with `is` against module constants, which costs no more than testing a flag.
_FIRST_BATCH_ALONE = TargetPartitionState.FIRST_BATCH_ALONE
_OPEN = TargetPartitionState.OPEN


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
        """Return whether a broker may have seen it."""
        return self.sequence >= 0


class ProduceListener(Protocol):
    """Handles batches that the target does not accept; acknowledgements go to `Outgoing.on_acked`."""

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:
        """The target will never accept this batch; the partition stops here."""

    def on_stuck(self, tp: TopicPartition) -> None:
        """The partition cannot be written for now; the listener may `discard` batches that were not sent."""

    def on_too_large(self, tp: TopicPartition, outgoing: Outgoing) -> list[Outgoing] | str:
        """The target accepts no batch of this size: return batches to send instead, or why the partition must stop."""


class Backlog:
    """The batches of one producer that are not settled, over all partitions.

    Invariants:
    A. `ready` holds exactly the partitions whose queue is not empty, the next to be served first.
    B. `unsettled_batches` counts the batches with a sequence that are neither acknowledged nor dropped.
    """

    __slots__ = ("ready", "unsettled_batches")

    def __init__(self) -> None:
        self.ready: dict[TopicPartition, TargetPartition] = {}
        self.unsettled_batches = 0

    def update(self, partition: TargetPartition) -> None:
        """Note that a partition's queue may have become empty, or not empty."""
        if partition.queue:
            self.ready[partition.tp] = partition
        else:
            self.ready.pop(partition.tp, None)


@dataclass(slots=True, eq=False)
class TargetPartition:
    """The queue, the batches in flight, the sequences and the state of one target partition."""

    tp: TopicPartition
    backlog: Backlog
    lane: int = 0
    beginning: int = 0  # how often it has begun again
    session: ProducerSession | None = None  # of a partition that has begun again (rule H); None: the producer's own
    state: TargetPartitionState = TARGET_PARTITION_STATES.initial
    queue: deque[Outgoing] = field(default_factory=deque)
    in_flight: deque[Outgoing] = field(default_factory=deque)
    identity: Identity | None = None
    sequence: int = 0
    queued_bytes: int = 0  # of all batches, those in flight too
    awaited: int = 0  # answers
    node_id: int = -1  # the broker that the last batch was sent to
    too_large: Outgoing | None = None
    retry_at: float = 0.0
    short_pauses: int = 0  # in a row
    backoff: Backoff = field(default_factory=lambda: Backoff(first_s=0.1, most_s=2.0))
    issue: str | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether no batch is queued or in flight."""
        return not self.queue and not self.in_flight

    @property
    def unacknowledged_records(self) -> int:
        """The number of fetched records, not our own, that are queued or in flight."""
        waiting = (*self.in_flight, *self.queue)
        return sum(outgoing.record_count for outgoing in waiting if outgoing.piece is not None)

    @property
    def oldest(self) -> Outgoing | None:
        """The oldest batch that is not acknowledged; None if there is none."""
        return self.in_flight[0] if self.in_flight else self.queue[0] if self.queue else None

    @property
    def sent(self) -> list[Outgoing]:
        """The batches that a broker may have seen and has not acknowledged, the oldest first."""
        return [outgoing for outgoing in (*self.in_flight, *self.queue) if outgoing.is_sent]

    def become(self, state: TargetPartitionState) -> None:
        """Enter a state; raises IllegalTransitionError if the table does not allow it."""
        self.state = TARGET_PARTITION_STATES.step(self.state, state)

    def rest(self) -> bool:
        """Prepare to continue after another producer has written; return False if only another identity can (rule H).

        Every batch that was sent is acknowledged, so the sequences continue; the broker may not know them (rule D).
        """
        if not self.is_idle or self.awaited or self.state in (*DRAINING_STATES, TargetPartitionState.FAILED):
            return False
        if self.state is _OPEN:
            self.become(_FIRST_BATCH_ALONE)
        return True

    def may_send(self, now: float) -> bool:
        """Return whether the state lets a batch leave; ends a back-off that is over."""
        if self.session is not None and not self.session.is_ready:
            return False
        if self.state is TargetPartitionState.BACKING_OFF and self.retry_at <= now:
            self.become(_FIRST_BATCH_ALONE)
        return self.state is _OPEN or self.state is _FIRST_BATCH_ALONE

    # --- sending ------------------------------------------------------------------------------------------------------

    def enqueue(self, outgoing: Outgoing) -> None:
        """Append a checked batch to the queue; it is stamped when it is first sent."""
        self.queue.append(outgoing)
        self.queued_bytes += len(outgoing.view)
        self.backlog.ready[self.tp] = self

    def stamp_head(self, identity: Identity, *, is_transactional: bool) -> None:
        """Write the producer's identity and the next sequence into the oldest queued batch."""
        if self.identity != identity:
            self.identity, self.sequence = identity, 0
            if self.state is _OPEN:
                self.become(_FIRST_BATCH_ALONE)
        outgoing = self.queue[0]
        attributes = compression_of(outgoing.view)
        if is_transactional:
            attributes |= TRANSACTIONAL
        outgoing.sequence = self.sequence
        restamp(outgoing.view, attributes, identity.producer_id, identity.epoch, outgoing.sequence)
        self.sequence = next_sequence(self.sequence, outgoing.record_count)
        self.backlog.unsettled_batches += 1

    def take_head(self, node_id: int) -> Outgoing:
        """Move the oldest queued batch to those in flight to a broker."""
        outgoing = self.queue.popleft()
        self.in_flight.append(outgoing)
        self.node_id = node_id
        self.awaited += 1
        del self.backlog.ready[self.tp]
        if self.queue:
            self.backlog.ready[self.tp] = self  # after the others: a full request must not starve the rest
        return outgoing

    # --- answers ------------------------------------------------------------------------------------------------------

    def acknowledge(self, outgoing: Outgoing, base_offset: int) -> list[Outgoing]:
        """Note that the target has a batch; return the batches that can be reported now, the oldest first (rule E)."""
        self.awaited -= 1
        if self.state is _FIRST_BATCH_ALONE:
            self.become(_OPEN)
        outgoing.is_acked = True
        outgoing.base_offset = base_offset
        self.backoff.failures = 0
        self.issue = None
        in_flight = self.in_flight
        settled = []
        while in_flight and in_flight[0].is_acked:
            oldest = in_flight.popleft()
            self.queued_bytes -= len(oldest.view)
            self.backlog.unsettled_batches -= 1
            if oldest.buffer is not None:
                oldest.buffer.release()
                oldest.buffer = None
            settled.append(oldest)
        return settled

    def drain(self, *, soon: bool) -> None:
        """Send nothing until every awaited answer has come; `soon`: the error passes within milliseconds."""
        if not soon and self.state is not TargetPartitionState.DRAINING_TO_BACK_OFF:
            self.become(TargetPartitionState.DRAINING_TO_BACK_OFF)
        elif self.state not in DRAINING_STATES:
            self.become(TargetPartitionState.DRAINING)

    def requeue(self) -> None:
        """Return every batch from the first without an acknowledgement on to the front of the queue.

        A later one that was acknowledged is sent again too: the broker recognises it, and acknowledgements are
        reported in order.
        """
        for outgoing in self.in_flight:
            outgoing.is_acked = False
        self.queue.extendleft(reversed(self.in_flight))
        self.in_flight.clear()
        self.backlog.update(self)

    def replace_head(self, replacements: Sequence[Outgoing]) -> None:
        """Queue other batches in place of the oldest; no later one was accepted, so all get new sequences."""
        head = self.queue.popleft()
        self.sequence = head.sequence
        self._release(head)
        for outgoing in self.queue:
            self.backlog.unsettled_batches -= outgoing.is_sent
            outgoing.sequence = -1
        for outgoing in reversed(replacements):
            outgoing.sequence = -1
            self.queue.appendleft(outgoing)
            self.queued_bytes += len(outgoing.view)
        self.backlog.update(self)

    # --- dropping batches ---------------------------------------------------------------------------------------------

    def drop_unsent(self) -> Outgoing | None:
        """Drop the queued batches that no broker has seen, and return the oldest of them."""
        oldest = None
        while self.queue and not self.queue[-1].is_sent:
            oldest = self.queue.pop()
            self._release(oldest)
        self.backlog.update(self)
        return oldest

    def fail(self) -> None:
        """Give up: drop all batches; those in flight keep their memory until their answers have come."""
        self.become(TargetPartitionState.FAILED)
        while self.queue:
            self._release(self.queue.pop())
        self.backlog.update(self)
        self._drop_failed()

    def answered_after_failure(self) -> None:
        """Count an answer that no longer matters."""
        self.awaited -= 1
        self._drop_failed()

    def _drop_failed(self) -> None:
        if self.awaited == 0:
            while self.in_flight:
                self._release(self.in_flight.pop())

    def _release(self, outgoing: Outgoing) -> None:
        self.queued_bytes -= len(outgoing.view)
        self.backlog.unsettled_batches -= outgoing.is_sent
        if outgoing.buffer is not None:
            outgoing.buffer.release()
            outgoing.buffer = None
