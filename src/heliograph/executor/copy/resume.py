"""Where each partition of a beginning task goes on, so that a crash repeats nothing.

With exactly-once the committed offsets are the truth, read after our predecessor was fenced. Without it, a task that
was killed has written more than it could commit: what stands on the target behind the last committed record is
compared, record by record, with what follows that record on the source, and the copy goes on behind the last one that
is there already ("tail resume"). Others' records in between do not disturb.

Invariants:
A. A record is passed over only if one of the same timestamp, key, value and headers was found on the target, in order.
B. Where anything cannot be known for sure, the committed offset counts: repeated rather than lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from heliograph.errors import ClusterError
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.request_options import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED
from heliograph.kafka.topics.topic_reader import read_chunk
from heliograph.model import SourceOffset
from heliograph.wire.batches.fingerprint import fingerprints, match_in_order

if TYPE_CHECKING:
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.executor.copy.task_events import TaskEvents
    from heliograph.kafka.security.connection_spec import ClusterSpec
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.kernel_bytes import Table


# Behind these limits, comparing takes longer than copying again is worth.
_MOST_COMPARED_RECORDS = 10_000_000  # of a partition
_LONGEST_COMPARISON_S = 60.0  # of a task


@dataclass(frozen=True, slots=True)
class Placed:
    """A partition and where it goes on: behind `resumed_behind` where the target was found to have more than committed.

    `target_end` is how long the target's log was, as far as known.
    """

    spec: PartitionSpec
    resumed_behind: int | None = None
    target_end: int | None = None
    already_there: int = 0


def placed_partitions(spec: TaskSpec, events: TaskEvents) -> list[Placed]:
    """The task's partitions, each with the place to go on. Blocks."""
    if not spec.partitions:
        return []
    target = _admin(spec.target, spec)
    try:
        if spec.transactional_id is not None:
            source_offsets = read_offsets(target, spec.offsets_topic, spec.connector, spec.flow.source)
            return [
                Placed(replace(partition, source_offsets=source_offsets.get(partition.tp)))
                for partition in spec.partitions
            ]
        source = _admin(spec.source, spec)
        try:
            return _Comparison(spec, source, target, events).placed()
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
    """Looks at the ends of the target's logs, and at their tails where they are longer than we committed."""

    def __init__(self, spec: TaskSpec, source: Admin, target: Admin, events: TaskEvents) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._events = events
        self._deadline = time.monotonic() + _LONGEST_COMPARISON_S

    def placed(self) -> list[Placed]:
        """Every partition, in the order given."""
        comparable = [
            p
            for p in self._spec.partitions
            if (not p.is_reset if p.source_offsets is None else p.source_offsets.target_end is not None)
        ]
        # A partition without a leader is not compared; it must not keep the others from beginning.
        ends = self._target.known_offsets([p.target for p in comparable], LATEST)
        fresh = [p.target for p in comparable if p.source_offsets is None and ends.get(p.target, 0) > 0]
        starts = self._target.known_offsets(fresh, EARLIEST)
        return [self._place(partition, starts, ends) for partition in self._spec.partitions]

    def _place(
        self, partition: PartitionSpec, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> Placed:
        end = ends.get(partition.target)
        if end is None:
            return Placed(partition)
        as_committed = Placed(partition, target_end=end)
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

    def _compare(self, partition: PartitionSpec, known_end: int, end: int) -> Placed | None:
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
        resumed = replace(partition, source_offsets=self._progress_at(partition, last_there, end, already_there))
        return Placed(resumed, last_there, end, already_there)

    def _target_tail(self, tp: TopicPartition, position: int, end: int) -> Table:
        parts = []
        while position < end:
            self._check_time()
            # What a transaction aborted, or has not committed, is not there: an earlier run may have been exactly-once.
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

    def _progress_at(self, partition: PartitionSpec, offset: int, end: int, already_there: int) -> SourceOffset:
        """The progress a crash kept from being committed.

        The leaders' epochs of what was found are not known, and need not be: it was compared with the log of now.
        """
        before = partition.source_offsets
        if before is None or before.target_end is None:
            return SourceOffset(partition.tp, offset, end)
        # Only if nothing but our records was written since, and none was left out, does the run go on.
        is_in_run = before.run_count and already_there == offset - before.offset == end - before.target_end
        return SourceOffset(
            partition.tp, offset, end, before.topic_id, before.run_count + already_there if is_in_run else 0
        )
