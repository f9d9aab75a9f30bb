"""Measures the load of a flow and of its partitions, and asks the rules (`mirror/topics`) for changes.

Rates are means over about a minute, so that a moment moves nothing. After each change they are measured anew.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heliograph.mirror.topics.task_assignment import rebalance
from heliograph.mirror.topics.task_scaling import FlowLoad, TaskScaling
from heliograph.status.partition_status import PartitionState

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from heliograph.driver.flow.state.flow_sums import FlowSums
    from heliograph.driver.flow.state.partition_rows import PartitionRows
    from heliograph.mirror.topics.task_scaling import TaskChange, TaskLimits
    from heliograph.model import TopicPartition
    from heliograph.status.partition_status import PartitionStatus


_WINDOW_S = 60.0
_LEAST_BYTES_PER_S = 1_000_000  # of the flow: below, partitions are spread by their number
_MEASURED = (PartitionState.COPYING, PartitionState.CAUGHT_UP)


class FlowBalance:
    """The loads of one flow's partitions, and what follows from them."""

    def __init__(self, rows: PartitionRows, sums: FlowSums) -> None:
        self._rows = rows
        self._sums = sums
        self._scaling = TaskScaling()
        self._rates: dict[TopicPartition, float] = {}
        self._load = FlowLoad()
        self._changed_at: float | None = None
        self._measured_at = -math.inf

    def measure(self, now: float) -> None:
        """Take a sample; to be called every few seconds."""
        partitions = self._rows.statuses()
        self._rates = {each.tp: each.window.bytes_per_s for each in partitions if each.window is not None}
        self._measured_at = now
        if self._changed_at is None:
            self._changed_at = now
        rates = self._sums.rates
        self._load = FlowLoad(_lag(partitions), rates.records_per_s, rates.bytes_per_s)

    def change(self, now: float, tasks: int, limits: TaskLimits) -> TaskChange | None:
        """Return the change of the number of tasks that is due; None if there is none."""
        return self._scaling.decide(now, self._load, tasks, limits)

    def changed(self) -> None:
        """Measure anew: partitions have moved, or tasks begun or ended."""
        self._scaling.changed()
        self._changed_at = None

    @property
    def is_measured(self) -> bool:
        """Return whether the rates are those since the last change."""
        return self._changed_at is not None and self._measured_at - self._changed_at >= _WINDOW_S

    @property
    def bytes_per_s(self) -> dict[TopicPartition, float]:
        """The rate of each partition, as far as it is known; none while the flow copies next to nothing."""
        return self._rates if sum(self._rates.values()) >= _LEAST_BYTES_PER_S else {}

    def shares(
        self,
        shares: Sequence[frozenset[TopicPartition]],
        tasks: int,
        fixed: Collection[TopicPartition],
        idle: Collection[int],
    ) -> tuple[frozenset[TopicPartition], ...]:
        """Return what each of so many tasks should have; `fixed` partitions stay, and `idle` tasks have none."""
        return rebalance(shares, self.bytes_per_s, tasks, fixed, idle)


def _lag(partitions: Sequence[PartitionStatus]) -> int:
    """Return the records that more tasks could copy: what waits or has failed would wait there, too."""
    return sum(each.lag_records or 0 for each in partitions if each.state in _MEASURED)
