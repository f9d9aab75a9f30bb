"""Include and exclude lists of names or Java regexes, matched against the whole name.

MM2 joins a list with `|` and calls `matches()`. An empty include list matches nothing; exclude always wins.
Java regex features that Python does not have are refused with the key's name rather than matched differently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from heliograph.config.types import Key, Settings

# Inside a character class, Java reads && as an intersection and [ as a nested class; Python reads both as characters.
_JAVA_ONLY_CLASS = re.compile(r"\[[^\]]*(&&|\[)")


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Accepts a name that the include pattern matches and the exclude pattern does not."""

    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None

    def accepts(self, name: str) -> bool:
        """Whether the name is in."""
        return self.is_included(name) and not self.is_excluded(name)

    def is_included(self, name: str) -> bool:
        """Whether the include list names it."""
        return self.include is not None and self.include.fullmatch(name) is not None

    def is_excluded(self, name: str) -> bool:
        """Whether the exclude list names it."""
        return self.exclude is not None and self.exclude.fullmatch(name) is not None


def topic_filter(settings: Settings) -> NameFilter:
    """The filter of `topics` and `topics.exclude`."""
    return NameFilter(_compile(settings, keys.TOPICS), _compile(settings, keys.TOPICS_EXCLUDE))


def group_filter(settings: Settings) -> NameFilter:
    """The filter of `groups` and `groups.exclude`."""
    return NameFilter(_compile(settings, keys.GROUPS), _compile(settings, keys.GROUPS_EXCLUDE))


def config_property_exclude(settings: Settings) -> NameFilter:
    """A filter that accepts every topic config that may be copied."""
    return NameFilter(re.compile(".*", re.DOTALL), _compile(settings, keys.CONFIG_PROPERTIES_EXCLUDE))


def _compile(settings: Settings, key: Key[tuple[str, ...]]) -> re.Pattern[str] | None:
    patterns = [pattern for pattern in settings[key] if pattern]
    for pattern in patterns:
        if _JAVA_ONLY_CLASS.search(pattern):
            raise ConfigError(
                f"{key.name}: '{pattern}' uses a Java character class that Heliograph does not read;"
                " write it without && and nested [."
            )
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"{key.name}: '{pattern}' is not a valid regular expression: {error}.") from None
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
