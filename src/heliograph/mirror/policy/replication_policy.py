"""Replication policies: the names of remote topics, the sources of topics, and the names of MM2's own topics.

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
_LOSSES = "heliograph-losses"
_LONGEST_NAME = 249
STRIMZI_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
POLICIES = (
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "RenameReplicationPolicy",
    "LegacyReplicationPolicy",  # KIP-382's name for Identity
)
POLICY_METHODS = ("format_remote_topic", "topic_source", "upstream_topic")


class ReplicationPolicy(ABC):
    """The interface of a replication policy; a custom policy may be a subclass."""

    internal_separator: str = "."

    @abstractmethod
    def format_remote_topic(self, source: str, topic: str) -> str:
        """Return the name of the copy of `topic` of cluster `source`."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that a topic was copied from, or None if it is no copy."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of the topic on the cluster that it was copied from, or None if it is no copy."""

    def proves_copy(self, topic: str) -> bool:
        """Return whether the name proves that a flow with this policy made the topic; `topic_source` may guess."""
        return self.topic_source(topic) is not None and self.upstream_topic(topic) != topic

    def original_topic(self, topic: str) -> str:
        """Return the name of the topic on the cluster where its records were first written."""
        *_, (_, name) = ((None, topic), *upstream_hops(self, topic))
        return name

    def heartbeats_topic(self) -> str:
        """Return the name of the heartbeats topic; it has no separator."""
        return HEARTBEATS_TOPIC

    def offset_syncs_topic(self, alias: str) -> str:
        """Return the name of the offset syncs topic; `alias` is the cluster of the flow that does not store it."""
        return f"mm2-offset-syncs{self.internal_separator}{alias}{self.internal_separator}internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Return the name of the topic with checkpoints of groups of cluster `alias`."""
        return f"{alias}{self.internal_separator}checkpoints{self.internal_separator}internal"

    def losses_topic(self, alias: str) -> str:
        """Return the name of Heliograph's topic with the losses of flows from cluster `alias`."""
        return f"{_LOSSES}{self.internal_separator}{alias}{self.internal_separator}internal"

    def is_losses_topic(self, topic: str) -> bool:
        """Return whether it is a topic such as `heliograph-losses.A.internal`."""
        separator = self.internal_separator
        return topic.startswith(f"{_LOSSES}{separator}") and topic.endswith(f"{separator}internal")

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Return whether the original of the topic is `heartbeats`."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Return whether it is a topic such as `A.checkpoints.internal`."""
        return topic.endswith(f"{self.internal_separator}checkpoints{self.internal_separator}internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Return whether it is a topic `mm2*.internal`, or a checkpoints topic."""
        is_mm2 = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return is_mm2 or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether it is an internal topic of Kafka (`__x`, `.x`), MM2 or Heliograph: it is never replicated."""
        return topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic) or self.is_losses_topic(topic)


def upstream_hops(policy: ReplicationPolicy, topic: str) -> Iterator[tuple[str, str]]:
    """Yield the hops that a name implies, latest first: the cluster of the copied topic, and its name there.

    Ends at a name that is no copy, does not change (Identity), repeats, or is longer than Kafka allows: a custom policy
    might never end.
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
        """Return the name of the copy of `topic` of cluster `source`."""
        return f"{source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Return the part before the first separator, if another part follows."""
        if not self.separator:
            return None  # the end of the alias is not known
        source, separator, rest = topic.partition(self.separator)
        return source if separator and rest.replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the part after the first separator."""
        if self.topic_source(topic) is None:
            return None
        return topic.partition(self.separator)[2]


@dataclass(frozen=True)
class IdentityReplicationPolicy(ReplicationPolicy):
    """`topic`: names do not change; only heartbeats are prefixed. A name does not say where a record came from."""

    source: str
    default: DefaultReplicationPolicy

    @property
    def internal_separator(self) -> str:  # type: ignore[override]
        """The separator of the default policy."""
        return self.default.internal_separator

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Return the same name, except for heartbeats."""
        return self.default.format_remote_topic(source, topic) if _is_heartbeats(self.default, topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Return the configured source, except for heartbeats."""
        return self.default.topic_source(topic) if _is_heartbeats(self.default, topic) else self.source

    def upstream_topic(self, topic: str) -> str | None:
        """Return the same name, except for heartbeats."""
        return self.default.upstream_topic(topic) if _is_heartbeats(self.default, topic) else topic


def _is_heartbeats(policy: DefaultReplicationPolicy, topic: str) -> bool:
    """Return whether it is `heartbeats` or a copy; not, as in MM2 4.3.1, any user topic with this suffix."""
    return topic == HEARTBEATS_TOPIC or topic.endswith(policy.separator + HEARTBEATS_TOPIC)


@dataclass(frozen=True)
class RenameReplicationPolicy(ReplicationPolicy):
    """Names by a map. The policy `otherwise` names topics that no rule renames, the default one heartbeats."""

    source: str
    target: str
    names: RenameMap
    otherwise: DefaultReplicationPolicy | IdentityReplicationPolicy

    @property
    def internal_separator(self) -> str:  # type: ignore[override]
        """The separator of the policy of other topics."""
        return self.otherwise.internal_separator

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Return the name by the first rule that matches."""
        renamed = None if self._is_heartbeats(topic) else self.names.forward(topic)
        return renamed if renamed is not None else self.otherwise.format_remote_topic(source, topic)

    def topic_source(self, topic: str) -> str | None:
        """Return the configured source for a name that the map gives."""
        if self.upstream_topic(topic) is None:
            return None
        return self.source if self._upstream(topic) is not None else self.otherwise.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """Return the topic that the map renames to this one. A name that the map renames itself is no copy."""
        upstream = self._upstream(topic)
        if upstream is not None:
            return upstream
        other = self.otherwise.upstream_topic(topic)
        is_renamed = other is not None and self.format_remote_topic(self.source, other) != topic
        return None if is_renamed and other == topic else other

    def proves_copy(self, topic: str) -> bool:
        """Return whether text of a rule, or the prefix, is in the name: any topic could be a copy by `(.*)-raw=$1`."""
        if self._upstream(topic) is not None:
            return self.names.proves_copy(topic)
        return self.otherwise.proves_copy(topic)

    def _upstream(self, topic: str) -> str | None:
        """Return the topic by the map; if its rules leave no text in the name, a prefix with a cluster's alias wins."""
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
    """Wraps a custom class that has the three methods and is no subclass; the other methods follow from them."""

    def __init__(self, policy: ReplicationPolicy, internal_separator: str) -> None:
        self._policy = policy
        self.internal_separator = internal_separator

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Delegate to the custom class."""
        return self._policy.format_remote_topic(source, topic)

    def topic_source(self, topic: str) -> str | None:
        """Delegate to the custom class."""
        return self._policy.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """Delegate to the custom class."""
        return self._policy.upstream_topic(topic)


def is_cycle(policy: ReplicationPolicy, topic: str, flow_source: str, target: str) -> bool:
    """Return whether the topic was on the target before, or is named as the source's copy of itself (KAFKA-9914)."""
    if policy.topic_source(topic) == target:  # even if the upstream name is not known
        return True
    name = topic
    for origin, upstream in upstream_hops(policy, topic):
        if origin == target:
            return True
        if upstream == name:
            return False
        if origin == flow_source and policy.proves_copy(name):
            return True
        name = upstream
    return False


def make_policy(settings: Settings) -> ReplicationPolicy:
    """Return the policy that the settings name: by its simple name, Java's class name, or `package.module:Class`."""
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
                "it is empty, so that a name would not show its source; to keep names as they are, set"
                f" {keys.POLICY_CLASS.name}=IdentityReplicationPolicy.",
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
            shown = settings.shown(keys.RENAME_TOPICS)  # the problems repeat the value of a placeholder
            raise ConfigError(f"'{shown}' is not a map of names.", keys.RENAME_TOPICS.name) from None
        otherwise = identity if settings[keys.RENAME_OTHERWISE] == "identity" else default
        return RenameReplicationPolicy(settings[keys.SOURCE_ALIAS], settings[keys.TARGET_ALIAS], names, otherwise)
    return identity
