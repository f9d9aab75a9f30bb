"""A JAAS file, of which Connect's REST login needs one section: `KafkaConnect { Module required file="..."; };`.

Read as Java reads it: `//`, `/* */` and `#` are comments, a value may be quoted with escapes, a section may have
several modules. Invariant: a message names the file and what is missing, never a value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from heliograph.errors import ConfigError

_TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* | \#[^\n]* | /\*.*?\*/ ) | \s+
    | "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<sign>[{};=]) | (?P<word>[^\s"{};=]+)
    """,
    re.VERBOSE | re.DOTALL,
)


class LoginModule(NamedTuple):
    """One module of a section: its class and its options."""

    class_name: str
    options: dict[str, str]


def login_modules(text: str, section: str, file: str) -> list[LoginModule]:
    """The modules of a section; raises ConfigError where it is not there or cannot be read."""
    tokens = _tokens(text, file)
    while tokens:
        name = tokens.pop(0)
        if tokens[:1] != ["{"]:
            raise _unreadable(file, f"'{{' is missing behind the name of the section {name}")
        end = tokens.index("}") if "}" in tokens else -1
        if end < 0:
            raise _unreadable(file, f"the section {name} is not closed")
        inside, tokens = tokens[1:end], tokens[end + 1 :]
        tokens = tokens[1:] if tokens[:1] == [";"] else tokens
        if name == section:
            return _modules(inside, file)
    raise ConfigError(f"{file}: there is no section {section} in this JAAS file.")


def _tokens(text: str, file: str) -> list[str]:
    """Words and signs. A quoted text keeps one quote before it, so that it is never taken for a sign."""
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(file, "a quote is not closed")
        position = match.end()
        if match["quoted"] is not None:
            found.append('"' + re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL))
        elif match["sign"] or match["word"]:
            found.append(match["sign"] or match["word"])
    return found


def _modules(tokens: list[str], file: str) -> list[LoginModule]:
    modules = []
    while tokens:
        if ";" not in tokens:
            raise _unreadable(file, "a login module does not end with ';'")
        end = tokens.index(";")
        entry, tokens = tokens[:end], tokens[end + 1 :]
        options = entry[2:]
        if len(entry) < 2 or len(options) % 3 or any(sign != "=" for sign in options[1::3]):
            raise _unreadable(file, "a login module is not of the form: CLASS required NAME=VALUE ...;")
        modules.append(LoginModule(entry[0], dict(zip(options[::3], map(_plain, options[2::3]), strict=True))))
    return modules


def _plain(token: str) -> str:
    return token.removeprefix('"')


def _unreadable(file: str, reason: str) -> ConfigError:
    return ConfigError(f"{file}: this JAAS file cannot be read: {reason}.")
