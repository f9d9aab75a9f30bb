"""Replication policies: how remote topics are named, and whose copy a topic is.

Invariants (Default): `topic_source(format_remote_topic(a, t)) == a` and `upstream_topic(format_remote_topic(a, t)) ==
t` for any alias without the separator. Java's `split` drops trailing empty strings, so `a.` is not remote while
`a..b` is `.b` from `a`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from heliograph.config import keys
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from heliograph.config.types import Settings

HEARTBEATS_TOPIC = "heartbeats"


class ReplicationPolicy(Protocol):
    """What the planner needs to know of names."""

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Name of the copy of `topic` of cluster `source`."""

    def topic_source(self, topic: str) -> str | None:
        """Alias of the cluster a topic was copied from, or None for a topic of its own cluster."""

    def upstream_topic(self, topic: str) -> str | None:
        """Name of the topic on the cluster it was copied from."""

    def is_internal_topic(self, topic: str) -> bool:
        """Topics of Kafka and MM2 themselves, which are never replicated."""


@dataclass(frozen=True, slots=True)
class DefaultReplicationPolicy:
    """`A.topic`: the source's alias before the name."""

    separator: str = "."
    internal_separator: str = "."

    def format_remote_topic(self, source: str, topic: str) -> str:
        """Name of the copy of `topic` of cluster `source`."""
        return f"{source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """The part before the first separator, if another part follows."""
        source, separator, rest = topic.partition(self.separator)
        return source if separator and rest.replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """The part behind the first separator."""
        if self.topic_source(topic) is None:
            return None
        return topic.partition(self.separator)[2]

    def is_internal_topic(self, topic: str) -> bool:
        """`__x`, `.x`, `mm2*.internal` and checkpoints topics."""
        suffix = f"{self.internal_separator}internal"
        is_mm2 = topic.startswith("mm2") and topic.endswith(suffix)
        is_checkpoints = topic.endswith(f"{self.internal_separator}checkpoints{suffix}")
        return topic.startswith(("__", ".")) or is_mm2 or is_checkpoints


@dataclass(frozen=True, slots=True)
class IdentityReplicationPolicy:
    """`topic`: names stay; only heartbeats are prefixed. Nothing in a name tells where a record came from."""

    source: str
    default: DefaultReplicationPolicy

    def format_remote_topic(self, source: str, topic: str) -> str:
        """The same name, but for heartbeats."""
        return self.default.format_remote_topic(source, topic) if _is_heartbeats(self.default, topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Always the configured source, but for heartbeats."""
        return self.default.topic_source(topic) if _is_heartbeats(self.default, topic) else self.source

    def upstream_topic(self, topic: str) -> str | None:
        """The same name, but for heartbeats."""
        return self.default.upstream_topic(topic) if _is_heartbeats(self.default, topic) else topic

    def is_internal_topic(self, topic: str) -> bool:
        """As the default policy."""
        return self.default.is_internal_topic(topic)


def _is_heartbeats(policy: DefaultReplicationPolicy, topic: str) -> bool:
    """`heartbeats` itself or a copy of it; not, as in MM2 4.3.1, any user topic that merely ends so."""
    return topic == HEARTBEATS_TOPIC or topic.endswith(policy.separator + HEARTBEATS_TOPIC)


def is_heartbeats_topic(policy: ReplicationPolicy, topic: str) -> bool:
    """Whether following the copies back ends at `heartbeats`."""
    seen: set[str] = set()
    name: str | None = topic
    while name is not None and name not in seen:
        if name == HEARTBEATS_TOPIC:
            return True
        seen.add(name)
        name = policy.upstream_topic(name)
    return False


def is_cycle(policy: ReplicationPolicy, topic: str, flow_source: str, target: str) -> bool:
    """Whether the topic has been on the target before, or claims to be the source's own copy of itself (KAFKA-9914)."""
    name = topic
    while True:
        origin = policy.topic_source(name)
        if origin is None:
            return False
        if origin == target:
            return True
        upstream = policy.upstream_topic(name)
        if upstream is None or upstream == name:
            return False
        if origin == flow_source:
            return True
        name = upstream


_POLICIES = {
    "DefaultReplicationPolicy": "default",
    "IdentityReplicationPolicy": "identity",
    "LegacyReplicationPolicy": "identity",
}


def make_policy(settings: Settings) -> ReplicationPolicy:
    """The policy the settings name; accepts Java's class names, Strimzi's included."""
    separator = settings[keys.POLICY_SEPARATOR]
    internal = separator if settings[keys.POLICY_INTERNAL_SEPARATOR] else "."
    default = DefaultReplicationPolicy(separator, internal)
    class_name = settings[keys.POLICY_CLASS].rpartition(".")[2]
    kind = _POLICIES.get(class_name)
    if kind is None:
        raise ConfigError(
            f"replication.policy.class: '{class_name}' is not a policy Heliograph has; it has {', '.join(_POLICIES)}."
        )
    return IdentityReplicationPolicy(settings[keys.SOURCE_ALIAS], default) if kind == "identity" else default
