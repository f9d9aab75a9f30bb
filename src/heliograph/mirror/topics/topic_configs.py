"""Decides which configs of a source topic its remote topic gets, when it is created and afterwards.

MM2's rule: a config that is the default on the source is removed from the remote topic (with `use.defaults.from =
source`: set to the source's default); any other is set. MM2 writes all of them every time; a plan holds only those
whose value on the target differs. Excluded properties are in no plan.

Invariants: planning again after applying a plan gives an empty plan; a plan names no config that the target lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.mirror.policy.filters import config_property_filter
from heliograph.model import AlterConfigs, ConfigChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.resolve.settings import Settings
    from heliograph.mirror.policy.filters import NameFilter
    from heliograph.model import ConfigEntry

    Described = Mapping[str, tuple[ConfigEntry, ...]]


# They say how a broker before 4.0 stores and serves older message formats. We always write the newest; a broker from
# 4.0 on does not know them, and an older one would refuse our idempotent producer on a topic that has the first.
_OLD_FORMAT_CONFIGS = frozenset({"message.format.version", "message.downconversion.enable"})


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """The settings of a flow that decide about configs of topics."""

    properties: NameFilter
    use_source_defaults: bool

    @classmethod
    def of(cls, settings: Settings) -> ConfigRules:
        """Return the rules of a flow's settings; raises ConfigError for a pattern that cannot be read."""
        return cls(config_property_filter(settings), settings[keys.USE_DEFAULTS_FROM] == "source")

    def copied(self, entries: Iterable[ConfigEntry]) -> tuple[tuple[str, str], ...]:
        """Return the configs that a new remote topic gets from its source."""
        return tuple(
            (entry.name, entry.value)
            for entry in entries
            if entry.value is not None and self.syncs(entry) and not self.leaves_to_target(entry)
        )

    def syncs(self, entry: ConfigEntry) -> bool:
        """Return whether a config of the source topic is synced, if only by resetting the remote one to its default."""
        return (
            not (entry.is_read_only or entry.is_sensitive or entry.is_static_broker_config)
            and entry.name not in _OLD_FORMAT_CONFIGS
            and self.properties.accepts(entry.name)
        )

    def leaves_to_target(self, entry: ConfigEntry) -> bool:
        """Return whether the remote topic has the target's default for a config that is the default on the source."""
        return entry.is_default and not self.use_source_defaults


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """The configs to alter, and those of the source that the target does not know."""

    alters: tuple[AlterConfigs, ...] = ()
    unknown: tuple[str, ...] = ()


def plan_configs(
    rules: ConfigRules, remote_topics: Mapping[str, str], source: Described, target: Described
) -> ConfigPlan:
    """Compare all configs of topics that exist on both clusters.

    `source` and `target` have them by the topic's name on that cluster; `remote_topics` maps the one to the other.
    """
    alters = []
    unknown: set[str] = set()
    for topic, entries in source.items():
        remote = remote_topics[topic]
        if remote not in target:
            continue
        existing = {entry.name: entry for entry in target[remote]}
        changes: list[ConfigChange] = []
        for entry in entries:
            if not rules.syncs(entry):
                continue
            if entry.name in existing:
                changes += _change(rules, entry, existing[entry.name])
            elif not rules.leaves_to_target(entry):
                unknown.add(entry.name)
        if changes:
            alters.append(AlterConfigs(remote, tuple(changes)))
    return ConfigPlan(tuple(alters), tuple(sorted(unknown)))


def _change(rules: ConfigRules, wanted: ConfigEntry, existing: ConfigEntry) -> tuple[ConfigChange, ...]:
    if rules.leaves_to_target(wanted):
        is_different, new = existing.is_topic_config, None
    else:
        is_different, new = wanted.value != existing.value and wanted.value is not None, wanted.value
    return (ConfigChange(wanted.name, existing.value, new),) if is_different else ()
