"""Commits of a task: when it writes its source offsets to `mm2-offsets.A.internal`, and how.

Only acknowledged offsets are written, so a crash repeats at most what was acknowledged since the last commit. One
commit is under way at a time: a partition's newer offset never reaches the topic before its older one.

With exactly-once a commit is the end of a transaction: the task waits for the batches in flight while it sends nothing
new (FLUSHING), writes the offsets in the same transaction (WRITING), and commits the transaction (ENDING). Consumers do
not see the records of a transaction before its end, so it ends as soon as nothing follows. While it ends nothing is
sent, so at full load commits may take a tenth of the time.

Invariant: a transaction waits for its commit no longer than `max_commit_interval_ms`, a part of the time after which
the target aborts it. The rest of that time is for the commit itself.
"""

from __future__ import annotations

import time
from collections import defaultdict
from enum import Enum, auto
from typing import TYPE_CHECKING

from heliograph.errors import TaskError
from heliograph.kafka.own_records import OwnRecord, build_batches
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.kafka.topics.compacted_topic import partition_for_key
from heliograph.model import SourceOffset, TopicPartition, counted
from heliograph.states import StateMachine
from heliograph.status.sampled_window import SampledWindow
from heliograph.wire.records.connect_offsets import encode_headers, encode_key, encode_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.kafka.produce.producer import BatchProducer
    from heliograph.kafka.produce.producer_session import ProducerSession
    from heliograph.status.windows import Stat


_QUIET_INTERVAL_S = 0.1
_REST_FACTOR = 9
_RETRY_S = 0.05
_SOON_S = 0.01


class CommitState(Enum):
    """The states of a commit; without transactions only IDLE and WRITING."""

    IDLE = auto()
    FLUSHING = auto()
    WRITING = auto()
    ENDING = auto()


COMMIT_STATES = StateMachine(
    CommitState.IDLE,
    {
        CommitState.IDLE: {CommitState.FLUSHING, CommitState.WRITING},
        CommitState.FLUSHING: {CommitState.WRITING, CommitState.IDLE},  # IDLE: no offset has changed
        CommitState.WRITING: {CommitState.ENDING, CommitState.IDLE},
        CommitState.ENDING: {CommitState.IDLE},
    },
)


class OffsetCommits:
    """The committed offsets of a task's partitions."""

    def __init__(
        self,
        spec: TaskSpec,
        producer: BatchProducer,
        session: ProducerSession,
        source_offsets: Callable[[], Mapping[TopicPartition, SourceOffset]],
        before_write: Callable[[], None],
        on_committed: Callable[[], None],
    ) -> None:
        """`before_write` returns when the offsets of the moment may be written."""
        self.committed: dict[TopicPartition, int] = {}
        self.times = CommitTimes()
        self._written: dict[TopicPartition, tuple[object, ...]] = {}
        self._keys: dict[TopicPartition, tuple[bytes, int]] = {}
        self._spec = spec
        self._alias = _offsets_alias(spec)
        self._producer = producer
        self._session = session
        self._source_offsets = source_offsets
        self._before_write = before_write
        self._on_committed = on_committed
        self._state = COMMIT_STATES.initial
        self._awaited = 0
        self._began_at = 0.0
        self._committing: dict[TopicPartition, SourceOffset] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether no commit is under way."""
        return self._state is CommitState.IDLE

    @property
    def issue(self) -> str | None:
        """Return the first reason why source offsets cannot be written now; None if they can."""
        if self._state is CommitState.FLUSHING:
            held = [p for p in self._producer.partitions.values() if p.issue and p.sent]
            return f"the transaction waits for {held[0].tp}: {held[0].issue}" if held else None
        waiting = [p for tp, p in self._producer.partitions.items() if tp.topic == self._spec.offsets_topic]
        reasons = [f"{p.tp} on '{self._alias}': {p.issue}" for p in waiting if p.issue]
        return f"source offsets wait: {reasons[0]}" if reasons else None

    def begin(self, timestamp_ms: int) -> bool:
        """Commit the offsets that have changed; return False if this must wait for a commit that is under way."""
        if not self.is_idle or not self._session.is_ready:
            return False
        if self._session.transactional_id is None:
            self._write(timestamp_ms)
        elif self._producer.unsettled_batches or self._moved():
            self._producer.hold()
            self._become(CommitState.FLUSHING)
        return True

    def pump(self, timestamp_ms: int) -> None:
        """Write the offsets of a transaction once its batches are acknowledged."""
        is_flushed = self._state is CommitState.FLUSHING and not self._producer.unsettled_batches
        if is_flushed and not self._write(timestamp_ms):
            self._producer.release()

    def _moved(self) -> dict[TopicPartition, SourceOffset]:
        return {tp: p for tp, p in self._source_offsets().items() if self._written.get(tp) != _identity(p)}

    def forget(self, tp: TopicPartition) -> None:
        """Write the next source offset of a partition even if it was written before: its topic may have another now."""
        self.committed.pop(tp, None)
        self._written.pop(tp, None)

    def has_all(self, tps: Iterable[TopicPartition]) -> bool:
        """Return whether nothing is left to commit of some partitions."""
        return not self.uncommitted(tps)

    def uncommitted(self, tps: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Return those of some partitions that are not committed; all, while a commit is under way. Expensive."""
        return self._moved().keys() & set(tps) if self.is_idle else set(tps)

    def unwritten(self, tps: Iterable[TopicPartition]) -> str | None:
        """Return the warning of a task that ends without having written all source offsets of some partitions."""
        missing = sorted(self._moved().keys() & set(tps))
        if not missing:
            return None
        why = f" ({self.issue})" if self.issue else ""
        return (
            f"the task ends before it could write the source offsets of {counted(len(missing), 'partition')},"
            f" {missing[0]} first{why}; the next start resumes after those that were written before."
        )

    def _write(self, timestamp_ms: int) -> bool:
        """Queue the records of offsets that have changed; return False if none has."""
        self._before_write()
        self._committing = self._moved()
        if self._committing:
            self._become(CommitState.WRITING)
        elif not self.is_idle:
            self._become(CommitState.IDLE)
        by_partition: dict[int, list[OwnRecord]] = defaultdict(list)
        for tp, source_offsets in self._committing.items():
            key, number = self._key_of(tp)
            by_partition[number].append(
                OwnRecord(key, encode_value(source_offsets.offset), encode_headers(source_offsets))
            )
        for number, records in by_partition.items():
            partition = self._producer.add(TopicPartition(self._spec.offsets_topic, number))
            for batch in build_batches(records, timestamp_ms):
                self._awaited += 1
                outgoing = Outgoing(batch.view, batch.record_count, self._on_acked, passes_hold=True)
                self._producer.enqueue(partition, outgoing)
        return bool(self._committing)

    def _key_of(self, tp: TopicPartition) -> tuple[bytes, int]:
        """Return the key of a partition's records and the partition of the offsets topic for it; both never change."""
        if tp not in self._keys:
            key = encode_key(self._spec.connector, self._spec.flow.source, tp)
            self._keys[tp] = key, partition_for_key(key, self._spec.offsets_partition_count)
        return self._keys[tp]

    def _on_acked(self, _tp: TopicPartition, _outgoing: Outgoing, _base_offset: int) -> None:
        """Count down the batches of the commit under way; after the last one, the transaction can end."""
        self._awaited -= 1
        if self._awaited:
            return
        if self._session.transactional_id is None:
            self._done()
        else:
            self._become(CommitState.ENDING)
            self._session.end(self._done)

    def _done(self) -> None:
        self.committed |= {tp: source_offsets.offset for tp, source_offsets in self._committing.items()}
        self._written |= {tp: _identity(source_offsets) for tp, source_offsets in self._committing.items()}
        now = time.monotonic()
        self.times.add(now * 1000, (now - self._began_at) * 1000)
        self._become(CommitState.IDLE)
        self._producer.release()
        self._on_committed()

    def _become(self, state: CommitState) -> None:
        if self.is_idle:
            self._began_at = time.monotonic()
        self._state = COMMIT_STATES.step(self._state, state)


class CommitTimes:
    """The number of a task's commits, and the time that they took."""

    def __init__(self) -> None:
        self.done = self.failed = 0
        self.sum_ms = 0.0
        self._window = SampledWindow()

    def add(self, now_ms: float, took_ms: float) -> None:
        """Count a commit that has ended."""
        self.done += 1
        self.sum_ms += took_ms
        self._window.add(now_ms, took_ms)

    def last_minute(self, now_ms: float) -> Stat | None:
        """Return the times of the last minute; None without a commit."""
        return self._window.stat(now_ms)


def refused_commit(spec: TaskSpec, tp: TopicPartition, why: str) -> TaskError:
    """Return the error that ends a task: without source offsets, the next start would copy more and more again."""
    return TaskError(f"source offsets cannot be written to {tp} on '{_offsets_alias(spec)}': {why}.")


def _offsets_alias(spec: TaskSpec) -> str:
    return (spec.source_offsets or spec.target).alias


def _identity(known: SourceOffset) -> tuple[object, ...]:
    """Return what must be written again when it changes: in another log the same offset is another record's."""
    log = known.target_log
    return known.offset, known.topic_id, known.epochs, None if log is None else (log.topic_id, log.cut_at)


class CommitSchedule:
    """The time of the next commit, in seconds of the monotonic clock."""

    def __init__(self, spec: TaskSpec) -> None:
        self._interval_s = spec.commit_interval_ms / 1000
        self._is_transactional = spec.transactional_id is not None
        self._longest_interval_s = spec.max_commit_interval_ms / 1000
        if self._is_transactional:
            self._interval_s = min(self._interval_s, self._longest_interval_s)
        self._next_at = 0.0
        self._last_at = 0.0
        self._has_uncommitted = False

    def due_at(self, *, is_quiet: bool) -> float:
        """Return when to begin a commit; `is_quiet`: no batch is queued or in flight."""
        if is_quiet and self._has_uncommitted and self._is_transactional:
            return min(self._next_at, self._last_at + _QUIET_INTERVAL_S)
        return self._next_at

    def note_uncommitted(self) -> None:
        """Record that there is something to commit."""
        self._has_uncommitted = True

    def begun(self, now: float) -> None:
        """Record that a commit has begun."""
        self._next_at, self._last_at, self._has_uncommitted = now + self._interval_s, now, False

    def postponed(self, now: float) -> None:
        """Try again soon: the commit could not begin."""
        self._next_at = now + _RETRY_S

    def ended(self, now: float) -> None:
        """Record that the commit has ended."""
        if self._is_transactional:
            rest_s = min(_REST_FACTOR * (now - self._last_at), self._longest_interval_s)
            self._next_at = max(self._next_at, now + rest_s)

    def hurry(self, now: float) -> None:
        """Commit soon: no batch follows."""
        self._next_at = min(self._next_at, now + _SOON_S)
