"""Slow, blocking work of a task in a thread of its own, so that its loop runs and its lease is kept meanwhile.

`load_kernels` is such work on a machine that never ran the kernels: compiling them takes longer than a lease lasts
without a report.
"""

from __future__ import annotations

import fcntl
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from heliograph.wire.batches.forward import warm_up
from heliograph.wire.batches.kernel_cache import own_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from heliograph.executor.contract.task_report import TaskEvents

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


def load_kernels(events: TaskEvents) -> None:
    """Load the kernels; compile those that this machine lacks once for all of its tasks, with an event."""
    began = time.monotonic()
    with _alone():
        compiled = warm_up()
    if compiled:
        host, duration_s = platform.node(), time.monotonic() - began
        events.inform(f"{compiled} kernels were compiled on {host} in {duration_s:.0f} s; it keeps them.")


@contextmanager
def _alone() -> Iterator[None]:
    """Wait while another process of this machine compiles."""
    folder = own_folder()
    if folder is None:
        yield
        return
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
