"""A typed view of a string map: `settings[KEY]` parses the value of a key and checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.keys.table import Key, T
    from heliograph.config.resolve.connector_limits import ConnectorLimits
    from heliograph.diagnostics import Diagnostic


class Unresolved(str):
    """A value with placeholders that could not be looked up, as they were written; `why` is the reason."""

    __slots__ = ("why",)
    why: Diagnostic

    @classmethod
    def of(cls, text: str, why: Diagnostic) -> Unresolved:
        """Return the value with the reason."""
        made = cls(text)
        made.why = why
        return made


class Settings:
    """A typed view of a string map: `settings[KEY]` parses, checks and falls back to the key's default.

    `written_as` maps a key to the name it has in the user's file, for messages; `prefix` is used if it has none.
    `raw` has the values that came out of placeholders as they were before: only those are fit for a message. `limits`
    has by key the limits of values that a connector has set; a value of an operator's file has none.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        prefix: str = "",
        written_as: Mapping[str, str] | None = None,
        raw: Mapping[str, str] | None = None,
        limits: Mapping[str, ConnectorLimits] | None = None,
    ) -> None:
        self.values = dict(values)
        self.raw = dict(raw or {})
        self.limits = dict(limits or {})
        self._prefix = prefix
        self._written_as = written_as or {}

    def __getitem__(self, key: Key[T]) -> T:
        text = self.values.get(key.name)
        if isinstance(text, Unresolved):
            raise ConfigError([text.why])
        return key.default if text is None else key.parse(text, self.written_as(key), self.raw.get(key.name))

    def __contains__(self, key: Key[T]) -> bool:
        return key.name in self.values

    def written_as(self, key: Key[T]) -> str:
        """Return the key's name for a message: as the user wrote it, or as it would be written for this view."""
        return self.written(key.name)

    def shown(self, key: Key[T]) -> str:
        """Return the key's value for a message: as the user wrote it."""
        return self.raw.get(key.name, self.values.get(key.name, str(key.default)))

    def written(self, name: str) -> str:
        """Return the name for a message of a key of any name."""
        return self._written_as.get(name) or self._prefix + name
