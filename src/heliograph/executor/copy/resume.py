"""The resume point of each partition that is assigned to a task, so that a crash repeats nothing.

With exactly-once the committed source offsets are the truth, read after our predecessor was fenced. Without it, a task
that was killed has written more than it could commit: the records on the target after the last committed one are
compared, one by one, with those that follow on the source, and the copy resumes after the last one that the target
has already ("tail resume"). Records of other producers in between are passed over.

The partitions of a task's start and those that are assigned later get their resume points here, in a thread of its own:
the task keeps its lease meanwhile, and continues to copy its other partitions.

Invariants:
A. A record is passed over only if one of the same timestamp, key, value and headers was found on the target, in order.
B. If anything is not known for sure, the committed offset counts: repeated rather than lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from heliograph.errors import ClusterError
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.executor.copy.background import in_background
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.request_options import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED
from heliograph.kafka.topics.topic_reader import read_chunk
from heliograph.model import SourceOffset, counted
from heliograph.wire.batches.fingerprint import fingerprints, match_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from heliograph.executor.contract.task_report import TaskEvents
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.kafka.security.connection_spec import ClusterSpec
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.kernel_bytes import Table


# Beyond these limits, comparing takes longer than copying again is worth.
_MOST_COMPARED_RECORDS = 10_000_000  # of a partition
_LONGEST_COMPARISON_S = 60.0  # of a task
_RETRY_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A partition with the source offsets to resume after.

    `resumed_after` is set if the target had more records than were committed: the offset of the last of them.
    `target_end` is the end of the target's log, as far as known.
    """

    spec: PartitionSpec
    resumed_after: int | None = None
    target_end: int | None = None
    already_there: int = 0


def resume_points(spec: TaskSpec, partitions: tuple[PartitionSpec, ...], events: TaskEvents) -> list[ResumePoint]:
    """Return the resume point of each partition, in the order given. Blocks."""
    if not partitions:
        return []
    target = _admin(spec.target, spec)
    try:
        if spec.transactional_id is not None:
            source_offsets = read_offsets(target, spec.offsets_topic, spec.connector, spec.flow.source)
            return [
                ResumePoint(replace(partition, source_offsets=source_offsets.get(partition.tp)))
                for partition in partitions
            ]
        source = _admin(spec.source, spec)
        try:
            return _Comparison(spec, source, target, events).resume_points(partitions)
        finally:
            source.close()
    finally:
        target.close()


def _admin(cluster: ClusterSpec, spec: TaskSpec) -> Admin:
    client_id = f"heliograph-{spec.task_id}-resume"
    return Admin(
        cluster.alias, cluster.bootstrap, cluster.security, client_id, timeout_s=cluster.request_timeout_ms / 1000
    )


class _Comparison:
    """Compares the tails of the target's logs, if they are longer than committed, with the source's logs."""

    def __init__(self, spec: TaskSpec, source: Admin, target: Admin, events: TaskEvents) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._events = events
        self._deadline = time.monotonic() + _LONGEST_COMPARISON_S

    def resume_points(self, partitions: tuple[PartitionSpec, ...]) -> list[ResumePoint]:
        """Return the resume point of each partition, in the order given."""
        comparable = [
            p
            for p in partitions
            if (not p.is_reset if p.source_offsets is None else p.source_offsets.target_end is not None)
        ]
        # A partition without a leader is not compared; it must not keep the others from starting.
        ends = self._target.known_offsets([p.target for p in comparable], LATEST)
        fresh = [p.target for p in comparable if p.source_offsets is None and ends.get(p.target, 0) > 0]
        starts = self._target.known_offsets(fresh, EARLIEST)
        return [self._resume_point(partition, starts, ends) for partition in partitions]

    def _resume_point(
        self, partition: PartitionSpec, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> ResumePoint:
        end = ends.get(partition.target)
        if end is None:
            return ResumePoint(partition)
        as_committed = ResumePoint(partition, target_end=end)
        known_end = (
            starts.get(partition.target, end)
            if partition.source_offsets is None
            else partition.source_offsets.target_end
        )
        assert known_end is not None
        if end < known_end:
            self._events.error(
                f"the target's log ends at offset {end}, but {known_end} was acknowledged: it has lost records.",
                partition.tp,
            )
        is_begun = partition.source_offsets is not None or self._spec.offset_reset == "earliest"
        if not is_begun or not known_end < end <= known_end + _MOST_COMPARED_RECORDS:
            return as_committed
        try:
            return self._compare(partition, known_end, end) or as_committed
        except ClusterError as error:
            self._events.warn(f"{error} The last records before the restart may be copied again.", partition.tp)
            return as_committed

    def _compare(self, partition: PartitionSpec, known_end: int, end: int) -> ResumePoint | None:
        written = self._target_tail(partition.target, known_end, end)
        position = partition.position
        if position is None:
            position = self._source.list_offsets([partition.tp], EARLIEST, READ_UNCOMMITTED)[partition.tp]
        last_there, already_there, at = None, 0, 0
        isolation_level = self._spec.limits.isolation_level
        while at < len(written):
            self._check_time()
            data = read_chunk(self._source, partition.tp, position, isolation_level)
            if data.records is None:
                break
            chunk = fingerprints(data.records, position, data.aborted)
            matched, at = match_in_order(chunk.prints, written, at)
            already_there += matched
            if matched:
                last_there = int(chunk.offsets[matched - 1])
            if matched < len(chunk.prints) or not chunk.is_sound or chunk.next_offset == position:
                break
            position = chunk.next_offset
        if last_there is None:
            return None
        resumed = replace(partition, source_offsets=self._source_offset_at(partition, last_there, end, already_there))
        return ResumePoint(resumed, last_there, end, already_there)

    def _target_tail(self, tp: TopicPartition, position: int, end: int) -> Table:
        parts = []
        while position < end:
            self._check_time()
            # Aborted and uncommitted records do not count: an earlier run may have been exactly-once.
            data = read_chunk(self._target, tp, position, READ_COMMITTED)
            if data.records is None:
                break
            chunk = fingerprints(data.records, position, data.aborted)
            parts.append(chunk.prints)
            if not chunk.is_sound or chunk.next_offset == position:
                break
            position = chunk.next_offset
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise ClusterError(f"Comparing source and target took more than {_LONGEST_COMPARISON_S:.0f} s.")

    def _source_offset_at(self, partition: PartitionSpec, offset: int, end: int, already_there: int) -> SourceOffset:
        """Return the source offset that a crash kept from being committed.

        The leader epochs of what was found are not known, and need not be: it was compared with the current log.
        """
        before = partition.source_offsets
        if before is None or before.target_end is None:
            return SourceOffset(partition.tp, offset, end)
        # Only if nothing but our records was written since, and none was left out, the run continues.
        is_in_run = before.run_count and already_there == offset - before.offset == end - before.target_end
        return SourceOffset(
            partition.tp, offset, end, before.topic_id, before.run_count + already_there if is_in_run else 0
        )


class ResumeLookup:
    """Finds the resume points of partitions that are assigned while a task copies.

    If a cluster is unavailable, the partitions wait and the lookup is tried again; the others are copied meanwhile.
    """

    def __init__(self, spec: TaskSpec, events: TaskEvents) -> None:
        self.issue: str | None = None
        self._spec = spec
        self._events = events
        self._wanted: dict[TopicPartition, PartitionSpec] = {}
        self._running: Future[list[ResumePoint]] | None = None
        self._asked: tuple[PartitionSpec, ...] = ()
        self._not_before = 0.0

    @property
    def is_idle(self) -> bool:
        """Return whether no partition waits for its resume point."""
        return not self._wanted

    def follow(self, assigned: Iterable[PartitionSpec]) -> None:
        """Look up these partitions, and no longer any other."""
        self._wanted = {partition.tp: self._wanted.get(partition.tp, partition) for partition in assigned}
        if not self._wanted:
            self.issue = None

    def take(self, now: float) -> list[ResumePoint]:
        """Return the resume points that were found since the last call; start the next lookup when it is due."""
        found: list[ResumePoint] = []
        if self._running is not None and self._running.done():
            found = self._finish(self._running, now)
            self._running = None
        if self._running is None and self._wanted and now >= self._not_before:
            self._asked = tuple(self._wanted.values())
            self._running = in_background(partial(resume_points, self._spec, self._asked, self._events))
        return found

    def _finish(self, lookup: Future[list[ResumePoint]], now: float) -> list[ResumePoint]:
        # A partition that was taken away meanwhile is not wanted; one that was given back is another specification.
        still_wanted = [self._wanted.get(asked.tp) is asked for asked in self._asked]
        try:
            points = lookup.result()
        except ClusterError as error:
            if not any(still_wanted):
                return []
            self.issue = f"{counted(len(self._wanted), 'partition')} assigned later must wait: {error}"
            self._not_before = now + _RETRY_PAUSE_S
            return []
        self.issue = None
        found = [point for point, is_wanted in zip(points, still_wanted, strict=True) if is_wanted]
        for point in found:
            del self._wanted[point.spec.tp]
        return found
