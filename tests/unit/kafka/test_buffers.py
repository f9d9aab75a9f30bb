"""Receive buffers: used again, counted while held, and never large for a small answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.kafka.net.buffers import BufferPool

MIB = 1 << 20


def test_a_released_buffer_is_used_again() -> None:
    pool = BufferPool(4 * MIB)
    first = pool.take(900_000)
    first.hold(2)
    first.release()
    assert pool.held_bytes == MIB
    first.release()
    assert pool.held_bytes == 0
    assert pool.take(800_000) is first


def test_a_small_answer_holds_little() -> None:
    pool = BufferPool(4 * MIB)
    assert pool.take(10).capacity == 10
    assert pool.held_bytes == 10


def test_no_more_is_kept_than_allowed() -> None:
    pool = BufferPool(2 * MIB)
    taken = [pool.take(MIB) for _ in range(4)]
    for buffer in taken:
        buffer.hold()
        buffer.release()
    again = [pool.take(MIB) for _ in range(4)]
    assert sum(buffer in taken for buffer in again) == 2


def test_parked_bytes_are_counted_apart() -> None:
    pool = BufferPool(MIB)
    parked = pool.park(memoryview(b"abc"))
    assert (bytes(parked.view), pool.held_bytes, pool.parked_bytes) == (b"abc", 0, 3)
    parked.release()
    assert pool.parked_bytes == 0


@given(st.lists(st.integers(1, 3 * MIB), max_size=20))
def test_what_is_held_is_counted_and_at_most_four_times_the_answers(sizes: list[int]) -> None:
    pool = BufferPool(4 * MIB)
    taken = [pool.take(size) for size in sizes]
    assert pool.held_bytes == sum(buffer.capacity for buffer in taken)
    assert all(size <= buffer.capacity <= 4 * size for size, buffer in zip(sizes, taken, strict=True))
    for buffer in taken:
        buffer.hold()
        buffer.release()
    assert pool.held_bytes == 0
