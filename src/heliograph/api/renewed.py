"""A value made from files, made anew when one of them has changed: users, rules, keys and certificates.

Invariant: once a value could be made there always is one. Files that cannot be used, perhaps because somebody is
writing them just now, leave the last value in place, and the log says so once.
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
    """Calls `make` at once, where it may raise, and again whenever `paths` are not what they were."""

    def __init__(self, paths: Sequence[str], make: Callable[[], T]) -> None:
        self._paths = tuple(path for path in paths if path)
        self._make = make
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._value = make()

    def get(self) -> T:
        """The value of the files as they are now."""
        stamps = self._stamps()
        with self._lock:
            if stamps != self._seen:
                self._seen = stamps
                try:
                    self._value = self._make()
                    _log.info("REST uses the new content of %s", " and ".join(self._paths))
                except (HeliographError, OSError) as error:
                    _log.warning("REST goes on with what it has read before: %s", error)
            return self._value

    def _stamps(self) -> tuple[object, ...]:
        return tuple(_stamp(path) for path in self._paths)


def _stamp(path: str) -> object:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
