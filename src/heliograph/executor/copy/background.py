"""Slow, blocking work of a task in a thread of its own, so that its loop runs and its lease is kept meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

T = TypeVar("T")
_CHECK_INTERVAL_S = 0.05


def in_background(work: Callable[[], T]) -> Future[T]:
    """Start the work in a thread of its own."""
    pool = ThreadPoolExecutor(1, "heliograph-background")
    try:
        return pool.submit(work)
    finally:
        pool.shutdown(wait=False)


def wait_under_lease(work: Callable[[], T], keep_lease: Callable[[], bool]) -> T | None:
    """Return what the work returns, or raise what it raises; None as soon as `keep_lease` returns False."""
    future = in_background(work)
    while not future.done():
        if not keep_lease():
            return None
        wait([future], _CHECK_INTERVAL_S)
    return future.result()
