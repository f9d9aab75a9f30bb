"""Java regular expressions (`java.util.regex`) as Python's, so that a pattern of an MM2 file means what it always has.

Only whole-name matching is meant (`Pattern.matches`, `re.fullmatch`). What differs and is translated: ASCII `\\w`
`\\d` `\\s`, `\\h` `\\v` `\\R`, `\\p{...}`, `\\Q...\\E`, `\\z` `\\Z` `$`, what `.` leaves out, `(?<n>...)`
and `\\k<n>`, nested classes and `&&`, flags `i` `s` `u` in the middle of a pattern, octal, `\\x{...}`.
What cannot be translated is refused with a reason, never matched differently: flags `m` `d` `x` `U`, scripts and
blocks, `\\X`, look-behind of varying length, references to a group that is not closed yet.

Invariant: every atom is emitted so that a quantifier may follow, and a character class always matches one character.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from heliograph.config.java_classes import LINE_TERMINATORS, SHORT_CLASSES, UnknownClassError, property_class
from heliograph.config.pattern_scanner import PatternScanner

_ANY = r"[\s\S]"
_END = r"(?:(?=\r\n\Z)|(?=[\r\x85\u2028\u2029]\Z)|(?<!\r)(?=\n\Z)|\Z)"
_WORD = f"[{SHORT_CLASSES['w']}]"
_ANCHORS = {
    # Of ASCII words, as from Java 19 on; spelled out because Python's \B does not hold in an empty name.
    "b": f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "B": f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
    "A": r"(?:\A)",
    "G": r"(?:\A)",
    "z": r"(?:\Z)",
    "Z": _END,
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_LINE_BREAK = r"(?:\r\n|[\n\x0b\x0c\r\x85\u2028\u2029])"
_QUANTIFIER = re.compile(r"(?:[?*+]|\{(\d+)(?:,(\d*))?\})[?+]?", re.ASCII)
_GROUP_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_HEX = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_FLAGS = re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_SPECIAL_GROUPS = ("?:", "?=", "?!", "?<=", "?<!", "?>")


class JavaRegexError(ValueError):
    """A pattern that Java refuses, or that cannot be told in Python; the text is the reason."""


@cache
def compile_java(pattern: str) -> re.Pattern[str]:
    """The pattern as Python's, for `fullmatch`; raises JavaRegexError."""
    translated = _Translator(*_unquote(pattern)).translate()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError) as error:
        raise JavaRegexError(f"Python cannot match it ({getattr(error, 'msg', error)})") from None


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
        quoted = pattern[at + 2 :].partition(r"\E")[0]
        for place, char in enumerate(quoted, at + 2):
            escaped = char if char.isalnum() else f"\\{char}"
            plain.append(escaped)
            places += [place] * len(escaped)
        at += len(r"\Q\E") + len(quoted)
    return "".join(plain), places


class _Translator(PatternScanner):
    """One pass over a pattern: each method reads what stands at `_at` and gives it in Python's words."""

    def __init__(self, pattern: str, places: list[int]) -> None:
        super().__init__(pattern)
        self._places = places
        self._flags: frozenset[str] = frozenset()
        self._opened = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}

    def translate(self) -> str:
        translated = self._alternatives()
        if self._at < len(self._pattern):
            raise self._error("a ')' has no '(' before it", self._at)
        return translated

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

    # --- structure ---------------------------------------------------------------------------------
    def _alternatives(self) -> str:
        """Up to a `)` or the end. Flags set inside hold up to there, through later alternatives too, as in Java."""
        parts: list[str] = []
        while self._at < len(self._pattern) and self._peek() != ")":
            if self._takes("|"):
                parts.append("|")
            else:
                atom = self._atom()
                parts.append(atom + self._quantifier() if atom else "")
        return "".join(parts)

    def _quantifier(self) -> str:
        start = self._at
        match = self._match(_QUANTIFIER)
        if not match:
            return ""
        if match[2] and int(match[1]) > int(match[2]):
            raise self._error(f"{match[0]} counts down", start)
        return match[0]

    def _atom(self) -> str:
        char = self._take()
        if char == "(":
            return self._group()
        if char == "[":
            return self._cased(self._class())
        if char == "\\":
            return self._escape()
        if char in ".^$":
            dot = _ANY if "s" in self._flags else f"[^{LINE_TERMINATORS}]"
            return {".": dot, "^": _ANCHORS["A"], "$": _END}[char]
        if char == "{":
            raise self._error(
                "a '{' begins no count such as {2} or {2,}; write \\{ for the character itself", self._at - 1
            )
        if char in "*+?":
            words = f"a '{char}' has nothing before it to repeat; write \\{char} for the character itself"
            raise self._error(words + (", .* for any name" if char == "*" else ""), self._at - 1)
        return self._cased(re.escape(char))

    def _cased(self, translated: str) -> str:
        if "i" not in self._flags:
            return translated if translated[0] in "[(" or len(translated) <= 2 else f"(?:{translated})"
        return f"(?iu:{translated})" if "u" in self._flags else f"(?i:{translated})"

    # --- groups ------------------------------------------------------------------------------------
    def _group(self) -> str:
        opened_at = self._at - 1
        for opening in _SPECIAL_GROUPS:
            if self._takes(opening):
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
        inside = self._alternatives()
        if not self._takes(")"):
            raise self._error("a '(' is not closed", opened_at)
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
        if char in _ANCHORS:
            self._at += 1
            return _ANCHORS[char]
        if self._takes("R"):
            return _LINE_BREAK
        start = self._at - 1
        if self._takes("k<"):
            name = self._group_name(">")
            return self._reference(self._names.get(name), f"\\k<{name}>", start)
        if char and char in "123456789":
            return self._numbered_reference()
        inside = self._class_escape()
        return f"[{inside}]" if inside is not None else self._cased(re.escape(self._character_escape()))

    def _numbered_reference(self) -> str:
        """As many digits as name a group that there is, the first one always."""
        start = self._at - 1
        number = int(self._take())
        while self._peek() and self._peek() in "0123456789" and number * 10 + int(self._peek()) <= self._opened:
            number = number * 10 + int(self._take())
        return self._reference(number, f"\\{number}", start)

    def _reference(self, number: int | None, written: str, at: int) -> str:
        if number not in self._closed:
            raise self._error(f"{written} refers to a group that is not complete there", at)
        return self._cased(f"(?:(?:\\{number}))")

    # --- escapes everywhere ------------------------------------------------------------------------
    def _class_escape(self) -> str | None:
        r"""The inside of a Python class for \d, \p{...} and their like, or None for the escape of one character."""
        char = self._peek()
        if char and char.lower() in SHORT_CLASSES:
            self._at += 1
            inside = SHORT_CLASSES[char.lower()]
        elif char in ("p", "P"):
            self._at += 1
            inside = self._property()
        else:
            return None
        return f"^{inside}" if char.isupper() else inside

    def _property(self) -> str:
        start = self._at - 2
        name = self._take()
        if name == "{":
            name, closing, _ = self._pattern[self._at :].partition("}")
            self._at += len(name) + len(closing)
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
            raise self._error("a backslash has nothing behind it", start)
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
        name, _, rest = self._pattern[self._at :].partition("}")
        self._at = len(self._pattern) - len(rest)
        try:
            return unicodedata.lookup(name)
        except KeyError:
            raise self._error(f"\\N{{{name}}} is no character", at) from None

    # --- character classes -------------------------------------------------------------------------
    def _class(self) -> str:
        """`[...]` behind its bracket: unions joined by `&&`, negated as a whole, as an expression for one character."""
        opened_at = self._at - 1
        negated = self._takes("^")
        unions = [self._union(opened_at, is_first=True)]
        while self._takes("&&"):
            unions.append(self._union(opened_at, is_first=False))
        if not self._takes("]"):
            raise self._error("a '[' is not closed", opened_at)
        *conditions, last = unions
        whole = "".join(f"(?={union})" for union in conditions) + last
        if not negated:
            return whole if not conditions else f"(?:{whole})"
        return f"(?:(?!{whole}){_ANY})"

    def _union(self, opened_at: int, *, is_first: bool) -> str:
        """Characters, ranges and nested classes up to `]` or `&&`; a `]` that comes first is a character."""
        items: list[str] = []
        classes: list[str] = []
        while self._peek() and not self._pattern.startswith("&&", self._at):
            if self._peek() == "]" and (items or classes or not is_first):
                break
            if self._takes("["):
                classes.append(self._class())
            else:
                self._add_item(items, classes)
        if not (items or classes):
            is_open = not self._peek()
            words = "a '[' is not closed" if is_open else "a character class has nothing on one side of &&"
            raise self._error(words, opened_at if is_open else self._at)
        if items:
            classes.append(f"[{''.join(items)}]")
        return classes[0] if len(classes) == 1 else f"(?:{'|'.join(classes)})"

    def _add_item(self, items: list[str], classes: list[str]) -> None:
        start = self._at
        if self._peek() == "\\":
            self._at += 1
            inside = self._class_escape()
            if inside is not None:
                classes.append(f"(?-i:[{inside}])")  # (?i) does not reach into a named class
                return
            first = self._character_escape()
        else:
            first = self._take()
        if self._peek() != "-" or self._peek(1) in ("]", "[", ""):
            items.append(re.escape(first))
            return
        self._at += 1
        last = self._take()
        if last == "\\":
            if self._class_escape() is not None:
                raise self._error("a range in a character class ends with a class", start)
            last = self._character_escape()
        if last < first:
            raise self._error(f"the range {first}-{last} in a character class runs backwards", start)
        items.append(f"{re.escape(first)}-{re.escape(last)}")
