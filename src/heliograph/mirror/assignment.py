"""Partitions to tasks: MM2's round robin at first, and as little movement as possible afterwards.

MM2 restarts every task when one topic appears. Here a partition stays where it is; new ones go to the task with the
fewest. Invariants: every partition stands in exactly one task; a partition never moves between tasks that both go on;
without a previous assignment, sizes differ by at most one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.model import TopicPartition


def task_count(partition_count: int, tasks_max: int, slots: int) -> int:
    """How many tasks a flow runs: `tasks_max` where it is set (non-zero), else what partitions and slots can use."""
    return max(1, min(partition_count, tasks_max or slots))


def rate_share(bytes_per_s: int, tasks: int) -> int:
    """What each of so many tasks may read of a flow's limit; 0 is no limit."""
    return max(1, bytes_per_s // max(1, tasks)) if bytes_per_s else 0


def assign(
    partitions: Iterable[TopicPartition], tasks: int, previous: Sequence[frozenset[TopicPartition]] = ()
) -> tuple[frozenset[TopicPartition], ...]:
    """Partitions of each task. Without a previous assignment this is MM2's rule: partition i to task i mod n."""
    wanted = list(dict.fromkeys(partitions))
    still_there = set(wanted)
    assignment = [set(kept & still_there) for kept in previous[:tasks]]
    assignment += [set() for _ in range(tasks - len(assignment))]
    placed = set().union(*assignment)
    for tp in wanted:
        if tp not in placed:
            min(assignment, key=len).add(tp)
    return tuple(frozenset(partitions_of_task) for partitions_of_task in assignment)
