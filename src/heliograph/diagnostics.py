"""Findings about a configuration, a plan or a task, as values.

Readers of files, validation, planning and tasks produce diagnostics; the command line, REST and the log render them.
No code reads the text of a message: whatever a decision needs is a field. A key that a message mentions is a value,
too (`Mention`), because the user's document may call it by another name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(IntEnum):
    """The weight of a diagnostic; the numbers are those of Python's log levels."""

    NOTE = 20  # understood, and without effect here
    WARNING = 30  # the user should change something
    ERROR = 40  # it cannot run, or has stopped


@dataclass(frozen=True, slots=True)
class Place:
    """The part of the user's document that a diagnostic is about; empty fields are unknown."""

    line: int = 0
    path: str = ""  # the name of the setting in the user's document: a field of YAML or JSON, or a key
    document: str = ""  # the file, or the part of one, if there are several


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Mention:
    """A key that a message names, in the form of a properties file.

    `is_advice` marks a name that the user should write: a document without prefixes shows it without its prefix.
    """

    name: str
    is_advice: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class WithPrefix:
    """The prefix a key is written with, as a phrase: a document without prefixes shows `here` instead."""

    prefix: str

    def __str__(self) -> str:
        return f"after '{self.prefix}'"


Part = str | Mention | WithPrefix


@dataclass(frozen=True, slots=True)
class Text:
    """A message that mentions keys."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, *parts: Part) -> Text:
        """Return the message that consists of the parts."""
        return cls(parts)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `key` is the setting it is about, by its name in a properties file, and is not part of `message`. `suggestion` is
    the name that may be meant by a mistyped one; the message has it, too.
    """

    severity: Severity
    message: str | Text
    key: str = ""
    place: Place = NOWHERE
    suggestion: str = ""

    def at(self, place: Place) -> Diagnostic:
        """Return the same finding at another place."""
        return replace(self, place=place)

    def within(self, document: str) -> Diagnostic:
        """Return the same finding in a document of this name."""
        return self.at(replace(self.place, document=document))

    def about(self, key: str) -> Diagnostic:
        """Return the same finding about another key."""
        return replace(self, key=key)

    def saying(self, message: str | Text) -> Diagnostic:
        """Return the same finding with another message."""
        return replace(self, message=message)

    def __str__(self) -> str:
        """Render as one line: `mm2.yaml: line 3: topics: message`."""
        line = f"line {self.place.line}" if self.place.line else ""
        parts = (self.place.document, line, self.place.path or self.key, str(self.message))
        return ": ".join(filter(None, parts))


class Diagnosed:
    """Anything that carries diagnostics, by their severity."""

    __slots__ = ()
    diagnostics: tuple[Diagnostic, ...]

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Return what keeps it from running."""
        return with_severity(self.diagnostics, Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Return what the user should change."""
        return with_severity(self.diagnostics, Severity.WARNING)

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """Return what is understood and has no effect here."""
        return with_severity(self.diagnostics, Severity.NOTE)


def with_severity(diagnostics: Iterable[Diagnostic], severity: Severity) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of one severity."""
    return tuple(each for each in diagnostics if each.severity is severity)


def problem(message: str | Text, key: str = "", place: Place = NOWHERE) -> Diagnostic:
    """Return an error."""
    return Diagnostic(Severity.ERROR, message, key, place)


def warning(message: str | Text, key: str = "", place: Place = NOWHERE) -> Diagnostic:
    """Return a warning."""
    return Diagnostic(Severity.WARNING, message, key, place)


def note(message: str | Text, key: str = "", place: Place = NOWHERE) -> Diagnostic:
    """Return a note."""
    return Diagnostic(Severity.NOTE, message, key, place)


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return each diagnostic once, in the order of the document; those without a line come first."""
    return tuple(sorted(dict.fromkeys(diagnostics), key=lambda each: each.place.line))
