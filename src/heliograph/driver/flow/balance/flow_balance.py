"""Measures the load of a flow and of its partitions, and asks the rules (`mirror/topics`) for changes.

Rates are means over a minute, so that a moment moves nothing. After each change the loads are measured anew.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from heliograph.mirror.topics.task_assignment import rebalance
from heliograph.mirror.topics.task_scaling import FlowLoad, TaskScaling
from heliograph.status.partition_status import PartitionState

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.mirror.topics.task_scaling import TaskChange, TaskLimits
    from heliograph.model import TopicPartition
    from heliograph.status.partition_status import PartitionStatus


_WINDOW_S = 60.0
_LEAST_BYTES_PER_S = 1_000_000  # of the flow: below, partitions are spread by their number
_MEASURED = (PartitionState.COPYING, PartitionState.CAUGHT_UP)


class FlowBalance:
    """The loads of one flow's partitions, and what follows from them."""

    def __init__(self, status: FlowStatus) -> None:
        self._status = status
        self._scaling = TaskScaling()
        self._bytes: deque[tuple[float, dict[TopicPartition, int]]] = deque()
        self._load = FlowLoad()

    def measure(self, now: float) -> None:
        """Take a sample; to be called every few seconds."""
        partitions = self._status.partitions.statuses()
        self._bytes.append((now, {each.tp: each.bytes for each in partitions}))
        while len(self._bytes) > 2 and self._bytes[1][0] <= now - _WINDOW_S:
            self._bytes.popleft()
        rates = self._status.sums.rates
        self._load = FlowLoad(_lag(partitions), rates.records_per_s, rates.bytes_per_s)

    def change(self, now: float, tasks: int, limits: TaskLimits) -> TaskChange | None:
        """Return the change of the number of tasks that is due; None if there is none."""
        return self._scaling.decide(now, self._load, tasks, limits)

    def changed(self) -> None:
        """Measure anew: partitions have moved, or tasks begun or ended."""
        self._scaling.changed()
        self._bytes.clear()

    @property
    def is_measured(self) -> bool:
        """Return whether the rates are those of a whole window."""
        return len(self._bytes) > 1 and self._bytes[-1][0] - self._bytes[0][0] >= _WINDOW_S

    @property
    def bytes_per_s(self) -> dict[TopicPartition, float]:
        """The rate of each partition, as far as it is known; none while the flow copies next to nothing."""
        if len(self._bytes) < 2:
            return {}
        (began_at, before), (at, after) = self._bytes[0], self._bytes[-1]
        elapsed_s = max(1e-3, at - began_at)
        rates = {tp: max(0, size - before.get(tp, size)) / elapsed_s for tp, size in after.items()}
        return rates if sum(rates.values()) >= _LEAST_BYTES_PER_S else {}

    def shares(
        self, shares: Sequence[frozenset[TopicPartition]], tasks: int, fixed: Collection[TopicPartition]
    ) -> tuple[frozenset[TopicPartition], ...]:
        """Return what each of so many tasks should have; `fixed` partitions stay."""
        return rebalance(shares, self.bytes_per_s, tasks, fixed)


def _lag(partitions: Sequence[PartitionStatus]) -> int:
    """Return the records that more tasks could copy: what waits or has failed would wait there, too."""
    return sum(each.lag_records or 0 for each in partitions if each.state in _MEASURED)
