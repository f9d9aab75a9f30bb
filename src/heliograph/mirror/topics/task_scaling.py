"""Decides when the number of a flow's tasks changes, from its lag and its rate.

A flow is *behind* if its lag is more than it copies in a few seconds, and more than a few thousand records. Tasks are
added while it is behind and the lag does not fall: twice as many each time, up to the limit. After each change the lag
is watched anew. Tasks are given back, half of them at a time, after a quiet time in which the flow was never behind and
copied no more than half of what fewer tasks have been seen to copy. If tasks that were given back are needed again, the
next quiet time is twice as long.

The limit is the smallest of `tasks.max`, the flow's share of Spark's slots, and its partitions; slots do not count if
Spark adds executors for tasks that wait. Executors come and go: a limit must last before it is followed, longer
downwards than upwards.

Times are seconds of the caller's clock.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from heliograph.mirror.topics.task_assignment import task_count
from heliograph.model import counted

WATCHED_S = 30.0  # in which the lag must fall, or tasks are added
QUIET_S = 300.0
_LONGEST_QUIET_S = 3600.0
_LEAST_LAG = 10_000
_LEAST_LAG_S = 5.0
_FALLING_PART = 0.1  # of the lag, in the time that it is watched: it would be gone in five minutes
_USED_PART = 0.5  # of what fewer tasks can copy
MORE_SLOTS_S = 5.0
FEWER_SLOTS_S = 60.0


class FlowLoad(NamedTuple):
    """The lag and the rates of a flow at one moment; partitions that wait or have failed do not count."""

    lag_records: int = 0
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0

    @property
    def is_behind(self) -> bool:
        """Return whether it lags by more than it copies in a few seconds."""
        return self.lag_records > max(_LEAST_LAG, _LEAST_LAG_S * self.records_per_s)


class TaskChange(NamedTuple):
    """Another number of tasks, and why."""

    tasks: int
    reason: str


class TaskLimits(NamedTuple):
    """The numbers of tasks between which a flow runs; they are equal unless `heliograph.tasks.min` is set."""

    least: int
    most: int

    @classmethod
    def of(
        cls, *, partitions: int, tasks_min: int, tasks_max: int, slots: int, flows: int, grows: bool = False
    ) -> TaskLimits:
        """Return the limits, by `task_count`; 0 of `tasks_min` is no elasticity."""
        most = task_count(partitions=partitions, tasks_max=tasks_max, slots=slots, flows=flows, grows=grows).tasks
        return cls(min(tasks_min, most) if tasks_min else most, most)


class TaskScaling:
    """The number of tasks of one flow over time. `decide` is called every few seconds."""

    def __init__(self) -> None:
        self._lags: deque[tuple[float, int]] = deque()  # since the flow is behind, no older than needed
        self._quiet_since: float | None = None
        self._quiet_s = QUIET_S
        self._shrunk_at: float | None = None
        self._task_bytes_per_s = 0.0  # the most that a task has been seen to copy
        self._limits: TaskLimits | None = None
        self._limits_since = 0.0

    def decide(self, now: float, load: FlowLoad, tasks: int, limits: TaskLimits) -> TaskChange | None:
        """Return the change that is due; None if there is none."""
        if limits != self._limits:
            self._limits, self._limits_since = limits, now
        self._watch(now, load, tasks)
        return self._follow_limits(now, tasks, limits) or self._follow_lag(now, load, tasks, limits)

    def changed(self) -> None:
        """Watch anew: the number of tasks has changed, or partitions have moved."""
        self._lags.clear()
        self._quiet_since = None

    def _watch(self, now: float, load: FlowLoad, tasks: int) -> None:
        self._task_bytes_per_s = max(self._task_bytes_per_s, load.bytes_per_s / tasks)
        if not load.is_behind:
            self._lags.clear()
            self._quiet_since = now if self._quiet_since is None else self._quiet_since
            return
        self._quiet_since = None
        self._lags.append((now, load.lag_records))
        while len(self._lags) > 1 and self._lags[1][0] <= now - WATCHED_S:
            self._lags.popleft()

    def _follow_limits(self, now: float, tasks: int, limits: TaskLimits) -> TaskChange | None:
        lasted_s = now - self._limits_since
        if tasks > limits.most and lasted_s >= FEWER_SLOTS_S:
            return TaskChange(limits.most, "partitions or Spark's slots are fewer")
        if tasks < limits.least and lasted_s >= MORE_SLOTS_S:
            return TaskChange(limits.least, "partitions or Spark's slots are more")
        return None

    def _follow_lag(self, now: float, load: FlowLoad, tasks: int, limits: TaskLimits) -> TaskChange | None:
        if self._lags and now - self._lags[0][0] >= WATCHED_S and tasks < limits.most:
            before = self._lags[0][1]
            if load.lag_records <= before * (1 - _FALLING_PART):
                return None
            if self._shrunk_at is not None:
                is_soon = now - self._shrunk_at < _LONGEST_QUIET_S
                self._quiet_s = min(2 * self._quiet_s, _LONGEST_QUIET_S) if is_soon else QUIET_S
                self._shrunk_at = None
            self._task_bytes_per_s = load.bytes_per_s / tasks
            why = f"the lag of {counted(load.lag_records, 'record')} has not fallen in {WATCHED_S:.0f} s"
            return TaskChange(min(2 * tasks, limits.most), why)
        fewer = max(limits.least, (tasks + 1) // 2)
        if fewer >= tasks:
            return None
        if load.bytes_per_s > _USED_PART * self._task_bytes_per_s * fewer:
            self._quiet_since = None
        elif self._quiet_since is not None and now - self._quiet_since >= self._quiet_s:
            self._shrunk_at = now
            return TaskChange(fewer, f"fewer tasks would have sufficed for {self._quiet_s / 60:.0f} minutes")
        return None
