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

from heliograph.mirror.java_classes import LINE_TERMINATORS, SHORT_CLASSES, UnknownClassError, property_class

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
    translated = _Translator(_unquote(pattern)).translate()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError) as error:
        raise JavaRegexError(f"Python cannot match it ({getattr(error, 'msg', error)})") from None


def _unquote(pattern: str) -> str:
    """Without `\\Q...\\E`: what stood between them is escaped."""
    plain: list[str] = []
    rest = pattern
    while match := re.search(r"\\(.)", rest, re.DOTALL):
        plain.append(rest[: match.start()])
        rest = rest[match.end() :]
        if match[1] != "Q":
            plain.append(match[0])
            continue
        quoted, _, rest = rest.partition(r"\E")
        plain += [char if char.isalnum() else f"\\{char}" for char in quoted]
    return "".join(plain) + rest


class _Translator:
    """One pass over a pattern: each method reads what stands at `_at` and gives it in Python's words."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._opened = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}

    def translate(self) -> str:
        translated = self._alternatives()
        if self._at < len(self._pattern):
            raise JavaRegexError("a ')' has no '(' before it")
        return translated

    # --- reading -----------------------------------------------------------------------------------
    def _peek(self, ahead: int = 0) -> str:
        return self._pattern[self._at + ahead : self._at + ahead + 1]

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _takes(self, text: str) -> bool:
        found = self._pattern.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self._pattern, self._at)
        if match:
            self._at = match.end()
        return match

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
        match = self._match(_QUANTIFIER)
        if not match:
            return ""
        if match[2] and int(match[1]) > int(match[2]):
            raise JavaRegexError(f"{match[0]} counts down")
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
        if char in "*+?{":
            raise JavaRegexError(f"a '{char}' has nothing before it to repeat; write \\{char} for the character itself")
        return self._cased(re.escape(char))

    def _cased(self, translated: str) -> str:
        if "i" not in self._flags:
            return translated if translated[0] in "[(" or len(translated) <= 2 else f"(?:{translated})"
        return f"(?iu:{translated})" if "u" in self._flags else f"(?i:{translated})"

    # --- groups ------------------------------------------------------------------------------------
    def _group(self) -> str:
        outer = self._flags
        for opening in _SPECIAL_GROUPS:
            if self._takes(opening):
                return self._closed_group(f"({opening}", outer)
        if self._takes("?<"):
            name = self._group_name(">")
            if name in self._names:
                raise JavaRegexError(f"the group name '{name}' is given twice")
            self._names[name] = self._opened + 1
            return self._capturing(f"(?P<{name}>", outer)
        if self._takes("?"):
            return self._flag_group(outer)
        return self._capturing("(", outer)

    def _capturing(self, opening: str, outer: frozenset[str]) -> str:
        self._opened += 1
        number = self._opened
        translated = self._closed_group(opening, outer)
        self._closed.add(number)
        return translated

    def _closed_group(self, opening: str, outer: frozenset[str]) -> str:
        inside = self._alternatives()
        if not self._takes(")"):
            raise JavaRegexError("a '(' is not closed")
        self._flags = outer
        return f"{opening}{inside})"

    def _flag_group(self, outer: frozenset[str]) -> str:
        match = self._match(_FLAGS)
        if not match:
            raise JavaRegexError(f"Java has no group '(?{self._peek()}'")
        on, off, end = match[1], match[2] or "", match[3]
        unknown = sorted(set(on + off) - set("isu"))
        if unknown:
            raise JavaRegexError(f"the flag '{unknown[0]}' is not supported, only i, s and u are")
        self._flags = (self._flags | set(on)) - set(off)
        return self._closed_group("(?:", outer) if end == ":" else ""

    def _group_name(self, end: str) -> str:
        match = self._match(_GROUP_NAME)
        if not match or not self._takes(end):
            raise JavaRegexError("a group's name is letters and digits between < and >")
        return match[0]

    # --- escapes outside of a class ----------------------------------------------------------------
    def _escape(self) -> str:
        char = self._peek()
        if char in _ANCHORS:
            self._at += 1
            return _ANCHORS[char]
        if self._takes("R"):
            return _LINE_BREAK
        if self._takes("k<"):
            name = self._group_name(">")
            return self._reference(self._names.get(name), f"\\k<{name}>")
        if char and char in "123456789":
            return self._numbered_reference()
        inside = self._class_escape()
        return f"[{inside}]" if inside is not None else self._cased(re.escape(self._character_escape()))

    def _numbered_reference(self) -> str:
        """As many digits as name a group that there is, the first one always."""
        number = int(self._take())
        while self._peek() and self._peek() in "0123456789" and number * 10 + int(self._peek()) <= self._opened:
            number = number * 10 + int(self._take())
        return self._reference(number, f"\\{number}")

    def _reference(self, number: int | None, written: str) -> str:
        if number not in self._closed:
            raise JavaRegexError(f"{written} refers to a group that is not complete there")
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
        name = self._take()
        if name == "{":
            name, closing, _ = self._pattern[self._at :].partition("}")
            self._at += len(name) + len(closing)
        try:
            return property_class(name, ignore_case="i" in self._flags)
        except UnknownClassError:
            with_flag = " together with (?i)" if "i" in self._flags else ""
            raise JavaRegexError(f"\\p{{{name}}}{with_flag} is not supported; name the characters instead") from None

    def _character_escape(self) -> str:
        if match := self._match(_OCTAL):
            return chr(int(match[1], 8))
        if match := self._match(_HEX):
            return self._code_point(int(match[1] or match[2] or match[3], 16), match[0])
        if self._takes("N{"):
            return self._named_character()
        char = self._take()
        if not char:
            raise JavaRegexError("it ends with a backslash")
        if char == "c" and self._peek():
            return chr(ord(self._take()) ^ 64)
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isascii() and char.isalnum():
            raise JavaRegexError(f"Heliograph does not know the escape \\{char} there")
        return char

    def _code_point(self, point: int, written: str) -> str:
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise JavaRegexError(f"\\{written} is no character")
        return chr(point)

    def _named_character(self) -> str:
        name, _, rest = self._pattern[self._at :].partition("}")
        self._at = len(self._pattern) - len(rest)
        try:
            return unicodedata.lookup(name)
        except KeyError:
            raise JavaRegexError(f"\\N{{{name}}} is no character") from None

    # --- character classes -------------------------------------------------------------------------
    def _class(self) -> str:
        """`[...]` behind its bracket: unions joined by `&&`, negated as a whole, as an expression for one character."""
        negated = self._takes("^")
        unions = [self._union(is_first=True)]
        while self._takes("&&"):
            unions.append(self._union(is_first=False))
        if not self._takes("]"):
            raise JavaRegexError("a '[' is not closed")
        *conditions, last = unions
        whole = "".join(f"(?={union})" for union in conditions) + last
        if not negated:
            return whole if not conditions else f"(?:{whole})"
        return f"(?:(?!{whole}){_ANY})"

    def _union(self, *, is_first: bool) -> str:
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
            raise JavaRegexError("a character class has nothing on one side of &&")
        if items:
            classes.append(f"[{''.join(items)}]")
        return classes[0] if len(classes) == 1 else f"(?:{'|'.join(classes)})"

    def _add_item(self, items: list[str], classes: list[str]) -> None:
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
                raise JavaRegexError("a range in a character class ends with a class")
            last = self._character_escape()
        if last < first:
            raise JavaRegexError(f"the range {first}-{last} in a character class runs backwards")
        items.append(f"{re.escape(first)}-{re.escape(last)}")
