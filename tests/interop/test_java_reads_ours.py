"""Java 4.3.1's own classes read what we write: heartbeats, checkpoints, and the offset syncs of our copies."""

from __future__ import annotations

import random

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_spec import SyncsSpec
from heliograph.kafka.own_records import OwnRecord
from heliograph.kafka.topics.record_writer import write_records
from heliograph.model import Checkpoint, Heartbeat, TopicPartition
from heliograph.wire.records.mirror_records import encode_checkpoint, encode_heartbeat
from tests.broker.test_offset_syncs import write_transactions
from tests.interop.gateway import Java
from tests.interop.translating import java_translations, judge, pairs_of
from tests.support.clusters.clients import admin_of, make_topic
from tests.support.runs.copying import Copy, cluster_spec

pytestmark = pytest.mark.broker


def write_own(cluster: EmbeddedCluster, topic: str, records: list[tuple[bytes, bytes]]) -> None:
    admin = admin_of(cluster)
    write_records(admin, TopicPartition(topic, 0), [OwnRecord(key, value) for key, value in records])
    admin.close()


def make_missing(cluster: EmbeddedCluster, *topics: str) -> None:
    admin = admin_of(cluster)
    existing = admin.view(list(topics)).partition_counts
    admin.close()
    for topic in topics:
        if topic not in existing:
            make_topic(cluster, topic, 1, cleanup_policy="compact")


def test_java_clients_find_their_way_by_our_heartbeats_and_checkpoints(
    java: Java, target: EmbeddedCluster, alias: str
) -> None:
    checkpoints, two_hops = f"{alias}.checkpoints.internal", f"{alias}.far.heartbeats"
    make_missing(target, "heartbeats", checkpoints, f"{alias}.heartbeats", two_hops, f"{alias}.orders")
    write_own(target, "heartbeats", [encode_heartbeat(Heartbeat(alias, "target", 1_700_000_000_123))])
    orders = TopicPartition(f"{alias}.orders", 0), TopicPartition(f"{alias}.orders", 7)
    reported = [
        Checkpoint("billing", orders[0], 100, 90, "first"),
        Checkpoint("billing", orders[1], 10, 5),
        Checkpoint("shipping", orders[0], 50, 45, "é"),
        Checkpoint("billing", orders[0], 120, 110, "meta"),
    ]
    write_own(target, checkpoints, [encode_checkpoint(checkpoint) for checkpoint in reported])

    utils = java.jvm.org.apache.kafka.connect.mirror.RemoteClusterUtils
    props = {"bootstrap.servers": target.bootstrap}
    assert {alias, "far"} <= set(utils.upstreamClusters(props))
    assert utils.replicationHops(props, alias) == 1
    assert utils.replicationHops(props, "far") == 2
    assert {"heartbeats", f"{alias}.heartbeats", two_hops} <= set(utils.heartbeatTopics(props))
    assert checkpoints in set(utils.checkpointTopics(props))

    def translated(found: object) -> dict[TopicPartition, tuple[int, str]]:
        return {
            TopicPartition(tp.topic(), tp.partition()): (at.offset(), at.metadata())
            for tp, at in found.items()  # type: ignore[attr-defined]
        }

    billing = translated(utils.translateOffsets(props, alias, "billing", java.seconds(120)))
    assert billing == {orders[0]: (110, "meta"), orders[1]: (5, "")}
    pattern = java.jvm.java.util.regex.Pattern.compile(".*ing")
    by_group = utils.translateOffsets(props, alias, pattern, java.seconds(120))
    assert {group: translated(found) for group, found in by_group.items()} == {
        "billing": billing,
        "shipping": {orders[0]: (45, "é")},
    }

    client = java.jvm.org.apache.kafka.connect.mirror.MirrorClient(props)
    try:
        assert set(client.remoteTopics(alias)) >= {f"{alias}.orders", f"{alias}.heartbeats"}
        assert checkpoints not in set(client.remoteTopics())
    finally:
        client.close()


@pytest.mark.parametrize("location", ["source", "target"])
def test_javas_checkpoint_task_over_our_syncs_never_passes_an_unread_record(
    java: Java, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, location: str
) -> None:
    make_topic(source, topic)
    holder, other = (source, "target") if location == "source" else (target, alias)
    syncs_topic = f"mm2-offset-syncs.{other}.internal"
    make_missing(holder, syncs_topic)
    make_missing(target, f"{alias}.checkpoints.internal")
    copy = Copy(source, target, alias, topic)
    for n in range(6):  # each tells its syncs
        write_transactions(source, topic, f"{alias}-{n}", 10, seed=n)
        copy.once(syncs=SyncsSpec(cluster_spec(other, holder), syncs_topic, 10))

    tp = TopicPartition(topic, 1)
    pairs = pairs_of(source, target, tp, copy.remote)
    end = pairs.upstream[-1] + 1
    positions = [*random.Random(5).sample(range(end), 200), end]
    settings = {"offset-syncs.topic.location": location}
    translated = java_translations(java, source, target, alias, tp, positions, settings)
    judged = judge(pairs, translated)
    print(f"Java over our offset syncs ({location}): {judged}")
    assert judged.passed_over == 0
    assert judged.untranslated < judged.groups / 2
    assert translated[end] == pairs.downstream[-1] + 1, "who has read everything must find nothing to read again"
