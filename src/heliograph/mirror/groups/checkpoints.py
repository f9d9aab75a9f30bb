"""When a checkpoint is due, what it is about, and which offsets of a group on the target may follow it.

A *checkpoint* says: this group has read the source up to here, which on the target is there. MM2's rules, but for two
in which ours are stricter: the name of a topic that came from the target is the one it had there (MM2 takes the name
of its very beginning), and a group on the target is moved only where it has no members, and only forward (MM2 also
tries groups it knows nothing of, and leaves it to the broker to refuse).

Invariants: while a group only goes forward its checkpoints never go back, whatever translation says, as long as the
target's log is the same; a checkpoint that is known to point past an unread record is replaced; a group's offset on the
target is never set to a smaller one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.model import Checkpoint, CommittedOffset, GroupType, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.mirror.groups.offset_map import OffsetMap
    from heliograph.mirror.topics.topic_rules import TopicRules


def remote_partition(rules: TopicRules, tp: TopicPartition) -> TopicPartition:
    """Where a partition of the flow's source is on its target; what came from the target has its old name there."""
    if rules.policy.topic_source(tp.topic) == rules.target:
        home = rules.policy.upstream_topic(tp.topic)
        if home is not None:
            return TopicPartition(home, tp.partition)
    return TopicPartition(rules.remote_topic(tp.topic), tp.partition)


def source_partition(rules: TopicRules, remote_tp: TopicPartition) -> TopicPartition:
    """The partition of the flow's source that `remote_partition` gives this name on the target."""
    policy = rules.policy
    upstream = policy.upstream_topic(remote_tp.topic) if policy.topic_source(remote_tp.topic) == rules.source else None
    topic = policy.format_remote_topic(rules.target, remote_tp.topic) if upstream is None else upstream
    return TopicPartition(topic, remote_tp.partition)


def next_checkpoint(
    previous: Checkpoint | None,
    group: str,
    remote_tp: TopicPartition,
    upstream: int,
    downstream: int | None,
    metadata: str = "",
) -> Checkpoint | None:
    """The checkpoint that is due now: a first one, or the group went back at the source, or on at the target.

    `downstream` is the translation of `upstream`: None or negative where there is none, and then none is due.
    """
    if downstream is None or downstream < 0:
        return None
    is_due = previous is None or upstream < previous.upstream or downstream > previous.downstream
    return Checkpoint(group, remote_tp, upstream, downstream, metadata) if is_due else None


def latest_checkpoints(checkpoints: Iterable[Checkpoint]) -> dict[str, dict[TopicPartition, Checkpoint]]:
    """Of checkpoints in the order of their topic, the last of each group and partition."""
    latest: dict[str, dict[TopicPartition, Checkpoint]] = {}
    for checkpoint in checkpoints:
        latest.setdefault(checkpoint.group, {})[checkpoint.tp] = checkpoint
    return latest


class WrittenCheckpoints:
    """The last checkpoint of each group and partition, as their topic has it.

    A checkpoint is *void* where it points into a log of the target that is gone: the topic was deleted and copied anew.
    It stays in the topic until another is written, which need not be behind it.
    """

    def __init__(self, checkpoints: Iterable[Checkpoint] = ()) -> None:
        self._latest = latest_checkpoints(checkpoints)
        self._void: set[tuple[str, TopicPartition]] = set()

    def of(self, group: str) -> dict[TopicPartition, Checkpoint]:
        """A group's checkpoints that are not void, by the partition on the target."""
        return {tp: found for tp, found in self._latest.get(group, {}).items() if (group, tp) not in self._void}

    def add(self, checkpoint: Checkpoint) -> None:
        """A checkpoint has been written."""
        self._latest.setdefault(checkpoint.group, {})[checkpoint.tp] = checkpoint
        self._void.discard((checkpoint.group, checkpoint.tp))

    def log_begun_anew(self, remote_tp: TopicPartition) -> None:
        """The log of a remote partition is another: its checkpoints are void."""
        self._void |= {(group, remote_tp) for group, written in self._latest.items() if remote_tp in written}

    def due(
        self, known: OffsetMap, group: str, tp: TopicPartition, remote_tp: TopicPartition, committed: CommittedOffset
    ) -> Checkpoint | None:
        """The checkpoint to write for what a group has committed in `tp` at the source, or None."""
        previous = self._latest.get(group, {}).get(remote_tp)
        downstream = known.translate(tp, committed.offset)
        if previous is not None and known.contradicts(tp, previous.upstream, previous.downstream):
            self._void.add((group, remote_tp))
            downstream = max(downstream or 0, 0)  # it must be replaced, and the log's beginning passes nothing
        if (group, remote_tp) in self._void:
            previous = None
        return next_checkpoint(previous, group, remote_tp, committed.offset, downstream, committed.metadata)


def name_clash(type_: GroupType, there: GroupType | None, alias: str) -> str | None:
    """Why a group cannot move to a cluster where its name is that of a group of another type; None where it can."""
    if there in (None, type_):
        return None
    return (
        f"'{alias}' has a {there} group of this name, and this is a {type_} group; delete that one with"
        f" kafka-{there}-groups.sh, or give one of the two another name"
    )


def share_positions(
    known: OffsetMap, rules: TopicRules, group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> list[Checkpoint]:
    """Where a share group continues on the target.

    Never written as checkpoints: Java MM2 would commit them to a consumer group of that name, and then the share group
    could not be there.
    """
    translated = (
        next_checkpoint(None, group, remote_partition(rules, tp), start.offset, known.translate(tp, start.offset))
        for tp, start in offsets.items()
        if rules.replicates(tp.topic)
    )
    return [place for place in translated if place is not None]
