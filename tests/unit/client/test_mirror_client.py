"""The cases of Java's MirrorClientTest; a cluster is a list of topics here."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from heliograph import client
from heliograph.client.mirror_client import MirrorClient, count_hops
from heliograph.errors import ConfigError
from heliograph.mirror.policy.replication_policy import DefaultReplicationPolicy

IDENTITY = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "source.cluster.alias": "primary",
}


class ClientOf(MirrorClient):
    """A client of a cluster that has these topics."""

    def __init__(self, *topics: str, **properties: str) -> None:
        super().__init__({"bootstrap.servers": "localhost:9092", **properties})
        self._given = topics

    def _topics(self) -> Iterable[str]:
        return self._given


@pytest.mark.parametrize("topic", ["heartbeats", "source1.heartbeats", "source2.source1.heartbeats"])
def test_is_heartbeat_topic(topic: str) -> None:
    assert ClientOf(topic).heartbeat_topics() == {topic}


@pytest.mark.parametrize("topic", ["heartbeats!", "!heartbeats", "source1heartbeats", "source1-heartbeats"])
def test_is_not_heartbeat_topic(topic: str) -> None:
    assert ClientOf(topic).heartbeat_topics() == set()


@pytest.mark.parametrize("topic", ["source1.checkpoints.internal", "source2.source1.checkpoints.internal"])
def test_is_checkpoint_topic(topic: str) -> None:
    assert ClientOf(topic).checkpoint_topics() == {topic}


@pytest.mark.parametrize(
    "topic",
    [
        *["checkpoints.internal", "checkpoints-internal", "checkpoints.internal!", "!checkpoints.internal"],
        *["source1checkpointsinternal", "source1.checkpoints"],
    ],
)
def test_is_not_checkpoint_topic(topic: str) -> None:
    assert ClientOf(topic).checkpoint_topics() == set()


@pytest.mark.parametrize(
    ("topic", "source", "hops"),
    [
        *[("topic", "source", -1), ("source", "source", -1), ("sourcetopic", "source", -1)],
        *[("source1.topic", "source2", -1), ("source1.topic", "source1", 1)],
        *[("source2.source1.topic", "source2", 1), ("source2.source1.topic", "source1", 2)],
        *[("source3.source2.source1.topic", "source1", 3), ("source3.source2.source1.topic", "source4", -1)],
    ],
)
def test_count_hops(topic: str, source: str, hops: int) -> None:
    assert count_hops(DefaultReplicationPolicy(), topic, source) == hops


def test_hops_end_where_names_go_in_circles() -> None:
    client = ClientOf("topic", **IDENTITY)
    assert count_hops(client.replication_policy, "topic", "primary") == 1
    assert count_hops(client.replication_policy, "topic", "backup") == -1


def test_heartbeat_topics() -> None:
    heartbeats = {"heartbeats", "source1.heartbeats", "source2.source1.heartbeats", "source3.heartbeats"}
    assert ClientOf("topic1", "topic2", *heartbeats).heartbeat_topics() == heartbeats


def test_checkpoint_topics() -> None:
    checkpoints = {"source1.checkpoints.internal", "source2.source1.checkpoints.internal"}
    assert ClientOf("topic1", "checkpoints.internal", *checkpoints).checkpoint_topics() == checkpoints


def test_replication_hops() -> None:
    client = ClientOf("topic1", "heartbeats", "source1.heartbeats", "source1.source2.heartbeats", "source3.heartbeats")
    assert [client.replication_hops(f"source{n}") for n in (1, 2, 3, 4)] == [1, 2, 1, -1]


@pytest.mark.parametrize("properties", [{}, IDENTITY])
def test_upstream_clusters(properties: dict[str, str]) -> None:
    topics = ["heartbeats", "source1.heartbeats", "source1.source2.heartbeats", "source3.source4.source5.heartbeats"]
    client = ClientOf("topic1", "topic2", *topics, **properties)
    assert client.upstream_clusters() == {f"source{n}" for n in range(1, 6)}


def test_remote_topics() -> None:
    remote = {"source1.topic4", "source1.source2.topic5", "source3.source4.source5.topic6"}
    client = ClientOf("topic1", "topic2", "topic3", "source1.checkpoints.internal", "mm2-offsets.a.internal", *remote)
    assert client.remote_topics() == remote
    assert client.remote_topics("source1") == {"source1.topic4", "source1.source2.topic5"}
    assert client.remote_topics("source2") == set()


def test_remote_topics_separator() -> None:
    separated = {"replication.policy.separator": "__"}
    remote = {"source1__topic4", "source1__source2__topic5", "source3__source4__source5__topic6"}
    client = ClientOf("topic1", "source1.topic2", "source1__checkpoints__internal", *remote, **separated)
    assert client.remote_topics() == remote
    assert client.checkpoint_topics() == {"source1__checkpoints__internal"}
    kept = ClientOf(
        "source1.checkpoints.internal", **separated, **{"replication.policy.internal.topic.separator.enabled": "false"}
    )
    assert kept.checkpoint_topics() == {"source1.checkpoints.internal"}


def test_identity_replication_remote_topics() -> None:
    client = ClientOf("topic1", "topic2", "heartbeats", "backup.heartbeats", "__consumer_offsets", **IDENTITY)
    assert client.remote_topics() == {"topic1", "topic2", "backup.heartbeats"}
    assert client.remote_topics("backup") == {"backup.heartbeats"}


def test_identity_replication_without_an_alias_has_no_remote_topics() -> None:
    client = ClientOf("topic1", "backup.heartbeats", **{**IDENTITY, "source.cluster.alias": ""})
    assert client.remote_topics() == {"backup.heartbeats"}


def test_a_group_must_be_given() -> None:
    with pytest.raises(ValueError, match="must not be None"):
        ClientOf().remote_consumer_offsets(None, "source", 1.0)  # type: ignore[call-overload]


def test_the_cluster_must_be_given() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap.servers: it is missing"):
        MirrorClient({})


def test_the_package_exports_the_functions_of_java_s_remote_cluster_utils() -> None:
    """As the guides import them."""
    assert [name for name in client.__all__ if not callable(getattr(client, name, None))] == []
