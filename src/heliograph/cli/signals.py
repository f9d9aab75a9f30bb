"""How a command that runs until it is stopped meets SIGTERM and SIGINT, from its first moment on.

Imports and Spark take seconds to start, and a supervisor may stop the process in between: that is no failure. This
module imports nothing that takes time, because a signal that arrives before its handlers are there ends the process.
"""

from __future__ import annotations

import os
import signal
import threading

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def leave_on_signals() -> None:
    """End the process with exit code 0 on a signal: as long as nothing has begun, nothing has to be ended."""
    for number in _SIGNALS:
        signal.signal(number, lambda _number, _frame: os._exit(0))


def stop_on_signals() -> threading.Event:
    """Set when someone asks us to stop; asked twice, we leave at once."""
    stopping = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if stopping.is_set():
            os._exit(128 + number)  # asked twice: leave at once; what was not committed is copied again
        stopping.set()

    for number in _SIGNALS:
        signal.signal(number, stop)
    return stopping
