"""A warning that clients can cause as often as they like, logged at intervals with a count."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


_EVERY_S = 60.0


class RepeatedWarning:
    """Logs the first occurrence, and then at most once a minute."""

    def __init__(self, log: logging.Logger, text: str) -> None:
        self._log = log
        self._text = f"{text} (%d times)"
        self._last: float | None = None
        self._count = 0

    def log(self, *values: object) -> None:
        """Count an occurrence; `values` are those of the text."""
        self._count += 1
        now = time.monotonic()
        if self._last is not None and now - self._last < _EVERY_S:
            return
        self._log.warning(self._text, *values, self._count)
        self._last, self._count = now, 0
