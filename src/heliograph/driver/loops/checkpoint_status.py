"""Keeps what the checkpoint connector knows of its groups, for metrics: published after each step, read by any thread.

A step replaces the published value; it never changes one, so a reader waits for neither a broker nor a step. What was
read too long ago is unknown: it may be wrong by now.

A checkpoint stands for an offset of the source; it is behind since the step that first found the group past that
offset. So it is not behind for hours if a group always reads a little ahead of replication, and the checkpoint follows.
"""

from __future__ import annotations

import time
from collections import deque
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


class _Passed:
    """The committed offsets of one partition that its checkpoint does not stand for yet, with the times of their steps.

    Of many only some are kept, the first one always.
    """

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int]] = deque()

    def since(self, committed: int, read_again: int | None, at: float) -> float | None:
        """Return since when the checkpoint is behind, after another step has read the committed offset."""
        if self._steps and committed < self._steps[-1][1]:
            self._steps.clear()  # the group was set back
        if not self._steps or committed > self._steps[-1][1]:
            if len(self._steps) >= _MOST_PASSED:
                self._steps = deque(each for n, each in enumerate(self._steps) if n % 2 == 0)
            self._steps.append((at, committed))
        if read_again is not None:
            while self._steps and self._steps[0][1] <= committed - read_again:
                self._steps.popleft()
        return self._steps[0][0] if self._steps else None


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
        self._passed: dict[tuple[str, TopicPartition], _Passed] = {}
        self._latencies: dict[tuple[str, TopicPartition], tuple[tuple[float, float], ...]] = {}
        self._published = _Published()

    def wrote(self, checkpoints: Iterable[Checkpoint], began_at: float) -> None:
        """Note checkpoints that the target has acknowledged, in a step that began at this time (`time.monotonic`)."""
        now, ms = self._clock(), (time.monotonic() - began_at) * 1000
        count = 0
        for count, checkpoint in enumerate(checkpoints, 1):  # noqa: B007  (used after the loop)
            key = checkpoint.group, checkpoint.tp
            kept = (each for each in self._latencies.get(key, ()) if now - each[0] < _WINDOW_S)
            self._latencies[key] = (*kept, (now, ms))
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
        self._forget(groups)
        passed_at = now if is_complete else self._published.passed_at
        self._published = self._published._replace(groups=groups, passed_at=passed_at)

    def snapshot(self, name: str, connector: str) -> CheckpointsSnapshot:
        """Return what is known now; `name` is that of the flow."""
        published, now = self._published, self._clock()
        groups = tuple(group.status(now, self._known_for_s) for _name, group in sorted(published.groups.items()))
        times = published.passed_at, published.written_at
        return CheckpointsSnapshot(name, connector, self._flow, now, *times, published.written, groups)

    def _read_group(self, group: str, partitions: Iterable[ReadPartition], now: float) -> _ReadGroup:
        return _ReadGroup(group, tuple(self._partition(group, each, now) for each in sorted(partitions)), now)

    def _partition(self, group: str, read: ReadPartition, now: float) -> GroupPartition:
        key, again = (group, read.remote_tp), read.read_again
        return GroupPartition(
            tp=read.tp,
            remote_tp=read.remote_tp,
            committed=read.committed.offset,
            translated=None if read.checkpoint is None else read.checkpoint.downstream,
            read_again=again,
            since=self._passed.setdefault(key, _Passed()).since(read.committed.offset, again, now),
            latency_ms=_stat(self._latencies.get(key, ()), now),
        )

    def _forget(self, groups: Mapping[str, object]) -> None:
        """Forget the groups that are not followed any more."""
        if len({group for group, _tp in self._passed}) > len(groups):
            self._passed = {key: found for key, found in self._passed.items() if key[0] in groups}
            self._latencies = {key: found for key, found in self._latencies.items() if key[0] in groups}


def _stat(values: tuple[tuple[float, float], ...], now: float) -> Stat | None:
    """Return the last value, and the others of the last minute."""
    if not values:
        return None
    recent = [ms for at, ms in values if now - at < _WINDOW_S]
    last = values[-1][1]
    return Stat(last, min(recent), max(recent), sum(recent) / len(recent)) if recent else Stat(last)
