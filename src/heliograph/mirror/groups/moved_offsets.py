"""Remembers which offsets on the target group sync has set, and which a consumer of the group has committed there.

A group of the same name may consume on both clusters. Group sync then must not set its offsets on the target: the
consumers there have read no further, and would skip records. So a group with an *own* offset there, one that its
consumers have committed, is left to them until the offset is deleted, or `failover` or `failback` releases it: then the
group has left that cluster.

Kafka does not say who committed an offset, so the rule is (decision 0017):
A. An offset that group sync has set, and that has not changed since, is not own; any other is.
B. An offset with a leader epoch is own: consumers commit it, neither our sync nor Java's does.
C. If it is not known what was set before (Java MM2 did it, or an earlier version), an offset without a leader epoch is
   not own, unless it is past every checkpoint that is known, or in a topic that such a sync never writes to.
D. An offset without a checkpoint, in a topic that is no copy by its name, is own: no sync writes there. In a copy it is
   own only by B: another flow may have set it.
E. Past an offset that sync has set, but not past the log's start, an offset without a leader epoch is not own: sync
   sets the start for a checkpoint whose records are gone.
F. An offset that is not that of the checkpoint is only remembered as own if the log's bounds are known: it may be the
   log's start, or of an earlier log.

What was set is saved with each checkpoint, in a record header that Java does not read. A checkpoint is written before
the offset is set, so after a restart the saved offset, that of the checkpoint and the log's start may all be ours. A
change between own and not own takes effect once it is saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.mirror.groups.group_moves import valid_offsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.mirror.groups.group_moves import LogBounds
    from heliograph.model import Checkpoint, CommittedOffset, TopicPartition


RELEASED = "heliograph: the group has moved to the other cluster"  # metadata of an offset
OWN = (-1,)  # the mark of an own offset; any other mark has the offsets that may be ours
_NO_EPOCH = -1
_MOST_OFFSETS = 8  # in a mark: each restart without a sync adds one


class MovedOffsets:
    """The offsets of one flow's groups on the target, as far as group sync knows who committed them."""

    def __init__(self, checkpoints: Iterable[Checkpoint] = ()) -> None:
        self._set: dict[tuple[str, TopicPartition], tuple[int, ...]] = {}
        self._set_up_to: dict[tuple[str, TopicPartition], int] = {}  # where it is not known which offsets were set
        self._own: set[tuple[str, TopicPartition]] = set()
        self._unsaved: set[tuple[str, TopicPartition]] = set()
        for checkpoint in checkpoints:
            self._resume(checkpoint)

    def _resume(self, checkpoint: Checkpoint) -> None:
        """Take the mark of a checkpoint that was written before; without one, another program wrote it, and may have
        set any offset up to it, or left one that was set before.
        """
        key, mark = (checkpoint.group, checkpoint.tp), checkpoint.moved
        self._own.discard(key)
        earlier, up_to = self._set.pop(key, ()), self._set_up_to.pop(key, -1)
        if mark == OWN:
            self._own.add(key)
        elif mark is not None:
            self._set[key] = (*mark, checkpoint.downstream)
        else:
            self._set_up_to[key] = max(*earlier, up_to, checkpoint.downstream)

    def mark(self, group: str, tp: TopicPartition, *, is_first: bool = False) -> tuple[int, ...] | None:
        """Return what to save with the next checkpoint; None if nothing is known.

        Before the first checkpoint of a group and partition no sync can have set an offset.
        """
        key = (group, tp)
        if is_first:
            self._set.setdefault(key, ())
        if key in self._own:
            return OWN
        known = self._set.get(key)
        return None if known is None else known[-_MOST_OFFSETS:]

    @property
    def unsaved(self) -> frozenset[tuple[str, TopicPartition]]:
        """The groups and partitions whose mark must be saved although no checkpoint is due."""
        return frozenset(self._unsaved)

    def saved(self, written: Iterable[tuple[str, TopicPartition]]) -> None:
        """Note that checkpoints with these marks are written."""
        self._unsaved -= set(written)

    def own(
        self,
        group: str,
        committed: Mapping[TopicPartition, CommittedOffset],
        checkpoints: Iterable[Checkpoint],
        logs: Mapping[TopicPartition, LogBounds],
        is_copy: Callable[[str], bool],
    ) -> set[TopicPartition]:
        """Return the partitions in which a group's offset on the target is its own; `checkpoints` are all it has.

        `logs` are the bounds of its unsettled partitions, as far as known. `is_copy` says of a topic of the target
        whether it may be a copy: in other topics only Heliograph sets offsets.
        """
        by_partition = {each.tp: each for each in checkpoints}
        valid = valid_offsets(committed, logs)
        own = {
            tp
            for tp, each in by_partition.items()
            if self._is_own(group, each, valid.get(tp), logs.get(tp), is_copy(tp.topic))
        }
        return own | {
            tp
            for tp, found in valid.items()
            if tp not in by_partition and found.metadata != RELEASED
            if found.leader_epoch != _NO_EPOCH or not is_copy(tp.topic)
        }

    def _is_own(
        self,
        group: str,
        checkpoint: Checkpoint,
        committed: CommittedOffset | None,
        log: LogBounds | None,
        is_copy: bool,
    ) -> bool:
        key = (group, checkpoint.tp)
        if committed is None or committed.metadata == RELEASED:
            if key in self._own:
                self._own.discard(key)
                self._unsaved.add(key)
            self._set[key] = () if committed is None else (committed.offset,)
            return key in self._unsaved
        if key in self._own:
            return True
        may_be_set = self._may_be_set(key, checkpoint, committed.offset, is_copy, -1 if log is None else log.start)
        if committed.leader_epoch == _NO_EPOCH and may_be_set:
            self._set[key] = (committed.offset,)
            return False
        if log is not None or committed.offset == checkpoint.downstream:
            self._own.add(key)
            self._unsaved.add(key)
        return True

    def _may_be_set(
        self, key: tuple[str, TopicPartition], checkpoint: Checkpoint, offset: int, is_copy: bool, log_start: int
    ) -> bool:
        """Return whether a sync may have set an offset without a leader epoch."""
        known = self._set.get(key)
        if known is not None:
            return offset in known or min(known, default=offset) < offset <= log_start
        return is_copy and offset <= max(checkpoint.downstream, self._set_up_to.get(key, -1), log_start)

    def setting(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Remember offsets that are about to be set: if the answer is lost, either may be found later."""
        for tp, committed in offsets.items():
            self._set[group, tp] = (*self._set.get((group, tp), ()), committed.offset)

    def set(self, group: str, offsets: Iterable[TopicPartition]) -> None:
        """Remember that the offsets that were about to be set are set."""
        for tp in offsets:
            self._set[group, tp] = self._set[group, tp][-1:]
            self._own.discard((group, tp))
