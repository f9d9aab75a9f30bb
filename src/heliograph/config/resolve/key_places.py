"""Names and lines of keys in the user's document, for messages.

All rules about a configuration use the names of a properties file. A YAML resource calls a key by its path, so the
last step before a diagnostic is shown gives it the line and the name that the user knows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from heliograph.config.keys import client_keys
from heliograph.config.resolve.redaction import shown_name
from heliograph.diagnostics import Mention, Place, Text, WithPrefix, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.resolve.settings import Settings
    from heliograph.diagnostics import Diagnostic, Part


class KeyPlaces:
    """The line of each key, and its path if the document is not a properties file."""

    def __init__(self, lines: Mapping[str, int], paths: Mapping[str, str] | None = None) -> None:
        self._lines = lines
        self._paths = paths or {}

    def located(self, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return the diagnostics with their places, once each, in the order of the document."""
        return in_order(map(self._located, diagnostics))

    def _located(self, diagnostic: Diagnostic) -> Diagnostic:
        """Return the diagnostic with the line of its key, and with every key as the user wrote it."""
        key = diagnostic.key
        line = self._lines.get(key, 0)
        if self._paths:
            located = diagnostic.at(Place(line, self._paths.get(key, "")))
            return located.saying(self._in_users_terms(diagnostic.message))
        return diagnostic.at(Place(line, shown_name(key) if line else ""))

    def _in_users_terms(self, message: str | Text) -> str:
        return message if isinstance(message, str) else "".join(map(self._shown_part, message.parts))

    def _shown_part(self, part: Part) -> str:
        if isinstance(part, WithPrefix):
            rest = self._without_prefix(part.prefix)
            return str(WithPrefix(rest)) if rest else "here"
        if not isinstance(part, Mention):
            return part
        if part.name in self._paths:
            return self._paths[part.name]
        return self._without_prefix(part.name) if part.is_advice else part.name

    def _without_prefix(self, name: str) -> str:
        return name.removeprefix(next((each for each in self._prefixes if name.startswith(each)), ""))

    @cached_property
    def _prefixes(self) -> list[str]:
        """Return what a properties file writes before keys that the document has in a `config`; longest first."""
        found = {name[: -len(key)] for name, path in self._paths.items() if (key := _key_in_config(name, path))}
        return sorted(found, key=len, reverse=True)


def shown(name: str, paths: Mapping[str, str]) -> str:
    """Return a name as the user wrote it."""
    return paths.get(name) or shown_name(name)


def connection_keys(client: Settings, paths: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys for a cluster's address and protocol, as the user wrote them or would write them.

    A resource has other fields for what it does not set; those are not named.
    """
    names = (client.written_as(client_keys.BOOTSTRAP_SERVERS), client.written_as(client_keys.SECURITY_PROTOCOL))
    return tuple(shown(name, paths) for name in names if not paths or name in paths)


def _key_in_config(name: str, path: str) -> str:
    """Return the key that a name and its path have in common, if the path ends in a Kafka key."""
    _, config, key = path.partition(".config.")
    return key if config and name.endswith(f".{key}") else ""
