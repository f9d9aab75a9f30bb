"""The partitions that each task of a flow is to have, and those that a task could not release.

A task gets a partition only when no other holds it: `next_shares` says what each can have now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.mirror.topics.task_assignment import assign

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from heliograph.driver.flow.tasks.flow_task import FlowTask
    from heliograph.model import TopicPartition


_STAYS_S = 300.0  # after a task could not release it


class TaskPlan:
    """The task that is to have each partition. `count` is the number of tasks; any with a higher number leaves."""

    def __init__(self) -> None:
        self.count = 0
        self.shares: tuple[frozenset[TopicPartition], ...] = ()
        self._stays_until: dict[TopicPartition, float] = {}

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """All partitions that have a place."""
        return frozenset().union(*self.shares)

    def share(self, number: int) -> frozenset[TopicPartition]:
        """Return the partitions that a task is to have."""
        return self.shares[number] if number < len(self.shares) else frozenset()

    def has_empty(self, idle: Collection[int]) -> bool:
        """Return whether a task that is to stay, and is not idle, has no partition, although there is one for each."""
        shares = [self.share(number) for number in range(self.count) if number not in idle]
        return not all(shares) and len(self.partitions) >= len(shares)

    def assign(self, partitions: Sequence[TopicPartition], bytes_per_s: Mapping[TopicPartition, float]) -> None:
        """Give each new partition a place, and forget those that are no longer there; the others stay."""
        leaving = tuple(share & frozenset(partitions) for share in self.shares[self.count :])
        staying = frozenset().union(*leaving)
        others = [tp for tp in partitions if tp not in staying]
        self.shares = (*assign(others, self.count, self.shares, bytes_per_s), *leaving)

    def move(self, shares: Sequence[frozenset[TopicPartition]]) -> int:
        """Plan other shares of the same partitions; return how many partitions get another task."""
        before = {tp: number for number, share in enumerate(self.shares) for tp in share}
        self.shares = tuple(shares)
        return sum(before.get(tp) != number for number, share in enumerate(shares) for tp in share)

    def stay(self, tps: Iterable[TopicPartition], number: int, now: float) -> None:
        """Leave partitions with a task that could not release them; they do not move for some minutes."""
        staying = frozenset(tps)
        shares = [share - staying for share in self.shares]
        shares += [frozenset()] * (number + 1 - len(shares))
        shares[number] |= staying
        self.shares = tuple(shares)
        self._stays_until |= dict.fromkeys(staying, now + _STAYS_S)

    def fixed(self, now: float) -> frozenset[TopicPartition]:
        """Return the partitions that do not move now."""
        self._stays_until = {tp: until for tp, until in self._stays_until.items() if until > now}
        return frozenset(self._stays_until)

    def task_of(self, tp: TopicPartition) -> int | None:
        """Return the number of the task that is to have a partition."""
        return next((number for number, share in enumerate(self.shares) if tp in share), None)

    def next_shares(self, tasks: Sequence[FlowTask]) -> dict[int, frozenset[TopicPartition]]:
        """Return what tasks are to have now if they have something else, by number.

        A run that has not released a partition holds it; a task that does not run holds none.
        """
        held = {tp: task.number for task in tasks if task.running for tp in (*task.tps, *task.departed)}
        found = {}
        for task in tasks:
            possible = frozenset(tp for tp in self.share(task.number) if held.get(tp, task.number) == task.number)
            if possible != task.tps:
                found[task.number] = possible
        return found
