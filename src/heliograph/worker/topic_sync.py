"""Gather, plan, apply for topics: what the source has, what the target lacks, and making it so."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.mirror.internal_topics import offsets_topic
from heliograph.mirror.topics import AddPartitions, CreateTopic, TopicRules, plan_topics
from heliograph.model import TopicPartition, TopicState
from heliograph.worker.internal_topics import create_internal_topic
from heliograph.worker.replication_factor import ReplicationFactors

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
        self._factors = ReplicationFactors(target)

    def ensure_offsets_topic(self) -> CreateTopic:
        """Create the topic of progress where it is missing; returns it with the partitions it really has."""
        return create_internal_topic(
            self._target,
            offsets_topic(self._settings),
            is_explicit_factor=keys.OFFSET_STORAGE_REPLICATION_FACTOR in self._settings,
            factor_key=keys.OFFSET_STORAGE_REPLICATION_FACTOR.name,
        )

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
        is_explicit = keys.REPLICATION_FACTOR in self._settings
        creates = [
            self._factors.possible(action, is_explicit=is_explicit, what="remote topics")
            for action in actions
            if isinstance(action, CreateTopic)
        ]
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
