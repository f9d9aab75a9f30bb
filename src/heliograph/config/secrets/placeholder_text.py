"""The syntax of placeholders `${...}` in a text. Any text is searched once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Placeholder(NamedTuple):
    """One `${body}` of a text, and the text between it and the one before."""

    before: str
    body: str

    @property
    def written(self) -> str:
        """Return it as written in the text."""
        return f"${{{self.body}}}"


def placeholders(text: str) -> Iterator[Placeholder]:
    """Every placeholder; one that is not closed is none."""
    for found, _end in _found(text):
        yield found


def replace_placeholders(text: str, replacement: Callable[[Placeholder], str]) -> str:
    """The text with something else in place of each placeholder."""
    parts: list[str] = []
    done = 0
    for found, end in _found(text):
        parts += (found.before, replacement(found))
        done = end
    return "".join((*parts, text[done:]))


def is_only_placeholders(text: str) -> bool:
    """Return whether there are placeholders and nothing but blanks around them."""
    done = 0
    for found, end in _found(text):
        if found.before.strip():
            return False
        done = end
    return done > 0 and not text[done:].strip()


def _found(text: str) -> Iterator[tuple[Placeholder, int]]:
    done = 0
    while (start := text.find("${", done)) >= 0 and (end := text.find("}", start)) >= 0:
        yield Placeholder(text[done:start], text[start + 2 : end]), end + 1
        done = end + 1
