"""Receive buffers: used again, counted while held, and never large for a small answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.kafka.buffers import BufferPool


def test_a_released_buffer_is_used_again() -> None:
    pool = BufferPool(1000, 4000)
    first = pool.take(900)
    first.hold(2)
    first.release()
    assert pool.held_bytes == 1000
    first.release()
    assert pool.held_bytes == 0
    assert pool.take(800) is first


def test_a_small_answer_holds_little() -> None:
    pool = BufferPool(1000, 4000)
    assert pool.take(10).capacity == 10
    assert pool.held_bytes == 10


def test_a_large_answer_gets_what_it_needs() -> None:
    pool = BufferPool(1000, 4000)
    assert pool.take(5000).capacity == 5000


@given(st.lists(st.integers(1, 3000), max_size=50))
def test_what_is_held_is_counted_and_at_most_four_times_the_answers(sizes: list[int]) -> None:
    pool = BufferPool(1000, 4000)
    taken = [pool.take(size) for size in sizes]
    assert pool.held_bytes == sum(buffer.capacity for buffer in taken)
    assert all(size <= buffer.capacity <= 4 * size for size, buffer in zip(sizes, taken, strict=True))
    for buffer in taken:
        buffer.hold()
        buffer.release()
    assert pool.held_bytes == 0
