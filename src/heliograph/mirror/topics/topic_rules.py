"""Which topics a flow replicates, and what must be created on the target for that. Plans are data for `worker`.

Rule (MM2): `(filter accepts OR heartbeats) AND NOT internal AND NOT cycle`. Beyond MM2, no copy has the name of a topic
in which the worker itself keeps its connectors, their progress and states: who writes the source would write connectors
of the worker. Invariants: a plan never deletes a topic
and never shrinks one; planning again after applying a plan gives an empty plan.


The rules of a flow's topics within all flows of its file: only together do they tell what would go in circles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import worker_keys
from heliograph.mirror.policy.filters import NameFilter, config_property_filter, topic_filter
from heliograph.mirror.policy.replication_policy import ReplicationPolicy, is_cycle, make_policy
from heliograph.mirror.topics.topology import Topology
from heliograph.model import AddPartitions, CreateTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.resolve.settings import Settings
    from heliograph.model import ConfigEntry, Flow, TopicState


# They say how a broker before 4.0 keeps and serves older message formats. We always write the newest; a broker from 4.0
# on does not know them, and an older one would refuse our idempotent producer on a topic that has the first.
_OF_OLD_FORMATS = frozenset({"message.format.version", "message.downconversion.enable"})

_OWN_TOPICS = (worker_keys.CONFIG_STORAGE_TOPIC, keys.OFFSET_STORAGE_TOPIC, worker_keys.STATUS_STORAGE_TOPIC)


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings of a flow that decide about topics."""

    source: str
    target: str
    policy: ReplicationPolicy
    names: NameFilter
    config_properties: NameFilter
    replication_factor: int
    use_source_defaults: bool
    replicate_heartbeats: bool
    topology: Topology | None = None
    own_topics: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Settings, topology: Topology | None = None) -> TopicRules:
        """The rules a flow's settings spell; raises ConfigError for a pattern that cannot be read."""
        return cls(
            source=settings[keys.SOURCE_ALIAS],
            target=settings[keys.TARGET_ALIAS],
            policy=make_policy(settings),
            names=topic_filter(settings),
            config_properties=config_property_filter(settings),
            replication_factor=settings[keys.REPLICATION_FACTOR],
            use_source_defaults=settings[keys.USE_DEFAULTS_FROM] == "source",
            replicate_heartbeats=settings[keys.HEARTBEATS_REPLICATION],
            topology=topology,
            own_topics=frozenset(settings[key] for key in _OWN_TOPICS) - {""},
        )

    def remote_topic(self, topic: str) -> str:
        """Name of the copy on the target."""
        return self.policy.format_remote_topic(self.source, topic)

    def why_not(self, topic: str) -> str | None:
        """The reason a topic is not replicated, or None where it is."""
        if self.policy.is_internal_topic(topic):
            return "it is an internal topic"
        if self._is_cycle(topic):
            return f"it came from '{self.target}' or this flow before; copying it would go in circles"
        if self.own_topics and self.remote_topic(topic) in self.own_topics:
            return f"its copy would be called '{self.remote_topic(topic)}', where the worker keeps its own state"
        if self.replicate_heartbeats and self.policy.is_heartbeats_topic(topic):
            return None
        return self.names.why_not(topic)

    def _is_cycle(self, topic: str) -> bool:
        if is_cycle(self.policy, topic, self.source, self.target):
            return True
        return self.topology is not None and self.topology.has_been_on(self.target, self.source, topic)

    def replicates(self, topic: str) -> bool:
        """Whether the flow copies the topic."""
        return self.why_not(topic) is None

    def chosen(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Those of a cluster's topics that the flow copies, each to a remote topic of its own."""
        replicated = sorted(topic for topic in topics if self.replicates(topic))
        clashes = self.clashes(replicated)
        return tuple(topic for topic in replicated if topic not in clashes)

    def clashes(self, topics: Iterable[str]) -> dict[str, str]:
        """Of the topics to copy, those whose remote name another one has, and why they are left out.

        Only a map of names or a policy of the user's can give one name twice. The topic that the policy reads back
        from that name keeps it; records of two topics must never be mixed in one.
        """
        wanted: dict[str, list[str]] = {}
        for topic in sorted(topics):
            wanted.setdefault(self.remote_topic(topic), []).append(topic)
        left_out = {}
        for remote, rivals in wanted.items():
            upstream = self.policy.upstream_topic(remote)
            keeper = upstream if upstream in rivals else rivals[0]
            reason = f"its copy would be called '{remote}', which is the name of the copy of '{keeper}'"
            left_out.update({topic: reason for topic in rivals if topic != keeper})
        return left_out

    def copied_configs(self, entries: Iterable[ConfigEntry]) -> tuple[tuple[str, str], ...]:
        """Configs a new remote topic gets from its source."""
        return tuple(
            (entry.name, entry.value)
            for entry in entries
            if entry.value is not None and self.syncs_config(entry) and not self.leaves_to_target(entry)
        )

    def syncs_config(self, entry: ConfigEntry) -> bool:
        """Whether a config of the source topic counts for the remote one, be it only to go back to its default."""
        return (
            not (entry.is_read_only or entry.is_sensitive or entry.is_static_broker_config)
            and entry.name not in _OF_OLD_FORMATS
            and self.config_properties.accepts(entry.name)
        )

    def leaves_to_target(self, entry: ConfigEntry) -> bool:
        """Whether the target's own default stands in for a config that is the default on the source."""
        return entry.is_default and not self.use_source_defaults


def plan_topics(
    rules: TopicRules, source: Iterable[TopicState], target: Mapping[str, int]
) -> tuple[CreateTopic | AddPartitions, ...]:
    """What the target lacks: `source` are the topics to replicate, `target` maps existing ones to partition counts."""
    actions: list[CreateTopic | AddPartitions] = []
    for topic in source:
        name = rules.remote_topic(topic.name)
        existing = target.get(name)
        if existing is None:
            configs = rules.copied_configs(topic.configs)
            actions.append(CreateTopic(name, topic.partition_count, rules.replication_factor, configs))
        elif existing < topic.partition_count:
            actions.append(AddPartitions(name, topic.partition_count))
    return tuple(actions)


def topic_rules(config: MirrorConfig, flow: Flow) -> TopicRules:
    """What decides about the topics of a flow."""
    topology = Topology.of({each: config.settings(each) for each in config.enabled_flows})
    return TopicRules.of(config.settings(flow), topology)
