"""A worker's three topics on a real broker: made, written, followed by another, read by whoever comes after."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.admin import KafkaAdminClient

from heliograph.config.resolve.settings import Settings
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.connect.storage.config_store import ConfigStore, StoredConnector
from heliograph.connect.storage.leader_writes import LeaderWrites
from heliograph.connect.storage.status_store import StatusStore
from heliograph.driver.clusters.internal_topic_creation import create_worker_topics
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import ClusterError, ConfigError, OffsetsRefusedError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.topics.compacted_topic import partition_for_key
from heliograph.wire.records.connect_status import Status
from tests.broker.test_connector_places import connector, copy_once, numbers, source_offsets, values
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import wait_for

pytestmark = pytest.mark.broker

RUNNING = Status("RUNNING", "w:8083", 1, None, "4.3.1")


@pytest.fixture
def admin(target: EmbeddedCluster) -> Iterator[Admin]:
    opened = admin_of(target)
    yield opened
    opened.close()


def settings_of(alias: str) -> Settings:
    topics = {f"{kind}.storage.topic": f"{alias}-{kind}" for kind in ("config", "offset", "status")}
    return Settings({**topics, "config.storage.replication.factor": "1"})


def configs_in(admin: Admin, topic: str) -> ConfigStore:
    return ConfigStore(admin, topic, LeaderWrites(lambda: 1))


def configs_of(admin: Admin, topic: str) -> dict[str, str | None]:
    return {entry.name: entry.value for entry in admin.topic_configs([topic])[topic]}


def test_the_three_topics_are_made_as_connect_makes_them(admin: Admin, alias: str) -> None:
    for _again in range(2):
        create_worker_topics(admin, settings_of(alias))
    names = [f"{alias}-{kind}" for kind in ("config", "offset", "status")]
    assert admin.view(names).partition_counts == dict(zip(names, (1, 25, 5), strict=True))
    assert {configs_of(admin, name)["cleanup.policy"] for name in names} == {"compact"}


def test_a_topic_that_deletes_is_refused(target: EmbeddedCluster, admin: Admin, alias: str) -> None:
    make_topic(target, f"{alias}-status", 5)
    with pytest.raises(ConfigError, match=rf"status\.storage\.topic: the topic '{alias}-status' has cleanup\.policy="):
        create_worker_topics(admin, settings_of(alias))


def test_a_config_topic_of_two_partitions_is_refused_in_connects_words(
    target: EmbeddedCluster, admin: Admin, topic: str
) -> None:
    make_topic(target, topic, 2, cleanup_policy="compact")
    with pytest.raises(ConfigError) as caught:
        configs_in(admin, topic).load()
    assert str(caught.value) == (
        f"Topic '{topic}' supplied via the 'config.storage.topic' property is required to have a single partition in"
        " order to guarantee consistency of connector configurations, but found 2 partitions."
    )


def test_a_topic_that_is_not_there_is_named(admin: Admin, topic: str) -> None:
    with pytest.raises(ClusterError, match=f"The topic {topic} is not on the worker's cluster"):
        configs_in(admin, topic).load()


def test_connectors_are_found_again_by_the_next_worker(target: EmbeddedCluster, admin: Admin, topic: str) -> None:
    make_topic(target, topic, 1, cleanup_policy="compact")
    store = configs_in(admin, topic)
    store.load()
    store.put_connector("a", {"name": "a", "x": "ü"}, "PAUSED")
    store.put_connector("b", {"name": "b"})
    store.put_tasks("b", [{"t": "0"}, {"t": "1"}])
    store.put_connector("gone", {"name": "gone"}, "STOPPED")
    store.delete_connector("gone")
    store.put_target_state("b", "STOPPED")
    expected = {
        "a": StoredConnector({"name": "a", "x": "ü"}, "PAUSED"),
        "b": StoredConnector({"name": "b"}, "STOPPED", ({"t": "0"}, {"t": "1"})),
    }
    assert store.connectors == expected
    other = configs_in(admin, topic)
    other.load()
    assert other.connectors == expected


def test_the_other_worker_sees_what_was_written_and_asked_for_since(
    target: EmbeddedCluster, admin: Admin, topic: str
) -> None:
    make_topic(target, topic, 1, cleanup_policy="compact")
    leader, follower = configs_in(admin, topic), configs_in(admin_of(target), topic)
    leader.load()
    leader.put_log_level("root", "ERROR")
    follower.load()
    assert follower.take_log_levels() == []  # what was asked for before it came is over
    leader.put_connector("a", {"name": "a"})
    leader.put_log_level("root", "DEBUG")
    changes = follower.refresh()
    assert changes.configs == {"a"}
    assert [reported.level for reported in follower.take_log_levels()] == ["DEBUG"]
    assert follower.connectors == leader.connectors


def test_what_a_java_worker_left_is_read_as_it_is(target: EmbeddedCluster, admin: Admin, topic: str) -> None:
    make_topic(target, topic, 1, cleanup_policy="compact")
    rows = [
        ("session-key", '{"key":"abc","algorithm":"HmacSHA256","creation-timestamp":1}'),
        ("target-state-file", '{"state":"PAUSED"}'),
        ("connector-file", '{"properties":{"connector.class":"FileStreamSource","tasks.max":"1"}}'),
        ("task-file-0", '{"properties":{"file":"x"}}'),
        ("commit-file", '{"tasks":1}'),
        ("logger-cluster-root", '{"level":"INFO"}'),
        ("connector-broken", "???"),
    ]
    write(target, topic, [{"key": key.encode(), "value": value.encode(), "partition": 0} for key, value in rows])
    store = configs_in(admin, topic)
    store.load()
    stored = StoredConnector({"connector.class": "FileStreamSource", "tasks.max": "1"}, "PAUSED", ({"file": "x"},))
    assert store.connectors == {"file": stored}


def test_statuses_and_topics_are_told_and_forgotten(target: EmbeddedCluster, admin: Admin, topic: str) -> None:
    make_topic(target, topic, 5, cleanup_policy="compact")
    store = StatusStore(admin, topic)
    store.load()
    failed = Status("FAILED", "w:8083", 1, "why\n", "4.3.1")
    store.put_connector("a-1", RUNNING)
    store.put_task("a-1", 0, RUNNING)
    store.put_task("a-1", 1, failed)
    for _again in range(2):
        store.put_topic("a-1", "t1")
    store.put_topic("a-1", "t2")
    store.put_all("b", RUNNING, {0: RUNNING, 1: RUNNING})
    store.put_all("b", RUNNING, {1: failed})

    def check(seen: StatusStore) -> None:
        assert (seen.connector("a-1"), seen.tasks("a-1")) == (RUNNING, {0: RUNNING, 1: failed})
        assert seen.topics("a-1") == ["t1", "t2"]
        assert seen.tasks("b") == {1: failed}
        assert seen.names() == ["a-1", "b"]

    check(store)
    other = StatusStore(admin_of(target), topic)
    other.load()
    check(other)
    assert sum(len(records) for records in read(target, topic, 5).values()) == 11  # t1 was told once
    store.delete_topics("a-1")
    store.delete_task("a-1", 0)
    store.delete_connector("b")
    other.refresh()
    for seen in (store, other):
        assert (seen.topics("a-1"), seen.tasks("a-1"), seen.names()) == ([], {1: failed}, ["a-1"])


def test_offsets_are_listed_altered_and_reset(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    """Progress as Connect's REST shows it; the next run goes on behind what was written by hand."""
    make_topic(source, topic)
    write(source, topic, numbers(*range(10)))
    config = connector(source, target, alias, topics=topic, producer__override__bootstrap__servers=target.bootstrap)
    with ConnectorOffsets.of(config) as offsets:
        assert offsets.read() == []
        copy_once(config)
        partitions = [{"cluster": alias, "partition": p, "topic": topic} for p in range(2)]
        assert sorted(offsets.read(), key=str) == [(partition, {"offset": 4}) for partition in partitions]
        shuffled = {"topic": topic, "partition": 0, "cluster": alias}
        with pytest.raises(OffsetsRefusedError, match="which cannot be negative"):
            offsets.alter([(shuffled, {"offset": -1})])
        offsets.alter([(shuffled, {"offset": 2}), (partitions[1], None)])
        assert offsets.read() == [(partitions[0], {"offset": 2})]
    copied = len(values(target, f"{alias}.{topic}"))
    copy_once(config)
    assert len(values(target, f"{alias}.{topic}")) == copied + 2 + 5  # behind offset 2, and all of the other
    with ConnectorOffsets.of(config) as offsets:
        offsets.reset()
        assert offsets.read() == []
    assert source_offsets(source, config) == {}


def test_a_key_in_another_order_is_forgotten_when_its_partition_is_altered(
    source: EmbeddedCluster, target: EmbeddedCluster, alias: str
) -> None:
    config = connector(source, target, alias)
    make_topic(source, config.worker["offset.storage.topic"], 5, cleanup_policy="compact")
    key = f'["{config.name}",{{"topic":"t","partition":0,"cluster":"{alias}"}}]'.encode()
    place = partition_for_key(key, 5)
    write(source, config.worker["offset.storage.topic"], [{"key": key, "value": b'{"offset":9}', "partition": place}])
    with ConnectorOffsets.of(config) as offsets:
        offsets.alter([({"cluster": alias, "topic": "t", "partition": 0}, {"offset": 7})])
        assert offsets.read() == [({"cluster": alias, "partition": 0, "topic": "t"}, {"offset": 7})]
    rows = [row for rows in read(source, config.worker["offset.storage.topic"], 5).values() for row in rows]
    assert [row.value for row in rows if row.key == key] == [b'{"offset":9}', None]


def test_a_status_topic_that_was_created_again_is_read_from_its_beginning(
    target: EmbeddedCluster, admin: Admin, topic: str
) -> None:
    """Its log is as long as the old one was: only its id is different."""
    make_topic(target, topic, 1, cleanup_policy="compact")
    store, other = StatusStore(admin, topic), StatusStore(admin, topic)
    store.put_connector("old", RUNNING)
    other.refresh()
    assert other.names() == ["old"]
    client = KafkaAdminClient(bootstrap_servers=target.bootstrap)
    client.delete_topics([topic])
    client.close()
    wait_for(lambda: topic not in admin.view().partition_counts)
    make_topic(target, topic, 1, cleanup_policy="compact")
    StatusStore(admin, topic).put_connector("new", RUNNING)
    other.refresh()
    assert other.names() == ["new"]
