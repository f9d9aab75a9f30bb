"""Values of labels: any text, made safe to show, and still different from any other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Kafka quotes a value in the name of a bean if it has another character (`Sanitizer.jmxSanitize`); exporters keep the
# quotes, and queries of dashboards contain them.
_PLAIN_IN_JMX = re.compile(r"[A-Za-z0-9_\-%. \t]*\Z")
_ESCAPED_IN_JMX = re.compile(r'["*?\\]')
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def jmx_value(text: str) -> str:
    """Return a value as it is written in the name of a bean: in quotes if it has a special character."""
    if _PLAIN_IN_JMX.match(text):
        return text
    return '"' + _ESCAPED_IN_JMX.sub(r"\\\g<0>", text).replace("\n", "\\n") + '"'


def escaped(text: str) -> str:
    """Return a value as both text formats write it between quotes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class LabelValues:
    """The values of the labels of one page, escaped. Each different text has a different value.

    Secrets are replaced (`hide`), and characters that a text format or UTF-8 cannot contain. If two texts would become
    the same, the second has a number: series that become one would be an invalid page.
    """

    def __init__(self, hide: Callable[[str], str], *, is_jmx: bool) -> None:
        self._hide = hide
        self._is_jmx = is_jmx
        self._values: dict[str | int, str] = {}
        self._used: set[str] = set()

    def __call__(self, raw: str | int) -> str:
        """Return the escaped value of a text or number."""
        value = self._values.get(raw)
        if value is None:
            value = self._values[raw] = self._new(raw) if isinstance(raw, str) else self(str(raw))
        return value

    def _new(self, raw: str) -> str:
        shown = _UNSHOWABLE.sub(lambda match: f"\\x{ord(match[0]):02x}", self._hide(raw))
        number, unique = 2, shown
        while unique in self._used:
            number, unique = number + 1, f"{shown}~{number}"
        self._used.add(unique)
        return escaped(jmx_value(unique) if self._is_jmx else unique)
