"""Java regular expressions translated for the engines that match them: RE2, and `regex` for what is beyond RE2.

Translated is what differs from other engines: ASCII `\\w` `\\d` `\\s`, `\\h` `\\v` `\\R`, `\\p{...}`, `\\Q...\\E`,
`\\z` `\\Z` `$`, what `.` leaves out, `(?<n>...)` and `\\k<n>`, nested classes and `&&`, flags `i` `s` `u` in the middle
of a pattern, octal, `\\x{...}`. What cannot be translated is refused with a reason, never matched differently: flags
`m` `d` `x` `U`, scripts and blocks, `\\X`, look-behind of varying length, references to a group that is not closed yet.
The input is limited: its depth, and the size that counts such as `{1000}` unfold to.

Invariant: every atom is emitted so that a quantifier may follow, and a character class always matches one character.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.syntax.character_sets import (
    LINE_TERMINATORS,
    SHORT_CLASSES,
    CharSet,
    UnknownClassError,
    one,
    property_class,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


_MOST_PARTS = 200_000  # characters, ranges of classes and repetitions, written out
_OF_ALL_CASES = 256  # parts that a range of other letters than ASCII's counts for, because many letters are compared
_DEEPEST = 100
_ANY = CharSet(()).complement()
_DOT = LINE_TERMINATORS.complement()
_WORD = SHORT_CLASSES["w"].written()
OF_RE2 = {"b": r"(?:\b)", "B": r"(?:\B)", "A": r"(?:\A)", "G": r"(?:\A)", "z": r"(?:\z)", "Z": r"(?:\z)"}
OF_REGEX = {
    # Of ASCII words, as from Java 19 on; spelled out because Python's \B does not hold in an empty name.
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
    "A": r"(?:\A)",
    "G": r"(?:\A)",
    "z": r"(?:\Z)",
    "Z": "(?:(?=\r\n\\Z)|(?=[\r\x85\u2028\u2029]\\Z)|(?<!\r)(?=\n\\Z)|\\Z)",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_LINE_BREAK = f"(?:\r\n|{SHORT_CLASSES['v'].written()})"
_QUANTIFIER = re.compile(r"(?:[?*+]|\{([0-9]{1,9})(?:,([0-9]{0,9}))?\})[?+]?")
_GROUP_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*+")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,8})\}|u([0-9a-fA-F]{4})")
_FLAGS = re.compile(r"([a-zA-Z]*+)(?:-([a-zA-Z]*+))?([:)])")
_PLAIN_GROUP, _LOOK_BEHIND = "?:", ("?<=", "?<!")
_SPECIAL_GROUPS = (_PLAIN_GROUP, "?=", "?!", *_LOOK_BEHIND, "?>")


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


class JavaRegexError(ValueError):
    """A pattern that Java refuses, or that cannot be matched as Java does; the text is the reason."""


class Translated(NamedTuple):
    """A pattern in an engine's words, and what it asks of an engine."""

    text: str
    groups: int
    has_end: bool
    is_beyond_re2: bool
    looks_behind: bool
    has_unicode_references: bool


def translated_for(pattern: str, anchors: Mapping[str, str]) -> Translated:
    """The pattern with one engine's anchors; raises JavaRegexError."""
    return _Translator(*_unquote(pattern), anchors).translate()


def _unquote(pattern: str) -> tuple[str, list[int]]:
    """Without `\\Q...\\E`: what stood between them is escaped; and where each character stood in the pattern."""
    plain: list[str] = []
    places: list[int] = []
    at = 0
    while at < len(pattern):
        if not pattern.startswith(r"\Q", at):
            taken = pattern[at : at + 2] if pattern[at] == "\\" else pattern[at]
            plain.append(taken)
            places += range(at, at + len(taken))
            at += len(taken)
            continue
        end = pattern.find(r"\E", at + 2)
        end = len(pattern) if end < 0 else end
        for place in range(at + 2, end):
            char = pattern[place]
            escaped = char if char.isalnum() else f"\\{char}"
            plain.append(escaped)
            places += [place] * len(escaped)
        at = end + len(r"\E")
    return "".join(plain), places


class _Translator(PatternScanner):
    """One pass over a pattern: each method reads what stands at `_at` and gives it in an engine's words."""

    def __init__(self, pattern: str, places: list[int], anchors: Mapping[str, str]) -> None:
        super().__init__(pattern)
        self._places = places
        self._anchors = anchors
        self._parts = 0
        self._depth = 0
        self._has_end = self._is_beyond_re2 = self._looks_behind = False
        self._reference_kinds: set[bool] = set()
        self._flags: frozenset[str] = frozenset()
        self._opened = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}

    def translate(self) -> Translated:
        text = self._alternatives()
        if self._at < len(self._pattern):
            raise self._error("a ')' has no '(' before it", self._at)
        return Translated(
            text, self._opened, self._has_end, self._is_beyond_re2, self._looks_behind, True in self._reference_kinds
        )

    # --- reading -----------------------------------------------------------------------------------
    def _peek(self, ahead: int = 0) -> str:
        return self._pattern[self._at + ahead : self._at + ahead + 1]

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _error(self, words: str, at: int) -> JavaRegexError:
        """A refusal with the place in the user's pattern, counted from 1; `at` is one in ours."""
        place = self._places[at] + 1 if at < len(self._places) else len(self._places)
        return JavaRegexError(f"at character {place}, {words}")

    # --- limits ------------------------------------------------------------------------------------
    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > _MOST_PARTS:
            words = f"the pattern has become larger than {_MOST_PARTS} characters; use smaller counts or classes"
            raise self._error(words, self._at - 1)

    def _enter(self, opened_at: int) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(f"more than {_DEEPEST} brackets are nested", opened_at)

    # --- structure ---------------------------------------------------------------------------------
    def _alternatives(self) -> str:
        """Up to a `)` or the end. Flags set inside hold up to there, through later alternatives too, as in Java."""
        parts: list[str] = []
        while self._at < len(self._pattern) and self._peek() != ")":
            if self._takes("|"):
                parts.append("|")
            else:
                before = self._parts
                atom = self._atom()
                self._count(1)
                parts.append(atom + self._quantifier(self._parts - before) if atom else "")
        return "".join(parts)

    def _quantifier(self, size: int) -> str:
        """Read the quantifier after an atom of that size."""
        start = self._at
        match = self._match(_QUANTIFIER)
        if not match:
            return ""
        if match[2] and int(match[1]) > int(match[2]):
            raise self._error(f"{match[0]} counts down", start)
        if match[0].endswith("+") and len(match[0]) > 1:
            self._is_beyond_re2 = True
        self._count(size * max(0, int(match[2] or match[1] or 1) - 1))
        return match[0]

    def _atom(self) -> str:
        char = self._take()
        if char == "(":
            return self._group()
        if char == "[":
            return self._written(self._class())
        if char == "\\":
            return self._escape()
        if char == ".":
            return self._written(_ANY if "s" in self._flags else _DOT)
        if char in "^$":
            return self._anchor("A" if char == "^" else "Z")
        if char == "{":
            raise self._error(
                "a '{' begins no count such as {2} or {2,}; write \\{ for the character itself", self._at - 1
            )
        if char in "*+?":
            words = f"a '{char}' has nothing before it to repeat; write \\{char} for the character itself"
            raise self._error(words + (", .* for any name" if char == "*" else ""), self._at - 1)
        return self._character(char)

    def _anchor(self, letter: str) -> str:
        self._has_end = self._has_end or letter == "Z"
        return self._anchors[letter]

    def _character(self, char: str) -> str:
        return self._written(self._cased(one(char), is_range=False)) if "i" in self._flags else re.escape(char)

    def _cased(self, chars: CharSet, *, is_range: bool) -> CharSet:
        if "i" not in self._flags:
            return chars
        of_unicode = "u" in self._flags
        self._count(_OF_ALL_CASES if is_range and of_unicode and chars.ranges else 0)
        return chars.ignoring_case(of_unicode=of_unicode, is_range=is_range)

    def _written(self, chars: CharSet) -> str:
        self._count(len(chars.ranges))
        return chars.written()

    # --- groups ------------------------------------------------------------------------------------
    def _group(self) -> str:
        opened_at = self._at - 1
        for opening in _SPECIAL_GROUPS:
            if self._takes(opening):
                self._is_beyond_re2 = self._is_beyond_re2 or opening != _PLAIN_GROUP
                self._looks_behind = self._looks_behind or opening in _LOOK_BEHIND
                return self._closed_group(f"({opening}", self._flags, opened_at)
        if self._takes("?<"):
            name = self._group_name(">")
            if name in self._names:
                raise self._error(f"the group name '{name}' is given twice", opened_at)
            self._names[name] = self._opened + 1
            return self._capturing(f"(?P<{name}>", opened_at)
        if self._takes("?"):
            return self._flag_group(opened_at)
        return self._capturing("(", opened_at)

    def _capturing(self, opening: str, opened_at: int) -> str:
        self._opened += 1
        number = self._opened
        translated = self._closed_group(opening, self._flags, opened_at)
        self._closed.add(number)
        return translated

    def _closed_group(self, opening: str, outer: frozenset[str], opened_at: int) -> str:
        self._enter(opened_at)
        inside = self._alternatives()
        if not self._takes(")"):
            raise self._error("a '(' is not closed", opened_at)
        self._depth -= 1
        self._flags = outer
        return f"{opening}{inside})"

    def _flag_group(self, opened_at: int) -> str:
        match = self._match(_FLAGS)
        if not match:
            raise self._error(f"Java has no group '(?{self._peek()}'", opened_at)
        on, off, end = match[1], match[2] or "", match[3]
        unknown = sorted(set(on + off) - set("isu"))
        if unknown:
            raise self._error(f"the flag '{unknown[0]}' is not supported, only i, s and u are", opened_at)
        outer = self._flags
        self._flags = (outer | set(on)) - set(off)
        return self._closed_group("(?:", outer, opened_at) if end == ":" else ""

    def _group_name(self, end: str) -> str:
        start = self._at
        match = self._match(_GROUP_NAME)
        if not match or not self._takes(end):
            raise self._error("a group's name is letters and digits between < and >", start)
        return match[0]

    # --- escapes outside of a class ----------------------------------------------------------------
    def _escape(self) -> str:
        char = self._peek()
        if char in self._anchors:
            self._at += 1
            return self._anchor(char)
        if self._takes("R"):
            return _LINE_BREAK
        start = self._at - 1
        if self._takes("k<"):
            name = self._group_name(">")
            return self._reference(self._names.get(name), f"\\k<{name}>", start)
        if char and char in "123456789":
            return self._numbered_reference()
        chars = self._class_escape()
        return self._character(self._character_escape()) if chars is None else self._written(chars)

    def _numbered_reference(self) -> str:
        """Read as many digits as name an existing group, the first one always."""
        start = self._at - 1
        number = int(self._take())
        while self._peek() and self._peek() in "0123456789" and number * 10 + int(self._peek()) <= self._opened:
            number = number * 10 + int(self._take())
        return self._reference(number, f"\\{number}", start)

    def _reference(self, number: int | None, written: str, at: int) -> str:
        if number not in self._closed:
            raise self._error(f"{written} refers to a group that is not complete there", at)
        self._is_beyond_re2 = True
        if "i" not in self._flags:
            return f"(?:\\{number})"
        self._reference_kinds.add("u" in self._flags)
        if len(self._reference_kinds) > 1:
            raise self._error(f"{written} ignores the case of other letters than the reference before it", at)
        return f"(?i:\\{number})"

    # --- escapes everywhere ------------------------------------------------------------------------
    def _class_escape(self) -> CharSet | None:
        r"""The characters of \d, \p{...} and their like, or None for the escape of one character."""
        char = self._peek()
        if char and char.lower() in SHORT_CLASSES:
            self._at += 1
            chars = SHORT_CLASSES[char.lower()]
        elif char in ("p", "P"):
            self._at += 1
            chars = self._property()
        else:
            return None
        return chars.complement() if char.isupper() else chars

    def _property(self) -> CharSet:
        start = self._at - 2
        name = self._take()
        if name == "{":
            name = self._up_to_brace()
        try:
            return property_class(name, ignore_case="i" in self._flags)
        except UnknownClassError:
            with_flag = " together with (?i)" if "i" in self._flags else ""
            words = f"\\p{{{name}}}{with_flag} is not supported; name the characters instead"
            raise self._error(words, start) from None

    def _character_escape(self) -> str:
        start = self._at - 1
        if match := self._match(_OCTAL):
            return chr(int(match[1], 8))
        if match := self._match(_HEX):
            return self._code_point(int(match[1] or match[2] or match[3], 16), match[0], start)
        if self._takes("N{"):
            return self._named_character(start)
        char = self._take()
        if not char:
            raise self._error("a backslash has nothing after it", start)
        if char == "c" and self._peek():
            return chr(ord(self._take()) ^ 64)
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isascii() and char.isalnum():
            raise self._error(f"Heliograph does not know the escape \\{char} there", start)
        return char

    def _code_point(self, point: int, written: str, at: int) -> str:
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise self._error(f"\\{written} is no character", at)
        return chr(point)

    def _named_character(self, at: int) -> str:
        name = self._up_to_brace()
        try:
            return unicodedata.lookup(name)
        except KeyError:
            raise self._error(f"\\N{{{name}}} is no character", at) from None

    def _up_to_brace(self) -> str:
        end = self._pattern.find("}", self._at)
        end = len(self._pattern) if end < 0 else end
        text = self._pattern[self._at : end]
        self._at = end + 1
        return text

    # --- character classes -------------------------------------------------------------------------
    def _class(self) -> CharSet:
        """Read `[...]` after its bracket: unions joined by `&&`, negated as a whole."""
        opened_at = self._at - 1
        self._enter(opened_at)
        negated = self._takes("^")
        chars = self._union(opened_at, is_first=True)
        while self._takes("&&"):
            chars = chars.intersection(self._union(opened_at, is_first=False))
        if not self._takes("]"):
            raise self._error("a '[' is not closed", opened_at)
        self._depth -= 1
        return chars.complement() if negated else chars

    def _union(self, opened_at: int, *, is_first: bool) -> CharSet:
        """Characters, ranges and nested classes up to `]` or `&&`; a `]` that comes first is a character."""
        singles: list[tuple[int, int]] = []
        ranges: list[tuple[int, int]] = []
        classes: list[CharSet] = []
        while self._peek() and not self._pattern.startswith("&&", self._at):
            if self._peek() == "]" and (singles or ranges or classes or not is_first):
                break
            if self._takes("["):
                classes.append(self._class())
            else:
                self._add_item(singles, ranges, classes)
        if not (singles or ranges or classes):
            is_open = not self._peek()
            words = "a '[' is not closed" if is_open else "a character class has nothing on one side of &&"
            raise self._error(words, opened_at if is_open else self._at)
        cased = (self._cased(CharSet.of(singles), is_range=False), self._cased(CharSet.of(ranges), is_range=True))
        union = CharSet.union((*cased, *classes))
        self._count(sum(len(each.ranges) for each in (*cased, *classes)))
        return union

    def _add_item(self, singles: list[tuple[int, int]], ranges: list[tuple[int, int]], classes: list[CharSet]) -> None:
        start = self._at
        if self._peek() == "\\":
            self._at += 1
            chars = self._class_escape()
            if chars is not None:
                self._count(len(chars.ranges))
                classes.append(chars)  # (?i) does not reach into a named class
                return
            first = self._character_escape()
        else:
            first = self._take()
        if self._peek() != "-" or self._peek(1) in ("]", "[", ""):
            singles.append((ord(first), ord(first)))
            return
        self._at += 1
        last = self._take()
        if last == "\\":
            if self._class_escape() is not None:
                raise self._error("a range in a character class ends with a class", start)
            last = self._character_escape()
        if last < first:
            raise self._error(f"the range {first}-{last} in a character class runs backwards", start)
        ranges.append((ord(first), ord(last)))
