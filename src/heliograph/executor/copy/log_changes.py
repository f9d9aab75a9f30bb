"""Decides about logs that changed: records gone from the source, a log cut, a topic created again or deleted.

A remote topic that is missing for some time, or has another id than before, was deleted with everything that was copied
to it. `TargetChanges` notices it while the task copies; the decision is made where partitions resume (`resume`).

A batch for a topic that is missing waits for it: it is reported as an issue, the others continue, and the next refresh
of topics creates the topic. But with exactly-once the transaction cannot end without that batch, nobody creates a topic
that the flow no longer copies, and with `--once` the copy would not end. In these cases the batch is given up.

Invariant: what is given up is not counted as copied. The next start begins with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.errors import TaskError
from heliograph.status.losses import LossCause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from heliograph.executor.contract.task_report import TaskEvents
    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.executor.copy.copy_clients import CopyClients
    from heliograph.executor.copy.copy_partition import CopyPartition, CopyPartitions
    from heliograph.executor.copy.offset_commits import CommitSchedule
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.model import TopicPartition


_MISSING_TOPIC_TIMEOUT_S = 10.0  # a broker that has just started may not know all topics yet
_COMMIT_TIMEOUT_S = 20.0
_IDS_INTERVAL_S = 5.0
_IDS_PAUSE_PER_PARTITION_S = 0.005  # the metadata of ten thousand partitions is large


class SourceChanges:
    """Decides by `heliograph.on.truncation` and `heliograph.on.recreated`; reports each change as event and loss."""

    def __init__(
        self,
        spec: TaskSpec,
        source: Cluster,
        fail: Callable[[CopyPartition, str], None],
        events: TaskEvents,
    ) -> None:
        self._spec = spec
        self._source = source
        self._fail = fail
        self._events = events
        self._reported_unchecked: set[TopicPartition] = set()

    def position(self, partition: CopyPartition, fetched: FetchPartition, earliest: int, latest: int) -> int | None:
        """Return the offset to read from in a log with these ends; None if the partition must stop."""
        partition.decide_end(latest)
        position = fetched.position
        if position is None:
            return earliest if self._spec.offset_reset == "earliest" else latest
        if position < earliest:
            return earliest if self._accepts_loss(partition, position, earliest) else None
        if position > latest:
            change = f"the source's log ends at offset {latest}, before our position {position}"
            fetched.topic_id = None  # the id in the next metadata is the new topic's
            if not self.accepts_recreated(partition, None, change):
                return None
            partition.pass_over(earliest - 1)
            self._source.want_metadata()
            return earliest
        return position

    def _accepts_loss(self, partition: CopyPartition, position: int, earliest: int) -> bool:
        lost = earliest - position
        change = f"offsets {position} to {earliest - 1} are gone from the source before they were copied ({lost} lost)"
        self._events.lose(
            partition.spec.tp, LossCause.SOURCE_TRUNCATED, (position, earliest - 1), lost, partition.topic_id
        )
        if partition.actions.truncation == "fail":
            self._fail(partition, f"{change}, and heliograph.on.truncation=fail")
            return False
        partition.counters.lost_offsets += lost
        partition.pass_over(earliest - 1)
        partition.epochs.clear()  # of the record before the new position nothing is known
        self._events.error(
            f"{change}; continuing at {earliest}. Raise its retention or look at the lag.", partition.spec.tp
        )
        return True

    def accepts_cut(self, partition: CopyPartition, fetched: FetchPartition, cut: int) -> bool:
        """Return whether to continue in a log that was cut at an offset, after more of it had been copied."""
        position = fetched.position
        assert position is not None
        if not partition.target.is_idle:
            return False  # or acknowledgements of the old records would count for the new ones
        count = position - cut
        change = (
            f"the source's log was cut at offset {cut}, as by an unclean leader election, after it was copied up to"
            f" {position - 1}: the target has records of offsets {cut} to {position - 1} ({count}) that the source no"
            " longer has"
        )
        self._events.lose(partition.spec.tp, LossCause.SOURCE_CUT, (cut, position - 1), count, partition.topic_id)
        if partition.actions.truncation == "fail":
            partition.lacks_from = cut
            self._fail(partition, f"{change}, and heliograph.on.truncation=fail")
            return False
        partition.counters.cut_offsets += count
        partition.go_back(cut)
        self._events.error(
            f"{change}; continuing at {cut} with what the source has now, after what the target has.", partition.spec.tp
        )
        return True

    def unchecked(self, partition: CopyPartition, why: str) -> None:
        """Report, once for each partition, that a cut would not be noticed."""
        if partition.spec.tp not in self._reported_unchecked:
            self._reported_unchecked.add(partition.spec.tp)
            self._events.warn(
                "the leader has changed, and it cannot be checked whether the new leader's log has all that was copied:"
                f" {why}. This is logged once.",
                partition.spec.tp,
            )

    def accepts_recreated(self, partition: CopyPartition, topic_id: UUID | None, change: str) -> bool:
        """Return whether to copy the new topic, which has this id, from its start."""
        if not partition.target.is_idle:
            # Batches in flight are of the old topic; their acknowledgements must not count for the new one.
            raise TaskError(f"{partition.spec.tp}: {change}; the task begins again.")
        self._lose_uncopied(partition)
        if partition.actions.recreated != "restart":
            partition.lacks_from = 0
            self._fail(
                partition,
                f"{change}: it was deleted and created again, or truncated. Nothing was copied from the new one;"
                " heliograph.on.recreated=restart would copy it from its start",
            )
            return False
        partition.acked_offset = partition.start_offset = None
        # Committed also while the new log is empty: the next start does not find the change again.
        partition.passed_offset, partition.topic_id = -1, topic_id
        partition.epochs.clear()
        self._events.warn(
            f"{change}: it was deleted and created again, or truncated; copying it from its start, after what the"
            " target has.",
            partition.spec.tp,
        )
        return True

    def _lose_uncopied(self, partition: CopyPartition) -> None:
        """Report what the deleted topic is known to have had after our position; it may have grown since."""
        first, end = partition.next_offset, partition.counters.log_end
        known = max(0, end - first) if first is not None and end is not None else 0
        last = end - 1 if known and end is not None else None
        self._events.lose(
            partition.spec.tp, LossCause.SOURCE_RECREATED, (first, last), known, partition.topic_id, is_exact=False
        )


class TargetChanges:
    """Notices that a remote topic is gone, or is another one than before, while its records are copied.

    The decision is made where partitions resume (`TargetLogs`), by the committed offsets, whether a task ran or not. So
    the task commits exactly what the lost log had, and begins again. Batches that wait for a topic to which nothing was
    written yet are given up if the task cannot end without them.
    """

    def __init__(
        self,
        spec: TaskSpec,
        clients: CopyClients,
        schedule: CommitSchedule,
        has_committed: Callable[[Iterable[TopicPartition]], bool],
        fail: Callable[[CopyPartition, str], None],
    ) -> None:
        self._is_transactional = spec.transactional_id is not None
        self._clients = clients
        self._target = clients.target
        self._schedule = schedule
        self._has_committed = has_committed
        self._fail = fail
        self._replaced: dict[TopicPartition, str] = {}
        self._deadline = 0.0
        self._next_ids_at = 0.0

    def look(self, now: float, partitions: CopyPartitions, *, is_stopping: bool) -> None:
        """Act on topics that have changed; raises TaskError when the task is to begin again."""
        if now >= self._next_ids_at:
            self._next_ids_at = now + _IDS_INTERVAL_S + _IDS_PAUSE_PER_PARTITION_S * len(partitions.by_source)
            self._target.want_metadata()
        if not is_stopping:
            self._find_replaced(now, partitions)
            self._begin_again_if_committed(now)
        self._give_up_missing(now, partitions)

    def _find_replaced(self, now: float, partitions: CopyPartitions) -> None:
        for tp, partition in partitions.by_source.items():
            topic = partition.spec.target.topic
            is_missing = topic in self._target.missing_since and partition.log_records > 0
            partition.log_issue = f"the target has no topic {topic} any more" if is_missing else None
            why = None if tp in self._replaced or partition.is_over else self._why_replaced(partition, now)
            if why is None:
                continue
            self._replaced[tp] = why
            self._deadline = self._deadline or now + _COMMIT_TIMEOUT_S
            self._clients.fetcher.remove(tp)
            if not self._is_transactional:  # or it is part of a transaction, which ends with the task
                if not partition.target.is_idle:
                    partition.passed_offset = partition.acked_offset
                self._clients.producer.discard(partition.spec.target, sent_too=True)

    def _why_replaced(self, partition: CopyPartition, now: float) -> str | None:
        topic = partition.spec.target.topic
        topic_id, missing_since = self._target.topic_ids.get(topic), self._target.missing_since.get(topic)
        if partition.log_cut_at is not None:
            return f"the target's log of {partition.spec.target} is another one than before"
        if missing_since is not None:
            is_gone = partition.log_records > 0 and now - missing_since >= _MISSING_TOPIC_TIMEOUT_S
            return f"the target has no topic {topic} any more" if is_gone else None
        if topic_id is None or topic_id == partition.log_id:
            return None
        if partition.log_id is not None and partition.log_records:
            return f"the target's topic {topic} was deleted and created again"
        partition.log_id = topic_id
        return None

    def _begin_again_if_committed(self, now: float) -> None:
        if not self._replaced:
            return
        if self._is_transactional or now >= self._deadline or self._has_committed(self._replaced):
            raise TaskError(f"{next(iter(self._replaced.values()))}; the task begins again.")
        self._schedule.hurry(now)

    def _give_up_missing(self, now: float, partitions: CopyPartitions) -> None:
        """Give up the sent batches of topics that have been missing for long, if the task cannot end without them."""
        gone = {topic for topic, since in self._target.missing_since.items() if now - since >= _MISSING_TOPIC_TIMEOUT_S}
        for partition in list(partitions.by_target.values()) if gone else ():
            topic, tp = partition.spec.target.topic, partition.spec.tp
            has_left = tp in partitions.departed or tp in partitions.closing
            is_awaited = self._is_transactional or partition.stop_offset is not None or has_left
            if topic in gone and is_awaited:
                why = f"the target has no topic {topic} any more"
                self._clients.producer.give_up(partition.spec.target, why)
                if partition.stop_offset is not None and not partition.is_over and not partition.target.sent:
                    self._fail(partition, why)  # nothing of it was sent, and nobody creates the topic again
