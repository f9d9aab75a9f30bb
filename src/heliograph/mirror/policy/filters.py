"""Filters topics, groups and topic configs by lists of names or Java regexes, or by a custom class.

MM2 joins a list with `|` and matches the whole name; so do we: `(?i)a, b` ignores the case of both. Blank entries are
skipped. An empty include list matches nothing; exclude always wins. A pattern that Java refuses, or that cannot be
matched as Java does, is refused with the name of its key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from heliograph.config import keys
from heliograph.config.syntax.java_regex import LONGEST_PATTERN, compile_java, shortened
from heliograph.config.syntax.java_translation import JavaRegexError
from heliograph.diagnostics import Diagnostic, problem
from heliograph.errors import ConfigError, try_both, try_each
from heliograph.mirror.policy.plugins import is_custom, known_class, load_custom

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.config.keys.table import Key
    from heliograph.config.resolve.settings import Settings
    from heliograph.config.syntax.java_regex import JavaPattern


_CACHED_NAMES = 1_000
_REACHES_FURTHER = re.compile(r"[()\[\\]")  # may affect the patterns after it, so that the list must be one pattern


class NameFilter(Protocol):
    """Accepts or rejects names, with a reason."""

    def accepts(self, name: str) -> bool:
        """Return whether the name is accepted."""

    def why_not(self, name: str) -> str | None:
        """Return the reason why a name is rejected, or None if it is accepted."""


@dataclass(frozen=True, slots=True)
class ListFilter:
    """Accepts a name that the include list matches and the exclude list does not; an empty list accepts none."""

    include: tuple[JavaPattern, ...]
    exclude: tuple[JavaPattern, ...]
    key: str

    def accepts(self, name: str) -> bool:
        """Return whether the name is accepted."""
        return self.why_not(name) is None

    def why_not(self, name: str) -> str | None:
        """Return which list rejects the name, or None if it is accepted."""
        if any(pattern.fullmatch(name) for pattern in self.exclude):
            return f"{self.key}.exclude matches it"
        if not any(pattern.fullmatch(name) for pattern in self.include):
            return f"no pattern in {self.key} matches it"
        return None


class CachingFilter:
    """Caches the answers of another filter: the configs of all topics have the same few names."""

    def __init__(self, names: NameFilter) -> None:
        self.why_not = lru_cache(maxsize=_CACHED_NAMES)(names.why_not)

    def accepts(self, name: str) -> bool:
        """Return whether the name is accepted."""
        return self.why_not(name) is None


@dataclass(frozen=True, slots=True)
class CustomFilter:
    """Delegates to a custom class."""

    ask: Callable[[str], Any]
    key: str
    class_name: str

    def accepts(self, name: str) -> bool:
        """Return whether the custom class accepts the name."""
        return bool(self.ask(name))

    def why_not(self, name: str) -> str | None:
        """Return that the custom class rejects the name; it gives no reason of its own."""
        return None if self.accepts(name) else f"{self.key} ({self.class_name}) does not accept it"


# MM2's class for each key, and the method that a custom class needs.
FILTERS = {
    keys.TOPIC_FILTER_CLASS: ("DefaultTopicFilter", "should_replicate_topic"),
    keys.GROUP_FILTER_CLASS: ("DefaultGroupFilter", "should_replicate_group"),
    keys.CONFIG_PROPERTY_FILTER_CLASS: ("DefaultConfigPropertyFilter", "should_replicate_config_property"),
}


def topic_filter(settings: Settings) -> NameFilter:
    """Return the filter of `topics` and `topics.exclude`, or the class of `topic.filter.class`."""
    custom, (include, exclude) = try_both(
        lambda: _custom(settings, keys.TOPIC_FILTER_CLASS),
        lambda: _compiled(settings, keys.TOPICS, keys.TOPICS_EXCLUDE),
    )
    return custom or ListFilter(include, exclude, keys.TOPICS.name)


def group_filter(settings: Settings) -> NameFilter:
    """Return the filter of `groups` and `groups.exclude`, or the class of `group.filter.class`."""
    custom, (include, exclude) = try_both(
        lambda: _custom(settings, keys.GROUP_FILTER_CLASS),
        lambda: _compiled(settings, keys.GROUPS, keys.GROUPS_EXCLUDE),
    )
    return custom or ListFilter(include, exclude, keys.GROUPS.name)


def config_property_filter(settings: Settings) -> NameFilter:
    """Return the filter of `config.properties.exclude`, or the class of `config.property.filter.class`."""
    custom, (exclude,) = try_both(
        lambda: _custom(settings, keys.CONFIG_PROPERTY_FILTER_CLASS),
        lambda: _compiled(settings, keys.CONFIG_PROPERTIES_EXCLUDE),
    )
    return custom or CachingFilter(ListFilter((compile_java("(?s).*"),), exclude, "config.properties"))


def _custom(settings: Settings, key: Key[str]) -> CustomFilter | None:
    default, method = FILTERS[key]
    if not is_custom(settings[key]):
        known_class(key, settings, [default])
        return None
    plugin = load_custom(key, settings, [method])
    return CustomFilter(getattr(plugin, method), key.name, settings.shown(key))


def _compiled(settings: Settings, *lists: Key[tuple[str, ...]]) -> list[tuple[JavaPattern, ...]]:
    return try_each([partial(_compile, settings, key) for key in lists])


def _compile(settings: Settings, key: Key[tuple[str, ...]]) -> tuple[JavaPattern, ...]:
    patterns = [pattern for pattern in settings[key] if pattern]
    if not patterns:
        return ()
    joined = "|".join(patterns)
    shown = f"'{shortened(settings.raw.get(key.name, joined))}'"
    if len(joined) > LONGEST_PATTERN and any(_REACHES_FURTHER.search(pattern) for pattern in patterns):
        raise ConfigError(
            f"the list has {len(joined)} characters; the limit for a list with groups, classes or escapes"
            f" is {LONGEST_PATTERN}.",
            key.name,
        )
    try:
        return tuple(compile_java(part, f"{key.name}: {shown}") for part in _parts(patterns))
    except JavaRegexError as error:
        if key.name in settings.raw:  # the value of a placeholder must not be in a message
            raise ConfigError(f"{shown} cannot be read as Java regular expressions.", key.name) from None
        refusals = _refusals(key.name, patterns) or [problem(f"{shown} cannot be read: {error}.", key.name)]
        raise ConfigError(refusals) from None


def _parts(patterns: list[str]) -> list[str]:
    """Join the patterns by `|`, into as few as stay below the longest that can be compiled."""
    parts: list[list[str]] = [[]]
    length = 0
    for pattern in patterns:
        length += len(pattern) + 1
        if length > LONGEST_PATTERN and parts[-1]:
            parts.append([])
            length = len(pattern) + 1
        parts[-1].append(pattern)
    return ["|".join(part) for part in parts]


def _refusals(key: str, patterns: list[str]) -> list[Diagnostic]:
    problems = []
    for pattern in patterns:
        try:
            compile_java(pattern)
        except JavaRegexError as error:
            comma = " (A comma separates patterns; one with a comma in it cannot be written.)" if "{" in pattern else ""
            problems.append(
                problem(f"'{shortened(pattern)}' cannot be read as a Java regular expression: {error}.{comma}", key)
            )
    return problems
