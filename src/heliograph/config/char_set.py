"""Sets of characters, written as one class `[...]` that RE2 and `regex` read alike.

Java's classes nest, intersect and ignore case; the engines that match for us differ in all three. So the set itself is
computed, and what an engine sees is a plain list of ranges.

Invariant: ranges are sorted, disjoint and not adjacent.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

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
