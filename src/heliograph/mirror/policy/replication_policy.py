"""Replication policies: how remote topics are named, whose copy a topic is, and the names of MM2's own topics.

A policy answers three questions (`format_remote_topic`, `topic_source`, `upstream_topic`); everything else follows
from them and may be overridden, as in Java.

Invariants (Default): `topic_source(format_remote_topic(a, t)) == a` and `upstream_topic(format_remote_topic(a, t)) ==
t` for any alias without the separator. Java's `split` drops trailing empty strings, so `a.` is not remote while
`a..b` is `.b` from `a`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.errors import ConfigError
from heliograph.mirror.policy.plugins import is_custom, known_class, load_custom
from heliograph.mirror.policy.rename_map import RenameMap, parse_rename_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.config.resolve.settings import Settings


HEARTBEATS_TOPIC = "heartbeats"
_LONGEST_NAME = 249


class ReplicationPolicy(ABC):
    """What the rest of Heliograph asks about names; a policy of your own may be a subclass."""

    internal_separator: str = "."

    @abstractmethod
    def format_remote_topic(self, source: str, topic: str) -> str:
        """Name of the copy of `topic` of cluster `source`."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Alias of the cluster a topic was copied from, or None for a topic of its own cluster."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Name of the topic on the cluster it was copied from, or None for a topic of its own cluster."""

    def proves_copy(self, topic: str) -> bool:
        """Whether the name alone proves that a flow with this policy made the topic; `topic_source` may only say so."""
        return self.topic_source(topic) is not None and self.upstream_topic(topic) != topic

    def original_topic(self, topic: str) -> str:
        """Name of the topic on the cluster where its records were first written."""
        *_, (_, name) = ((None, topic), *lineage(self, topic))
        return name

    def heartbeats_topic(self) -> str:
        """Topic of heartbeats; no separator applies to it."""
        return HEARTBEATS_TOPIC

    def offset_syncs_topic(self, alias: str) -> str:
        """Topic of offset syncs; `alias` is the flow's other cluster, seen from the one that holds the topic."""
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self.internal_separator}internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Topic of the checkpoints of groups of cluster `alias`."""
        return f"{alias}{self.internal_separator}checkpoints{self.internal_separator}internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether following the copies back ends at `heartbeats`."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """`A.checkpoints.internal`."""
        return topic.endswith(f"{self.internal_separator}checkpoints{self.internal_separator}internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """`mm2*.internal` and checkpoints topics."""
        is_mm2 = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return is_mm2 or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Topics of Kafka (`__x`, `.x`) and MM2 themselves, which are never replicated."""
        return topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic)


def lineage(policy: ReplicationPolicy, topic: str) -> Iterator[tuple[str, str]]:
    """The hops a name tells of, latest first: the cluster a copy came from, and the topic's name there.

    Ends where a name says no more, keeps itself (Identity), comes again or is longer than Kafka allows: the policy of a
    user might go on for ever.
    """
    seen = {topic}
    name = topic
    while (source := policy.topic_source(name)) is not None:
        upstream = policy.upstream_topic(name)
        if upstream is None:
            return
        yield source, upstream
        if upstream in seen or len(upstream) > _LONGEST_NAME:
            return
        seen.add(upstream)
        name = upstream


@dataclass(frozen=True)
class DefaultReplicationPolicy(ReplicationPolicy):
    """`A.topic`: the source's alias before the name."""

    separator: str = "."
    internal_separator: str = "."

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Name of the copy of `topic` of cluster `source`."""
        return f"{source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """The part before the first separator, if another part follows."""
        if not self.separator:
            return None  # nothing tells where the alias ends
        source, separator, rest = topic.partition(self.separator)
        return source if separator and rest.replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """The part behind the first separator."""
        if self.topic_source(topic) is None:
            return None
        return topic.partition(self.separator)[2]


@dataclass(frozen=True)
class IdentityReplicationPolicy(ReplicationPolicy):
    """`topic`: names stay; only heartbeats are prefixed. Nothing in a name tells where a record came from."""

    source: str
    default: DefaultReplicationPolicy

    @property
    def internal_separator(self) -> str:  # type: ignore[override]
        """As the default policy."""
        return self.default.internal_separator

    def format_remote_topic(self, source: str, topic: str) -> str:
        """The same name, but for heartbeats."""
        return self.default.format_remote_topic(source, topic) if _is_heartbeats(self.default, topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Always the configured source, but for heartbeats."""
        return self.default.topic_source(topic) if _is_heartbeats(self.default, topic) else self.source

    def upstream_topic(self, topic: str) -> str | None:
        """The same name, but for heartbeats."""
        return self.default.upstream_topic(topic) if _is_heartbeats(self.default, topic) else topic


def _is_heartbeats(policy: DefaultReplicationPolicy, topic: str) -> bool:
    """`heartbeats` itself or a copy of it; not, as in MM2 4.3.1, any user topic that merely ends so."""
    return topic == HEARTBEATS_TOPIC or topic.endswith(policy.separator + HEARTBEATS_TOPIC)


@dataclass(frozen=True)
class RenameReplicationPolicy(ReplicationPolicy):
    """Names by a map. What no rule renames is named by the policy `otherwise`, heartbeats by the default one."""

    source: str
    target: str
    names: RenameMap
    otherwise: DefaultReplicationPolicy | IdentityReplicationPolicy

    @property
    def internal_separator(self) -> str:  # type: ignore[override]
        """As the policy of other topics."""
        return self.otherwise.internal_separator

    def format_remote_topic(self, source: str, topic: str) -> str:
        """By the first rule that matches."""
        renamed = None if self._is_heartbeats(topic) else self.names.forward(topic)
        return renamed if renamed is not None else self.otherwise.format_remote_topic(source, topic)

    def topic_source(self, topic: str) -> str | None:
        """The configured source for a name that the map gives."""
        if self.upstream_topic(topic) is None:
            return None
        return self.source if self._upstream(topic) is not None else self.otherwise.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """The map read backward. A name that the map gives up for another is nobody's copy."""
        upstream = self._upstream(topic)
        if upstream is not None:
            return upstream
        other = self.otherwise.upstream_topic(topic)
        is_renamed = other is not None and self.format_remote_topic(self.source, other) != topic
        return None if is_renamed and other == topic else other

    def proves_copy(self, topic: str) -> bool:
        """Only where text of a rule, or the prefix, is in the name: any topic could be a copy by `(.*)-raw=$1`."""
        if self._upstream(topic) is not None:
            return self.names.proves_copy(topic)
        return self.otherwise.proves_copy(topic)

    def _upstream(self, topic: str) -> str | None:
        """By the map; where its rules leave no mark in the name, a prefix with a cluster's alias tells more."""
        if self._is_heartbeats(topic):
            return None
        is_prefixed = isinstance(self.otherwise, DefaultReplicationPolicy) and (
            self.otherwise.topic_source(topic) in (self.source, self.target)
        )
        return None if is_prefixed and not self.names.proves_copy(topic) else self.names.backward(topic)

    def _is_heartbeats(self, topic: str) -> bool:
        default = self.otherwise if isinstance(self.otherwise, DefaultReplicationPolicy) else self.otherwise.default
        return _is_heartbeats(default, topic)


class CustomReplicationPolicy(ReplicationPolicy):
    """A user's class that answers the three questions and is no subclass; the rest follows from its answers."""

    def __init__(self, policy: ReplicationPolicy, internal_separator: str) -> None:
        self._policy = policy
        self.internal_separator = internal_separator

    def format_remote_topic(self, source: str, topic: str) -> str:
        """As the user's class says."""
        return self._policy.format_remote_topic(source, topic)

    def topic_source(self, topic: str) -> str | None:
        """As the user's class says."""
        return self._policy.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """As the user's class says."""
        return self._policy.upstream_topic(topic)


def is_cycle(policy: ReplicationPolicy, topic: str, flow_source: str, target: str) -> bool:
    """Whether the topic has been on the target before, or claims to be the source's own copy of itself (KAFKA-9914)."""
    if policy.topic_source(topic) == target:  # also where the upstream name is not known
        return True
    name = topic
    for origin, upstream in lineage(policy, topic):
        if origin == target:
            return True
        if upstream == name:
            return False
        if origin == flow_source and policy.proves_copy(name):
            return True
        name = upstream
    return False


STRIMZI_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
POLICIES = (
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "RenameReplicationPolicy",
    "LegacyReplicationPolicy",  # KIP-382's name for Identity
)
POLICY_METHODS = ("format_remote_topic", "topic_source", "upstream_topic")


def make_policy(settings: Settings) -> ReplicationPolicy:
    """The policy the settings name: by its simple name, Java's class name, or `package.module:Class`."""
    separator = settings[keys.POLICY_SEPARATOR]
    internal = separator if settings[keys.POLICY_INTERNAL_SEPARATOR] else "."
    if is_custom(settings[keys.POLICY_CLASS]):
        policy = load_custom(keys.POLICY_CLASS, settings, POLICY_METHODS)
        return policy if isinstance(policy, ReplicationPolicy) else CustomReplicationPolicy(policy, internal)
    default = DefaultReplicationPolicy(separator, internal)
    identity = IdentityReplicationPolicy(settings[keys.SOURCE_ALIAS], default)
    name = known_class(keys.POLICY_CLASS, settings, POLICIES, also=[STRIMZI_IDENTITY])
    if name == "DefaultReplicationPolicy":
        if not separator:
            raise ConfigError(
                f"it is empty, and no name would tell its source; to keep names as they"
                f" are, set {keys.POLICY_CLASS.name}=IdentityReplicationPolicy.",
                keys.POLICY_SEPARATOR.name,
            )
        return default
    if name == "RenameReplicationPolicy":
        rules = settings[keys.RENAME_TOPICS]
        try:
            names = parse_rename_map(keys.RENAME_TOPICS.name, rules)
        except ConfigError:
            if keys.RENAME_TOPICS.name not in settings.raw:
                raise
            shown = settings.shown(keys.RENAME_TOPICS)  # the sentences repeat what a placeholder stands for
            raise ConfigError(f"'{shown}' is not a map of names.", keys.RENAME_TOPICS.name) from None
        otherwise = identity if settings[keys.RENAME_OTHERWISE] == "identity" else default
        return RenameReplicationPolicy(settings[keys.SOURCE_ALIAS], settings[keys.TARGET_ALIAS], names, otherwise)
    return identity
