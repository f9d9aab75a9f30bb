"""Decides when a checkpoint is due, and of which partitions on source and target it is.

A *checkpoint* holds the offset up to which a group has read a source partition, and its translation on the target. The
rules are MM2's, but for one: a topic that was copied from the target has the name that it had there (MM2 uses the name
on the cluster where it was first written). `group_moves` decides which offsets of groups follow the checkpoints.

Invariants: while a group only moves forward its checkpoints never go back, as long as the target's log is the same; a
checkpoint that is known to point past an unread record is replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.model import Checkpoint, CommittedOffset, GroupType, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from heliograph.mirror.groups.offset_map import OffsetMap, Translator
    from heliograph.mirror.topics.topic_rules import TopicRules


def remote_partition(rules: TopicRules, tp: TopicPartition) -> TopicPartition:
    """Return the partition on the target for one of the source; a copy of a topic of the target is that topic."""
    if rules.policy.topic_source(tp.topic) == rules.target:
        own_topic = rules.policy.upstream_topic(tp.topic)
        if own_topic is not None:
            return TopicPartition(own_topic, tp.partition)
    return TopicPartition(rules.remote_topic(tp.topic), tp.partition)


def source_partition(rules: TopicRules, remote_tp: TopicPartition) -> TopicPartition:
    """Return the partition on the source for one of the target: the inverse of `remote_partition`."""
    policy = rules.policy
    upstream = policy.upstream_topic(remote_tp.topic) if policy.topic_source(remote_tp.topic) == rules.source else None
    topic = policy.format_remote_topic(rules.target, remote_tp.topic) if upstream is None else upstream
    return TopicPartition(topic, remote_tp.partition)


def original_partition(
    rules: TopicRules, tp: TopicPartition, reverse: TopicRules | None = None
) -> TopicPartition | None:
    """Return the partition of the target that `tp` on the source is a copy of; None if the name does not prove that.

    `reverse` are the rules of the reverse flow, which made the copy; without them the flow's own policy is asked.
    """
    policy = (rules if reverse is None else reverse).policy
    if policy.topic_source(tp.topic) != rules.target or not policy.proves_copy(tp.topic):
        return None
    upstream = policy.upstream_topic(tp.topic)
    return None if upstream is None else TopicPartition(upstream, tp.partition)


def next_checkpoint(
    previous: Checkpoint | None,
    group: str,
    remote_tp: TopicPartition,
    upstream: int,
    downstream: int | None,
    metadata: str = "",
) -> Checkpoint | None:
    """Return the checkpoint that is due: the first, or if the group went back on the source or forward on the target.

    `downstream` is the translation of `upstream`; if there is none (None or negative), none is due.
    """
    if downstream is None or downstream < 0:
        return None
    is_due = previous is None or upstream < previous.upstream or downstream > previous.downstream
    return Checkpoint(group, remote_tp, upstream, downstream, metadata) if is_due else None


def is_of_another_log(checkpoint: Checkpoint, log_id: UUID | None) -> bool:
    """Return whether a checkpoint is known to be of an earlier topic than the one with this id."""
    return None not in (checkpoint.log_id, log_id) and checkpoint.log_id != log_id


def latest_checkpoints(checkpoints: Iterable[Checkpoint]) -> dict[str, dict[TopicPartition, Checkpoint]]:
    """Return the last checkpoint of each group and partition, of checkpoints in the order of their topic."""
    latest: dict[str, dict[TopicPartition, Checkpoint]] = {}
    for checkpoint in checkpoints:
        latest.setdefault(checkpoint.group, {})[checkpoint.tp] = checkpoint
    return latest


class WrittenCheckpoints:
    """The last checkpoint of each group and partition in the checkpoints topic.

    A checkpoint is *void* if it points into an earlier log of the target: the topic was deleted and copied again. It
    stays in the topic until another is written, which may have a smaller offset.
    """

    def __init__(self, checkpoints: Iterable[Checkpoint] = ()) -> None:
        self._latest = latest_checkpoints(checkpoints)
        self._void: set[tuple[str, TopicPartition]] = set()

    def of(self, group: str) -> dict[TopicPartition, Checkpoint]:
        """Return a group's checkpoints that are not void, by the partition on the target."""
        return {tp: found for tp, found in self._latest.get(group, {}).items() if (group, tp) not in self._void}

    def has(self, group: str, tp: TopicPartition) -> bool:
        """Return whether a group has a checkpoint of a partition, void or not."""
        return tp in self._latest.get(group, {})

    def add(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint that has been written."""
        self._latest.setdefault(checkpoint.group, {})[checkpoint.tp] = checkpoint
        self._void.discard((checkpoint.group, checkpoint.tp))

    def log_replaced(self, remote_tp: TopicPartition) -> None:
        """Make the checkpoints of a remote partition void: its log was replaced."""
        self._void |= {(group, remote_tp) for group, written in self._latest.items() if remote_tp in written}

    def due(
        self, known: Translator, group: str, tp: TopicPartition, remote_tp: TopicPartition, committed: CommittedOffset
    ) -> Checkpoint | None:
        """Return the checkpoint to write for a group's committed offset in `tp` on the source, or None."""
        previous = self._latest.get(group, {}).get(remote_tp)
        downstream = known.translate(tp, committed.offset)
        log_id = known.log_of(tp)
        if previous is not None and (
            is_of_another_log(previous, log_id) or known.contradicts(tp, previous.upstream, previous.downstream)
        ):
            self._void.add((group, remote_tp))
            downstream = max(downstream or 0, 0)  # it must be replaced, and the start of the log skips nothing
        if (group, remote_tp) in self._void:
            previous = None
        due = next_checkpoint(previous, group, remote_tp, committed.offset, downstream, committed.metadata)
        return None if due is None else due._replace(log_id=log_id)


def name_clash(type_: GroupType, type_there: GroupType | None, alias: str) -> str | None:
    """Return why a group cannot move to a cluster that has a group of another type with its name; None if it can."""
    if type_there in (None, type_):
        return None
    return (
        f"'{alias}' has a {type_there} group of this name, and this is a {type_} group; delete that one with"
        f" kafka-{type_there}-groups.sh, or give one of the two another name"
    )


def share_positions(
    known: OffsetMap, rules: TopicRules, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> list[Checkpoint]:
    """Return where a share group resumes on the target.

    Never written as checkpoints: Java MM2 would commit them to a consumer group of that name, and then the share group
    could not exist.
    """
    translated = (
        next_checkpoint(None, group, remote_partition(rules, tp), start.offset, known.translate(tp, start.offset))
        for tp, start in offsets.items()
        if rules.replicates(tp.topic)
    )
    return [position for position in translated if position is not None]
