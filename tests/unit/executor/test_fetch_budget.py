"""A limit of bytes per second, its shares, and another one while a copy runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heliograph.executor.copy.fetch_budget import ByteRate
from heliograph.mirror.topics.task_assignment import rate_share
from tests.support.runs.copying import wait_for
from tests.unit.executor.test_cut_sources import Mirror

MB = 1 << 20


@given(st.integers(1, 1 << 40), st.integers(1, 1000))
def test_shares_make_up_the_limit(bytes_per_s: int, tasks: int) -> None:
    together = rate_share(bytes_per_s, tasks) * tasks
    assert together > bytes_per_s - tasks
    assert together <= max(bytes_per_s, tasks), "each may read something, however low the limit"


def test_no_limit_is_no_limit_for_each() -> None:
    assert rate_share(0, 3) == 0
    assert ByteRate(0, 50 * MB, 0.0).allowed_bytes(1.0, 7 * MB) == 7 * MB


@given(st.lists(st.tuples(st.integers(1, 64 * MB), st.floats(0.01, 3.0)), min_size=1, max_size=8))
def test_what_is_read_is_what_the_limits_allow(changes: list[tuple[int, float]]) -> None:
    """Whoever asks again and again for all there is gets the sum of the limits over their times, and little more."""
    now, read, allowed = 0.0, 0, 0.0
    rate = ByteRate(changes[0][0], 50 * MB, now)
    at_once = rate.allowed_bytes(now, 1 << 40)
    rate.spend(at_once)
    for bytes_per_s, seconds in changes:
        rate.change(bytes_per_s, now)
        for _step in range(100):
            now += seconds / 100
            got = rate.allowed_bytes(now, 1 << 40)
            rate.spend(got)
            read += got
        allowed += bytes_per_s * seconds
        assert rate.answer_bytes <= max(64 << 10, bytes_per_s // 8)
    assert abs(read - allowed) <= 2 + allowed * 1e-6


def test_what_was_overdrawn_before_a_change_is_made_good_after_it() -> None:
    rate = ByteRate(1 * MB, 50 * MB, 0.0)
    rate.spend(rate.allowed_bytes(0.0, 1 << 40) + 2 * MB)
    rate.change(2 * MB, 0.0)
    assert rate.allowed_bytes(0.9, 1 << 40) == 0
    assert rate.allowed_bytes(1.5, 1 << 40) > 0


def test_what_came_without_a_limit_is_not_held_against_a_later_one() -> None:
    rate = ByteRate(0, 8 * MB, 0.0)
    rate.spend(8000 * MB)
    rate.change(1 * MB, 10.0)
    assert rate.allowed_bytes(11.0, 1 << 40) > 0


def test_a_running_copy_takes_over_another_share() -> None:
    mirror = Mirror()
    with mirror.source, mirror.target:
        spec = mirror.spec(bytes_per_s=2 * MB)
        join = mirror.run(spec)
        assert mirror.loop._clients.fetcher.limits.max_bytes == 2 * MB // 8
        mirror.lease.bytes_per_s, mirror.lease.assignment = 8 * MB, spec.partitions
        wait_for(lambda: mirror.loop._budget.rate.bytes_per_s == 8 * MB, 60)
        wait_for(lambda: mirror.loop._clients.fetcher.limits.max_bytes == 8 * MB // 8, 60)
        mirror.led(0, "abc")
        mirror.until_copied("abc")
        mirror.stop(join)
