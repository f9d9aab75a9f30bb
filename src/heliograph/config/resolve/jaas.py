"""JAAS: the text of `sasl.jaas.config`, and the file of Connect's REST login.

`Module required name="value" other=value;`, one or several. Quoted values follow Java's reader: `\\n`, `\\t` and octal
escapes, both kinds of quotes, comments. Java stops at the first unexpected letter of a bare value; here it extends to
the next blank or semicolon, so that `password=${KAFKA_TARGET_APIKEY};` works for any key without those. A JAAS file has
sections of such entries: `KafkaConnect { Module required file="..."; };`.

Invariant: no message repeats any of the text. A forgotten quote turns the rest of a password into what looks like a
name, so an error gives its position as a number of characters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.resolve.redaction import is_secret
from heliograph.config.secrets.known_secrets import HIDDEN, remember_secret
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


FLAGS = ("required", "requisite", "sufficient", "optional")
_QUOTES = "\"'"
_BLANKS = " \t\r\n\f"
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"
_TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z) ) | \s+
    | (?P<quoted> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) | (?P<sign> [{};] ) | (?P<word> [^\s"'{};]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)


class LoginModule(NamedTuple):
    """One entry: a Java class, whether it must succeed, and its options."""

    class_name: str
    flag: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.class_name}, {self.flag}, {len(self.options)} options)"


def parse_jaas(text: str, key: str = "sasl.jaas.config") -> tuple[LoginModule, ...]:
    """Return all entries; raises a ConfigError about `key` that contains nothing of the text."""
    return _Parser(text, key).modules()


def one_module(text: str, key: str = "sasl.jaas.config") -> LoginModule:
    """Return the entry of a client, which has exactly one."""
    found = parse_jaas(text, key)
    if len(found) != 1:
        raise ConfigError(f"it has {len(found)} login modules; a client has one.", key)
    return found[0]


class _Parser:
    """Reads from the front; `_at` is the next letter."""

    def __init__(self, text: str, key: str) -> None:
        self._text, self._key, self._at = text, key, 0

    def modules(self) -> tuple[LoginModule, ...]:
        found = []
        self._skip()
        while self._at < len(self._text):
            found.append(self._module())
            self._skip()
        if not found:
            raise ConfigError('it is empty; write it as Module required username="..." password="...";', self._key)
        return tuple(found)

    def _module(self) -> LoginModule:
        class_name = self._word("the class of a login module")
        self._skip()
        flag = self._word("'required'").lower()
        if flag not in FLAGS:
            raise self._error(f"after the class of the login module one of {', '.join(FLAGS)} is expected")
        options: dict[str, str] = {}
        self._skip()
        while self._peek() != ";":
            if not self._peek():
                raise self._error("a semicolon is missing at the end")
            name = self._word("the name of an option")
            self._skip()
            if self._peek() != "=":
                raise self._error("'=' is expected after the name of an option; quote a value that has blanks")
            self._at += 1
            self._skip()
            options[name] = self._quoted() if self._peek() in _QUOTES and self._peek() else self._bare()
            self._skip()
        self._at += 1
        for name, value in options.items():
            if is_secret(name):
                remember_secret(value, HIDDEN)
        return LoginModule(class_name, flag, options)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        """Skip blanks and comments."""
        while self._at < len(self._text):
            rest = self._text[self._at : self._at + 2]
            if rest[0] in _BLANKS:
                self._at += 1
            elif rest == "//":
                self._skip_past("\n")
            elif rest == "/*":
                self._skip_past("*/")
            else:
                return

    def _skip_past(self, end: str) -> None:
        found = self._text.find(end, self._at + 2)
        self._at = len(self._text) if found < 0 else found + len(end)

    def _word(self, what: str) -> str:
        if self._peek() and self._peek() in _QUOTES:
            return self._quoted()
        start = self._at
        while self._peek() and self._peek() not in f"{_BLANKS};={_QUOTES}":
            self._at += 1
        if self._at == start:
            raise self._error(f"{what} is expected")
        return self._text[start : self._at]

    def _bare(self) -> str:
        start = self._at
        while self._peek() and self._peek() not in f"{_BLANKS};":
            self._at += 1
        if self._at == start:
            raise self._error("a value is missing")
        return self._text[start : self._at]

    def _quoted(self) -> str:
        opened_at, quote = self._at, self._peek()
        self._at += 1
        letters: list[str] = []
        while (letter := self._peek()) != quote:
            if letter in ("", "\n"):
                self._at = opened_at
                raise self._error("a quote is opened and not closed on its line")
            self._at += 1
            letters.append(self._escaped() if letter == "\\" else letter)
        self._at += 1
        return "".join(letters)

    def _escaped(self) -> str:
        letter = self._peek()
        if letter and letter in _OCTAL:
            most = 3 if letter in "0123" else 2
            end = self._at + 1
            while end < self._at + most and self._text[end : end + 1] and self._text[end] in _OCTAL:
                end += 1
            code, self._at = int(self._text[self._at : end], 8), end
            return chr(code)
        self._at += 1
        return _ESCAPES.get(letter, letter)

    def _error(self, words: str) -> ConfigError:
        return ConfigError(f"at character {self._at + 1}, {words}.", self._key)


def login_modules(text: str, section: str, file: str) -> tuple[LoginModule, ...]:
    """Return the modules of a section; raises ConfigError if it is missing or cannot be read."""
    found = _sections(text).get(section, "")
    if not found.strip():
        raise ConfigError(f"there is no section {section} in this JAAS file: {section} {{ ... }};", file)
    return parse_jaas(found, f"{file}, section {section}")


def _sections(text: str) -> dict[str, str]:
    """Return by name the text between its braces, without comments."""
    sections: dict[str, str] = {}
    name, inside = "", None
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if match["comment"] is not None:
            piece = " "
        if inside is None:
            inside = "" if piece == "{" else None
            name = match["word"] or match["quoted"] or name
        elif piece == "}":
            sections.setdefault(name.strip("\"'"), inside)
            inside = None
        else:
            inside += piece
    return sections
