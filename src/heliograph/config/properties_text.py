"""Entries to `.properties` text that `java.util.Properties.load` reads back as the same, in ASCII."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def properties_text(entries: Iterable[tuple[str, str]], comments: Iterable[str] = ()) -> str:
    """Comments, then one `name = value` per line."""
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
