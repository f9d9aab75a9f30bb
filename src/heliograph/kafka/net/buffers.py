"""Receive buffers that are used again, so that the hot path neither allocates nor page-faults.

A buffer is held by every batch that points into it and is free when the last of them is acknowledged. The pool counts
the bytes of all memory that is held: that, not the size of the batches in it, is what a task's memory limit is about.
A small answer gets a buffer of its own size, or a trickle to a slow target would hold megabytes per record. What a
batch that cannot be sent now was copied to is counted apart (`parked_bytes`): it must not keep the others from moving.
Single-threaded by design: a pool belongs to one copy loop.
"""

from __future__ import annotations

import numpy as np

_WORTH_KEEPING_BYTES = 1 << 20
_MOST_WASTE = 4  # a free buffer more than four times too large is left for a larger answer


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
        """Note that `users` more need the bytes."""
        self._users += users

    def release(self) -> None:
        """Note that one user is done; the last one gives the buffer back."""
        self._users -= 1
        if self._users == 0 and self._pool is not None:
            self._pool.give_back(self)


def room_for(size: int) -> memoryview:
    """Memory of which only what is written to is taken: a broker that says more than it sends costs nothing."""
    return np.empty(size, np.uint8).data


class BufferPool:
    """Hands out buffers and counts them."""

    def __init__(self, most_kept_bytes: int) -> None:
        self.held_bytes = 0
        self.parked_bytes = 0
        self._most_kept_bytes = most_kept_bytes
        self._kept_bytes = 0
        self._free: list[Buffer] = []

    def take(self, size: int) -> Buffer:
        """A buffer of at least `size` bytes, held by nobody yet."""
        fitting = [b for b in self._free if size <= b.capacity <= size * _MOST_WASTE]
        if fitting:
            buffer = min(fitting, key=lambda b: b.capacity)
            self._free.remove(buffer)
            self._kept_bytes -= buffer.capacity
        else:
            rounded = -(-size // _WORTH_KEEPING_BYTES) * _WORTH_KEEPING_BYTES
            buffer = Buffer(room_for(rounded if size * _MOST_WASTE > rounded else size), self)
        self.held_bytes += buffer.capacity
        return buffer

    def own(self, view: memoryview) -> Buffer:
        """Count memory that somebody else has made; held once."""
        buffer = Buffer(view, self)
        buffer.hold()
        self.held_bytes += buffer.capacity
        return buffer

    def park(self, view: memoryview) -> Buffer:
        """A copy of bytes that must wait, so that the buffer they lie in can be used again; held once."""
        buffer = Buffer(memoryview(bytearray(view)), self, is_parked=True)
        buffer.hold()
        self.parked_bytes += buffer.capacity
        return buffer

    @property
    def has_room_to_park(self) -> bool:
        """Whether bytes that could be read again may be parked: half of the memory is left to what moves."""
        return self.parked_bytes < self._most_kept_bytes // 2

    def give_back(self, buffer: Buffer) -> None:
        """Nobody holds the buffer any more."""
        if buffer.is_parked:
            self.parked_bytes -= buffer.capacity
            return
        self.held_bytes -= buffer.capacity
        is_common = buffer.capacity >= _WORTH_KEEPING_BYTES and not buffer.capacity % _WORTH_KEEPING_BYTES
        if is_common and self._kept_bytes + buffer.capacity <= self._most_kept_bytes:
            self._kept_bytes += buffer.capacity
            self._free.append(buffer)
