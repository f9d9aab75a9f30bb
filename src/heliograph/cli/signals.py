"""Handles SIGTERM, SIGINT and SIGHUP for the commands that run until they are stopped.

Imports and Spark take seconds to start, and a supervisor may stop the process in between: that is not a failure. This
module imports nothing slow, because a signal that arrives before its handler is installed kills the process.
"""

from __future__ import annotations

import os
import signal
import threading

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def leave_on_signals() -> None:
    """Exit with code 0 on a signal; for the time before anything has started."""
    for number in _SIGNALS:
        signal.signal(number, lambda _number, _frame: os._exit(0))


def stop_on_signals() -> threading.Event:
    """Return an event that the first signal sets; the second signal exits at once."""
    stopping = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if stopping.is_set():
            os._exit(128 + number)  # what was not committed is copied again
        stopping.set()

    for number in _SIGNALS:
        signal.signal(number, stop)
    return stopping


def reload_on_hangup(stopping: threading.Event) -> threading.Event:
    """Return an event that SIGHUP sets; the caller clears it.

    A closed terminal sends the same signal; then the process stops, as users of a terminal expect.
    """
    reloading = threading.Event()
    has_terminal = _is_terminal()

    def hang_up(_number: int, _frame: object) -> None:
        if has_terminal and not _is_terminal():
            stopping.set()
        else:
            reloading.set()

    signal.signal(signal.SIGHUP, hang_up)
    return reloading


def _is_terminal() -> bool:
    try:
        return os.isatty(1)
    except OSError:
        return False
