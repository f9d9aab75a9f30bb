"""Telling troubles well: many topics with one reason are one sentence, and what does not change is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable, Mapping

_MOST_NAMES = 5


def by_reason(sentence: str, failures: Mapping[str, object]) -> tuple[str, ...]:
    """One sentence per reason: `sentence` has a place `{names}` for what failed, and the reason follows it."""
    names_of: dict[str, list[str]] = {}
    for name, reason in failures.items():
        names_of.setdefault(str(reason), []).append(name)
    return tuple(f"{sentence.format(names=enumerated(names))}: {reason}" for reason, names in names_of.items())


def enumerated(names: Iterable[str]) -> str:
    """`a, b and 7 more`."""
    listed = sorted(names)
    more = f" and {len(listed) - _MOST_NAMES} more" if len(listed) > _MOST_NAMES else ""
    return ", ".join(listed[:_MOST_NAMES]) + more


class ToldOnce:
    """Logs each sentence the first time only."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told: set[str] = set()

    def tell(self, level: int, sentence: str) -> None:
        """Log the sentence, unless it was."""
        if sentence not in self._told:
            self._told.add(sentence)
            self._log.log(level, "%s", sentence)
