"""What to do where the target is not what it was: a topic deleted while batches of it are under way.

A batch that a broker may have seen waits for its topic. As a rule that hurts nobody: it is told as trouble, the others
go on, and the next look at topics makes the topic again. But with exactly-once the transaction cannot end without that
batch, and nobody makes a topic again that the flow does not copy any more; a copy of what is there now would not end.

Invariant: what is given up is not counted as copied. A next start begins with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.engine.copy_partition import CopyPartition
    from heliograph.engine.spec import TaskSpec
    from heliograph.kafka.cluster import Cluster
    from heliograph.kafka.producer import BatchProducer
    from heliograph.model import TopicPartition

_PATIENCE_S = 10.0  # a broker that has just started may not know yet what there is


class TargetChanges:
    """Looks for partitions that wait for a topic in vain."""

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
        """Give up what is under way of topics that have been gone for long, where somebody waits for it."""
        gone = {topic for topic, since in self._target.missing_since.items() if now - since >= _PATIENCE_S}
        for partition in partitions if gone else ():
            topic = partition.spec.target.topic
            is_awaited = self._is_transactional or partition.stop_offset is not None or partition.spec.tp in departed
            if topic in gone and is_awaited:
                why = f"the target has no topic {topic} any more"
                self._producer.give_up(partition.spec.target, why)
                if partition.stop_offset is not None and not partition.is_over and not partition.target.sent:
                    self._fail(partition, why)  # nothing of it has left, and nobody makes the topic again
