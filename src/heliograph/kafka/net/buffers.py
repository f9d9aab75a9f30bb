"""Receive buffers that are reused, so that the hot path neither allocates nor page-faults.

Every batch that points into a buffer holds it; the buffer is free when the last of them is acknowledged. The pool
counts the bytes of all held memory, since a task's memory limit applies to that and not to the size of the batches.
A small response gets a buffer of its own size, or a trickle to a slow target would hold megabytes per record. Copies of
batches that cannot be sent now are counted apart (`parked_bytes`): they must not keep other batches from moving.
Single-threaded by design: a pool belongs to one copy loop.
"""

from __future__ import annotations

import numpy as np

_UNIT_BYTES = 1 << 20
_MAX_OVERSIZE = 4  # a free buffer more than four times too large is left for a larger response


class Buffer:
    """Memory of one response or one batch, with a count of its users."""

    __slots__ = ("_pool", "_users", "capacity", "is_parked", "view")

    def __init__(self, view: memoryview, pool: BufferPool | None = None, *, is_parked: bool = False) -> None:
        self.capacity = len(view)
        self.view = view
        self._pool = pool
        self.is_parked = is_parked
        self._users = 0

    def hold(self, users: int = 1) -> None:
        """Add users of the bytes."""
        self._users += users

    def release(self) -> None:
        """Remove a user; the last one returns the buffer to its pool."""
        self._users -= 1
        if self._users == 0 and self._pool is not None:
            self._pool.give_back(self)


def room_for(size: int) -> memoryview:
    """Return memory that costs nothing until it is written to, in case a broker sends less than it announces."""
    return np.empty(size, np.uint8).data


class BufferPool:
    """Lends buffers and counts their bytes."""

    def __init__(self, max_kept_bytes: int) -> None:
        self.held_bytes = 0
        self.parked_bytes = 0
        self._max_kept_bytes = max_kept_bytes
        self._kept_bytes = 0
        self._free: list[Buffer] = []

    def take(self, size: int) -> Buffer:
        """Return a buffer of at least `size` bytes, without a user yet."""
        fitting = [b for b in self._free if size <= b.capacity <= size * _MAX_OVERSIZE]
        if fitting:
            buffer = min(fitting, key=lambda b: b.capacity)
            self._free.remove(buffer)
            self._kept_bytes -= buffer.capacity
        else:
            rounded = -(-size // _UNIT_BYTES) * _UNIT_BYTES
            buffer = Buffer(room_for(rounded if size * _MAX_OVERSIZE > rounded else size), self)
        self.held_bytes += buffer.capacity
        return buffer

    def own(self, view: memoryview) -> Buffer:
        """Count memory that was allocated elsewhere; the buffer has one user."""
        buffer = Buffer(view, self)
        buffer.hold()
        self.held_bytes += buffer.capacity
        return buffer

    def park(self, view: memoryview) -> Buffer:
        """Copy bytes that must wait, so that the buffer they lie in can be reused; the copy has one user."""
        buffer = Buffer(memoryview(bytearray(view)), self, is_parked=True)
        buffer.hold()
        self.parked_bytes += buffer.capacity
        return buffer

    @property
    def has_room_to_park(self) -> bool:
        """Return whether bytes that could be fetched again may be parked; half of the memory is for moving batches."""
        return self.parked_bytes < self._max_kept_bytes // 2

    def give_back(self, buffer: Buffer) -> None:
        """Take a buffer back from its last user."""
        if buffer.is_parked:
            self.parked_bytes -= buffer.capacity
            return
        self.held_bytes -= buffer.capacity
        is_reusable = buffer.capacity >= _UNIT_BYTES and not buffer.capacity % _UNIT_BYTES
        if is_reusable and self._kept_bytes + buffer.capacity <= self._max_kept_bytes:
            self._kept_bytes += buffer.capacity
            self._free.append(buffer)
