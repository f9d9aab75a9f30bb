"""One question, one call: the functions of Java's `RemoteClusterUtils`. Each opens a `MirrorClient` and closes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from heliograph.client.mirror_client import MirrorClient, Offsets

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping


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
