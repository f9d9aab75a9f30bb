"""Lists the ACLs that the clients of a flow need, each with its reason, from the settings alone.

A flow has several clients, and a file may give each a login of its own: `ClientRole` says which client has the need.
There is one function for each of MM2's three connectors, since each may run by itself in a Connect worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.keys import worker_keys
from heliograph.mirror.acls.acl import GROUP, THE_CLUSTER, TOPIC, TRANSACTIONAL_ID, Acl, Resource
from heliograph.mirror.acls.name_prefixes import ANY_NAME, Names, names_of, remote_names, without_covered
from heliograph.mirror.policy.filters import ListFilter, NameFilter, group_filter
from heliograph.mirror.topics.internal_topics import (
    checkpoints_topic,
    heartbeats_topic,
    leader_transactional_id,
    losses_topic,
    offset_syncs_topic,
    offsets_topic,
    transactional_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.resolve.settings import Settings
    from heliograph.mirror.topics.topic_rules import TopicRules
    from heliograph.model import Flow


class ClientRole(Enum):
    """A client of a flow: the cluster it connects to, and its role."""

    SOURCE_ADMIN = "source admin"
    SOURCE_CONSUMER = "source consumer"
    SOURCE_PRODUCER = "source producer"
    TARGET_ADMIN = "target admin"
    TARGET_PRODUCER = "target producer"  # of offset syncs stored on the target
    RECORDS = "records"  # the producer of copied records
    OFFSETS = "source offsets"  # a Connect worker's own


class Need(NamedTuple):
    """An ACL that one of a flow's clients needs."""

    role: ClientRole
    acl: Acl


@dataclass(frozen=True, slots=True)
class FlowAclContext:
    """The settings that the needs of one flow depend on.

    `heartbeats` are the heartbeats topics on the source that are copied. The clients for records and source offsets are
    those of the target, unless a Connect worker stores them elsewhere; `is_split` if records are produced to another
    cluster than the one that the admin client of the target connects to.
    """

    settings: Settings
    rules: TopicRules
    connector: str
    heartbeats: tuple[str, ...] = ()
    driver_records: ClientRole = ClientRole.TARGET_ADMIN
    driver_offsets: ClientRole = ClientRole.TARGET_ADMIN
    task_offsets: ClientRole = ClientRole.RECORDS
    is_split: bool = False
    notes_offsets: bool = False

    @property
    def target_roles(self) -> tuple[ClientRole, ...]:
        """The driver's clients of the clusters that records are written to."""
        return (ClientRole.TARGET_ADMIN, ClientRole.RECORDS) if self.is_split else (ClientRole.TARGET_ADMIN,)

    @property
    def topics(self) -> tuple[Names, ...]:
        """The topics of the source that are copied, without heartbeats."""
        return wanted_topics(self.settings, self.rules)

    @property
    def groups(self) -> tuple[Names, ...]:
        """The groups that are followed."""
        return wanted_groups(self.settings)

    @property
    def copied(self) -> tuple[Names, ...]:
        """The topics of the source that are copied, with heartbeats."""
        return without_covered((*self.topics, *(Names(topic, is_whole=True) for topic in self.heartbeats)))

    def remote(self, topics: tuple[Names, ...]) -> tuple[Names, ...]:
        """Return the names of the copies of topics."""
        return without_covered(name for names in topics for name in remote_names(self.rules, names))

    @property
    def offset_syncs_roles(self) -> tuple[ClientRole, ClientRole]:
        """The client that creates and reads the offset syncs topic, and the one that writes to it."""
        is_at_source = self.settings[keys.OFFSET_SYNCS_LOCATION] == "source"
        return (
            (ClientRole.SOURCE_ADMIN, ClientRole.SOURCE_PRODUCER)
            if is_at_source
            else (ClientRole.TARGET_ADMIN, ClientRole.TARGET_PRODUCER)
        )


def wanted_topics(settings: Settings, rules: TopicRules) -> tuple[Names, ...]:
    """Return the topics that a flow copies, without heartbeats, as far as its patterns name them."""
    listed = _listed(rules.names, settings[keys.TOPICS])
    return tuple(names for names in listed if not names.is_whole or rules.replicates(names.start))


def wanted_groups(settings: Settings) -> tuple[Names, ...]:
    """Return the groups that a flow follows, as far as its patterns name them."""
    chosen = group_filter(settings)
    listed = _listed(chosen, settings[keys.GROUPS])
    return tuple(names for names in listed if not names.is_whole or chosen.accepts(names.start))


def source_needs(context: FlowAclContext) -> Iterator[Need]:
    """Yield the needs of MirrorSourceConnector: to copy topics."""
    settings = context.settings
    yield from _reading_needs(context)
    yield from _writing_needs(context)
    yield from _source_offset_needs(context)
    if settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
        syncs = offset_syncs_topic(settings).name
        creator, writer = context.offset_syncs_roles
        yield _topic(creator, "CREATE", syncs, "the offset syncs topic is created if it is missing")
        yield _topic(writer, "WRITE", syncs, "offset syncs are written")
    losses = losses_topic(settings).name
    yield _topic(ClientRole.TARGET_ADMIN, "CREATE", losses, "the losses topic is created with the first loss")
    yield _topic(ClientRole.TARGET_ADMIN, "READ", losses, "losses are listed, each once")
    yield _topic(ClientRole.TARGET_ADMIN, "WRITE", losses, "losses are recorded")
    if settings[keys.SYNC_TOPIC_ACLS_ENABLED]:
        why = "sync.topic.acls.enabled is true: the source's ACLs of topics are listed"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", THE_CLUSTER, (why,)))
        why = "sync.topic.acls.enabled is true: the ACLs of copies are listed and added"
        yield Need(ClientRole.TARGET_ADMIN, Acl("ALTER", THE_CLUSTER, (why,)))


def _reading_needs(context: FlowAclContext) -> Iterator[Need]:
    for names in context.copied:
        resource = Resource(TOPIC, names)
        yield Need(ClientRole.SOURCE_CONSUMER, Acl("READ", resource, ("its records are copied",)))
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", resource, ("its partitions are listed",)))
        why = "its copy is created with the same configs"
        if context.settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            why += ", and follows them"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE_CONFIGS", resource, (why,)))


def _writing_needs(context: FlowAclContext) -> Iterator[Need]:
    is_exactly_once = context.settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"
    growing = context.remote(context.topics)
    for names in context.remote(context.copied):
        resource = Resource(TOPIC, names)
        for role in context.target_roles:
            yield Need(role, Acl("CREATE", resource, ("the copy of a topic is created",)))
            if names in growing:
                yield Need(role, Acl("ALTER", resource, ("it gets partitions when its source does",)))
            else:  # heartbeats have one partition
                yield Need(role, Acl("DESCRIBE", resource, ("its existence is checked",)))
        if context.settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            why = "sync.topic.configs.enabled is true: its configs follow the source's"
            yield Need(ClientRole.TARGET_ADMIN, Acl("ALTER_CONFIGS", resource, (why,)))
        yield Need(ClientRole.RECORDS, Acl("WRITE", resource, ("the copied records are written to it",)))
        if not is_exactly_once:
            why = "after a crash its last records are compared, so that none is copied twice"
            yield Need(ClientRole.RECORDS, Acl("READ", resource, (why,)))
    if is_exactly_once:
        prefix = transactional_prefix(context.settings, context.connector)
        resource = Resource(TRANSACTIONAL_ID, Names(prefix, is_whole=False))
        why = "exactly.once.source.support is enabled: records are written in transactions"
        yield Need(ClientRole.RECORDS, Acl("WRITE", resource, (why,)))
        why = "the producers of an earlier instance are fenced"
        yield Need(context.driver_records, Acl("WRITE", resource, (why,)))


def _source_offset_needs(context: FlowAclContext) -> Iterator[Need]:
    source_offsets = offsets_topic(context.settings).name
    yield _topic(
        context.driver_offsets, "CREATE", source_offsets, "the offset storage topic is created if it is missing"
    )
    yield _topic(context.driver_offsets, "READ", source_offsets, "a start resumes at the stored source offsets")
    yield _topic(context.task_offsets, "WRITE", source_offsets, "source offsets are stored")
    if context.settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled":
        yield _topic(ClientRole.RECORDS, "READ", source_offsets, "a task resumes after its last transaction")


def checkpoint_needs(context: FlowAclContext) -> Iterator[Need]:
    """Yield the needs of MirrorCheckpointConnector: to follow groups; none if checkpoints are disabled."""
    settings = context.settings
    if not (settings[keys.EMIT_CHECKPOINTS_ENABLED] and settings[keys.EMIT_OFFSET_SYNCS_ENABLED]):
        return
    for names in context.topics:
        why = "committed offsets on it are read"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", Resource(TOPIC, names), (why,)))
    for names in context.groups:
        why = "the group's committed offsets are translated"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", Resource(GROUP, names), (why,)))
    syncs, (reader, _writer) = offset_syncs_topic(settings).name, context.offset_syncs_roles
    yield _topic(reader, "CREATE", syncs, "the offset syncs topic is created if it is missing")
    yield _topic(reader, "READ", syncs, "offsets are translated by the offset syncs")
    checkpoints = checkpoints_topic(settings).name
    for role in context.target_roles:
        yield _topic(role, "CREATE", checkpoints, "the checkpoints topic is created if it is missing")
    yield _topic(ClientRole.TARGET_ADMIN, "READ", checkpoints, "a start reads the checkpoints written before")
    yield _topic(context.driver_records, "WRITE", checkpoints, "checkpoints are written")
    yield from _connector_offset_needs(context)
    if settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
        why = "sync.group.offsets.enabled is true: offsets of groups are committed"
        for names in context.groups:
            yield Need(ClientRole.TARGET_ADMIN, Acl("READ", Resource(GROUP, names), (why,)))
        for names in context.remote(context.topics):
            yield Need(ClientRole.TARGET_ADMIN, Acl("READ", Resource(TOPIC, names), (why,)))


def heartbeat_needs(context: FlowAclContext) -> Iterator[Need]:
    """Yield the needs of MirrorHeartbeatConnector: to write heartbeats."""
    pair = f"{context.rules.source}->{context.rules.target}"
    heartbeats = heartbeats_topic(context.settings).name
    for role in context.target_roles:
        yield _topic(role, "CREATE", heartbeats, "the heartbeats topic is created if it is missing")
    why = f"heartbeats of {pair} are written, unless {pair}.emit.heartbeats.enabled is false"
    yield _topic(context.driver_records, "WRITE", heartbeats, why)
    yield from _connector_offset_needs(context)


def _connector_offset_needs(context: FlowAclContext) -> Iterator[Need]:
    """Yield the needs to store the offsets of a connector, as Connect does for each."""
    if context.notes_offsets:
        source_offsets = offsets_topic(context.settings).name
        for operation in ("CREATE", "WRITE"):
            yield _topic(context.driver_offsets, operation, source_offsets, "the connector's offsets are stored")


def worker_acls(settings: Settings) -> Iterator[Acl]:
    """Yield the needs of a Connect worker on its own cluster, whatever it runs."""
    group = Resource(GROUP, Names(settings[keys.GROUP_ID], is_whole=True))
    yield Acl("READ", group, ("workers of one group elect a leader",))
    for key in (worker_keys.CONFIG_STORAGE_TOPIC, keys.OFFSET_STORAGE_TOPIC, worker_keys.STATUS_STORAGE_TOPIC):
        resource = Resource(TOPIC, Names(settings[key], is_whole=True))
        for operation in ("CREATE", "READ", "WRITE"):
            yield Acl(operation, resource, (f"it is the worker's {key.name}",))
    leader_id = leader_transactional_id(settings)
    if leader_id is not None:
        why = "exactly.once.source.support is not disabled: a new leader fences its predecessor"
        yield Acl("WRITE", Resource(TRANSACTIONAL_ID, Names(leader_id, is_whole=True)), (why,))


def copied_heartbeats(flows: Mapping[Flow, TopicRules]) -> dict[Flow, tuple[str, ...]]:
    """Return the heartbeats topics that each flow copies: its source's own, and copies that other flows make there."""
    there: dict[str, set[str]] = {}
    for flow, rules in flows.items():
        there.setdefault(flow.source, set()).add(rules.policy.heartbeats_topic())
    for _hop in flows:  # a copy has crossed each flow at most once
        for flow, rules in flows.items():
            there.setdefault(flow.target, set()).update(
                rules.remote_topic(topic) for topic in there[flow.source] if _copies_heartbeats(rules, topic)
            )
    return {
        flow: tuple(sorted(topic for topic in there[flow.source] if _copies_heartbeats(rules, topic)))
        for flow, rules in flows.items()
    }


def _copies_heartbeats(rules: TopicRules, topic: str) -> bool:
    return rules.replicate_heartbeats and rules.replicates(topic)


def _listed(chosen: NameFilter, patterns: tuple[str, ...]) -> tuple[Names, ...]:
    return names_of(patterns) if isinstance(chosen, ListFilter) else (ANY_NAME,)


def _topic(role: ClientRole, operation: str, topic: str, why: str) -> Need:
    return Need(role, Acl(operation, Resource(TOPIC, Names(topic, is_whole=True)), (why,)))
