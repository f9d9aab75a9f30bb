"""Java `.properties` text to entries, by the rules of `java.util.Properties.load`, and back to ASCII text.

A parser of our own, because MM2 users bring files with line continuations, `:` and blank separators, `!` comments and
`\\uXXXX` escapes, and messages must name the line. Invariants: entries keep their order; the last of two equal keys
wins in `as_map`; `line` is where the logical line begins; written text is read back by Java as the same entries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.diagnostics import Diagnostic, Place
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_BLANKS = " \t\f"
_SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NATURAL_LINE = re.compile(r"\r\n|\n|\r")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key=value` and the line it begins on; `place` is its name in a message if that is not the key."""

    key: str
    value: str = field(repr=False)
    line: int
    place: str = ""


class Parsed(NamedTuple):
    """The entries of a text, and a problem for each line that Java could not read."""

    entries: list[Entry]
    problems: list[Diagnostic]


def parse_properties(text: str) -> list[Entry]:
    """Return every entry of the text, in order; raises a ConfigError with every line that cannot be read."""
    entries, problems = parse_leniently(text)
    if problems:
        raise ConfigError(problems)
    return entries


def parse_leniently(text: str) -> Parsed:
    """Return the entries and the problems; an entry that cannot be read is left as it is written."""
    parsed = Parsed([], [])
    for logical, line in _logical_lines(text):
        try:
            parsed.entries.append(_parse_entry(logical, line))
        except ConfigError as error:
            parsed.problems.extend(error.problems)
            parsed.entries.append(_parse_entry(logical.replace("\\", "\\\\"), line))
    return parsed


def as_map(entries: list[Entry]) -> dict[str, str]:
    """Return the entries as Java would hold them: the last of equal keys wins."""
    return {entry.key: entry.value for entry in entries}


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    pending, started = "", 0
    for number, raw in enumerate(_NATURAL_LINE.split(text), start=1):
        line = raw.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        started = started if pending else number
        if _ends_in_open_backslash(line):
            # A NUL keeps "pending" truthy even where the first piece is empty; it is cut off again below.
            pending += line[:-1] if pending else "\0" + line[:-1]
            continue
        yield (pending + line).removeprefix("\0"), started
        pending = ""
    if pending:
        yield pending.removeprefix("\0"), started


def _ends_in_open_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _parse_entry(logical: str, line: int) -> Entry:
    end = _key_end(logical)
    rest = logical[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return Entry(_unescape(logical[:end], line), _unescape(rest, line), line)


def _key_end(logical: str) -> int:
    at = 0
    while at < len(logical):
        if logical[at] == "\\":
            at += 2
        elif logical[at] in "=:" + _BLANKS:
            return at
        else:
            at += 1
    return len(logical)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char != "\\":
            out.append(char)
            at += 1
        elif text[at + 1 : at + 2] == "u":
            digits = text[at + 2 : at + 6]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise ConfigError("\\u must be followed by four hexadecimal digits.", place=Place(line))
            out.append(chr(int(digits, 16)))
            at += 6
        else:
            following = text[at + 1 : at + 2]
            out.append(_SIMPLE_ESCAPES.get(following, following))
            at += 2
    # Java's text is UTF-16: two escapes may be one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def properties_text(entries: Iterable[tuple[str, str]], comments: Iterable[str] = ()) -> str:
    """Return comments, then one `name = value` per line."""
    lines = [f"# {_ascii(' '.join(comment.split()))}" for comment in comments]
    return "\n".join([*lines, *(f"{_name(name)} = {_value(value)}" for name, value in entries)]) + "\n"


def _name(text: str) -> str:
    escaped = "".join("\\" + char if char in " =:#!" else _ESCAPES.get(char, char) for char in text)
    return _ascii(escaped)


def _value(text: str) -> str:
    escaped = "".join(_ESCAPES.get(char, char) for char in text)
    return _ascii("\\" + escaped if escaped.startswith(" ") else escaped)


def _ascii(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if " " <= char <= "~" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))
