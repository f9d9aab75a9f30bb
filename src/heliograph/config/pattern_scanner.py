"""A place in a pattern that moves on: what reads Java's regexes takes one thing after the other from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re


class PatternScanner:
    """One pass over a pattern; `_at` is where the next thing stands."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def _takes(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self._pattern, self._at)
        if match:
            self._at = match.end()
        return match
