"""Decides about logs that changed: records gone from the source, a log cut, a topic created again or deleted.

If a topic is deleted on the target, a batch that a broker may have received waits for the topic. Usually that is
harmless: it is reported as an issue, the others continue, and the next refresh of topics creates the topic again. But
with exactly-once the transaction cannot end without that batch, nobody creates a topic that the flow no longer copies,
and with `--once` the copy would not end. In these cases the batch is given up.

Invariant: what is given up is not counted as copied. The next start begins with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.errors import TaskError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.executor.contract.task_report import TaskEvents
    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.executor.copy.copy_partition import CopyPartition
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.net.cluster import Cluster
    from heliograph.kafka.produce.producer import BatchProducer
    from heliograph.model import TopicPartition


_MISSING_TOPIC_TIMEOUT_S = 10.0  # a broker that has just started may not know all topics yet


class SourceChanges:
    """Decides by `heliograph.on.truncation` and `heliograph.on.recreated`, and reports each decision as an event."""

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
            if not self.accepts_recreated(partition, change):
                return None
            fetched.topic_id = None  # the id in the next metadata is the new topic's
            self._source.want_metadata()
            return earliest
        return position

    def _accepts_loss(self, partition: CopyPartition, position: int, earliest: int) -> bool:
        lost = earliest - position
        change = f"offsets {position} to {earliest - 1} are gone from the source before they were copied ({lost} lost)"
        if self._spec.on_truncation == "fail":
            self._fail(partition, f"{change}, and heliograph.on.truncation=fail")
            return False
        partition.counters.lost_offsets += lost
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
        if self._spec.on_truncation == "fail":
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

    def accepts_recreated(self, partition: CopyPartition, change: str) -> bool:
        """Return whether to copy the new topic from its start."""
        if not partition.target.is_idle:
            # Batches in flight are of the old topic; their acknowledgements must not count for the new one.
            raise TaskError(f"{partition.spec.tp}: {change}; the task begins again.")
        if self._spec.on_recreated != "restart":
            self._fail(
                partition,
                f"{change}: it was deleted and created again, or truncated. Nothing was copied from the new one;"
                " heliograph.on.recreated=restart would copy it from its start",
            )
            return False
        partition.acked_offset = partition.passed_offset = None
        partition.epochs.clear()
        self._events.warn(
            f"{change}: it was deleted and created again, or truncated; copying it from its start, after what the"
            " target has.",
            partition.spec.tp,
        )
        return True


class TargetChanges:
    """Gives up batches that wait for a topic which the target no longer has."""

    def __init__(
        self, spec: TaskSpec, target: Cluster, producer: BatchProducer, fail: Callable[[CopyPartition, str], None]
    ) -> None:
        self._is_transactional = spec.transactional_id is not None
        self._target = target
        self._producer = producer
        self._fail = fail

    def look(
        self, now: float, partitions: Iterable[CopyPartition], departed: Mapping[TopicPartition, CopyPartition]
    ) -> None:
        """Give up the sent batches of topics that have been missing for long, if the task cannot end without them."""
        gone = {topic for topic, since in self._target.missing_since.items() if now - since >= _MISSING_TOPIC_TIMEOUT_S}
        for partition in partitions if gone else ():
            topic = partition.spec.target.topic
            is_awaited = self._is_transactional or partition.stop_offset is not None or partition.spec.tp in departed
            if topic in gone and is_awaited:
                why = f"the target has no topic {topic} any more"
                self._producer.give_up(partition.spec.target, why)
                if partition.stop_offset is not None and not partition.is_over and not partition.target.sent:
                    self._fail(partition, why)  # nothing of it was sent, and nobody creates the topic again
