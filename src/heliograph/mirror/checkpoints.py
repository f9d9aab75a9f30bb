"""Stand-in until merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.model import Checkpoint, CommittedOffset, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.mirror.topics import TopicRules


def remote_partition(rules: TopicRules, tp: TopicPartition) -> TopicPartition:
    """x."""
    return TopicPartition(rules.remote_topic(tp.topic), tp.partition)


def next_checkpoint(
    previous: Checkpoint | None, group: str, tp: TopicPartition, upstream: int, downstream: int, metadata: str
) -> Checkpoint | None:
    """x."""
    if previous is not None and upstream >= previous.upstream and downstream <= previous.downstream:
        return None
    return Checkpoint(group, tp, upstream, downstream, metadata)


def plan_group_sync(
    checkpoints: Iterable[Checkpoint], committed: Mapping[TopicPartition, CommittedOffset], state: str
) -> dict[TopicPartition, CommittedOffset]:
    """x."""
    if state not in ("Dead", "Empty"):
        return {}
    return {
        c.tp: CommittedOffset(c.downstream, c.metadata)
        for c in checkpoints
        if c.tp not in committed or committed[c.tp].offset < c.downstream
    }
