"""Decides how many tasks a flow may run, and assigns partitions to them.

The first assignment is MM2's round robin. MM2 restarts every task when one topic appears; here a partition stays with
its task, and a new one goes to the task with the least load. `rebalance` moves partitions, since a move interrupts the
copy of a partition for about a second: few at a time, and none between tasks whose loads are about equal.

The load of a partition is its bytes per second. A small part of the mean is added for each, so that partitions without
records are spread, too.

Invariants: every partition belongs to exactly one task; `assign` moves none that has a task; `rebalance` makes the
largest load no larger, and moves nothing when it is called again; without a previous assignment, sizes differ by at
most one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from heliograph.model import TopicPartition


_IDLE_PART = 0.01  # of the mean load of a partition
_UNEVEN_PART = 0.5  # of the mean load of a task: a smaller difference between two tasks is left alone
_WORTHWHILE_PART = 0.1  # of the mean load of a task: if moves cannot help by as much, none is made


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
    partitions: Iterable[TopicPartition],
    tasks: int,
    previous: Sequence[frozenset[TopicPartition]] = (),
    bytes_per_s: Mapping[TopicPartition, float] | None = None,
) -> tuple[frozenset[TopicPartition], ...]:
    """Return the partitions of each task; without a previous assignment by MM2's rule, partition i to task i mod n."""
    wanted = list(dict.fromkeys(partitions))
    still_there = set(wanted)
    assignment = [set(kept & still_there) for kept in previous[:tasks]]
    assignment += [set() for _ in range(tasks - len(assignment))]
    placed = set().union(*assignment)
    loads = _loads(wanted, bytes_per_s or {})
    sums = [sum(loads[tp] for tp in share) for share in assignment]
    for tp in wanted:
        if tp not in placed:
            number = min(range(tasks), key=sums.__getitem__)
            assignment[number].add(tp)
            sums[number] += loads[tp]
    return tuple(map(frozenset, assignment))


def rebalance(
    assignment: Sequence[frozenset[TopicPartition]],
    bytes_per_s: Mapping[TopicPartition, float],
    tasks: int,
    fixed: Collection[TopicPartition] = (),
    idle: Collection[int] = (),
) -> tuple[frozenset[TopicPartition], ...]:
    """Return what each of so many tasks should have instead; `fixed` partitions stay, if their task does.

    Partitions of tasks that are to end, or are `idle`, are spread over the others; if all are idle, none counts as
    such. Then, if loads are uneven, or a task has nothing, partitions move from the task with the largest load to that
    with the smallest.
    """
    loads = _loads([tp for share in assignment for tp in share], bytes_per_s)
    shares: list[set[TopicPartition]] = [set() for _ in range(tasks)]
    able = [number for number in range(tasks) if number not in idle] or list(range(tasks))
    unassigned: list[TopicPartition] = []
    for number, share in enumerate(assignment):
        if number in able:
            shares[number] |= share
        else:
            unassigned += share
    sums = {number: sum(loads[tp] for tp in shares[number]) for number in able}
    for tp in sorted(unassigned, key=lambda tp: (-loads[tp], tp)):
        number = min(able, key=sums.__getitem__)
        shares[number].add(tp)
        sums[number] += loads[tp]
    _even_out([shares[number] for number in able], loads, fixed)
    return tuple(map(frozenset, shares))


def _loads(
    partitions: Collection[TopicPartition], bytes_per_s: Mapping[TopicPartition, float]
) -> dict[TopicPartition, float]:
    total = sum(bytes_per_s.get(tp, 0.0) for tp in partitions)
    least = total / len(partitions) * _IDLE_PART if total else 1.0
    return {tp: bytes_per_s.get(tp, 0.0) + least for tp in partitions}


def _even_out(
    shares: list[set[TopicPartition]], loads: Mapping[TopicPartition, float], fixed: Collection[TopicPartition]
) -> None:
    """Move partitions until no move is worthwhile. Each move makes the squares of the loads smaller, so it ends."""
    sums = [sum(loads[tp] for tp in share) for share in shares]
    movable = [sorted((loads[tp], tp) for tp in share if tp not in fixed) for share in shares]
    mean = sum(sums) / len(sums)
    if max(sums) - min(sums) <= _UNEVEN_PART * mean and all(shares):
        return
    while True:
        most, least = sums.index(max(sums)), sums.index(min(sums))
        difference = sums[most] - sums[least]
        candidates = movable[most]
        usable = bisect_left(candidates, (difference,))  # what is larger would only change sides
        possible = sums[most] - sum(loads[tp] for tp in fixed if tp in shares[most])
        possible -= sum(load for load, _tp in candidates[usable:])
        is_first = not shares[least] and len(shares[most]) > 1
        if not usable or (not is_first and min(possible, difference / 2) < _WORTHWHILE_PART * mean):
            return
        at = bisect_left(candidates, (difference / 2,))
        number = max((i for i in (at - 1, at) if 0 <= i < usable), key=lambda i: _gain(candidates[i], difference))
        load, tp = candidates.pop(number)
        insort(movable[least], (load, tp))
        shares[most].discard(tp)
        shares[least].add(tp)
        sums[most] -= load
        sums[least] += load


def _gain(candidate: tuple[float, TopicPartition], difference: float) -> float:
    """Return how much less the larger of two loads would be."""
    return min(candidate[0], difference - candidate[0])
