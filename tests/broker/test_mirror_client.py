"""The client of applications against a real cluster whose topics are as MM2 writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from heliograph.client.mirror_client import (
    checkpoint_topics,
    heartbeat_topics,
    replication_hops,
    translate_offsets,
    upstream_clusters,
)
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import ClusterError
from heliograph.model import Checkpoint, CommittedOffset, TopicPartition
from heliograph.wire.records.mirror_records import encode_checkpoint
from tests.support.clusters.clients import make_topic, write

pytestmark = pytest.mark.broker


def write_checkpoints(cluster: EmbeddedCluster, alias: str, checkpoints: Iterable[Checkpoint]) -> str:
    topic = f"{alias}.checkpoints.internal"
    make_topic(cluster, topic, 1, cleanup_policy="compact")
    pairs = [encode_checkpoint(checkpoint) for checkpoint in checkpoints]
    write(cluster, topic, [{"key": key, "value": value, "partition": 0} for key, value in pairs])
    return topic


def test_the_last_checkpoint_of_a_partition_counts_and_what_cannot_be_read_is_passed_over(
    target: EmbeddedCluster, topic: str, alias: str
) -> None:
    first, second = TopicPartition(f"{alias}.{topic}", 0), TopicPartition(f"{alias}.{topic}", 1)
    name = write_checkpoints(
        target,
        alias,
        [
            Checkpoint("g1", first, 10, 5, "old"),
            Checkpoint("g1", second, 7, 7),
            Checkpoint("g2", first, 90, 80),
            Checkpoint("g1", first, 20, 15, "new"),
        ],
    )
    write(target, name, [{"key": b"\x00\x63damaged", "value": b"?", "partition": 0}])
    properties = {"bootstrap.servers": target.bootstrap}
    of_g1 = {first: CommittedOffset(15, "new"), second: CommittedOffset(7)}
    assert translate_offsets(properties, alias, "g1", 30) == of_g1
    assert translate_offsets(properties, alias, "g", 30) == {}
    assert translate_offsets(properties, alias, re.compile("g.*"), 30) == {
        "g1": of_g1,
        "g2": {first: CommittedOffset(80)},
    }
    assert name in checkpoint_topics(properties)


def test_a_cluster_without_checkpoints_has_no_offsets(target: EmbeddedCluster, alias: str) -> None:
    assert translate_offsets({"bootstrap.servers": target.bootstrap}, alias, "g", 30) == {}


def test_heartbeats_tell_where_flows_come_from(target: EmbeddedCluster, alias: str) -> None:
    for name in (f"{alias}.heartbeats", f"{alias}.far-{alias}.heartbeats"):
        make_topic(target, name, 1)
    properties = {"bootstrap.servers": target.bootstrap}
    assert {f"{alias}.heartbeats", f"{alias}.far-{alias}.heartbeats"} <= heartbeat_topics(properties)
    assert {alias, f"far-{alias}"} <= upstream_clusters(properties)
    hops = [replication_hops(properties, cluster) for cluster in (alias, f"far-{alias}", "nowhere")]
    assert hops == [1, 2, -1]


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(ClusterError, match=r"127\.0\.0\.1:1 cannot be reached"):
        heartbeat_topics({"bootstrap.servers": "127.0.0.1:1"})
