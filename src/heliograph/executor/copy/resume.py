"""The resume point of each partition that is assigned to a task, so that a crash repeats nothing.

With exactly-once the committed source offsets are the truth, read after our predecessor was fenced. Without it, a task
that was killed has written more than it could commit: the records on the target after the last committed one are
compared, one by one, with those that follow on the source, and the copy resumes after the last one that the target
has already ("tail resume"). Records of other producers in between are passed over.

A remote topic that is missing, or has another id than when the source offset was committed, was deleted with all that
was copied to it: `TargetLogs` reports the loss and decides by `heliograph.on.target.deleted`.

The partitions of a task's start and those that are assigned later get their resume points here, in a thread of its own:
the task keeps its lease meanwhile, and continues to copy its other partitions. A start waits for no topic that is
missing: its partitions are looked up as if they were assigned later.

Invariants:
A. A record is passed over only if one of the same timestamp, key, value and headers was found on the target, in order.
B. If anything is not known for sure, the committed offset counts: repeated rather than lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from heliograph.errors import ClusterError
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.executor.copy.background import in_background
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from heliograph.kafka.request_options import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED
from heliograph.kafka.topics.topic_reader import read_chunk
from heliograph.model import SourceOffset, TargetLog, counted
from heliograph.status.losses import LossCause
from heliograph.wire.batches.fingerprint import fingerprints, match_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from uuid import UUID

    from heliograph.executor.contract.task_report import TaskEvents
    from heliograph.executor.contract.task_spec import PartitionSpec, TaskSpec
    from heliograph.kafka.admin.admin import ClusterView
    from heliograph.kafka.security.connection_spec import ClusterSpec
    from heliograph.model import TopicPartition
    from heliograph.wire.batches.kernel_bytes import Table


# Beyond these limits, comparing takes longer than copying again is worth.
_MOST_COMPARED_RECORDS = 10_000_000  # of a partition
_LONGEST_COMPARISON_S = 60.0  # of a task
_RETRY_PAUSE_S = 5.0
_MISSING_TOPIC_TIMEOUT_S = 10.0  # a broker that has just started may not know all topics yet
_CONFIRM_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A partition with the source offsets to resume after.

    `resumed_after` is set if that is not what was committed: the target had more records, or a log has changed.
    `target_end` is the end of the target's log, `target_id` the id of the remote topic, as far as known; `failure` is
    why the partition must not be copied, `lacks_from` where what the target lost begins then.
    """

    spec: PartitionSpec
    resumed_after: int | None = None
    target_end: int | None = None
    already_there: int = 0
    target_id: UUID | None = None
    failure: str | None = None
    lacks_from: int | None = None


def resume_points(
    spec: TaskSpec, partitions: tuple[PartitionSpec, ...], events: TaskEvents, *, waits: bool = True
) -> list[ResumePoint]:
    """Return the resume point of each partition, in the order given. Blocks.

    Unless it `waits`, partitions whose remote topic seems to be deleted, which takes long to decide, are left out.
    """
    if not partitions:
        return []
    source, target = _admin(spec.source, spec), _admin(spec.target, spec)  # neither connects before it is asked
    try:
        if spec.transactional_id is not None:
            source_offsets = read_offsets(target, spec.offsets_topic, spec.connector, spec.flow.source)
            partitions = tuple(replace(p, source_offsets=source_offsets.get(p.tp)) for p in partitions)
        logs = TargetLogs(spec, source, target, events)
        checked = logs.check(partitions if waits else logs.present(partitions))
        if spec.transactional_id is not None:
            points = [ResumePoint(each.spec) for each in checked]
        else:
            points = _Comparison(spec, source, target, events).resume_points(tuple(each.spec for each in checked))
        return [_with_check(point, each) for point, each in zip(points, checked, strict=True)]
    finally:
        source.close()
        target.close()


def _with_check(point: ResumePoint, checked: CheckedPartition) -> ResumePoint:
    resumed_after, known = point.resumed_after, checked.spec.source_offsets
    if resumed_after is None and checked.is_changed and known is not None:
        resumed_after = known.offset
    return replace(
        point,
        resumed_after=resumed_after,
        target_id=checked.target_id,
        failure=checked.failure,
        lacks_from=checked.lacks_from,
    )


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
        comparable = [p for p in partitions if p.is_moved or _is_comparable(p)]
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
        if partition.is_moved:
            return as_committed
        known_end = (
            starts.get(partition.target, end)
            if partition.source_offsets is None
            else partition.source_offsets.target_end
        )
        assert known_end is not None
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
        first = max(0, offset + 1 - already_there)
        log = TargetLog(None, first) if before is None else before.target_log
        if log is not None:
            log = log._replace(records=log.records + already_there)
        if before is None or before.target_end is None:
            return SourceOffset(partition.tp, offset, end, target_log=log)
        # Only if nothing but our records was written since, and none was left out, the run continues.
        is_in_run = before.run_count and already_there == offset - before.offset == end - before.target_end
        run_count = before.run_count + already_there if is_in_run else 0
        return SourceOffset(partition.tp, offset, end, before.topic_id, run_count, target_log=log)


class CheckedPartition(NamedTuple):
    """A partition as it resumes: `is_changed` if its source offset is not the committed one, `failure` if it stops."""

    spec: PartitionSpec
    target_id: UUID | None = None
    is_changed: bool = False
    failure: str | None = None
    lacks_from: int | None = None


class TargetLogs:
    """Compares the target's logs with what was committed about them; decides by `heliograph.on.target.deleted`.

    Every start of a task asks, also after a change that the task itself has noticed. A loss is reported here and
    nowhere else, and the source offset that follows from the decision is committed at once.
    """

    def __init__(self, spec: TaskSpec, source: Admin, target: Admin, events: TaskEvents) -> None:
        self._spec = spec
        self._source = source
        self._target = target
        self._events = events

    def present(self, partitions: tuple[PartitionSpec, ...]) -> tuple[PartitionSpec, ...]:
        """Return the partitions whose remote topic is not missing after records were written to it. Blocks."""
        view = self._target.view({partition.remote_topic for partition in partitions})
        return tuple(p for p in partitions if p.remote_topic in view.topic_ids or not _has_lost_topic(p, view))

    def check(self, partitions: tuple[PartitionSpec, ...]) -> list[CheckedPartition]:
        """Return each partition as it resumes, in the order given. Blocks."""
        view = self._settled_view(partitions)
        written = [p for p in partitions if p.source_offsets is not None and p.source_offsets.target_end is not None]
        ends = self._ends(written)
        deleted = {p.tp for p in partitions if self._is_deleted(p, view, ends)}
        starts: dict[TopicPartition, int] = {}
        recopied = sorted(p.tp for p in partitions if p.tp in deleted and p.actions.target_deleted == "recopy")
        if recopied:
            starts = self._source.known_offsets(recopied, EARLIEST)
        checked = []
        for partition in partitions:
            topic_id = view.topic_ids.get(partition.remote_topic)
            if partition.tp in deleted:
                checked.append(self._decide(partition, topic_id, starts.get(partition.tp, 0)))
            else:
                checked.append(self._check_end(partition, topic_id, ends.get(partition.target)))
        return checked

    def _ends(self, written: Sequence[PartitionSpec]) -> dict[TopicPartition, int]:
        """Return the ends of the target's logs, as far as known; of a log that went back, the offset of the cut."""
        ends = self._target.known_offsets([p.target for p in written], LATEST) if written else {}
        for partition in written:
            log = partition.source_offsets.target_log if partition.source_offsets is not None else None
            if log is not None and log.cut_at is not None:
                ends[partition.target] = min(log.cut_at, ends.get(partition.target, log.cut_at))
        return ends

    def _settled_view(self, partitions: tuple[PartitionSpec, ...]) -> ClusterView:
        """Return the metadata of the remote topics; what would be a loss is looked at again, since a broker may not
        know a topic yet, or not know yet that it is another one.
        """
        topics = {partition.remote_topic for partition in partitions}
        deadline = time.monotonic() + _MISSING_TOPIC_TIMEOUT_S
        before: dict[str, UUID | None] = {}
        while True:
            view = self._target.view(topics)
            suspects = {
                p.remote_topic: view.topic_ids.get(p.remote_topic) for p in partitions if _has_lost_topic(p, view)
            }
            is_waiting = None in suspects.values() and time.monotonic() < deadline
            if not suspects or (suspects == before and not is_waiting):
                return view
            before = suspects
            time.sleep(_CONFIRM_PAUSE_S)

    def _is_deleted(self, partition: PartitionSpec, view: ClusterView, ends: Mapping[TopicPartition, int]) -> bool:
        if _has_lost_topic(partition, view):
            return True
        known, end = partition.source_offsets, ends.get(partition.target)
        if known is None or known.target_end is None or end is None or end >= known.target_end:
            return False
        has_ids = known.target_log is not None and known.target_log.topic_id is not None
        is_same = has_ids and partition.remote_topic in view.topic_ids
        return end == 0 and not is_same  # without ids, an empty log is the sign of a topic that was created again

    def _decide(self, partition: PartitionSpec, topic_id: UUID | None, earliest: int) -> CheckedPartition:
        known = partition.source_offsets
        assert known is not None
        log = known.target_log or TargetLog(None, 0, known.target_end or 0, is_exact=False)
        first = log.first_offset if known.target_log is not None else None
        offsets = (first, None if partition.is_moved else known.offset)
        self._events.lose(
            partition.tp, LossCause.TARGET_DELETED, offsets, log.records, log.topic_id, is_exact=log.is_exact
        )
        number = counted(log.records, "record")
        up_to = "" if partition.is_moved else f", up to offset {known.offset} of the source,"
        gone = (
            f"the remote topic {partition.remote_topic} was deleted on the target:"
            f" {number if log.is_exact else f'about {number}'} that had been copied{up_to} are gone"
        )
        continued = replace(known, target_end=0, run_count=0, target_log=TargetLog(topic_id, max(0, known.offset + 1)))
        if partition.is_moved:  # a user has decided
            self._events.error(f"{gone}; continuing at offset {known.offset + 1}, as requested.", partition.tp)
            return CheckedPartition(replace(partition, source_offsets=continued), topic_id, is_changed=True)
        action = partition.actions.target_deleted
        key = f"heliograph.on.target.deleted={action}"
        if action == "fail":
            failure = f"{gone}, and {key}; recopy would copy again what the source still has"
            return CheckedPartition(partition, topic_id, failure=failure, lacks_from=first)
        if action == "continue":
            self._events.error(f"{gone}; continuing after offset {known.offset} ({key}).", partition.tp)
            new = continued
        else:
            self._events.error(
                f"{gone}; copying again what the source still has, from offset {earliest} on ({key}).", partition.tp
            )
            target_log = TargetLog(topic_id, earliest)
            new = SourceOffset(partition.tp, earliest - 1, 0, known.topic_id, target_log=target_log)
        return CheckedPartition(replace(partition, source_offsets=new), topic_id, is_changed=True)

    def _check_end(self, partition: PartitionSpec, topic_id: UUID | None, end: int | None) -> CheckedPartition:
        """Notice a log of the target that ends before what it has acknowledged, as after an unclean election."""
        known = partition.source_offsets
        if known is None or known.target_end is None or end is None or end >= known.target_end:
            return CheckedPartition(partition, topic_id)
        log = known.target_log
        if log is None or log.records:  # or what is gone was written by others
            log = self._lose_end(partition, known, topic_id, known.target_end - end)
        log = None if log is None else log._replace(cut_at=None)
        shorter = replace(known, target_end=end, run_count=0, target_log=log)
        return CheckedPartition(replace(partition, source_offsets=shorter), topic_id, is_changed=True)

    def _lose_end(
        self, partition: PartitionSpec, known: SourceOffset, topic_id: UUID | None, count: int
    ) -> TargetLog | None:
        """Report that the last records of a log of the target are gone; return what is left of ours."""
        assert known.target_end is not None
        self._events.error(
            f"the target's log was cut at offset {known.target_end - count}, but {known.target_end} was acknowledged:"
            " it has lost records.",
            partition.tp,
        )
        first = known.offset + 1 - count if count <= known.run_count else None
        # In transactions some of the offsets are of markers.
        is_exact = self._spec.transactional_id is None
        self._events.lose(partition.tp, LossCause.TARGET_CUT, (first, known.offset), count, topic_id, is_exact=is_exact)
        log = known.target_log
        return None if log is None else log._replace(records=max(0, log.records - count))


def _has_lost_topic(partition: PartitionSpec, view: ClusterView) -> bool:
    """Return whether the topic that a partition's records were written to does not exist, or has another id."""
    known, topic = partition.source_offsets, partition.remote_topic
    log = None if known is None else known.target_log
    if known is None or not (log.records if log is not None else known.target_end):
        return False
    if view.error_codes.get(topic) == UNKNOWN_TOPIC_OR_PARTITION:
        return True
    topic_id = view.topic_ids.get(topic)
    return log is not None and None not in (log.topic_id, topic_id) and log.topic_id != topic_id


def _is_comparable(partition: PartitionSpec) -> bool:
    if partition.source_offsets is None:
        return not partition.is_reset
    return partition.source_offsets.target_end is not None


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
        before = self._wanted
        self._wanted = {}
        for partition in assigned:
            known = before.get(partition.tp, partition)
            is_same = (known.opening, known.actions) == (partition.opening, partition.actions)
            self._wanted[partition.tp] = known if is_same else partition
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
