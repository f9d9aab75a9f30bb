"""Decides how many tasks a flow runs, and assigns partitions to them.

The first assignment is MM2's round robin. MM2 restarts every task when one topic appears; here a partition stays with
its task, and a new one goes to the task with the fewest.

Invariants: every partition belongs to exactly one task; a partition never moves between tasks that both keep running;
without a previous assignment, sizes differ by at most one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.model import TopicPartition


class TaskCount(NamedTuple):
    """The number of tasks of a flow; `slots` is its share of Spark's slots if that is fewer than `tasks.max`."""

    tasks: int
    slots: int | None


def task_count(
    *, partitions: int, tasks_max: int, slots: int, flows: int = 1, running: int = 0, grows: bool = False
) -> TaskCount:
    """Decide how many tasks a flow runs.

    A task occupies its Spark slot for as long as the flow runs, so flows share the slots evenly. With fewer slots than
    flows each has one task, and some wait for a slot. A `tasks_max` of 0 sets no limit. If Spark adds executors for
    tasks that wait (`grows`), only `tasks_max` is a limit. The count never falls below the tasks that run already.
    """
    share = max(1, slots // flows)
    usable = (tasks_max if grows else min(tasks_max, share)) if tasks_max else share
    count = max(1, running, min(partitions, usable))
    return TaskCount(count, share if tasks_max > share and not grows else None)


def rate_share(bytes_per_s: int, tasks: int) -> int:
    """Return each task's share of a flow's byte rate; 0 is no limit."""
    return max(1, bytes_per_s // max(1, tasks)) if bytes_per_s else 0


def assign(
    partitions: Iterable[TopicPartition], tasks: int, previous: Sequence[frozenset[TopicPartition]] = ()
) -> tuple[frozenset[TopicPartition], ...]:
    """Return the partitions of each task; without a previous assignment by MM2's rule, partition i to task i mod n."""
    wanted = list(dict.fromkeys(partitions))
    still_there = set(wanted)
    assignment = [set(kept & still_there) for kept in previous[:tasks]]
    assignment += [set() for _ in range(tasks - len(assignment))]
    placed = set().union(*assignment)
    for tp in wanted:
        if tp not in placed:
            min(assignment, key=len).add(tp)
    return tuple(frozenset(partitions_of_task) for partitions_of_task in assignment)
