"""A JAAS file, of which Connect's REST login needs one section: `KafkaConnect { Module required file="..."; };`.

Here sections are found; what is in one is read as `sasl.jaas.config` is (`jaas.py`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from heliograph.config.jaas import parse_jaas
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from heliograph.config.jaas import LoginModule

_TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z) ) | \s+
    | (?P<quoted> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) | (?P<sign> [{};] ) | (?P<word> [^\s"'{};]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)


def login_modules(text: str, section: str, file: str) -> tuple[LoginModule, ...]:
    """The modules of a section; raises ConfigError where it is not there or cannot be read."""
    found = _sections(text).get(section, "")
    if not found.strip():
        raise ConfigError(f"{file}: there is no section {section} in this JAAS file: {section} {{ ... }};")
    return parse_jaas(found, f"{file}, section {section}")


def _sections(text: str) -> dict[str, str]:
    """What stands between the braces behind each name, without comments."""
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
