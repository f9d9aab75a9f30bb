"""Java's named character classes (`\\w`, `\\h`, `\\p{Alpha}`, `\\p{Lu}`, ...) as sets of characters.

Other engines' `\\p{}`, `\\w`, `\\d` and `\\s` differ, so each is spelled out. Classes of Unicode are
computed once from `unicodedata`, whose version may be a year apart from a given Java's; names of topics are ASCII.
Scripts and blocks (`\\p{IsLatin}`, `\\p{InGreek}`) are not in Python's data and are refused.
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from heliograph.config.char_set import CharSet

if TYPE_CHECKING:
    from collections.abc import Callable

LINE_TERMINATORS = CharSet.written_as("\n\r\x85\u2028\u2029")
SHORT_CLASSES = {
    letter: CharSet.written_as(text)
    for letter, text in {
        "d": "0-9",
        "s": "\t\n\x0b\x0c\r ",
        "w": "a-zA-Z_0-9",
        "h": "\t \xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
        "v": "\n\x0b\x0c\r\x85\u2028\u2029",
    }.items()
}
_POSIX = {
    name: CharSet.written_as(text)
    for name, text in {
        "lower": "a-z",
        "upper": "A-Z",
        "ascii": "\x00-\x7f",
        "alpha": "a-zA-Z",
        "digit": "0-9",
        "alnum": "a-zA-Z0-9",
        "punct": "!-/:-@[-`{-~",
        "graph": "!-~",
        "print": " -~",
        "blank": " \t",
        "cntrl": "\x00-\x1f\x7f",
        "xdigit": "0-9a-fA-F",
        "space": "\t\n\x0b\x0c\r ",
    }.items()
}
_KINDS = {"L": "ultmo", "M": "nce", "N": "dlo", "P": "cdseifo", "S": "mcko", "Z": "slp", "C": "cfosn"}
_CATEGORIES = frozenset(_KINDS) | {kind + letter for kind, letters in _KINDS.items() for letter in letters}
_SPACES = frozenset("\t\n\x0b\x0c\r\x85")
# Alphabetic leaves out the combining vowel signs that Unicode counts as well: Python's data does not name them.
_BINARY: dict[str, Callable[[str, str], bool]] = {
    "alphabetic": lambda _, category: category[0] == "L" or category == "Nl",
    "letter": lambda _, category: category[0] == "L",
    "lowercase": lambda char, _: char.islower(),
    "uppercase": lambda char, _: char.isupper(),
    "titlecase": lambda _, category: category == "Lt",
    "punctuation": lambda _, category: category[0] == "P",
    "control": lambda _, category: category == "Cc",
    "digit": lambda _, category: category == "Nd",
    "white_space": lambda char, category: category[0] == "Z" or char in _SPACES,
    "whitespace": lambda char, category: category[0] == "Z" or char in _SPACES,
    "assigned": lambda _, category: category != "Cn",
}
# With (?i), Java's answer for these has changed between versions.
_CASED = frozenset({"lower", "upper", "Lu", "Ll", "Lt", "lowercase", "uppercase", "titlecase"})


class UnknownClassError(ValueError):
    """The name of a character class that Python's data does not have."""


def property_class(name: str, *, ignore_case: bool) -> CharSet:
    """The characters of `\\p{name}`."""
    key, equals, value = name.partition("=")
    if equals and key.lower() not in {"gc", "general_category"}:
        raise UnknownClassError
    plain = value if equals else name
    category = plain.removeprefix("Is") if not equals else plain
    lowered = category.lower() if plain.startswith("Is") else ""
    if ignore_case and not {plain.lower(), category, lowered}.isdisjoint(_CASED):
        raise UnknownClassError
    if not equals and plain.lower() in _POSIX and plain[0].isupper():
        return _POSIX[plain.lower()]
    if category in _CATEGORIES:
        return _ranges(category)
    if lowered in _BINARY:
        return _ranges(lowered)
    raise UnknownClassError


@cache
def _ranges(name: str) -> CharSet:
    def in_category(_: str, category: str) -> bool:
        return category.startswith(name)

    holds = _BINARY.get(name, in_category)
    return CharSet.of((ord(first), ord(last)) for first, last, category in _runs() if holds(first, category))


@cache
def _runs() -> tuple[tuple[str, str, str], ...]:
    """All characters, as runs of neighbours that no class tells apart: first, last, category."""

    def traits(char: str) -> tuple[str, bool, bool, bool]:
        return unicodedata.category(char), char.islower(), char.isupper(), char in _SPACES

    grouped = groupby(map(chr, range(sys.maxunicode + 1)), traits)
    runs = ((category, tuple(chars)) for (category, *_), chars in grouped)
    return tuple((chars[0], chars[-1], category) for category, chars in runs)
