"""The bytes that a task may fetch now: bounded by its memory, by what its partitions queue, and by the rate limit."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.executor.contract.task_spec import TaskSpec
    from heliograph.executor.copy.copy_clients import CopyClients
    from heliograph.executor.copy.copy_partition import CopyPartitions
    from heliograph.kafka.fetch.fetch_lanes import FetchPartition
    from heliograph.kafka.request_options import FetchLimits


_MOST_QUEUED_BATCHES = 32  # of a partition; further batches are better merged than queued
_LEAST_QUEUED_PART = 8  # of the buffer: a partition may always queue so much
_LEAST_MOVING_PART = 4
_MOST_SAVED_S = 0.25
_ANSWERS_PER_S = 8
_LEAST_ANSWER_BYTES = 64 * 1024


class FetchBudget:
    """Decides how many bytes may be requested now, and for which partitions."""

    def __init__(self, spec: TaskSpec, clients: CopyClients, partitions: CopyPartitions) -> None:
        self._spec = spec
        self._clients = clients
        self._partitions = partitions
        self._least_queued_bytes = spec.buffer_bytes // _LEAST_QUEUED_PART
        self.rate = ByteRate(spec.bytes_per_s, spec.limits.max_bytes, time.monotonic())
        self.limits = self._fetch_limits()

    def _fetch_limits(self) -> FetchLimits:
        if not self.rate.bytes_per_s:
            return self._spec.limits
        return replace(self._spec.limits, max_bytes=self.rate.answer_bytes, grows_to_bytes=0)

    def change_rate(self, bytes_per_s: int) -> None:
        """Follow another limit from now on (0: none)."""
        self.rate.change(bytes_per_s, time.monotonic())
        self.limits = self._clients.fetcher.limits = self._fetch_limits()

    def moving_bytes(self) -> int:
        """Return the memory for batches that move: all but what is parked, and a part of it however much is parked."""
        buffer_bytes = self._spec.buffer_bytes
        return max(buffer_bytes - self._clients.pool.parked_bytes, buffer_bytes // _LEAST_MOVING_PART)

    def room_bytes(self) -> int:
        """Return how much may be requested now; at least one response if no moving batch fills the memory."""
        in_use = self._clients.pool.held_bytes + self._clients.fetcher.in_flight_bytes
        room = self.moving_bytes() - in_use
        if not in_use:
            room = max(room, self.limits.max_bytes)
        return self.rate.allowed_bytes(time.monotonic(), room)

    def wants(self, fetched: FetchPartition) -> bool:
        """Return whether more of a partition is to be requested."""
        target = self._partitions.by_source[fetched.tp].target
        # More than one response's share, or on a high-latency link every other round trip would carry nothing of it.
        two_answers = self.limits.partition_max_bytes * self._clients.fetcher.growth * 2
        return (
            target.issue is None
            and target.queued_bytes < max(two_answers, self._least_queued_bytes)
            and len(target.queue) < _MOST_QUEUED_BATCHES
        )


class ByteRate:
    """A limit of bytes per second (0: none): a bucket that fills with time, and that the last response may overdraw.

    A response has at most `most_answer_bytes`.
    """

    def __init__(self, bytes_per_s: int, most_answer_bytes: int, now: float) -> None:
        self.answer_bytes = most_answer_bytes
        self._most_answer_bytes = most_answer_bytes
        self._at = now
        self._set(bytes_per_s)
        self._saved = self._most_saved

    def _set(self, bytes_per_s: int) -> None:
        self.bytes_per_s = bytes_per_s
        if bytes_per_s:
            self.answer_bytes = max(_LEAST_ANSWER_BYTES, min(self._most_answer_bytes, bytes_per_s // _ANSWERS_PER_S))
        self._most_saved = max(float(self.answer_bytes), bytes_per_s * _MOST_SAVED_S)

    def change(self, bytes_per_s: int, now: float) -> None:
        """Follow another limit from now on; what was saved or overdrawn under the last one still counts."""
        self._fill(now)
        self._set(bytes_per_s)
        self._saved = min(self._most_saved, self._saved)

    def _fill(self, now: float) -> None:
        self._saved = min(self._most_saved, self._saved + (now - self._at) * self.bytes_per_s)
        self._at = now

    def allowed_bytes(self, now: float, wanted: int) -> int:
        """Return how many of the `wanted` bytes may be requested."""
        if not self.bytes_per_s:
            return wanted
        self._fill(now)
        return max(0, min(wanted, int(self._saved)))

    def spend(self, size: int) -> None:
        """Count bytes that were received."""
        if self.bytes_per_s:
            self._saved -= size
