"""Java's named character classes (`\\w`, `\\h`, `\\p{Alpha}`, `\\p{Lu}`, ...) as Python character classes.

Python's `re` has no `\\p{}`, and its `\\w`, `\\d`, `\\s` differ, so each is spelled out. Classes of Unicode are
computed once from `unicodedata`, whose version may be a year apart from a given Java's; names of topics are ASCII.
Scripts and blocks (`\\p{IsLatin}`, `\\p{InGreek}`) are not in Python's data and are refused.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Each is the inside of a Python character class.
LINE_TERMINATORS = r"\n\r\x85\u2028\u2029"
SHORT_CLASSES = {
    "d": "0-9",
    "s": r"\t\n\x0b\x0c\r ",
    "w": "a-zA-Z_0-9",
    "h": r"\t \xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\x0c\r\x85\u2028\u2029",
}
_PUNCTUATION = r"!-/:-@\[-`{-~"
_POSIX = {
    "lower": "a-z",
    "upper": "A-Z",
    "ascii": r"\x00-\x7f",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "punct": _PUNCTUATION,
    "graph": "!-~",
    "print": " -~",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "xdigit": "0-9a-fA-F",
    "space": r"\t\n\x0b\x0c\r ",
}
_CATEGORIES = frozenset(
    ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"]
    + ["Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs", "Cn", "L", "M", "N", "P", "S", "Z", "C"]
)
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
    """The name of a character class that cannot be told in Python."""


def property_class(name: str, *, ignore_case: bool) -> str:
    """The inside of a Python class for `\\p{name}`."""
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
def _ranges(name: str) -> str:
    holds = _BINARY.get(name, lambda _, category: category.startswith(name))
    parts: list[str] = []
    first: int | None = None
    for point in range(sys.maxunicode + 2):
        char = chr(point) if point <= sys.maxunicode else ""
        inside = bool(char) and holds(char, unicodedata.category(char))
        if inside and first is None:
            first = point
        elif not inside and first is not None:
            parts.append(f"{re.escape(chr(first))}-{re.escape(chr(point - 1))}")
            first = None
    return "".join(parts)
