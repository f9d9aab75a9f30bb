"""Gather, plan, apply for topics: what the source has, what the target lacks, and making it so."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.errors import ClusterError
from heliograph.mirror.internal_topics import offsets_topic
from heliograph.mirror.topics import AddPartitions, CreateTopic, TopicRules, plan_topics
from heliograph.model import TopicPartition, TopicState

if TYPE_CHECKING:
    from heliograph.config.types import Settings
    from heliograph.kafka.admin import Admin

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replicated:
    """What a flow copies now: source partitions whose remote partition exists, and the names of remote topics."""

    partitions: tuple[TopicPartition, ...]
    remote_topics: dict[str, str]


class TopicSync:
    """Keeps a flow's remote topics in step with the source's."""

    def __init__(self, settings: Settings, source: Admin, target: Admin) -> None:
        self._settings = settings
        self._rules = TopicRules.of(settings)
        self._source = source
        self._target = target
        self._told: set[str] = set()

    def ensure_offsets_topic(self) -> CreateTopic:
        """Create the topic of progress where it is missing; returns it with the partitions it really has."""
        wanted = offsets_topic(self._settings)
        existing = self._target.view([wanted.name]).partition_counts.get(wanted.name)
        if existing is None:
            explicit = keys.OFFSET_STORAGE_REPLICATION_FACTOR in self._settings
            factor = self._possible_factor(wanted.name, wanted.replication_factor, explicit=explicit)
            failures = self._target.create_topics([replace(wanted, replication_factor=factor)])
            if failures:
                raise ClusterError(
                    f"The topic {wanted.name} cannot be created on '{self._target.alias}': {failures[wanted.name]}."
                )
            self._target.wait_for_leaders({wanted.name: wanted.partition_count})
            existing = wanted.partition_count
        return replace(wanted, partition_count=existing)

    def sync(self) -> Replicated:
        """One round: discover, create, grow. What could not be created is told and tried again in the next round."""
        counts = self._source.view().partition_counts
        chosen = sorted(topic for topic in counts if self._rules.replicates(topic))
        existing = self._target.view([self._rules.remote_topic(topic) for topic in chosen]).partition_counts
        missing = [topic for topic in chosen if self._rules.remote_topic(topic) not in existing]
        configs = self._source.topic_configs(missing) if missing else {}
        states = [TopicState(topic, counts[topic], configs.get(topic, ())) for topic in chosen]
        applied = self._apply(plan_topics(self._rules, states, existing))
        remote_counts = existing | applied
        remote_topics = {topic: self._rules.remote_topic(topic) for topic in chosen}
        partitions = [
            TopicPartition(topic, number)
            for topic in chosen
            for number in range(min(counts[topic], remote_counts.get(remote_topics[topic], 0)))
        ]
        return Replicated(tuple(partitions), remote_topics)

    def _apply(self, actions: tuple[CreateTopic | AddPartitions, ...]) -> dict[str, int]:
        creates = [self._with_possible_factor(action) for action in actions if isinstance(action, CreateTopic)]
        grows = [action for action in actions if isinstance(action, AddPartitions)]
        failures = self._target.create_topics(creates) | self._target.add_partitions(grows)
        for name, why in failures.items():
            log.error("%s: the topic %s cannot be made: %s.", self._target.alias, name, why)
        done: dict[str, int] = {}
        applied: list[CreateTopic | AddPartitions] = [*creates, *grows]
        for action in applied:
            if action.name not in failures:
                verb = "created" if isinstance(action, CreateTopic) else "grew"
                log.info(
                    "%s: %s %s with %d partitions",
                    self._target.alias,
                    verb,
                    action.name,
                    action.partition_count,
                )
                done[action.name] = action.partition_count
        if done:
            self._target.wait_for_leaders(done)
        return done

    def _with_possible_factor(self, action: CreateTopic) -> CreateTopic:
        explicit = keys.REPLICATION_FACTOR in self._settings
        factor = self._possible_factor("remote topics", action.replication_factor, explicit=explicit)
        return replace(action, replication_factor=factor)

    def _possible_factor(self, what: str, wanted: int, *, explicit: bool) -> int:
        """MM2's default factors fail on a smaller cluster; a default bends, what the user wrote does not."""
        brokers = len(self._target.view([]).brokers)
        if explicit or wanted <= brokers:
            return wanted
        sentence = (
            f"{self._target.alias}: {brokers} broker(s) cannot hold {what} with the default replication factor"
            f" {wanted}; using {brokers}"
        )
        if sentence not in self._told:
            self._told.add(sentence)
            log.warning("%s", sentence)
        return brokers
