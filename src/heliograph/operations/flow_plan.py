"""Plans what a flow would do if it were started now, by the code that the flow itself plans with.

Invariant: only read requests are sent; both clusters stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.driver.clusters.cluster_clients import make_admin
from heliograph.driver.flow.acl_sync import AclSync
from heliograph.driver.flow.config_sync import ConfigSync, unknown_sentence
from heliograph.driver.flow.topic_sync import SeenTopics, TopicSync, see_topics
from heliograph.errors import ClusterError
from heliograph.kafka.admin.admin import can_alter_configs
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED
from heliograph.mirror.topics.internal_topics import (
    bent_sentence,
    checkpoints_topic,
    heartbeats_topic,
    offset_syncs_topic,
    offsets_topic,
    possible_factor,
    too_large_sentence,
)
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.model import AddPartitions, CreateTopic, Flow
from heliograph.operations.flow_groups import FlowGroups
from heliograph.operations.missing_acls import MissingAcl, missing_acls

if TYPE_CHECKING:
    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.keys.table import Key
    from heliograph.config.resolve.settings import Settings
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import AclBinding, AlterConfigs


_MOST_NAMED = 20


class CopiedTopic(NamedTuple):
    """A topic that is replicated."""

    topic: str
    remote_topic: str
    partitions: int


class SkippedTopic(NamedTuple):
    """A topic that is not replicated, and why."""

    topic: str
    reason: str


class GrownTopic(NamedTuple):
    """A remote topic that gets more partitions."""

    topic: str
    old: int
    new: int


@dataclass(slots=True)
class FlowPlan:
    """Everything a flow would do at its start; if `is_planned` is false, `issues` say why that is not known."""

    flow: Flow
    is_planned: bool = True
    creates: list[CreateTopic] = field(default_factory=list)
    grows: list[GrownTopic] = field(default_factory=list)
    alters: list[AlterConfigs] = field(default_factory=list)
    adds_acls: list[AclBinding] = field(default_factory=list)
    copies: list[CopiedTopic] = field(default_factory=list)
    skips: list[SkippedTopic] = field(default_factory=list)
    missing_acls: list[MissingAcl] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    issues: list[str] = field(default_factory=list)


def plan_flow(config: MirrorConfig, flow: Flow, only_topic: str | None = None) -> FlowPlan:
    """Read both clusters and plan; `only_topic` limits the plan to one topic of the source, which need not exist."""
    settings = config.settings(flow)
    source, target = make_admin(config, flow.source, flow), make_admin(config, flow.target, flow)
    try:
        timeout_s = settings[keys.CONNECT_TIMEOUT_MS] / 1000
        source.wait_until_reachable(timeout_s)
        target.wait_until_reachable(timeout_s)
        return _Planner(config, flow, source, target, only_topic).plan()
    finally:
        source.close()
        target.close()


class _Planner:
    """Builds one plan, part by part."""

    def __init__(self, config: MirrorConfig, flow: Flow, source: Admin, target: Admin, only: str | None) -> None:
        self._config = config
        self._settings = config.settings(flow)
        self._source, self._target = source, target
        self._rules = topic_rules(config, flow)
        self._only_topic = only
        self._plan = FlowPlan(flow)
        self._lowered_factors: dict[
            tuple[str, int, int], list[str]
        ] = {}  # by cluster, default factor and number of brokers

    def plan(self) -> FlowPlan:
        seen = self._see()
        self._plan_topics(seen)
        if self._only_topic is None:
            self._plan_internal_topics()
            self._find_missing_acls(seen)
            if self._settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
                _find_groups_on_both_sides(self._config, self._plan)
        if self._settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            self._plan_configs(seen)
        else:
            self._plan.notes.append("sync.topic.configs.enabled is false: configs of existing topics are not compared")
        if self._settings[keys.SYNC_TOPIC_ACLS_ENABLED]:
            self._plan_acls()
        else:
            self._plan.notes.append("sync.topic.acls.enabled is false: ACLs are not compared")
        return self._plan

    def _see(self) -> SeenTopics:
        seen = see_topics(self._rules, self._source, self._target)
        name = self._only_topic
        if name is None:
            return seen
        if name not in seen.counts:
            self._plan.skips.append(SkippedTopic(name, self._why_not_there(name)))
        counts = {topic: count for topic, count in seen.counts.items() if topic == name}
        return replace(seen, counts=counts, chosen=tuple(topic for topic in seen.chosen if topic == name))

    def _why_not_there(self, name: str) -> str:
        if self._source.view([name]).error_codes.get(name) == TOPIC_AUTHORIZATION_FAILED:
            return f"'{self._source.alias}' does not show it; the principal needs DESCRIBE on the topic"
        reason = self._rules.why_not(name)
        would = (
            f"would be copied to {self._rules.remote_topic(name)}"
            if reason is None
            else f"would not be copied: {reason}"
        )
        return f"it does not exist on '{self._source.alias}'; if it did, it {would}"

    def _plan_topics(self, seen: SeenTopics) -> None:
        plan, rules = self._plan, self._rules
        plan.copies += [CopiedTopic(topic, rules.remote_topic(topic), seen.counts[topic]) for topic in seen.chosen]
        clashes = rules.clashes(topic for topic in seen.counts if rules.replicates(topic))
        for topic in sorted(seen.counts):
            reason = rules.why_not(topic) or clashes.get(topic)
            if reason is not None:
                plan.skips.append(SkippedTopic(topic, reason))
        topics = TopicSync(self._settings, self._rules, self._source, self._target).plan(seen)
        for action in topics.actions:
            if isinstance(action, AddPartitions):
                plan.grows.append(GrownTopic(action.name, seen.remote_counts[action.name], action.partition_count))
            else:
                plan.creates.append(action)
        plan.notes += topics.notes
        plan.issues += topics.issues
        self._check_factor(plan.creates, keys.REPLICATION_FACTOR.name, seen.broker_count)

    def _plan_internal_topics(self) -> None:
        settings = self._settings
        self._plan_on_target(offsets_topic(settings), keys.OFFSET_STORAGE_REPLICATION_FACTOR)
        if settings[keys.EMIT_HEARTBEATS_ENABLED]:
            self._plan_on_target(heartbeats_topic(settings), keys.HEARTBEATS_REPLICATION_FACTOR)
        self._plan_heartbeats_on_source()
        if settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
            self._plan_translation()
        for (alias, wanted, brokers), names in self._lowered_factors.items():
            self._plan.notes.append(bent_sentence(alias, ", ".join(names), wanted, brokers))

    def _plan_translation(self) -> None:
        """Plan the topics by which offsets are translated."""
        settings = self._settings
        syncs = offset_syncs_topic(settings)
        if settings[keys.OFFSET_SYNCS_LOCATION] == "target":
            self._plan_on_target(syncs, keys.OFFSET_SYNCS_REPLICATION_FACTOR)
        else:
            self._plan_on_source(syncs, keys.OFFSET_SYNCS_REPLICATION_FACTOR, settings, "the offset syncs")
        if settings[keys.EMIT_CHECKPOINTS_ENABLED]:
            self._plan_on_target(checkpoints_topic(settings), keys.CHECKPOINTS_REPLICATION_FACTOR)

    def _plan_heartbeats_on_source(self) -> None:
        """Plan the heartbeats of the reverse flow; its topic is replicated as any other."""
        reverse = Flow(self._plan.flow.target, self._plan.flow.source)
        if reverse not in self._config.heartbeat_flows:
            return
        settings, rules = self._config.settings(reverse), self._rules
        topic = heartbeats_topic(settings)
        copied = f", and copied to {rules.remote_topic(topic.name)}" if rules.why_not(topic.name) is None else ""
        purpose = f"the heartbeats of {reverse}{copied}"
        self._plan_on_source(topic, keys.HEARTBEATS_REPLICATION_FACTOR, settings, purpose)

    def _plan_on_target(self, topic: CreateTopic, key: Key[int]) -> None:
        created = self._as_created(self._target, topic, key, self._settings)
        if created is not None:
            self._plan.creates.append(created)

    def _plan_on_source(self, topic: CreateTopic, key: Key[int], settings: Settings, purpose: str) -> None:
        created = self._as_created(self._source, topic, key, settings)
        if created is not None:
            self._plan.notes.append(f"{topic.name} will be created on '{self._source.alias}' for {purpose}")

    def _as_created(self, admin: Admin, topic: CreateTopic, key: Key[int], settings: Settings) -> CreateTopic | None:
        """Return an internal topic with the replication factor it would get; None if it exists."""
        view = admin.view([topic.name])
        if topic.name in view.partition_counts:
            return None
        wanted, brokers = topic.replication_factor, len(view.brokers)
        factor = possible_factor(wanted, brokers, is_explicit=key in settings)
        if factor != wanted:
            self._lowered_factors.setdefault((admin.alias, wanted, brokers), []).append(topic.name)
        if factor > brokers:
            self._plan.issues.append(too_large_sentence(admin.alias, key.name, factor, brokers))
        return replace(topic, replication_factor=factor)

    def _check_factor(self, creates: list[CreateTopic], key: str, broker_count: int) -> None:
        factor = max((topic.replication_factor for topic in creates), default=0)
        if factor > broker_count:
            self._plan.issues.append(too_large_sentence(self._target.alias, key, factor, broker_count))

    def _find_missing_acls(self, seen: SeenTopics) -> None:
        flow, remote = self._plan.flow, self._rules.remote_topic
        topics = {flow.source: seen.chosen, flow.target: tuple(remote(topic) for topic in seen.chosen)}
        try:
            self._plan.missing_acls += missing_acls(self._config, flow, topics)
        except ClusterError as error:
            self._plan.notes.append(f"it is not known whether ACLs are missing: {str(error).rstrip('.')}")

    def _plan_configs(self, seen: SeenTopics) -> None:
        configs, issues = ConfigSync(self._rules, self._source, self._target).plan(seen)
        self._plan.issues += issues
        if configs.unknown:
            self._plan.notes.append(unknown_sentence(self._target.alias, configs))
        if configs.alters and not can_alter_configs(self._target):
            self._plan.notes.append(
                f"{self._target.alias} is older than Kafka 2.3: configs that differ are not altered"
            )
        else:
            self._plan.alters += configs.alters

    def _plan_acls(self) -> None:
        try:
            acls, notes = AclSync(self._rules, self._source, self._target).plan()
        except ClusterError as error:
            self._plan.issues.append(str(error).rstrip("."))
            return
        if self._only_topic is None:
            self._plan.adds_acls += acls.adds
            self._plan.notes += notes
        else:
            remote = self._rules.remote_topic(self._only_topic)
            self._plan.adds_acls += [acl for acl in acls.adds if acl.topic == remote]
            self._plan.notes += [
                f"The ACL {each.acl} is skipped: {each.reason}"
                for each in acls.skipped
                if each.acl.topic == self._only_topic
            ]


def _find_groups_on_both_sides(config: MirrorConfig, plan: FlowPlan) -> None:
    flow = plan.flow
    try:
        with FlowGroups(config, flow) as flow_groups:
            groups = flow_groups.on_both_sides()
    except ClusterError as error:
        plan.notes.append(f"it is not known which groups are on both clusters: {str(error).rstrip('.')}")
        return
    if groups:
        more = f" and {len(groups) - _MOST_NAMED} more" if len(groups) > _MOST_NAMED else ""
        plan.warnings.append(
            f"these groups consume on both clusters, so their offsets on '{flow.target}' are not synced:"
            f" {', '.join(groups[:_MOST_NAMED])}{more}; give them different names, or exclude them (groups.exclude)"
        )
