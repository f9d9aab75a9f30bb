"""Keeps what the checkpoint connector knows of its groups, for metrics: published after each step, read by any thread.

A step replaces the published value; it never changes one, so a reader waits for neither a broker nor a step. What was
read too long ago is unknown: it may be wrong by now.

A checkpoint stands for an offset of the source; it is behind since the step that first found the group past that
offset. So it is not behind for hours if a group always reads a little ahead of replication, and the checkpoint follows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from heliograph.mirror.groups.group_moves import position_of_checkpoint
from heliograph.status.group_status import CheckpointsSnapshot, GroupPartition, GroupStatus
from heliograph.status.windows import Stat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from heliograph.mirror.groups.offset_map import Translator
    from heliograph.model import Checkpoint, CommittedOffset, Flow, TopicPartition


_WINDOW_S = 60.0
_UNREAD_STEPS = 2
_STEP_S = 30.0  # a step, and the pause before a failed one is tried again
_MOST_PASSED = 64


class ReadPartition(NamedTuple):
    """A partition whose committed offset a step has read; `checkpoint` is the one that the target has, if it has one.

    `known` translates its offsets.
    """

    tp: TopicPartition
    remote_tp: TopicPartition
    committed: CommittedOffset
    checkpoint: Checkpoint | None
    known: Translator

    @property
    def read_again(self) -> int | None:
        """The records that the group would read again at the checkpoint, by the rule of `failover` and `groups`."""
        if self.checkpoint is None:
            return None
        return position_of_checkpoint(self.known, self.tp, self.committed, self.checkpoint).again


class _Partition:
    """The memory of one partition of a group from step to step.

    `steps` are the committed offsets that its checkpoint does not stand for yet, with the times of their steps; of many
    only some are kept, the first one always. `latencies` are those of the last minute, with their times.
    """

    __slots__ = ("last", "latencies", "steps")

    def __init__(self) -> None:
        self.last: GroupPartition | None = None
        self.latencies: tuple[tuple[float, float], ...] = ()
        self.steps: list[tuple[float, int]] = []

    def take(self, read: ReadPartition, now: float) -> GroupPartition:
        """Return the partition after another step has read it."""
        last, translated = self.last, None if read.checkpoint is None else read.checkpoint.downstream
        is_same = last is not None and (last.committed, last.translated) == (read.committed.offset, translated)
        if last is not None and is_same and last.read_again == 0 and last.since is None:  # so it is for most groups
            self.last = last if last.latency_ms is None else last._replace(latency_ms=_stat(self.latencies, now))
            return self.last
        again = read.read_again
        self.last = GroupPartition(
            tp=read.tp,
            remote_tp=read.remote_tp,
            committed=read.committed.offset,
            translated=translated,
            read_again=again,
            since=self._since(read.committed.offset, again, now),
            latency_ms=_stat(self.latencies, now),
        )
        return self.last

    def _since(self, committed: int, read_again: int | None, at: float) -> float | None:
        """Return since when the checkpoint is behind."""
        if self.steps and committed < self.steps[-1][1]:
            self.steps = []  # the group was set back
        if read_again != 0 and (not self.steps or committed > self.steps[-1][1]):
            if len(self.steps) >= _MOST_PASSED:
                self.steps = self.steps[::2]
            self.steps.append((at, committed))
        if read_again is not None:
            self.steps = [step for step in self.steps if step[1] > committed - read_again]
        return self.steps[0][0] if self.steps else None


class _ReadGroup:
    """A group as the last step found it that has read its offsets."""

    def __init__(self, group: str, partitions: tuple[GroupPartition, ...], at: float) -> None:
        self._group = group
        self._partitions = partitions
        self._at = at
        self._since = min((each.since for each in partitions if each.since is not None), default=None)
        self._aged: dict[tuple[bool, bool], tuple[GroupPartition, ...]] = {(True, True): partitions}

    def status(self, now: float, known_for_s: float) -> GroupStatus:
        """Return the group now."""
        is_known, is_in_window = now - self._at <= known_for_s, now - self._at <= _WINDOW_S
        aged = self._aged.get((is_known, is_in_window))
        if aged is None:
            aged = tuple(
                each._replace(
                    read_again=each.read_again if is_known else None,
                    latency_ms=each.latency_ms if is_in_window or each.latency_ms is None else Stat(each.latency_ms[0]),
                )
                for each in self._partitions
            )
            self._aged[is_known, is_in_window] = aged
        lag_s = 0.0 if self._since is None else max(0.0, now - self._since)
        return GroupStatus(self._group, aged, lag_s if is_known else None)


class _Published(NamedTuple):
    groups: Mapping[str, _ReadGroup] = {}
    passed_at: float | None = None
    written_at: float | None = None
    written: int = 0


class CheckpointStatus:
    """The groups of one flow, as far as they are known. The steps of one loop write, any thread reads `snapshot`."""

    def __init__(self, flow: Flow, interval_s: float, clock: Callable[[], float] = time.time) -> None:
        self._flow = flow
        self._clock = clock
        self._known_for_s = _UNREAD_STEPS * interval_s + _STEP_S
        self._partitions: dict[str, dict[TopicPartition, _Partition]] = {}  # by group and remote partition
        self._published = _Published()

    def wrote(self, checkpoints: Iterable[Checkpoint], began_at: float) -> None:
        """Note checkpoints that the target has acknowledged, in a step that began at this time (`time.monotonic`)."""
        now, ms = self._clock(), (time.monotonic() - began_at) * 1000
        count = 0
        for count, checkpoint in enumerate(checkpoints, 1):  # noqa: B007  (used after the loop)
            kept = self._partitions.setdefault(checkpoint.group, {}).setdefault(checkpoint.tp, _Partition())
            kept.latencies = (*(each for each in kept.latencies if now - each[0] < _WINDOW_S), (now, ms))
        if count:
            self._published = self._published._replace(written_at=now, written=self._published.written + count)

    def publish(
        self, read: Mapping[str, Iterable[ReadPartition]], followed: Iterable[str], *, is_complete: bool
    ) -> None:
        """Publish the groups that a step has read; those followed whose coordinator refused stay as they were read.

        `is_complete`: every group was read, and every checkpoint that was due is written.
        """
        now = self._clock()
        fresh = {group: self._read_group(group, partitions, now) for group, partitions in read.items()}
        before = self._published.groups
        groups = {group: found for group in followed if (found := fresh.get(group) or before.get(group)) is not None}
        self._partitions = {group: self._partitions[group] for group in groups}
        passed_at = now if is_complete else self._published.passed_at
        self._published = self._published._replace(groups=groups, passed_at=passed_at)

    def snapshot(self, name: str, connector: str) -> CheckpointsSnapshot:
        """Return what is known now; `name` is that of the flow."""
        published, now = self._published, self._clock()
        groups = tuple(group.status(now, self._known_for_s) for _name, group in sorted(published.groups.items()))
        times = published.passed_at, published.written_at
        return CheckpointsSnapshot(name, connector, self._flow, now, *times, published.written, groups)

    def _read_group(self, group: str, partitions: Iterable[ReadPartition], now: float) -> _ReadGroup:
        before, kept = self._partitions.get(group, {}), {}
        found = []
        for read in sorted(partitions, key=_by_partition):
            kept[read.remote_tp] = partition = before.get(read.remote_tp) or _Partition()
            found.append(partition.take(read, now))
        self._partitions[group] = kept
        return _ReadGroup(group, tuple(found), now)


def _by_partition(read: ReadPartition) -> TopicPartition:
    return read.tp


def _stat(values: tuple[tuple[float, float], ...], now: float) -> Stat | None:
    """Return the last value, and the others of the last minute."""
    if not values:
        return None
    recent = [ms for at, ms in values if now - at < _WINDOW_S]
    last = values[-1][1]
    return Stat(last, min(recent), max(recent), sum(recent) / len(recent)) if recent else Stat(last)
