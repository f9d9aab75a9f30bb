"""Decides which topics a flow replicates, and plans what the target lacks for that.

Rule (MM2): `(filter accepts OR heartbeats) AND NOT internal AND NOT cycle`. Cycles are found over all flows of a file
(`topology`). Beyond MM2, no copy gets the name of a topic in which the worker stores its connectors, their offsets and
states: a producer of the source could otherwise create connectors.

Invariants: a plan never deletes a topic and never removes partitions; planning again after applying a plan gives an
empty plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import worker_keys
from heliograph.mirror.policy.filters import NameFilter, topic_filter
from heliograph.mirror.policy.replication_policy import ReplicationPolicy, is_cycle, make_policy, upstream_hops
from heliograph.mirror.topics.topic_configs import ConfigRules
from heliograph.mirror.topics.topology import Topology
from heliograph.model import AddPartitions, CreateTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.resolve.settings import Settings
    from heliograph.model import Flow, TopicState


_OWN_TOPICS = (worker_keys.CONFIG_STORAGE_TOPIC, keys.OFFSET_STORAGE_TOPIC, worker_keys.STATUS_STORAGE_TOPIC)


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings of a flow that decide about topics; `own_topics` are those of the worker itself."""

    source: str
    target: str
    policy: ReplicationPolicy
    names: NameFilter
    configs: ConfigRules
    replication_factor: int
    replicate_heartbeats: bool
    topology: Topology | None = None
    own_topics: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Settings, topology: Topology | None = None) -> TopicRules:
        """Return the rules of a flow's settings; raises ConfigError for a pattern that cannot be read."""
        return cls(
            source=settings[keys.SOURCE_ALIAS],
            target=settings[keys.TARGET_ALIAS],
            policy=make_policy(settings),
            names=topic_filter(settings),
            configs=ConfigRules.of(settings),
            replication_factor=settings[keys.REPLICATION_FACTOR],
            replicate_heartbeats=settings[keys.HEARTBEATS_REPLICATION],
            topology=topology,
            own_topics=frozenset(settings[key] for key in _OWN_TOPICS) - {""},
        )

    def remote_topic(self, topic: str) -> str:
        """Return the name of the copy on the target."""
        return self.policy.format_remote_topic(self.source, topic)

    def why_not(self, topic: str) -> str | None:
        """Return the reason why a topic is not replicated, or None if it is."""
        if self.policy.is_internal_topic(topic):
            return "it is an internal topic"
        if self._is_cycle(topic):
            return f"it came from '{self.target}' or this flow before; copying it would go in circles"
        if self.own_topics and self.remote_topic(topic) in self.own_topics:
            return f"its copy would be called '{self.remote_topic(topic)}', where the worker keeps its own state"
        if self.replicate_heartbeats and self.policy.is_heartbeats_topic(topic):
            return None
        return self.names.why_not(topic)

    def heartbeat_path(self, topic: str) -> tuple[str, ...] | None:
        """Return the clusters that the heartbeats of a topic pass, from their origin to the source and the target.

        None for a topic that does not carry heartbeats.
        """
        if not self.policy.is_heartbeats_topic(topic):
            return None
        earlier = [alias for alias, _name in upstream_hops(self.policy, topic)]
        return (*reversed(earlier), self.source, self.target)

    def _is_cycle(self, topic: str) -> bool:
        if is_cycle(self.policy, topic, self.source, self.target):
            return True
        return self.topology is not None and self.topology.has_been_on(self.target, self.source, topic)

    def replicates(self, topic: str) -> bool:
        """Return whether the flow copies the topic."""
        return self.why_not(topic) is None

    def chosen(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Return those of a cluster's topics that the flow copies, each to a remote topic of its own."""
        replicated = sorted(topic for topic in topics if self.replicates(topic))
        clashes = self.clashes(replicated)
        return tuple(topic for topic in replicated if topic not in clashes)

    def clashes(self, topics: Iterable[str]) -> dict[str, str]:
        """Return those of the topics to copy that are skipped because another has the same remote name, and why.

        Only a map of names or a custom policy can give one name twice. The topic that the policy reads back from that
        name keeps it; records of two topics must never be mixed in one.
        """
        wanted: dict[str, list[str]] = {}
        for topic in sorted(topics):
            wanted.setdefault(self.remote_topic(topic), []).append(topic)
        skipped = {}
        for remote, rivals in wanted.items():
            upstream = self.policy.upstream_topic(remote)
            keeper = upstream if upstream in rivals else rivals[0]
            reason = f"its copy would be called '{remote}', which is the name of the copy of '{keeper}'"
            skipped.update({topic: reason for topic in rivals if topic != keeper})
        return skipped


def plan_topics(
    rules: TopicRules, source: Iterable[TopicState], target: Mapping[str, int]
) -> tuple[CreateTopic | AddPartitions, ...]:
    """Return what the target lacks; `source` are topics to replicate, `target` has the partition counts of its own."""
    actions: list[CreateTopic | AddPartitions] = []
    for topic in source:
        name = rules.remote_topic(topic.name)
        existing = target.get(name)
        if existing is None:
            configs = rules.configs.copied(topic.configs)
            actions.append(CreateTopic(name, topic.partition_count, rules.replication_factor, configs))
        elif existing < topic.partition_count:
            actions.append(AddPartitions(name, topic.partition_count))
    return tuple(actions)


def topic_rules(config: MirrorConfig, flow: Flow) -> TopicRules:
    """Return the rules of a flow's topics, within all enabled flows of its file."""
    topology = Topology.of({each: config.settings(each) for each in config.enabled_flows})
    return TopicRules.of(config.settings(flow), topology)
