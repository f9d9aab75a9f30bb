"""Syncs topics: reads both clusters, plans what the target lacks, and creates or grows remote topics.

Invariant: a topic that cannot be created, described or has no leader is reported, and delays no other.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.input_limits import unusable_sentence
from heliograph.driver.clusters.hidden_names import hidden_topics
from heliograph.driver.steps.issues import LogOnce, by_reason
from heliograph.driver.steps.matching_time import within_matching_time
from heliograph.kafka.error_codes import (
    INVALID_CONFIG,
    INVALID_REPLICATION_FACTOR,
    TOPIC_AUTHORIZATION_FAILED,
    BrokerRefusal,
)
from heliograph.mirror.acls.flow_acls import wanted_topics
from heliograph.mirror.acls.name_prefixes import Names
from heliograph.mirror.topics.internal_topics import bent_sentence, offsets_topic, possible_factor, too_large_sentence
from heliograph.mirror.topics.topic_rules import TopicRules, plan_topics
from heliograph.model import AddPartitions, CreateTopic, TopicPartition, TopicState, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.resolve.settings import Settings
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import ChangeActions


log = logging.getLogger(__name__)

TOPIC_KEYS = f"{keys.TOPICS.name}, {keys.TOPICS_EXCLUDE.name}"


@dataclass(frozen=True, slots=True)
class SeenTopics:
    """The topics of both clusters at one moment, as far as a flow needs them."""

    counts: dict[str, int]  # all topics of the source, with their partitions
    chosen: tuple[str, ...]  # those to replicate
    remote_counts: dict[str, int]  # remote topics that exist
    broker_count: int  # of the target
    unusable: frozenset[str] = frozenset()  # names listed by the source that no topic can have
    hidden_remote: frozenset[str] = frozenset()  # remote topics that we may not describe


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The changes that the target needs, notes for the log, and issues of topics that could not be planned."""

    actions: tuple[CreateTopic | AddPartitions, ...] = ()
    notes: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replicated:
    """The source partitions that a flow copies, those whose remote partition exists, and the names of remote topics.

    `actions` has those of each source topic. `lacking` are the partitions that it cannot copy, and why: the target has
    no partition for them.
    """

    partitions: tuple[TopicPartition, ...]
    remote_topics: dict[str, str]
    issues: tuple[str, ...] = ()
    actions: Mapping[str, ChangeActions] = field(default_factory=dict)
    lacking: Mapping[TopicPartition, str] = field(default_factory=dict)


_NOTHING = Replicated((), {})
_SEE = "the issues of the flow say why"


def see_topics(rules: TopicRules, source: Admin, target: Admin) -> SeenTopics:
    """Read the topics of both clusters."""
    listed = source.view()
    counts = listed.partition_counts
    chosen = rules.chosen(within_matching_time(counts, TOPIC_KEYS, source.alias))
    view = target.view([rules.remote_topic(topic) for topic in chosen])
    hidden = frozenset(name for name, code in view.error_codes.items() if code == TOPIC_AUTHORIZATION_FAILED)
    return SeenTopics(counts, chosen, view.partition_counts, len(view.brokers), listed.unusable, hidden)


class TopicSync:
    """Keeps a flow's remote topics in sync with the source's."""

    def __init__(self, settings: Settings, rules: TopicRules, source: Admin, target: Admin) -> None:
        self._settings = settings
        self._rules = rules
        self._source = source
        self._target = target
        self._log_once = LogOnce(log)

    def sync(self, before: Replicated = _NOTHING) -> Replicated:
        """Run one round: discover, create, grow. Issues are returned, and tried again in the next round.

        What was replicated `before` remains so while a cluster hides it: it is not gone, and its task reports what it
        may not do.
        """
        seen = see_topics(self._rules, self._source, self._target)
        plan = self.plan(seen)
        for note in (*plan.notes, *self._hidden_heartbeats(seen)):
            self._log_once.report(logging.WARNING, note)
        hidden = hidden_topics(self._source, wanted_topics(self._settings, self._rules), seen.counts)
        made, refused, issues = self._apply(plan.actions, seen.broker_count)
        remote_counts = seen.remote_counts | made
        remote_topics = {topic: self._rules.remote_topic(topic) for topic in seen.chosen}
        partitions: list[TopicPartition] = []
        lacking: dict[TopicPartition, str] = {}
        kept = {tp for tp in before.partitions if before.remote_topics[tp.topic] in seen.hidden_remote}
        for topic in seen.chosen:
            remote = remote_topics[topic]
            for tp in (TopicPartition(topic, number) for number in range(seen.counts[topic])):
                if tp.partition < remote_counts.get(remote, 0) or tp in kept:
                    partitions.append(tp)
                else:
                    lacking[tp] = f"the target has no partition {tp.partition} of {remote}: {refused.get(remote, _SEE)}"
        for tp in self._hidden_now(before, seen):
            partitions.append(tp)
            remote_topics[tp.topic] = before.remote_topics[tp.topic]
        unusable = unusable_sentence(self._source.alias, "topics", seen.unusable)
        all_issues = (*unusable, *hidden, *plan.issues, *issues)
        return Replicated(tuple(partitions), remote_topics, all_issues, lacking=lacking)

    def _hidden_now(self, before: Replicated, seen: SeenTopics) -> list[TopicPartition]:
        """Return the partitions that were replicated and whose topics the source hides now."""
        gone = self._rules.chosen({tp.topic for tp in before.partitions} - seen.counts.keys())
        codes = self._source.view(gone).error_codes if gone else {}
        return [tp for tp in before.partitions if codes.get(tp.topic) == TOPIC_AUTHORIZATION_FAILED]

    def _hidden_heartbeats(self, seen: SeenTopics) -> tuple[str, ...]:
        """Return notes, not issues: no records of users are missing."""
        if not self._rules.replicate_heartbeats:
            return ()
        heartbeats = Names(self._rules.policy.heartbeats_topic(), is_whole=True)
        return tuple(
            f"{sentence}, or set heartbeats.replication.enabled to false"
            for sentence in hidden_topics(self._source, [heartbeats], seen.counts)
        )

    def plan(self, seen: SeenTopics) -> TopicPlan:
        """Return what must be created or grown; change nothing."""
        missing = [topic for topic in seen.chosen if self._rules.remote_topic(topic) not in seen.remote_counts]
        configs, refused = self._source.described_configs(missing)
        states = [
            TopicState(topic, seen.counts[topic], configs.get(topic, ()))
            for topic in seen.chosen
            if topic not in refused  # created without its configs, a compacted topic would be one that deletes
        ]
        actions = plan_topics(self._rules, states, seen.remote_counts)
        wanted, brokers = self._rules.replication_factor, seen.broker_count
        factor = possible_factor(wanted, brokers, is_explicit=keys.REPLICATION_FACTOR in self._settings)
        creates_any = any(isinstance(action, CreateTopic) for action in actions)
        return TopicPlan(
            tuple(replace(a, replication_factor=factor) if isinstance(a, CreateTopic) else a for a in actions),
            (bent_sentence(self._target.alias, "remote topics", wanted, brokers),)
            if creates_any and factor != wanted
            else (),
            by_reason(f"The configs of {{names}} on '{self._source.alias}' cannot be read", refused),
        )

    def _apply(
        self, actions: tuple[CreateTopic | AddPartitions, ...], broker_count: int
    ) -> tuple[dict[str, int], dict[str, str], tuple[str, ...]]:
        """Return the partitions of topics that were made, the reasons for the others, and the issues."""
        creates = [action for action in actions if isinstance(action, CreateTopic)]
        grows = [action for action in actions if isinstance(action, AddPartitions)]
        refused = self._create(creates) | self._target.add_partitions(grows)
        changed = {action.name: action.partition_count for action in actions if action.name not in refused}
        lacking = self._target.wait_for_leaders(changed) if changed else {}
        made = {name: count for name, count in changed.items() if name not in lacking}
        for action in actions:
            if action.name in made:
                verb = "created" if isinstance(action, CreateTopic) else "grew"
                log.info(
                    "%s: %s %s with %s",
                    self._target.alias,
                    verb,
                    action.name,
                    counted(action.partition_count, "partition"),
                )
        reasons = {name: self._explained(refusal, broker_count) for name, refusal in refused.items()}
        issues = (
            *by_reason(f"The topics {{names}} cannot be created on '{self._target.alias}'", reasons),
            *by_reason(f"The topics {{names}} on '{self._target.alias}' cannot be used yet", lacking),
        )
        return made, {name: str(why) for name, why in (*lacking.items(), *reasons.items())}, issues

    def _create(self, topics: list[CreateTopic]) -> dict[str, BrokerRefusal]:
        """Create topics; if the configs of one are refused, try again without those unknown to the target."""
        refused = self._target.create_topics(topics)
        refused_configs = [
            topic for topic in topics if topic.name in refused and refused[topic.name].code == INVALID_CONFIG
        ]
        if refused_configs:
            # Any topic shows which configs there are; the offsets topic is ours to describe.
            there = sorted(self._target.view().partition_counts, key=offsets_topic(self._settings).name.__ne__)
            described, _refused = self._target.described_configs(there[:1])
            known = {entry.name for entries in described.values() for entry in entries}
            reduced = [
                replace(topic, configs=tuple(config for config in topic.configs if config[0] in known))
                for topic in refused_configs
            ]
            again = [
                topic for topic, before in zip(reduced, refused_configs, strict=True) if topic.configs != before.configs
            ]
            if known and again:
                refused = {name: why for name, why in refused.items() if name not in {topic.name for topic in again}}
                refused |= self._target.create_topics(again)
        return refused

    def _explained(self, refusal: BrokerRefusal, broker_count: int) -> str:
        if refusal.code != INVALID_REPLICATION_FACTOR:
            return str(refusal)
        factor = self._rules.replication_factor
        return too_large_sentence(self._target.alias, keys.REPLICATION_FACTOR.name, factor, broker_count)
