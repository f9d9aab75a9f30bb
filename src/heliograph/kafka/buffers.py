"""Receive buffers that are used again, so that the hot path neither allocates nor page-faults.

A buffer is held by every batch that points into it and goes back to the pool when the last of them is acknowledged.
Single-threaded by design: a pool belongs to one copy loop.
"""

from __future__ import annotations


class Buffer:
    """Memory of one response, with a count of its users."""

    __slots__ = ("_pool", "_users", "capacity", "view")

    def __init__(self, capacity: int, pool: BufferPool | None) -> None:
        self.capacity = capacity
        self.view = memoryview(bytearray(capacity))
        self._pool = pool
        self._users = 0

    def hold(self, users: int = 1) -> None:
        """Note that `users` more need the bytes."""
        self._users += users

    def release(self, users: int = 1) -> None:
        """Note that `users` are done; the last one gives the buffer back."""
        self._users -= users
        if self._users == 0 and self._pool is not None:
            self._pool.give_back(self)


class BufferPool:
    """Keeps free buffers up to a number of bytes; what is larger than `common_bytes` is not kept."""

    def __init__(self, common_bytes: int, most_kept_bytes: int) -> None:
        self._common_bytes = common_bytes
        self._most_kept_bytes = most_kept_bytes
        self._free: list[Buffer] = []

    def take(self, size: int) -> Buffer:
        """A buffer of at least `size` bytes, held by nobody yet."""
        if size > self._common_bytes:
            return Buffer(size, None)
        return self._free.pop() if self._free else Buffer(self._common_bytes, self)

    def give_back(self, buffer: Buffer) -> None:
        """Keep the buffer for the next response."""
        if (len(self._free) + 1) * self._common_bytes <= self._most_kept_bytes:
            self._free.append(buffer)
