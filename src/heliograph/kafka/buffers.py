"""Receive buffers that are used again, so that the hot path neither allocates nor page-faults.

A buffer is held by every batch that points into it and is free when the last of them is acknowledged. The pool counts
the bytes of all buffers that are held: that, not the size of the batches in them, is what a task's memory limit is
about. A small answer gets a buffer of its own size, or a trickle to a slow target would hold megabytes per record.
Single-threaded by design: a pool belongs to one copy loop.
"""

from __future__ import annotations

_WORTH_POOLING = 4  # an answer that fills less than a fourth of the common buffer gets one of its own


class Buffer:
    """Memory of one response, with a count of its users."""

    __slots__ = ("_pool", "_users", "capacity", "view")

    def __init__(self, capacity: int, pool: BufferPool | None = None) -> None:
        self.capacity = capacity
        self.view = memoryview(bytearray(capacity))
        self._pool = pool
        self._users = 0

    def hold(self, users: int = 1) -> None:
        """Note that `users` more need the bytes."""
        self._users += users

    def release(self) -> None:
        """Note that one user is done; the last one gives the buffer back."""
        self._users -= 1
        if self._users == 0 and self._pool is not None:
            self._pool.give_back(self)


class BufferPool:
    """Hands out buffers of a common size, and others for what is much smaller or larger."""

    def __init__(self, common_bytes: int, most_kept_bytes: int) -> None:
        self.held_bytes = 0
        self._common_bytes = common_bytes
        self._most_kept = most_kept_bytes // common_bytes
        self._free: list[Buffer] = []

    def take(self, size: int) -> Buffer:
        """A buffer of at least `size` bytes, held by nobody yet."""
        is_common = self._common_bytes // _WORTH_POOLING <= size <= self._common_bytes
        if is_common and self._free:
            buffer = self._free.pop()
        else:
            buffer = Buffer(self._common_bytes if is_common else size, self)
        self.held_bytes += buffer.capacity
        return buffer

    def give_back(self, buffer: Buffer) -> None:
        """Nobody holds the buffer any more."""
        self.held_bytes -= buffer.capacity
        if buffer.capacity == self._common_bytes and len(self._free) < self._most_kept:
            self._free.append(buffer)
