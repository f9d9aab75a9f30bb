"""Gather, plan, apply for topic configs: remote topics follow their sources', and only differences are written.

A config that the target refuses does not keep the topic's others from being altered. Trouble is returned in sentences
for the flow's status; copying goes on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from heliograph.driver.flow.topic_sync import SeenTopics, see_topics
from heliograph.driver.steps.issues import LogOnce, by_reason, enumerated
from heliograph.errors import BrokerError
from heliograph.kafka.admin.admin import alter_topic_configs
from heliograph.kafka.error_codes import INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, UNSUPPORTED_VERSION, BrokerRefusal
from heliograph.mirror.topics.topic_configs import ConfigPlan, plan_configs
from heliograph.model import AlterConfigs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.kafka.admin.admin import Admin
    from heliograph.mirror.topics.topic_rules import TopicRules


log = logging.getLogger(__name__)


class GatheredConfigs(NamedTuple):
    """A plan, and what could not be read for it."""

    plan: ConfigPlan
    issues: tuple[str, ...]


class ConfigSync:
    """Keeps the configs of a flow's remote topics in step with the source's."""

    def __init__(self, rules: TopicRules, source: Admin, target: Admin) -> None:
        self._rules = rules
        self._source = source
        self._target = target
        self._reported = LogOnce(log)

    def sync(self) -> tuple[str, ...]:
        """One round; returns the troubles it met."""
        plan, issues = self.plan(see_topics(self._rules, self._source, self._target))
        if plan.unknown:
            self._reported.report(logging.WARNING, unknown_sentence(self._target.alias, plan))
        try:
            return issues + self._apply(plan.alters)
        except BrokerError as error:
            if error.code != UNSUPPORTED_VERSION:
                raise
            self._reported.report(logging.WARNING, str(error))
            return issues

    def plan(self, seen: SeenTopics) -> GatheredConfigs:
        """What differs on topics that are on both sides; changes nothing."""
        remote = {topic: self._rules.remote_topic(topic) for topic in seen.chosen}
        both = [topic for topic in seen.chosen if remote[topic] in seen.remote_counts]
        source, source_refused = self._source.described_configs(both)
        target, target_refused = self._target.described_configs(
            (remote[topic] for topic in both), "ALTER_CONFIGS on the topic, which includes DESCRIBE_CONFIGS"
        )
        issues = (
            *_unreadable(self._source.alias, source_refused),
            *_unreadable(self._target.alias, target_refused),
        )
        return GatheredConfigs(plan_configs(self._rules.configs, remote, source, target), issues)

    def _apply(self, alters: Sequence[AlterConfigs]) -> tuple[str, ...]:
        refused = alter_topic_configs(self._target, alters)
        issues: list[str] = []
        for alter in alters:
            refusal = refused.get(alter.topic)
            if refusal is None:
                self._tell_altered(alter)
            elif refusal.code == INVALID_CONFIG:
                del refused[alter.topic]
                issues += self._one_by_one(alter)
        return (
            *by_reason(f"The configs of {{names}} cannot be altered on '{self._target.alias}'", refused),
            *issues,
        )

    def _one_by_one(self, alter: AlterConfigs) -> list[str]:
        """The broker says that something in the request is invalid, in words we cannot rely on; so, each by itself."""
        issues = []
        for change in alter.changes:
            single = AlterConfigs(alter.topic, (change,))
            refusal = alter_topic_configs(self._target, [single]).get(alter.topic)
            if refusal is None:
                self._tell_altered(single)
            else:
                issues.append(
                    f"The config {change.name} of {alter.topic} cannot be altered on '{self._target.alias}': {refusal}"
                )
        return issues

    def _tell_altered(self, alter: AlterConfigs) -> None:
        for change in alter.changes:
            new = "the default" if change.new is None else change.new
            log.info("%s: %s of %s: %s -> %s", self._target.alias, change.name, alter.topic, change.old, new)


def unknown_sentence(alias: str, plan: ConfigPlan) -> str:
    """Says which configs of the source are left out because the target does not have them."""
    return f"{alias}: topics have no config {enumerated(plan.unknown)} there; left out"


def _unreadable(alias: str, refused: Mapping[str, BrokerRefusal]) -> tuple[str, ...]:
    # A topic that is unknown was deleted between two questions.
    there = {topic: refusal for topic, refusal in refused.items() if refusal.code != UNKNOWN_TOPIC_OR_PARTITION}
    return by_reason(f"The configs of {{names}} on '{alias}' cannot be read", there)
