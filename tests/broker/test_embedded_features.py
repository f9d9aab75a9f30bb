"""The embedded cluster is a normal Kafka: the protocols that its version switches on work on it, and Kafka's tools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster, forget_cluster, start_cluster
from heliograph.kafka.net.connection import open_connection
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address
from tests.support.clusters.clients import make_topic, write
from tests.support.runs.copying import PATIENCE_S, wait_for

pytestmark = pytest.mark.broker


def kafka(*words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """`heliograph kafka` with these words."""
    command = [sys.executable, "-m", "heliograph", "kafka", *words]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def tool(cluster: EmbeddedCluster, *words: str, given: str | None = None) -> str:
    """What a tool of Kafka prints that ends well."""
    ended = kafka("tool", cluster.name, *words, given=given)
    assert ended.returncode == 0, ended
    return ended.stdout


def test_features_are_at_the_levels_that_kafka_sets_when_it_formats(source: EmbeddedCluster) -> None:
    connection = open_connection(Address("127.0.0.1", source.brokers[0].port), Security(), "test", timeout_s=60)
    levels = connection.features
    connection.sock.close()
    assert {name: levels.get(name) for name in ("group.version", "share.version", "transaction.version")} == {
        "group.version": 1,
        "share.version": 1,
        "transaction.version": 2,
    }


def test_a_consumer_of_the_new_group_protocol_reads(source: EmbeddedCluster, topic: str) -> None:
    make_topic(source, topic)
    write(source, topic, [{"value": f"{n}".encode(), "partition": n % 2} for n in range(10)])
    settings = {"bootstrap.servers": source.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "group.protocol": "consumer"})
    consumer.subscribe([topic])
    seen: set[bytes] = set()

    def has_all() -> bool:
        seen.update(message.value() for message in consumer.consume(10, timeout=0.2) if message.error() is None)
        return len(seen) == 10

    try:
        wait_for(has_all)
    finally:
        consumer.close()


def test_a_share_consumer_reads(source: EmbeddedCluster, topic: str) -> None:
    make_topic(source, topic)
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    tool(source, "kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", topic, *earliest)
    tool(source, "kafka-console-producer", "--topic", topic, given="one\ntwo\nthree\n")
    end = ("--max-messages", "3", "--timeout-ms", "120000")
    seen = tool(source, "kafka-console-share-consumer", "--topic", topic, "--group", topic, *end)
    assert sorted(seen.split()) == ["one", "three", "two"]
    assert topic in tool(source, "kafka-share-groups", "--list").split()


def test_each_transaction_of_a_java_producer_has_an_epoch_of_its_own(source: EmbeddedCluster, topic: str) -> None:
    make_topic(source, topic)
    load = ("--topic", topic, "--num-records", "60", "--record-size", "10", "--throughput", "20")
    tool(source, "kafka-producer-perf-test", *load, "--transactional-id", topic, "--transaction-duration-ms", "200")
    heads, values = (
        line.split()
        for line in tool(source, "kafka-transactions", "describe", "--transactional-id", topic).splitlines()
    )
    assert int(dict(zip(heads, values, strict=False))["ProducerEpoch"]) >= 2


def test_a_tool_that_fails_passes_its_exit_code_on_and_one_that_is_not_there_is_named(source: EmbeddedCluster) -> None:
    ended = kafka("tool", source.name, "kafka-topics", "--describe", "--topic", "no-such-topic")
    assert ended.returncode == 1
    assert "Topic 'no-such-topic' does not exist" in ended.stdout + ended.stderr
    unknown = kafka("tool", source.name, "kafka-topic", "--list")
    assert unknown.stderr == "error: There is no tool 'kafka-topic' of Kafka; did you mean 'kafka-topics'?\n"
    assert unknown.returncode != 0


def test_only_its_user_enters_the_folders_of_a_cluster(source: EmbeddedCluster) -> None:
    folders = [Path(source.folder) / f"node-{broker.node_id}" for broker in source.brokers]
    assert [oct(folder.stat().st_mode & 0o777) for folder in folders] == ["0o700"]
    assert (folders[0] / "data").is_dir()
    assert (folders[0] / "server.properties").is_file()


def test_a_cluster_is_removed_once_it_is_stopped(tmp_path: Path) -> None:
    name, mine = f"test-{os.getpid()}-removed", tmp_path / "mine"
    mine.touch()
    cluster = start_cluster(name, data=tmp_path)
    try:
        refused = kafka("remove", name)
        assert refused.returncode != 0
        assert re.match(rf"error: The cluster '{name}' is running at 127.0.0.1:\d+; stop it with", refused.stderr)
        assert cluster.running
        removed = kafka("remove", name, "--stop")
        assert removed.stdout == f"{name}: stopped and removed; {tmp_path} holds other files and stays\n"
        assert not cluster.running
        assert find_cluster(name) is None
        assert list(tmp_path.iterdir()) == [mine]
        assert "There is no cluster" in kafka("remove", name).stderr
    finally:
        cluster.stop()
        forget_cluster(name)
