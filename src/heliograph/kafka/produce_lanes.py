"""The lanes of a producer: how many requests each has under way, and which of them a broker wants to be quiet.

A lane is one connection to one broker. It counts from its first batch on, so that one that has not been used yet is not
taken for full.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.kafka.cluster import Cluster
    from heliograph.kafka.connection import Connection

Lane = tuple[int, int]

_LONG_S = 1.0  # a connection that was idle is made again in less


class ProduceLanes:
    """All lanes of one producer."""

    def __init__(self, cluster: Cluster, most_in_flight: int) -> None:
        self.throttled_ms = 0
        self._cluster = cluster
        self._most_in_flight = most_in_flight
        self._under_way: dict[Lane, int] = {}
        self._paused_until: dict[Lane, float] = {}
        self._closed: dict[Lane, tuple[float, float]] = {}  # when it was first and last found so

    def use(self, lane: Lane) -> None:
        """Something is to be sent on it."""
        self._under_way.setdefault(lane, 0)

    def has_room(self, lane: Lane) -> bool:
        """Whether another request may leave."""
        return self._under_way.get(lane, 0) < self._most_in_flight

    def sent(self, lane: Lane) -> None:
        """A request has left."""
        self._under_way[lane] = self._under_way.get(lane, 0) + 1

    def answered(self, lane: Lane, throttle_time_ms: int = 0) -> None:
        """Its answer has come, or will not come any more."""
        self._under_way[lane] -= 1
        if throttle_time_ms > 0:
            self.throttled_ms += throttle_time_ms
            self._paused_until[lane] = time.monotonic() + throttle_time_ms / 1000

    @property
    def are_full(self) -> bool:
        """Whether every lane has all its requests under way; a thousand partitions are then not looked at."""
        known = [lane for lane in self._under_way if self._cluster.has_broker(lane[0])]
        return bool(known) and not any(map(self.has_room, known))

    def end_pauses(self, now: float) -> None:
        """Forget the pauses that are over."""
        if self._paused_until:
            self._paused_until = {lane: until for lane, until in self._paused_until.items() if until > now}

    @property
    def has_pauses(self) -> bool:
        """Whether a broker wants us to be quiet."""
        return bool(self._paused_until)

    def is_paused(self, lane: Lane) -> bool:
        """Whether this broker wants us to be quiet."""
        return lane in self._paused_until

    def connection(self, lane: Lane) -> Connection | None:
        """The connection to send on now; None where there is none yet, or the broker wants us to be quiet."""
        connection = self._cluster.connection_to(*lane) if not self.is_paused(lane) else None
        if connection is None:
            now = time.monotonic()
            first, last = self._closed.get(lane, (now, now))
            self._closed[lane] = (first if now - last < _LONG_S else now, now)
        else:
            self._closed.pop(lane, None)
        return connection

    def is_closed_for_long(self, lane: Lane) -> bool:
        """Whether what is to be sent there should not stay in shared memory meanwhile."""
        first, last = self._closed.get(lane, (0.0, 0.0))
        return last - first > _LONG_S
