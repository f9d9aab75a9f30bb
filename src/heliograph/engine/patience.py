"""Lets something slow and blocking be done while a task's lease is kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_LOOK_UP_S = 0.05


def done_patiently(work: Callable[[], T], stay_alive: Callable[[], bool]) -> T | None:
    """What `work` returns or raises; None where `stay_alive` says, between looks, that nobody waits for it any more."""
    helper = ThreadPoolExecutor(1, "patience")
    try:
        future = helper.submit(work)
        while not future.done():
            if not stay_alive():
                return None
            wait([future], _LOOK_UP_S)
        return future.result()
    finally:
        helper.shutdown(wait=False)
