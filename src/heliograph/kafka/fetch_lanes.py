"""The lanes of a task: which one reads a partition, how much each may ask for, and whose turn it is.

A broker has one lane, or as many as the user wants. One that is far away has two at least: a connection stands still
from the end of an answer to the begin of the next, so two take turns.

Invariants:
A. A partition is on one lane, and stays there while it is read from the same broker.
B. All lanes may ask at the same time, each for its share of the memory; a lane that has asked is the last to ask again.
   So none starves, however many brokers there are and however little memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.kafka.fetch_lane import FetchLane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heliograph.kafka.fetcher import FetchPartition

_OVER_A_LONG_WAY = 2
_LEAST_SHARE_BYTES = 64 * 1024


class FetchLanes:
    """All lanes of one fetcher, the one whose turn it is first."""

    def __init__(self, per_broker: int, memory_bytes: Callable[[], int]) -> None:
        self._per_broker = per_broker
        self._memory_bytes = memory_bytes
        self._far_brokers: set[int] = set()
        self._lanes: dict[tuple[int, int], FetchLane] = {}

    def __iter__(self) -> Iterator[FetchLane]:
        return iter(list(self._lanes.values()))

    @property
    def share_bytes(self) -> int:
        """What a request may ask for at most, so that there is room for one of every lane."""
        in_use = sum(bool(lane.members) for lane in self._lanes.values())
        return max(_LEAST_SHARE_BYTES, self._memory_bytes() // max(1, in_use))

    def put(self, partition: FetchPartition, node_id: int) -> FetchLane:
        """The lane of a partition that is read from this broker: where it is, or the one with the fewest."""
        lane = partition.lane
        if lane is not None and lane.node_id == node_id:
            return lane
        if lane is not None:
            lane.remove(partition.tp)
        partition.lane = min(self._to(node_id), key=lambda one: len(one.members))
        partition.lane.add(partition)
        return partition.lane

    def _to(self, node_id: int) -> list[FetchLane]:
        count = max(self._per_broker, _OVER_A_LONG_WAY if node_id in self._far_brokers else 1)
        return [self._lanes.setdefault((node_id, n), FetchLane(node_id, n)) for n in range(count)]

    def has_asked(self, lane: FetchLane) -> None:
        """Others first, next time."""
        key = (lane.node_id, lane.number)
        self._lanes[key] = self._lanes.pop(key)

    def spread(self, node_id: int) -> bool:
        """The broker is far away: whether that is news, and its partitions are on more lanes now."""
        if node_id in self._far_brokers or self._per_broker >= _OVER_A_LONG_WAY:
            return False
        (only,) = self._to(node_id)
        self._far_brokers.add(node_id)
        partitions = list(only.members.values())
        for partition in partitions:
            only.remove(partition.tp)
            partition.lane = None
        for partition in partitions:
            self.put(partition, node_id)
        return True
