"""Log levels under Connect's names, changed while the worker runs, for `/admin/loggers`.

A level is set for a logger and for all below it, as in Connect; `root` is all of them.

Invariants:
A. This module logs nothing, so a change cannot disturb the log that it changes.
B. Python keeps a logger forever, with one entry for each part of its name. So the names that nobody logs under are
   limited in number and in length.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

ROOT = "root"
LONGEST_LOGGER_NAME = 249  # characters
MOST_UNUSED_LOGGERS = 1_000
_LEVELS = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG - 5,
    "ALL": 1,
}


class LoggerLevel(NamedTuple):
    """The effective level of a logger, and when it was last set here."""

    level: str
    last_modified_ms: int | None


def parse_level(text: str) -> str | None:
    """Return one of Connect's names, given in any case; None if it is none of them."""
    name = text.strip().upper()
    return name if name in _LEVELS else None


class LogLevels:
    """The levels of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modified_ms: dict[str, int] = {}
        self._unused: set[str] = set()

    def all(self) -> dict[str, LoggerLevel]:
        """Return every logger in use, by name."""
        with self._lock:
            return {name: self._level(name) for name in sorted([ROOT, *_names()])}

    def get(self, name: str) -> LoggerLevel | None:
        """Return one logger; None if it is not in use."""
        with self._lock:
            return self._level(name) if name == ROOT or name in _names() else None

    def may_set(self, name: str) -> bool:
        """Return whether there is such a logger, or room for one more."""
        with self._lock:
            return self._may_set(name)

    def _may_set(self, name: str) -> bool:
        has_room = len(name) <= LONGEST_LOGGER_NAME and len(self._unused) < MOST_UNUSED_LOGGERS
        return has_room or name == ROOT or name in _names()

    def set(self, name: str, level: str) -> list[str]:
        """Set the level of the logger and all below it; return the names of those that had another, sorted.

        A logger that it may not set stays as it is: another worker may have written it to the config topic.
        """
        number = _LEVELS[level]
        with self._lock:
            if not self._may_set(name):
                return []
            if name == ROOT:
                family = [ROOT, *_names()]
            else:
                if name not in _names():
                    self._unused.add(name)
                logging.getLogger(name)  # so that it is in use from now on
                family = [known for known in _names() if known == name or known.startswith(f"{name}.")]
            changed = sorted(member for member in family if _name_of(_logger(member).getEffectiveLevel()) != level)
            for member in family:
                _logger(member).setLevel(number)
            now_ms = time.time_ns() // 1_000_000
            self._modified_ms.update(dict.fromkeys(changed, now_ms))
            return changed

    def _level(self, name: str) -> LoggerLevel:
        return LoggerLevel(_name_of(_logger(name).getEffectiveLevel()), self._modified_ms.get(name))


def _names() -> list[str]:
    known = list(logging.root.manager.loggerDict.items())
    return [name for name, logger in known if isinstance(logger, logging.Logger)]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _name_of(number: int) -> str:
    """Return the name of a level; a number between two names belongs to the lower one."""
    return next((name for name, least in _LEVELS.items() if number >= least), "ALL")
