"""A value made from files, made again when one of them has changed: users, rules, keys and certificates.

Invariant: after the first value there always is one. Unusable files, perhaps because they are being written, leave the
last value in place and are tried again each time; the log reports it once.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from heliograph.errors import HeliographError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_log = logging.getLogger(__name__)
T = TypeVar("T")


class Renewed(Generic[T]):
    """Calls `make` at once, which may raise, and again whenever `paths`, or the value of `more`, have changed."""

    def __init__(self, paths: Sequence[str], make: Callable[[], T], more: Callable[[], object] = lambda: None) -> None:
        self._paths = tuple(path for path in paths if path)
        self._make = make
        self._more = more
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._reported: object = None
        self._value = make()

    def get(self) -> T:
        """Return the value of the files as they are now."""
        stamps = self._stamps()
        with self._lock:
            if stamps != self._seen:
                try:
                    self._value = self._make()
                except (HeliographError, OSError) as error:
                    if self._reported != stamps:
                        _log.warning("REST continues with the files as last read: %s", error)
                    self._reported = stamps
                else:
                    self._seen = stamps
                    _log.info("REST uses the new content of %s", " and ".join(self._paths) or "its placeholders")
            return self._value

    def _stamps(self) -> tuple[object, ...]:
        try:
            more = self._more()
        except (HeliographError, OSError):
            more = None
        return (*(_stamp(path) for path in self._paths), more)


def _stamp(path: str) -> object:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
