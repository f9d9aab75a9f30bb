"""`MirrorClient` reads the flows into one cluster from its topics, as Java's class of this name does.

Properties are Java's: `bootstrap.servers`, `replication.policy.*`, `source.cluster.alias` (for the Identity policy),
`security.protocol`, `ssl.*` and `sasl.*`, each also with the prefix `admin.` or `consumer.` for one kind of client.
Clusters follow from the names of topics, groups from checkpoints: the other clusters need not be available. The
functions are those of Java's `RemoteClusterUtils`; each opens a `MirrorClient` and closes it.

Invariant: a result is complete. If a topic cannot be read to its end in time an error is raised; Java's class returns
what it has read by then.
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
    """A client of one cluster; a context manager. Not thread-safe."""

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
        """Return how many flows lie between another cluster and this one; -1 if there is no path."""
        hops = [count_hops(self.replication_policy, topic, upstream_alias) for topic in self.heartbeat_topics()]
        return min((count for count in hops if count > 0), default=-1)

    def heartbeat_topics(self) -> set[str]:
        """Return the cluster's own `heartbeats` topic and the copies of others'."""
        return {topic for topic in self._topics() if self.replication_policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        """Return the checkpoints topics of the flows into this cluster."""
        return {topic for topic in self._topics() if self.replication_policy.is_checkpoints_topic(topic)}

    def upstream_clusters(self) -> set[str]:
        """Return the aliases of all clusters whose heartbeats are copied here, over one flow or several."""
        return {
            source for topic in self.heartbeat_topics() for source, _ in upstream_hops(self.replication_policy, topic)
        }

    def remote_topics(self, source: str | None = None) -> set[str]:
        """Return the topics that are copies; with `source`, only those that were copied directly from this cluster."""
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
        """Return where a group of the cluster `alias` resumes here, by its newest checkpoints; for a pattern, several.

        Empty if the group has no checkpoint.
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
            raise ConfigError("it is missing; give the host:port of the cluster.", "bootstrap.servers")
        return Admin("this cluster", bootstrap, make_security(settings, role), _CLIENT_ID, timeout_s=timeout_s)


def count_hops(policy: ReplicationPolicy, topic: str, source: str) -> int:
    """Return how many copies ago a topic was on the cluster `source`; -1 if it never was."""
    hops = (count for count, (origin, _) in enumerate(upstream_hops(policy, topic), start=1) if origin == source)
    return next(hops, -1)


def replication_hops(properties: Mapping[str, str], upstream_alias: str) -> int:
    """Return how many flows lie between another cluster and this one; -1 if there is no path."""
    with MirrorClient(properties) as client:
        return client.replication_hops(upstream_alias)


def heartbeat_topics(properties: Mapping[str, str]) -> set[str]:
    """Return the cluster's own `heartbeats` topic and the copies of others'."""
    with MirrorClient(properties) as client:
        return client.heartbeat_topics()


def checkpoint_topics(properties: Mapping[str, str]) -> set[str]:
    """Return the checkpoints topics of the flows into this cluster."""
    with MirrorClient(properties) as client:
        return client.checkpoint_topics()


def upstream_clusters(properties: Mapping[str, str]) -> set[str]:
    """Return the aliases of all clusters whose heartbeats are copied here, over one flow or several."""
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
    """Return where a group of another cluster resumes here, by its newest checkpoints; for a pattern, several."""
    with MirrorClient(properties) as client:
        return client.remote_consumer_offsets(group, remote_cluster_alias, timeout_s)
