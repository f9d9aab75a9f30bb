"""Chooses by source topic what is done if its log was truncated or created again, or its remote topic deleted.

Each of the three keys is a list of rules (`config/keys/action_lists`). A pattern is a name, or a Java regex that
matches the whole name. If no rule matches and no action is alone, the key's default applies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys.action_lists import split_rule
from heliograph.config.syntax.java_regex import compile_java, shortened
from heliograph.config.syntax.java_translation import JavaRegexError
from heliograph.errors import ConfigError, try_each
from heliograph.model import ChangeActions

if TYPE_CHECKING:
    from heliograph.config.keys.table import Key
    from heliograph.config.resolve.settings import Settings
    from heliograph.config.syntax.java_regex import JavaPattern


_KEYS = (keys.ON_TRUNCATION, keys.ON_RECREATED, keys.ON_TARGET_DELETED)
CHANGE_KEYS = ", ".join(key.name for key in _KEYS)
_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_MOST_RULES = 1_000


@dataclass(frozen=True, slots=True)
class ActionRules:
    """The rules of one key, in the order in which they apply, and the action for all other topics."""

    rules: tuple[tuple[JavaPattern, str], ...]
    otherwise: str

    def action(self, topic: str) -> str:
        """Return the action of the first rule that matches the topic; raises PatternLimitError."""
        return next((action for pattern, action in self.rules if pattern.fullmatch(topic)), self.otherwise)


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """The rules of all three keys."""

    truncation: ActionRules
    recreated: ActionRules
    target_deleted: ActionRules

    @classmethod
    def of(cls, settings: Settings) -> ChangeRules:
        """Return the rules of a flow's settings; raises one ConfigError for all patterns that cannot be read."""
        return cls(*try_each([partial(_rules, settings, key) for key in _KEYS]))

    def actions(self, topic: str) -> ChangeActions:
        """Return the actions for a source topic; raises PatternLimitError."""
        return ChangeActions(
            self.truncation.action(topic), self.recreated.action(topic), self.target_deleted.action(topic)
        )


def _rules(settings: Settings, key: Key[tuple[str, ...]]) -> ActionRules:
    entries = [entry for entry in settings[key] if entry]
    if len(entries) > _MOST_RULES:
        raise ConfigError(f"it has {len(entries)} rules, but the limit is {_MOST_RULES}; use patterns.", key.name)
    rules = [rule for rule in map(split_rule, entries) if rule[0]]
    alone = [action for pattern, action in map(split_rule, entries) if not pattern]
    patterns = try_each([partial(_compile, settings, key, *rule) for rule in rules])
    actions = [action for _pattern, action in rules]
    return ActionRules(tuple(zip(patterns, actions, strict=True)), *(alone or key.default))


def _compile(settings: Settings, key: Key[tuple[str, ...]], pattern: str, action: str) -> JavaPattern:
    shown = shortened(settings.raw.get(key.name, f"{pattern}={action}"))
    # In a name, as in a rule of RenameReplicationPolicy, a dot is a dot.
    java = re.escape(pattern) if _NAME.fullmatch(pattern) else pattern
    try:
        return compile_java(java, f"{key.name}: '{shown}'")
    except JavaRegexError as error:
        # A placeholder's value must not be in a message, and the error may repeat parts of it.
        why = "" if key.name in settings.raw else f": {error}"
        raise ConfigError(f"'{shown}': a pattern cannot be read as a Java regular expression{why}.", key.name) from None
