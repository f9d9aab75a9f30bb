"""What Heliograph has to say about a configuration, a plan or a task, as values.

Readers of files, validation, planning and tasks produce diagnostics. The edges (command line, REST, log) render them.
No code reads the text of a message: whatever a decision needs is a field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum


class Severity(IntEnum):
    """How much a diagnostic matters; the numbers are those of Python's log levels."""

    NOTE = 20  # understood, and without effect here
    WARNING = 30  # the user should change something
    ERROR = 40  # it cannot run, or has stopped


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's document a diagnostic belongs; empty fields are unknown."""

    line: int = 0
    path: str = ""  # of a field in a YAML or JSON document
    file: str = ""


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `key` is the setting it is about as the user wrote it, and is not part of `message`."""

    severity: Severity
    message: str
    key: str = ""
    place: Place = NOWHERE

    def at(self, place: Place) -> Diagnostic:
        """Return the same finding at another place."""
        return replace(self, place=place)

    def __str__(self) -> str:
        """Render as one line: `line 3: topics: message`."""
        line = f"line {self.place.line}: " if self.place.line else ""
        name = self.key or self.place.path
        return f"{line}{name}: {self.message}" if name else f"{line}{self.message}"
