"""Handles SIGTERM, SIGINT and SIGHUP for the commands that run until they are stopped.

Imports and Spark take seconds to start, and a supervisor may stop the process in between: that is not a failure. It may
also ask for a reload: that is remembered until the command looks. This module imports nothing slow, because a signal
that arrives before its handler is installed kills the process.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_hung_up = threading.Event()


def leave_on_signals() -> None:
    """Exit with code 0 on a signal, and remember SIGHUP; for the time before anything has started."""
    for number in _SIGNALS:
        signal.signal(number, lambda _number, _frame: os._exit(0))
    _remember_hangup(lambda: os._exit(0))


def stop_on_signals() -> threading.Event:
    """Return an event that the first signal sets; the second signal exits at once. SIGHUP is remembered."""
    stopping = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if stopping.is_set():
            os._exit(128 + number)  # what was not committed is copied again
        stopping.set()

    for number in _SIGNALS:
        signal.signal(number, stop)
    _remember_hangup(stopping.set)
    return stopping


def hung_up() -> threading.Event:
    """Return the event that SIGHUP sets, or has set since the process started; the caller clears it."""
    return _hung_up


def _remember_hangup(leave: Callable[[], None]) -> None:
    """Set the event on SIGHUP.

    A closed terminal sends the same signal; then the process leaves, as users of a terminal expect.
    """
    has_terminal = _is_terminal()

    def hang_up(_number: int, _frame: object) -> None:
        if has_terminal and not _is_terminal():
            leave()
        else:
            _hung_up.set()

    signal.signal(signal.SIGHUP, hang_up)


def _is_terminal() -> bool:
    try:
        return os.isatty(1)
    except OSError:
        return False
