"""Kafka 1.1 and 2.8, with ZooKeeper, beside the newest: as source, as target, and for the driver's questions."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import psutil
import pytest

from heliograph.config.resolve.settings import Settings
from heliograph.driver.clusters.internal_topic_creation import create_offsets_topic
from heliograph.driver.flow.acl_sync import AclSync
from heliograph.driver.flow.config_sync import ConfigSync
from heliograph.driver.flow.topic_sync import TopicSync
from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster, forget_cluster, start_cluster
from heliograph.embedded.kafka_tools import tool_command
from heliograph.errors import BrokerError, EmbeddedError, GroupActiveError
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.model import CommittedOffset, GroupType, TopicPartition
from tests.broker.test_copy import codecs_of, odd_records
from tests.broker.test_groups import member
from tests.conftest import KEEP_RECORDS
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import Copy

pytestmark = pytest.mark.broker


# One fixture for all versions, so that only one of them runs at a time.
@pytest.fixture(scope="module", params=["1.1.1", "2.8.2"])
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    name = f"test-{os.getpid()}-{request.param}"
    cluster = start_cluster(name, data=tmp_path_factory.mktemp("old"), version=request.param, config=KEEP_RECORDS)
    try:
        yield cluster
    finally:
        (find_cluster(name) or cluster).stop()
        forget_cluster(name)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_every_part_of_a_record_arrives_from_an_old_cluster(
    old: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, codec: str
) -> None:
    make_topic(old, topic)
    write(old, topic, odd_records(), **{"compression.type": codec})
    copy = Copy(old, target, alias, topic)
    copy.once()
    written = read(old, topic, 2)
    assert read(target, copy.remote, 2) == written
    assert sum(map(len, written.values())) == 200
    assert codecs_of(target, copy.remote) == codecs_of(old, topic)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_every_part_of_a_record_arrives_on_an_old_cluster(
    source: EmbeddedCluster, old: EmbeddedCluster, topic: str, alias: str, codec: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, old, alias, topic)
    for _round in range(2):
        write(source, topic, odd_records(), **{"compression.type": codec})
        copy.once()
    written = read(source, topic, 2)
    assert read(old, copy.remote, 2) == written
    assert sum(map(len, written.values())) == 400
    assert copy.committed() == {TopicPartition(topic, p): 199 for p in range(2)}


def test_many_batches_reach_an_old_cluster_once_and_in_order(
    source: EmbeddedCluster, old: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(
        source, topic, ({"value": f"{n}".encode(), "partition": n % 2} for n in range(20_000)), **{"batch.size": 2000}
    )
    copy = Copy(source, old, alias, topic)
    copy.once()
    assert read(old, copy.remote, 2) == read(source, topic, 2)


def test_an_old_cluster_tells_topics_configs_and_offsets(old: EmbeddedCluster, topic: str) -> None:
    make_topic(old, topic, 3, retention_ms="12345678")
    write(old, topic, ({"value": b"v", "partition": p} for p in (0, 0, 2)))
    admin = admin_of(old)
    view = admin.view()
    assert view.partition_counts[topic] == 3
    assert {view.leaders[TopicPartition(topic, p)] for p in range(3)} == {1}
    assert (view.controller_id, view.brokers[1].port) == (1, old.brokers[0].port)
    assert topic in admin.view([topic]).partition_counts
    assert "nowhere" not in admin.view(["nowhere"]).partition_counts
    tps = [TopicPartition(topic, p) for p in range(3)]
    assert admin.end_offsets(tps) == dict(zip(tps, (2, 0, 1), strict=True))
    assert admin.list_offsets(tps, timestamp=-2) == dict.fromkeys(tps, 0)
    configs = {entry.name: entry for entry in admin.topic_configs([topic])[topic]}
    assert (configs["retention.ms"].value, configs["retention.ms"].is_default) == ("12345678", False)
    assert configs["cleanup.policy"].is_default
    admin.close()


def settings_of(alias: str, topic: str) -> Settings:
    names = {"source.cluster.alias": alias, "target.cluster.alias": "target", "topics": f"{topic}.*"}
    return Settings({**names, "heartbeats.replication.enabled": "false"})


def sync_of(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str) -> TopicSync:
    return TopicSync(
        settings_of(alias, topic), TopicRules.of(settings_of(alias, topic)), admin_of(source), admin_of(target)
    )


@pytest.mark.parametrize("is_source", [True, False])
def test_topics_are_made_and_grow_between_an_old_and_a_new_cluster(
    old: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, is_source: bool
) -> None:
    here, there = (old, target) if is_source else (target, old)
    sync = sync_of(here, there, alias, topic)
    make_topic(here, f"{topic}-a", 3, retention_ms="12345678", cleanup_policy="compact")
    create_offsets_topic(admin_of(there), settings_of(alias, topic))
    assert len(sync.sync().partitions) == 3
    assert len(sync.sync().partitions) == 3
    make_topic(here, f"{topic}-b", 1)
    replicated = sync.sync()
    assert len(replicated.partitions) == 4
    admin = admin_of(there)
    assert admin.view().partition_counts[f"{alias}.{topic}-a"] == 3
    configs = {entry.name: entry.value for entry in admin.topic_configs([f"{alias}.{topic}-a"])[f"{alias}.{topic}-a"]}
    assert (configs["retention.ms"], configs["cleanup.policy"]) == ("12345678", "compact")
    admin.close()


def test_a_new_source_keeps_an_old_clusters_topics_as_far_as_it_can(
    old: EmbeddedCluster, source: EmbeddedCluster, topic: str, alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What the old cluster does not know is left out; what it cannot alter is told once."""
    settings = settings_of(alias, topic)
    make_topic(source, topic, 1, local_retention_ms="1000", cleanup_policy="compact")
    topics = sync_of(source, old, alias, topic)
    create_offsets_topic(admin_of(old), settings)
    replicated = topics.sync()
    assert (len(replicated.partitions), replicated.issues) == (1, ())
    make_topic(source, f"{topic}-b", 1, retention_ms="1000")
    make_topic(old, f"{alias}.{topic}-b", 1)
    sync = ConfigSync(TopicRules.of(settings), admin_of(source), admin_of(old))
    caplog.clear()
    for _round in range(2):
        assert sync.sync() == ()
    assert len([m for m in caplog.messages if "topics have no config local.retention.ms there; left out" in m]) == 1
    assert len([m for m in caplog.messages if "older than Kafka 2.3" in m]) == (old.version == "1.1.1")
    admin = admin_of(old)
    configs = admin.topic_configs([f"{alias}.{topic}", f"{alias}.{topic}-b"])
    values = {remote: {entry.name: entry.value for entry in entries} for remote, entries in configs.items()}
    assert values[f"{alias}.{topic}"]["cleanup.policy"] == "compact"
    assert (values[f"{alias}.{topic}-b"]["retention.ms"] == "1000") == (old.version != "1.1.1")
    admin.close()


def test_an_old_clusters_configs_reach_a_new_one(
    old: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(old, topic, 1, retention_ms="1000")
    make_topic(target, f"{alias}.{topic}", 1)
    sync = ConfigSync(TopicRules.of(settings_of(alias, topic)), admin_of(old), admin_of(target))
    assert sync.sync() == ()
    admin = admin_of(target)
    deadline = time.monotonic() + 120
    while ("retention.ms", "1000") not in [
        (entry.name, entry.value) for entry in admin.topic_configs([f"{alias}.{topic}"])[f"{alias}.{topic}"]
    ]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    admin.close()


def test_an_old_cluster_without_authorizer_has_no_acls_to_sync(
    old: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    plan, notes = AclSync(TopicRules.of(settings_of(alias, topic)), admin_of(old), admin_of(target)).plan()
    assert plan.adds == ()
    assert notes == (f"{old.name}: the cluster has no authorizer; ACLs are not synced",)


def test_a_topic_of_an_older_format_is_made_without_that_config(
    old: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(old, topic, message_format_version="0.10.0", retention_ms="12345678")
    assert len(sync_of(old, target, alias, topic).sync().partitions) == 2


def test_a_killed_old_broker_comes_back_with_its_data(old: EmbeddedCluster, topic: str) -> None:
    make_topic(old, topic)
    write(old, topic, odd_records(50))
    before = read(old, topic, 2)
    broker = old.broker_process(1)
    broker.kill()
    broker.wait()
    assert old.zookeeper is not None
    assert old.zookeeper.is_running(old.name)
    again = old.start_broker(1)
    assert again.bootstrap == old.bootstrap
    admin = admin_of(again)
    admin.end_offsets([TopicPartition(topic, p) for p in range(2)])  # answers when the broker leads them again
    admin.close()
    assert read(again, topic, 2) == before


def test_groups_of_an_old_cluster_are_seen_and_moved(old: EmbeddedCluster, topic: str) -> None:
    make_topic(old, topic)
    tp, idle = TopicPartition(topic, 0), f"idle-{topic}"
    admin = admin_of(old)
    groups = GroupAdmin(admin)
    assert groups.commit(idle, {tp: CommittedOffset(3, "note")}) == {}
    with member(old, topic, topic):
        assert groups.states([topic, idle, "nobody"]) == {topic: "Stable", idle: "Empty", "nobody": "Dead"}
        with pytest.raises(GroupActiveError, match="active members"):
            groups.commit(topic, {tp: CommittedOffset(1)})
    assert {topic, idle} <= groups.list_groups().keys()
    assert groups.commit(topic, {tp: CommittedOffset(1)}) == {}
    assert groups.committed([topic, idle, "nobody"]) == {
        topic: {tp: CommittedOffset(1)},
        idle: {tp: CommittedOffset(3, "note")},
        "nobody": {},
    }
    admin.close()


def test_an_old_cluster_says_that_it_has_no_share_groups(old: EmbeddedCluster, topic: str) -> None:
    make_topic(old, topic)
    admin = admin_of(old)
    groups = GroupAdmin(admin)
    reported = groups.offsets_of([topic], {topic: GroupType.SHARE})
    assert (reported.of, reported.unsupported) == ({}, {topic})
    with pytest.raises(BrokerError, match=r"does not support offsets of share groups.*Kafka 4[.]1 or newer does"):
        groups.set_offsets(topic, GroupType.SHARE, {TopicPartition(topic, 0): CommittedOffset(1)})
    admin.close()


@pytest.mark.parametrize("version", ["1.1.1", "2.8.2"])
def test_an_old_cluster_of_two_brokers_stops_with_its_zookeeper(
    version: str, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = f"test-{os.getpid()}-pair"
    cluster = start_cluster(name, brokers=2, data=tmp_path_factory.mktemp("pair"), version=version)
    try:
        make_topic(cluster, topic, 2, factor=2)
        assert find_cluster(name) == cluster
        assert len(cluster.running) == 2
        listed = subprocess.run(tool_command(cluster, "kafka-topics", ["--list"]), stdout=subprocess.PIPE, check=True)
        assert topic.encode() in listed.stdout.split()
        with pytest.raises(EmbeddedError, match=rf"^Kafka {version} has no tool 'kafka-share-groups'\.$"):
            tool_command(cluster, "kafka-share-groups", ["--list"])
    finally:
        cluster.stop()
        forget_cluster(name)
    assert cluster.zookeeper is not None
    assert not any(psutil.pid_exists(pid) for pid in (*(b.pid for b in cluster.brokers), cluster.zookeeper.pid))
    assert find_cluster(name) is None
