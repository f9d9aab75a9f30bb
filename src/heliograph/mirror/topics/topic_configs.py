"""What must change so that a remote topic's configs follow its source's. Pure; `worker` gathers and applies.

MM2's rule: a config that is the default on the source is removed from the remote topic (with `use.defaults.from =
source`: set to the source's default); any other is set. MM2 writes all of them every time; a plan holds only those
whose value on the target differs. Excluded properties are in no plan.

Invariants: planning again after applying a plan gives an empty plan; a plan names no config the target does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.model import AlterConfigs, ConfigChange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.mirror.topics.topic_rules import TopicRules
    from heliograph.model import ConfigEntry

if TYPE_CHECKING:
    Described = Mapping[str, tuple[ConfigEntry, ...]]


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """What to alter, and which of the source's configs the target has never heard of."""

    alters: tuple[AlterConfigs, ...] = ()
    unknown: tuple[str, ...] = ()


def plan_configs(rules: TopicRules, source: Described, target: Described) -> ConfigPlan:
    """Compare topics that are on both sides; all configs of each, by the topic's own name on its cluster."""
    alters = []
    unknown: set[str] = set()
    for topic, entries in source.items():
        remote = rules.remote_topic(topic)
        if remote not in target:
            continue
        existing = {entry.name: entry for entry in target[remote]}
        changes: list[ConfigChange] = []
        for entry in entries:
            if not rules.syncs_config(entry):
                continue
            if entry.name in existing:
                changes += _change(rules, entry, existing[entry.name])
            elif not rules.leaves_to_target(entry):
                unknown.add(entry.name)
        if changes:
            alters.append(AlterConfigs(remote, tuple(changes)))
    return ConfigPlan(tuple(alters), tuple(sorted(unknown)))


def _change(rules: TopicRules, wanted: ConfigEntry, existing: ConfigEntry) -> tuple[ConfigChange, ...]:
    if rules.leaves_to_target(wanted):
        is_different, new = existing.is_topic_config, None
    else:
        is_different, new = wanted.value != existing.value and wanted.value is not None, wanted.value
    return (ConfigChange(wanted.name, existing.value, new),) if is_different else ()
