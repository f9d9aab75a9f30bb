"""The copy of one task: fetch, check, re-stamp, produce, acknowledge, commit; one thread, one loop.

Nothing here knows Spark: `copy_task` runs it in a Python worker, tests run it directly. Memory is bounded: a new
fetch is asked for only while the buffers that hold what is not yet acknowledged leave room for it in `buffer_bytes`.

Invariants:
A. `acked_offset` moves only over records the target has acknowledged, in order; only it is committed.
B. A partition that cannot go on is failed with a sentence naming topic, partition and offset; the others go on.
C. The loop ends only by: all partitions done (`--once`), the lease's word, a lost lease, or a TaskError.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from heliograph.engine.offset_commits import OffsetCommits
from heliograph.engine.report import PartitionReport, TaskReport
from heliograph.errors import TaskError
from heliograph.kafka.buffers import BufferPool
from heliograph.kafka.cluster import Cluster
from heliograph.kafka.fetcher import Fetcher, FetchPartition
from heliograph.kafka.network import Network
from heliograph.kafka.producer import BatchProducer, Outgoing, TargetPartition
from heliograph.wire.batch import Batch, split_batches

if TYPE_CHECKING:
    from heliograph.engine.spec import ClusterSpec, PartitionSpec, TaskSpec
    from heliograph.kafka.buffers import Buffer
    from heliograph.model import TopicPartition

_REPORT_INTERVAL_S = 1.0
_RETRY_GRANULARITY_S = 0.05
_CONNECT_TIMEOUT_S = 10.0
_DRAIN_TIMEOUT_S = 20.0
_ANSWER_OVERHEAD_BYTES = 64 * 1024  # of a fetch answer beside its batches


class Lease(Protocol):
    """The driver's side of a task, as the loop sees it."""

    def report(self, report: TaskReport) -> None:
        """Hand a report on; does not block."""

    def take_assignment(self) -> tuple[PartitionSpec, ...] | None:
        """A new set of partitions, if the driver has sent one since the last call."""

    @property
    def stop_reason(self) -> str | None:
        """Why the driver wants the task to end, or None."""

    def check(self) -> None:
        """Raise LeaseLostError if the driver is gone."""


class CopyPartition:
    """One partition's progress and counters."""

    __slots__ = ("acked_offset", "counters", "spec", "target")

    def __init__(self, spec: PartitionSpec, target: TargetPartition) -> None:
        self.spec = spec
        self.target = target
        self.acked_offset: int | None = None
        self.counters = PartitionReport(spec.tp.topic, spec.tp.partition)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is fetched for it."""
        return self.counters.is_done or self.counters.failure is not None


class CopyLoop:
    """Copies a task's partitions until told to stop."""

    def __init__(self, spec: TaskSpec, lease: Lease) -> None:
        self.spec = spec
        self.partitions: dict[TopicPartition, CopyPartition] = {}
        self._lease = lease
        answer_bytes = spec.limits.max_bytes + _ANSWER_OVERHEAD_BYTES
        self._pool = BufferPool(answer_bytes, spec.buffer_bytes)
        self._network = Network(self._pool, f"heliograph-{spec.task_id}", _CONNECT_TIMEOUT_S)
        self._source = self._cluster(spec.source)
        self._target = self._cluster(spec.target)
        self._fetcher = Fetcher(self._source, self._network, spec.limits, self, lanes=spec.lanes)
        self._producer = BatchProducer(
            self._target,
            self._network,
            self,
            lanes=spec.lanes,
            max_in_flight=spec.max_in_flight,
            max_request_bytes=spec.max_request_bytes,
            request_timeout_ms=spec.target.request_timeout_ms,
        )
        self._commits = OffsetCommits(spec, self._producer)
        self._by_target: dict[TopicPartition, CopyPartition] = {}
        self._departed: dict[TopicPartition, CopyPartition] = {}
        self._events: list[str] = []
        self._partition_buffer_bytes = max(spec.limits.partition_max_bytes * 2, spec.buffer_bytes // 8)
        self._next_commit_at = 0.0
        self._next_report_at = 0.0

    def _cluster(self, spec: ClusterSpec) -> Cluster:
        return Cluster(spec.alias, spec.bootstrap, spec.security, self._network, spec.request_timeout_ms / 1000)

    def run(self) -> TaskReport:
        """Copy until done or told to stop; then flush, commit and return the last report."""
        try:
            self._producer.add_topic_watch(self.spec.offsets_topic)
            for partition in self.spec.partitions:
                self._add(partition)
            while not self._is_finished():
                self._step(fetch=True)
            self._drain()
            return self._report()
        finally:
            self._network.close()

    def _is_finished(self) -> bool:
        self._lease.check()
        assignment = self._lease.take_assignment()
        if assignment is not None:
            self._reassign(assignment)
        if self._lease.stop_reason is not None:
            return True
        is_once = all(p.spec.stop_offset is not None for p in self.partitions.values())
        return bool(self.partitions) and is_once and all(p.is_over for p in self.partitions.values())

    def _step(self, *, fetch: bool) -> None:
        deadline = (now := time.monotonic()) + self._timeout_s(now)
        while not self._network.poll(deadline - now) and (now := time.monotonic()) < deadline:
            pass
        now = time.monotonic()
        self._source.maintain(now)
        self._target.maintain(now)
        self._producer.pump(now)
        if fetch and self._producer.is_ready:
            self._fetcher.pump(now, self._wants, self._has_room)
        if now >= self._next_commit_at:
            is_begun = self._commit()
            self._next_commit_at = now + (self.spec.commit_interval_ms / 1000 if is_begun else _RETRY_GRANULARITY_S)
            self._producer.pump(now)
        if now >= self._next_report_at:
            self._next_report_at = now + _REPORT_INTERVAL_S
            self._network.drop_overdue(now)
            self._lease.report(self._report())

    def _timeout_s(self, now: float) -> float:
        until_timer = min(self._next_commit_at, self._next_report_at) - now
        is_calm = self._producer.is_ready and not self._source.is_unsettled and not self._target.is_unsettled
        if is_calm and not self._fetcher.has_retries and not self._producer.has_retries:
            return max(0.0, until_timer)
        return max(0.0, min(until_timer, _RETRY_GRANULARITY_S))

    def _has_room(self) -> bool:
        asked = (self._fetcher.in_flight_requests + 1) * self.spec.limits.max_bytes
        held = self._pool.held_bytes
        return held + asked <= self.spec.buffer_bytes or not (held or self._fetcher.in_flight_requests)

    def _wants(self, fetched: FetchPartition) -> bool:
        target = self.partitions[fetched.tp].target
        return target.trouble is None and target.queued_bytes < self._partition_buffer_bytes

    # --- assignment ---------------------------------------------------------------------------------------------------

    def _add(self, spec: PartitionSpec) -> None:
        if spec.target in self._by_target:
            # What was sent before it was taken away has used up sequences; only a new producer can begin again.
            raise TaskError(f"{spec.tp} was taken away and given back; the task begins again.")
        partition = CopyPartition(spec, self._producer.add(spec.target))
        self.partitions[spec.tp] = partition
        self._by_target[spec.target] = partition
        self._fetcher.add(spec.tp, spec.position)

    def _reassign(self, wanted: tuple[PartitionSpec, ...]) -> None:
        by_tp = {spec.tp: spec for spec in wanted}
        for tp in [tp for tp in self.partitions if tp not in by_tp]:
            self._fetcher.remove(tp)
            self._producer.discard(self.partitions[tp].spec.target)
            self._departed[tp] = self.partitions.pop(tp)
        for tp, spec in by_tp.items():
            if tp not in self.partitions:
                self._add(spec)

    # --- what the fetcher says ----------------------------------------------------------------------------------------

    def on_records(self, fetched: FetchPartition, records: memoryview, buffer: Buffer) -> None:
        """Check and re-stamp the batches, and queue them for the target."""
        partition = self.partitions[fetched.tp]
        assert fetched.position is not None
        batches, error = split_batches(records, fetched.position)
        if batches:
            buffer.hold(len(batches))
            for batch in batches:
                self._producer.enqueue(partition.target, Outgoing(batch.view, batch.record_count, buffer, batch))
            fetched.position = batches[-1].last_offset + 1
            self._end_if_done(partition, fetched.position)
        if error is not None and not partition.is_over:
            self._fail(partition, f"the batch at offset {error.offset} cannot be forwarded: {error}")

    def decide_position(self, fetched: FetchPartition, earliest: int, latest: int) -> int | None:
        """Go on where we were; say so where the source's log no longer has that place."""
        partition = self.partitions[fetched.tp]
        position = fetched.position
        if position is None:
            position = earliest if self.spec.offset_reset == "earliest" else latest
        elif position < earliest:
            lost = earliest - position
            partition.counters.lost_offsets += lost
            self._events.append(
                f"{self.spec.flow} {fetched.tp}: offsets {position} to {earliest - 1} are gone from the source before"
                f" they were copied ({lost} lost); going on at {earliest}. Raise its retention or look at the lag."
            )
            position = earliest
        elif position > latest:
            self._fail(
                partition,
                f"the source's log ends at offset {latest}, before our position {position}: the topic was truncated,"
                " or deleted and created again. Nothing was copied from the new one",
            )
            return None
        self._end_if_done(partition, position)
        return position

    def on_source_failed(self, tp: TopicPartition, why: str) -> None:
        """The source will not let us read a partition."""
        self._fail(self.partitions[tp], why)

    def _end_if_done(self, partition: CopyPartition, position: int) -> None:
        stop_offset = partition.spec.stop_offset
        partition.counters.position = position
        if stop_offset is not None and position >= stop_offset:
            partition.counters.is_done = True
            self._fetcher.remove(partition.spec.tp)

    def _fail(self, partition: CopyPartition, why: str) -> None:
        tp = partition.spec.tp
        partition.counters.failure = f"{self.spec.flow} {tp}: {why}."
        self._events.append(partition.counters.failure)
        self._fetcher.remove(tp)

    # --- what the producer says ---------------------------------------------------------------------------------------

    def on_acked(self, tp: TopicPartition, outgoing: Outgoing, _base_offset: int) -> None:
        """A batch is safe on the target."""
        batch: Batch | None = outgoing.tag
        if batch is None:
            self._commits.on_acked()
            return
        partition = self._by_target[tp]
        partition.acked_offset = batch.last_offset
        counters = partition.counters
        counters.records += batch.record_count
        counters.bytes += len(batch.view)
        latency_ms = int(time.time() * 1000) - batch.max_timestamp_ms
        counters.latency_sum_ms += latency_ms
        counters.latency_count += 1
        counters.latency_max_ms = max(counters.latency_max_ms, latency_ms)

    def on_target_failed(self, tp: TopicPartition, outgoing: Outgoing, why: str) -> None:
        """The target will not take a batch."""
        batch: Batch | None = outgoing.tag
        if batch is None:
            self._commits.on_refused(tp, why)
            return
        self._fail(self._by_target[tp], f"the batch at offset {batch.base_offset} was refused: {why}")

    # --- commit, report, end ------------------------------------------------------------------------------------------

    def _commit(self) -> bool:
        everyone = self.partitions | self._departed
        acked = {tp: p.acked_offset for tp, p in everyone.items() if p.acked_offset is not None}
        return self._commits.commit(acked, int(time.time() * 1000))

    def _report(self) -> TaskReport:
        rows = []
        for tp, partition in self.partitions.items():
            counters = partition.counters
            fetched = self._fetcher.partitions.get(tp)
            if fetched is not None:
                counters.position, counters.high_watermark = fetched.position, fetched.high_watermark
            # Also where nothing more is fetched: what is queued may still wait for the target.
            counters.trouble = (fetched.trouble if fetched is not None else None) or partition.target.trouble
            counters.acked_offset = partition.acked_offset
            counters.committed_offset = self._commits.committed.get(tp)
            rows.append(counters)
        events, self._events = self._events, []
        trouble = [words for words in (self._source.trouble, self._target.trouble) if words]
        return TaskReport(rows, events, trouble)

    def _drain(self) -> None:
        """Wait for what is under way, forget what was not sent, commit; what takes too long is copied again later."""
        deadline = time.monotonic() + _DRAIN_TIMEOUT_S
        is_stopped = self._lease.stop_reason is not None
        if is_stopped:
            for partition in self.partitions.values():
                self._producer.discard(partition.spec.target)
        while time.monotonic() < deadline or not is_stopped:
            self._lease.check()
            if self._producer.is_idle and self._is_committed():
                return
            if self._lease.stop_reason is not None and not is_stopped:
                is_stopped, deadline = True, time.monotonic() + _DRAIN_TIMEOUT_S
            if self._commits.is_idle and self._is_copied():
                self._next_commit_at = 0.0
            self._step(fetch=False)

    def _is_copied(self) -> bool:
        return all(partition.target.is_idle for partition in self.partitions.values())

    def _is_committed(self) -> bool:
        return self._commits.is_idle and all(
            p.acked_offset is None or self._commits.committed.get(tp) == p.acked_offset
            for tp, p in self.partitions.items()
        )


def run_copy(spec: TaskSpec, lease: Lease) -> dict[str, Any]:
    """Run a task to its end; the last report as plain values."""
    return CopyLoop(spec, lease).run().to_json()
