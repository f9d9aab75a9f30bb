"""Sets of characters, and Java's named classes (`\\w`, `\\h`, `\\p{Alpha}`, `\\p{Lu}`, ...) as such sets.

Java's classes nest, intersect and ignore case; the engines that match for us differ in all three, and in what `\\p{}`,
`\\w`, `\\d` and `\\s` mean. So the set itself is computed and written as one class `[...]` of plain ranges, which RE2
and `regex` read alike. Classes of Unicode are computed once from `unicodedata`, whose version may be a year apart from
a given Java's; names of topics are ASCII. Scripts and blocks (`\\p{IsLatin}`, `\\p{InGreek}`) are not in Python's data
and are refused.

Invariant: ranges are sorted, disjoint and not adjacent.
"""

from __future__ import annotations

import sys
import unicodedata
from bisect import bisect_left, bisect_right
from functools import cache
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_LAST = sys.maxunicode
_LAST_CASED = 0x1FFFF  # no character beyond has a case
_ALL_CHARACTERS = f"\0-{chr(_LAST)}"


class CharSet(NamedTuple):
    """Characters as ranges of code points, both ends included."""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> CharSet:
        """The characters of all the ranges, in whatever order they come."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return cls(tuple(merged))

    @classmethod
    def written_as(cls, text: str) -> CharSet:
        """`"a-z_"`: ranges with a dash between their ends, and single characters; a dash itself comes last."""
        ranges = []
        at = 0
        while at < len(text):
            end = at + 2 if text[at + 1 : at + 2] == "-" and at + 2 < len(text) else at
            ranges.append((ord(text[at]), ord(text[end])))
            at = end + 1
        return cls.of(ranges)

    @classmethod
    def union(cls, sets: Iterable[CharSet]) -> CharSet:
        """The characters of any of the sets."""
        return cls.of(chain.from_iterable(each.ranges for each in sets))

    def complement(self) -> CharSet:
        """All other characters."""
        starts = [0, *(last + 1 for _first, last in self.ranges)]
        ends = [*(first - 1 for first, _last in self.ranges), _LAST]
        return CharSet(tuple((first, last) for first, last in zip(starts, ends, strict=True) if first <= last))

    def intersection(self, other: CharSet) -> CharSet:
        """The characters of both."""
        return CharSet.union((self.complement(), other.complement())).complement()

    def ignoring_case(self, *, of_unicode: bool, is_range: bool) -> CharSet:
        """With the letters that Java's flag `i` adds: those of ASCII, or with the flag `u` any.

        A letter matches another if both are equal in lower case; it is in a range if its upper or lower case is.
        """
        letters, others = _case_table(of_unicode=of_unicode, is_range=is_range)
        added = (
            (other, other)
            for first, last in self.ranges
            for at in range(bisect_left(letters, first), bisect_right(letters, last))
            for other in others[at]
        )
        return CharSet.of(chain(self.ranges, added))

    def written(self) -> str:
        """The set as a class that matches one character of it."""
        inside = "".join(_escaped(f) if f == t else f"{_escaped(f)}-{_escaped(t)}" for f, t in self.ranges)
        return f"[{inside}]" if inside else f"[^{_ALL_CHARACTERS}]"


def one(char: str) -> CharSet:
    """A single character."""
    return CharSet(((ord(char), ord(char)),))


def _escaped(code: int) -> str:
    char = chr(code)
    return f"\\{char}" if char.isascii() and not char.isalnum() and char.isprintable() and char != "_" else char


@cache
def _case_table(*, of_unicode: bool, is_range: bool) -> tuple[list[int], list[tuple[int, ...]]]:
    """The letters that stand for others too, sorted, and which others each of them adds."""
    equal: dict[str, list[int]] = {}
    reached: dict[int, list[int]] = {}
    for code in range(_LAST_CASED if of_unicode else 0x80):
        upper = _upper(chr(code))
        lower = _lower(upper)
        equal.setdefault(lower, []).append(code)
        for letter in {ord(upper), ord(lower)} - {code}:
            reached.setdefault(letter, []).append(code)
    if not is_range:
        reached = {code: codes for codes in equal.values() if len(codes) > 1 for code in codes}
    return sorted(reached), [tuple(reached[code]) for code in sorted(reached)]


def _upper(char: str) -> str:
    """One letter for one letter, as Java's `Character.toUpperCase`."""
    return next((cased for cased in (char.upper(), char.title()) if len(cased) == 1), char)


def _lower(char: str) -> str:
    cased = char.lower()
    return cased if len(cased) == 1 else char


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
    """All characters, as runs of neighbours that no class distinguishes: first, last, category."""

    def traits(char: str) -> tuple[str, bool, bool, bool]:
        return unicodedata.category(char), char.islower(), char.isupper(), char in _SPACES

    grouped = groupby(map(chr, range(sys.maxunicode + 1)), traits)
    runs = ((category, tuple(chars)) for (category, *_), chars in grouped)
    return tuple((chars[0], chars[-1], category) for category, chars in runs)
