"""Writes progress to `mm2-offsets.A.internal` through the task's own producer.

Only acknowledged offsets are written, so a crash repeats at most what was acknowledged since the last commit. One
commit is under way at a time: a partition's newer offset never reaches the topic before its older one.

With exactly-once a commit is the end of a transaction: what is under way is waited for while nothing new is sent
(FLUSHING), the offsets are written in the same transaction (WRITING), and the transaction is committed (ENDING).


When a task commits: by its interval; in transactions also soon after the last record, and never too late.

Nobody sees the records of a transaction before its end, so it ends as soon as nothing follows. While it ends nothing is
sent, so at full load it may take a tenth of the time.

Invariant: a transaction waits for its commit no longer than a third of the time after which the target aborts it. The
rest is for the commit itself.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum, auto
from typing import TYPE_CHECKING

from heliograph.config.keys.client_keys import COMMITS_PER_TRANSACTION_TIMEOUT
from heliograph.errors import TaskError
from heliograph.kafka.own_records import OwnRecord, build_batches
from heliograph.kafka.produce.target_partition import Outgoing
from heliograph.kafka.topics.compacted_topic import partition_for_key
from heliograph.model import SourceOffset, TopicPartition, counted
from heliograph.wire.records.connect_offsets import encode_headers, encode_key, encode_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.kafka.produce.producer import BatchProducer
    from heliograph.kafka.produce.producer_session import ProducerSession


class _State(Enum):
    IDLE = auto()
    FLUSHING = auto()
    WRITING = auto()
    ENDING = auto()


def _place(source_offsets: SourceOffset) -> tuple[object, ...]:
    """What must be written again where it changes: in another log the same offset is another record's."""
    return source_offsets.offset, source_offsets.topic_id, source_offsets.epochs


class OffsetCommits:
    """The committed offsets of a task's partitions."""

    def __init__(
        self,
        spec: TaskSpec,
        producer: BatchProducer,
        session: ProducerSession,
        source_offsets: Callable[[], Mapping[TopicPartition, SourceOffset]],
        on_committed: Callable[[], None],
    ) -> None:
        self.committed: dict[TopicPartition, int] = {}
        self._written: dict[TopicPartition, tuple[object, ...]] = {}
        self._keys: dict[TopicPartition, tuple[bytes, int]] = {}
        self._spec = spec
        self._holder = (spec.source_offsets or spec.target).alias
        self._producer = producer
        self._session = session
        self._source_offsets = source_offsets
        self._on_committed = on_committed
        self._state = _State.IDLE
        self._awaited = 0
        self._committing: dict[TopicPartition, SourceOffset] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no commit is under way."""
        return self._state is _State.IDLE

    @property
    def issue(self) -> str | None:
        """Why progress cannot be written just now; the first reason, where there are several."""
        if self._state is _State.FLUSHING:
            held = [p for p in self._producer.partitions.values() if p.issue and p.sent]
            return f"the transaction waits for {held[0].tp}: {held[0].issue}" if held else None
        waiting = [p for tp, p in self._producer.partitions.items() if tp.topic == self._spec.offsets_topic]
        reasons = [f"{p.tp} on '{self._holder}': {p.issue}" for p in waiting if p.issue]
        return f"source offsets wait: {reasons[0]}" if reasons else None

    def begin(self, timestamp_ms: int) -> bool:
        """Commit what has moved; False where a commit is still under way and this one must come later."""
        if not self.is_idle or not self._session.is_ready:
            return False
        if self._session.transactional_id is None:
            self._write(timestamp_ms)
        elif self._producer.unsettled_batches or self._moved():
            self._producer.hold()
            self._state = _State.FLUSHING
        return True

    def pump(self, timestamp_ms: int) -> None:
        """Take the next step of a commit under way, where it is due."""
        is_flushed = self._state is _State.FLUSHING and not self._producer.unsettled_batches
        if is_flushed and not self._write(timestamp_ms):
            self._producer.release()

    def _moved(self) -> dict[TopicPartition, SourceOffset]:
        return {tp: p for tp, p in self._source_offsets().items() if self._written.get(tp) != _place(p)}

    def has_all(self, tps: Iterable[TopicPartition]) -> bool:
        """Whether all there is to commit of some partitions is committed."""
        return self.is_idle and self._moved().keys().isdisjoint(tps)

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
        """Queue the records of what has moved; False where nothing has."""
        self._committing = self._moved()
        self._state = _State.WRITING if self._committing else _State.IDLE
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
        """The key of a partition's progress, and the number of the partition it belongs to; both never change."""
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
            self._state = _State.ENDING
            self._session.end(self._done)

    def _done(self) -> None:
        self.committed |= {tp: source_offsets.offset for tp, source_offsets in self._committing.items()}
        self._written |= {tp: _place(source_offsets) for tp, source_offsets in self._committing.items()}
        self._state = _State.IDLE
        self._producer.release()
        self._on_committed()

    def on_refused(self, tp: TopicPartition, why: str) -> None:
        """End the task: without source offsets, the next start would copy everything since the last ones again."""
        raise TaskError(f"source offsets cannot be written to {tp} on '{self._holder}': {why}.")


_QUIET_INTERVAL_S = 0.1
_REST_FACTOR = 9
_RETRY_S = 0.05
_SOON_S = 0.01


class CommitSchedule:
    """The time of the next commit; all times are those of a clock that never goes back, in seconds."""

    def __init__(self, spec: TaskSpec) -> None:
        self._interval_s = spec.commit_interval_ms / 1000
        self._is_transactional = spec.transactional_id is not None
        self._longest_wait_s = spec.transaction_timeout_ms / 1000 / COMMITS_PER_TRANSACTION_TIMEOUT
        if self._is_transactional:
            self._interval_s = min(self._interval_s, self._longest_wait_s)
        self._next_at = 0.0
        self._last_at = 0.0
        self._has_news = False

    def due_at(self, *, is_quiet: bool) -> float:
        """When to begin; `is_quiet` says that no record is on its way."""
        if is_quiet and self._has_news and self._is_transactional:
            return min(self._next_at, self._last_at + _QUIET_INTERVAL_S)
        return self._next_at

    def note_news(self) -> None:
        """There is something to commit."""
        self._has_news = True

    def begun(self, now: float) -> None:
        """A commit has begun."""
        self._next_at, self._last_at, self._has_news = now + self._interval_s, now, False

    def postponed(self, now: float) -> None:
        """A commit could not begin."""
        self._next_at = now + _RETRY_S

    def ended(self, now: float) -> None:
        """The commit that had begun has ended."""
        if self._is_transactional:
            rest_s = min(_REST_FACTOR * (now - self._last_at), self._longest_wait_s)
            self._next_at = max(self._next_at, now + rest_s)

    def hurry(self, now: float) -> None:
        """Nothing follows any more."""
        self._next_at = min(self._next_at, now + _SOON_S)
