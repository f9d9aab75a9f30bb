"""The ACLs that the clients of a flow need, each with its reason; from the settings alone, no more than what is used.

A flow has several clients, and a file may give each a login of its own: `Place` says whose need it is. The needs are
those of MM2's three connectors, so that they also hold for one that runs by itself in a Connect worker.
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
    """A client of a flow: which cluster it reaches, in which role."""

    SOURCE_ADMIN = "source admin"
    SOURCE_CONSUMER = "source consumer"
    SOURCE_PRODUCER = "source producer"
    TARGET_ADMIN = "target admin"
    TARGET_PRODUCER = "target producer"  # of offset syncs kept on the target
    RECORDS = "records"  # the producer of what is copied
    OFFSETS = "progress"  # a Connect worker's own


class Need(NamedTuple):
    """An ACL that one of a flow's clients needs."""

    place: ClientRole
    acl: Acl


@dataclass(frozen=True, slots=True)
class FlowAclContext:
    """What decides about the needs of one pair of clusters.

    `heartbeats` are the topics of heartbeats on the source that are copied. The driver's own client of the records
    (`driver_records`) and of progress, and the tasks' client of progress, are the target's unless a Connect worker says
    otherwise; `is_split` where records go to another cluster than the one that is administered.
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
    def holders(self) -> tuple[ClientRole, ...]:
        """The driver's clients of clusters that hold what is written."""
        return (ClientRole.TARGET_ADMIN, ClientRole.RECORDS) if self.is_split else (ClientRole.TARGET_ADMIN,)

    @property
    def topics(self) -> tuple[Names, ...]:
        """The source's topics, heartbeats aside."""
        return wanted_topics(self.settings, self.rules)

    @property
    def groups(self) -> tuple[Names, ...]:
        """The groups that are followed."""
        return wanted_groups(self.settings)

    @property
    def copied(self) -> tuple[Names, ...]:
        """The source's topics with those of heartbeats."""
        return without_covered((*self.topics, *(Names(topic, is_whole=True) for topic in self.heartbeats)))

    def remote(self, topics: tuple[Names, ...]) -> tuple[Names, ...]:
        """The copies of topics."""
        return without_covered(name for names in topics for name in remote_names(self.rules, names))

    @property
    def syncs_places(self) -> tuple[ClientRole, ClientRole]:
        """Who makes and reads the topic of offset syncs, and who writes to it."""
        is_at_source = self.settings[keys.OFFSET_SYNCS_LOCATION] == "source"
        return (
            (ClientRole.SOURCE_ADMIN, ClientRole.SOURCE_PRODUCER)
            if is_at_source
            else (ClientRole.TARGET_ADMIN, ClientRole.TARGET_PRODUCER)
        )


def wanted_topics(settings: Settings, rules: TopicRules) -> tuple[Names, ...]:
    """The topics that a flow means to copy, heartbeats aside, as far as they are known from its patterns."""
    listed = _listed(rules.names, settings[keys.TOPICS])
    return tuple(names for names in listed if not names.is_whole or rules.replicates(names.start))


def wanted_groups(settings: Settings) -> tuple[Names, ...]:
    """The groups that a flow means to follow, as far as they are known from its patterns."""
    chosen = group_filter(settings)
    listed = _listed(chosen, settings[keys.GROUPS])
    return tuple(names for names in listed if not names.is_whole or chosen.accepts(names.start))


def source_needs(mirror: FlowAclContext) -> Iterator[Need]:
    """What copying topics needs."""
    settings = mirror.settings
    yield from _reading_needs(mirror)
    yield from _writing_needs(mirror)
    yield from _progress_needs(mirror)
    if settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
        syncs = offset_syncs_topic(settings).name
        maker, writer = mirror.syncs_places
        yield _topic(maker, "CREATE", syncs, "the topic of offset syncs is created where it is missing")
        yield _topic(writer, "WRITE", syncs, "offset syncs say where each record went")
    if settings[keys.SYNC_TOPIC_ACLS_ENABLED]:
        why = "sync.topic.acls.enabled is true: the source's ACLs of topics are listed"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", THE_CLUSTER, (why,)))
        why = "sync.topic.acls.enabled is true: the ACLs of copies are listed and added"
        yield Need(ClientRole.TARGET_ADMIN, Acl("ALTER", THE_CLUSTER, (why,)))


def _reading_needs(mirror: FlowAclContext) -> Iterator[Need]:
    for names in mirror.copied:
        resource = Resource(TOPIC, names)
        yield Need(ClientRole.SOURCE_CONSUMER, Acl("READ", resource, ("its records are copied",)))
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", resource, ("its partitions are seen",)))
        why = "its copy is created with the same configs"
        if mirror.settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            why += ", and follows them"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE_CONFIGS", resource, (why,)))


def _writing_needs(mirror: FlowAclContext) -> Iterator[Need]:
    is_exactly_once = mirror.settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"
    growing = mirror.remote(mirror.topics)
    for names in mirror.remote(mirror.copied):
        resource = Resource(TOPIC, names)
        for holder in mirror.holders:
            yield Need(holder, Acl("CREATE", resource, ("the copy of a topic is created",)))
            if names in growing:
                yield Need(holder, Acl("ALTER", resource, ("it gets partitions when its source does",)))
            else:  # heartbeats have one partition
                yield Need(holder, Acl("DESCRIBE", resource, ("it is seen to be there",)))
        if mirror.settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            why = "sync.topic.configs.enabled is true: its configs follow the source's"
            yield Need(ClientRole.TARGET_ADMIN, Acl("ALTER_CONFIGS", resource, (why,)))
        yield Need(ClientRole.RECORDS, Acl("WRITE", resource, ("the copied records are written to it",)))
        if not is_exactly_once:
            why = "after a crash its last records are compared, so that none is copied twice"
            yield Need(ClientRole.RECORDS, Acl("READ", resource, (why,)))
    if is_exactly_once:
        prefix = transactional_prefix(mirror.settings, mirror.connector)
        resource = Resource(TRANSACTIONAL_ID, Names(prefix, is_whole=False))
        why = "exactly.once.source.support is enabled: records are written in transactions"
        yield Need(ClientRole.RECORDS, Acl("WRITE", resource, (why,)))
        why = "the producers of an earlier instance are fenced"
        yield Need(mirror.driver_records, Acl("WRITE", resource, (why,)))


def _progress_needs(mirror: FlowAclContext) -> Iterator[Need]:
    source_offsets = offsets_topic(mirror.settings).name
    yield _topic(
        mirror.driver_offsets, "CREATE", source_offsets, "the topic of progress is created where it is missing"
    )
    yield _topic(mirror.driver_offsets, "READ", source_offsets, "a start goes on where the last one ended")
    yield _topic(mirror.task_offsets, "WRITE", source_offsets, "what has been copied is noted")
    if mirror.settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled":
        yield _topic(ClientRole.RECORDS, "READ", source_offsets, "a task goes on where its transactions ended")


def checkpoint_needs(mirror: FlowAclContext) -> Iterator[Need]:
    """What following consumer groups needs; nothing where checkpoints are switched off."""
    settings = mirror.settings
    if not (settings[keys.EMIT_CHECKPOINTS_ENABLED] and settings[keys.EMIT_OFFSET_SYNCS_ENABLED]):
        return
    for names in mirror.topics:
        why = "what groups have committed on it is seen"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", Resource(TOPIC, names), (why,)))
    for names in mirror.groups:
        why = "the group's committed offsets are translated"
        yield Need(ClientRole.SOURCE_ADMIN, Acl("DESCRIBE", Resource(GROUP, names), (why,)))
    syncs, (reader, _writer) = offset_syncs_topic(settings).name, mirror.syncs_places
    yield _topic(reader, "CREATE", syncs, "the topic of offset syncs is created where it is missing")
    yield _topic(reader, "READ", syncs, "offsets are translated by the offset syncs")
    checkpoints = checkpoints_topic(settings).name
    for holder in mirror.holders:
        yield _topic(holder, "CREATE", checkpoints, "the topic of checkpoints is created where it is missing")
    yield _topic(ClientRole.TARGET_ADMIN, "READ", checkpoints, "a start knows the checkpoints before it")
    yield _topic(mirror.driver_records, "WRITE", checkpoints, "checkpoints are written")
    yield from _noting_needs(mirror)
    if settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
        why = "sync.group.offsets.enabled is true: offsets of groups are committed"
        for names in mirror.groups:
            yield Need(ClientRole.TARGET_ADMIN, Acl("READ", Resource(GROUP, names), (why,)))
        for names in mirror.remote(mirror.topics):
            yield Need(ClientRole.TARGET_ADMIN, Acl("READ", Resource(TOPIC, names), (why,)))


def heartbeat_needs(mirror: FlowAclContext) -> Iterator[Need]:
    """What writing heartbeats needs."""
    pair = f"{mirror.rules.source}->{mirror.rules.target}"
    heartbeats = heartbeats_topic(mirror.settings).name
    for holder in mirror.holders:
        yield _topic(holder, "CREATE", heartbeats, "the topic of heartbeats is created where it is missing")
    why = f"heartbeats of {pair} are written, unless {pair}.emit.heartbeats.enabled is false"
    yield _topic(mirror.driver_records, "WRITE", heartbeats, why)
    yield from _noting_needs(mirror)


def _noting_needs(mirror: FlowAclContext) -> Iterator[Need]:
    """Connect notes for every connector what it has written."""
    if mirror.notes_offsets:
        source_offsets = offsets_topic(mirror.settings).name
        for operation in ("CREATE", "WRITE"):
            yield _topic(mirror.driver_offsets, operation, source_offsets, "the connector's offsets are noted")


def worker_acls(settings: Settings) -> Iterator[Acl]:
    """What a Connect worker needs on its own cluster, whatever it runs."""
    group = Resource(GROUP, Names(settings[keys.GROUP_ID], is_whole=True))
    yield Acl("READ", group, ("workers of one group choose who leads",))
    for key in (worker_keys.CONFIG_STORAGE_TOPIC, keys.OFFSET_STORAGE_TOPIC, worker_keys.STATUS_STORAGE_TOPIC):
        resource = Resource(TOPIC, Names(settings[key], is_whole=True))
        for operation in ("CREATE", "READ", "WRITE"):
            yield Acl(operation, resource, (f"it is the worker's {key.name}",))
    leader_id = leader_transactional_id(settings)
    if leader_id is not None:
        why = "exactly.once.source.support is not disabled: who leads fences the leader before it"
        yield Acl("WRITE", Resource(TRANSACTIONAL_ID, Names(leader_id, is_whole=True)), (why,))


def copied_heartbeats(flows: Mapping[Flow, TopicRules]) -> dict[Flow, tuple[str, ...]]:
    """Which topics of heartbeats each flow copies: those of its source, and the copies that other flows make there."""
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


def _topic(place: ClientRole, operation: str, topic: str, why: str) -> Need:
    return Need(place, Acl(operation, Resource(TOPIC, Names(topic, is_whole=True)), (why,)))
