"""`MirrorClient`: what the topics of one cluster tell about the flows into it. Java's class of this name, in Python.

Properties are Java's: `bootstrap.servers`, `replication.policy.*`, `source.cluster.alias` (for the Identity policy),
`security.protocol`, `ssl.*` and `sasl.*`, each also behind `admin.` and `consumer.` for one kind of client. Names of
topics tell of clusters, and checkpoints of groups: nothing here needs the other clusters to be there.

Invariant: an answer is whole. Where a topic cannot be read to its end in time an error is raised; Java's class gives
back what it has by then.


One question, one call: the functions of Java's `RemoteClusterUtils`. Each opens a `MirrorClient` and closes it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self, overload

from heliograph.config.keys import client_keys
from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import parse_bootstrap
from heliograph.kafka.security.security_settings import make_security
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.groups.checkpoints import latest_checkpoints
from heliograph.mirror.policy.replication_policy import make_policy, upstream_hops
from heliograph.model import CommittedOffset, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heliograph.mirror.policy.replication_policy import ReplicationPolicy


Offsets = dict[TopicPartition, CommittedOffset]

_CLIENT_ID = "heliograph-mirror-client"
_TIMEOUT_S = 30.0


class MirrorClient:
    """Questions to one cluster; a context manager. Not thread-safe."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self.replication_policy: ReplicationPolicy = make_policy(Settings(self._properties))
        self._admin = self._client("admin", _TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._admin.close()

    def replication_hops(self, upstream_alias: str) -> int:
        """How many flows lie between another cluster and this one; -1 where none leads here."""
        hops = [count_hops(self.replication_policy, topic, upstream_alias) for topic in self.heartbeat_topics()]
        return min((count for count in hops if count > 0), default=-1)

    def heartbeat_topics(self) -> set[str]:
        """The cluster's own `heartbeats` topic and the copies of others'."""
        return {topic for topic in self._topics() if self.replication_policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        """The topics of checkpoints that flows into this cluster write."""
        return {topic for topic in self._topics() if self.replication_policy.is_checkpoints_topic(topic)}

    def upstream_clusters(self) -> set[str]:
        """Aliases of all clusters whose heartbeats come here, over however many flows."""
        return {
            source for topic in self.heartbeat_topics() for source, _ in upstream_hops(self.replication_policy, topic)
        }

    def remote_topics(self, source: str | None = None) -> set[str]:
        """The topics that are copies; with `source`, only those that came straight from this cluster."""
        found = {topic: self.replication_policy.topic_source(topic) for topic in self._topics()}
        return {
            topic
            for topic, origin in found.items()
            if origin and source in (None, origin) and not self.replication_policy.is_internal_topic(topic)
        }

    @overload
    def remote_consumer_offsets(self, group: str, alias: str, timeout_s: float) -> Offsets: ...
    @overload
    def remote_consumer_offsets(self, group: re.Pattern[str], alias: str, timeout_s: float) -> dict[str, Offsets]: ...
    def remote_consumer_offsets(
        self, group: str | re.Pattern[str], alias: str, timeout_s: float
    ) -> Offsets | dict[str, Offsets]:
        """Where a group of the cluster `alias` goes on here, by its newest checkpoints; for a pattern, all that match.

        Empty where there is no checkpoint of the group.
        """
        if group is None or alias is None:
            raise ValueError("`group` and `alias` must not be None")
        pattern = group if isinstance(group, re.Pattern) else re.compile(re.escape(group))
        found = self._checkpointed(pattern, self.replication_policy.checkpoints_topic(alias), timeout_s)
        return found if isinstance(group, re.Pattern) else found.get(group, {})

    def _checkpointed(self, pattern: re.Pattern[str], topic: str, timeout_s: float) -> dict[str, Offsets]:
        reader = self._client("consumer", timeout_s)
        try:
            records = (decode_checkpoint(record.key, record.value) for record in read_topic(reader, topic))
            wanted = (checkpoint for checkpoint in records if checkpoint and pattern.fullmatch(checkpoint.group))
            return {
                group: {tp: CommittedOffset(last.downstream, last.metadata) for tp, last in by_partition.items()}
                for group, by_partition in latest_checkpoints(wanted).items()
            }
        finally:
            reader.close()

    def _topics(self) -> Iterable[str]:
        return self._admin.view(None).partition_counts

    def _client(self, role: str, timeout_s: float) -> Admin:
        prefix = f"{role}."
        own = {name.removeprefix(prefix): value for name, value in self._properties.items() if name.startswith(prefix)}
        settings = Settings(self._properties | own)
        bootstrap = parse_bootstrap(settings[client_keys.BOOTSTRAP_SERVERS], client_keys.BOOTSTRAP_SERVERS.name)
        if not bootstrap:
            raise ConfigError("bootstrap.servers: the cluster to ask is missing; give its host:port.")
        return Admin("this cluster", bootstrap, make_security(settings, role), _CLIENT_ID, timeout_s=timeout_s)


def count_hops(policy: ReplicationPolicy, topic: str, source: str) -> int:
    """How many copies ago a topic was on the cluster `source`; -1 where it never was."""
    hops = (count for count, (origin, _) in enumerate(upstream_hops(policy, topic), start=1) if origin == source)
    return next(hops, -1)


def replication_hops(properties: Mapping[str, str], upstream_alias: str) -> int:
    """How many flows lie between another cluster and this one; -1 where none leads here."""
    with MirrorClient(properties) as client:
        return client.replication_hops(upstream_alias)


def heartbeat_topics(properties: Mapping[str, str]) -> set[str]:
    """The cluster's own `heartbeats` topic and the copies of others'."""
    with MirrorClient(properties) as client:
        return client.heartbeat_topics()


def checkpoint_topics(properties: Mapping[str, str]) -> set[str]:
    """The topics of checkpoints that flows into this cluster write."""
    with MirrorClient(properties) as client:
        return client.checkpoint_topics()


def upstream_clusters(properties: Mapping[str, str]) -> set[str]:
    """Aliases of all clusters whose heartbeats come here."""
    with MirrorClient(properties) as client:
        return client.upstream_clusters()


@overload
def translate_offsets(
    properties: Mapping[str, str], remote_cluster_alias: str, group: str, timeout_s: float
) -> Offsets: ...
@overload
def translate_offsets(
    properties: Mapping[str, str], remote_cluster_alias: str, group: re.Pattern[str], timeout_s: float
) -> dict[str, Offsets]: ...
def translate_offsets(
    properties: Mapping[str, str], remote_cluster_alias: str, group: str | re.Pattern[str], timeout_s: float
) -> Offsets | dict[str, Offsets]:
    """Where a group of another cluster goes on here, by its newest checkpoints; for a pattern, all that match."""
    with MirrorClient(properties) as client:
        return client.remote_consumer_offsets(group, remote_cluster_alias, timeout_s)
