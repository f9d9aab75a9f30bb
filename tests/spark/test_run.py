"""`heliograph run` on real clusters and real Spark: replicate, stop, go on."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.model import Checkpoint, CommittedOffset
from heliograph.model import TopicPartition as PartitionOf
from heliograph.wire.records.mirror_records import decode_checkpoint
from tests.interop.rest_story import ask
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.connect.connect_worker import free_port
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, run, write_file

pytestmark = pytest.mark.spark


def count(cluster: EmbeddedCluster, topic: str, partitions: int = 2) -> int:
    from heliograph.model import TopicPartition as Tp

    admin = admin_of(cluster)
    try:
        if admin.view([topic]).partition_counts.get(topic) != partitions:
            return 0
        return sum(admin.end_offsets([Tp(topic, p) for p in range(partitions)]).values())
    finally:
        admin.close()


def config_of(cluster: EmbeddedCluster, topic: str, name: str) -> str | None:
    admin = admin_of(cluster)
    values = {entry.name: entry.value for entry in admin.topic_configs([topic])[topic]}
    admin.close()
    return values[name]


def test_once_copies_what_is_there_and_exits_with_a_summary(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 3, retention_ms="86400000", min_insync_replicas="1")
    write(source, topic, ({"value": f"{n}".encode(), "partition": n % 3} for n in range(500)))
    admin = admin_of(source)
    assert GroupAdmin(admin).commit(f"{alias}-group", {PartitionOf(topic, 0): CommittedOffset(7)}) == {}
    admin.close()
    file = write_file(tmp_path, source, target, alias, topic)
    ended = run("run", file, "--once")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{alias}->target: done, 500 records" in ended.stdout
    admin = admin_of(target)
    checkpoints = [decode_checkpoint(r.key, r.value) for r in read_topic(admin, f"{alias}.checkpoints.internal")]
    admin.close()
    assert Checkpoint(f"{alias}-group", PartitionOf(f"{alias}.{topic}", 0), 7, 7) in checkpoints
    assert "WARN" not in ended.stderr
    assert "Exception" not in ended.stdout + ended.stderr
    assert read(target, f"{alias}.{topic}", 3) == read(source, topic, 3)
    assert config_of(target, f"{alias}.{topic}", "retention.ms") == "86400000"
    again = run("run", file, "--once")
    assert f"{alias}->target: done, 0 records" in again.stdout
    assert count(target, f"{alias}.{topic}", 3) == 500


def test_orders_arrive_at_once_and_a_clean_stop_neither_loses_nor_repeats(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic)
    write(source, topic, ({"value": f"{n}".encode(), "partition": n % 2} for n in range(100)))
    file = write_file(tmp_path, source, target, alias, topic)
    remote = f"{alias}.{topic}"
    for round_ in range(2):
        with Running(file) as heliograph:
            wait_for(lambda want=(round_ + 1) * 101 - 1: count(target, remote) >= want)
            seconds = one_record_through(source, target, topic, remote)
            print(f"a new record arrived after {seconds * 1000:.1f} ms")
            assert heliograph.stop(signal.SIGINT if round_ else signal.SIGTERM) == 0
        write(source, topic, ({"value": f"{round_}-{n}".encode(), "partition": n % 2} for n in range(100)))
    ended = run("run", file, "--once")
    assert ended.returncode == 0
    assert read(target, remote, 2) == read(source, topic, 2)


def one_record_through(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, remote: str) -> float:
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "probe", "fetch.wait.max.ms": 100})
    _low, end = consumer.get_watermark_offsets(TopicPartition(remote, 0), timeout=120)
    consumer.assign([TopicPartition(remote, 0, end)])
    consumer.poll(0.5)
    producer = Producer({"bootstrap.servers": source.bootstrap, "linger.ms": 0})
    began = time.monotonic()
    producer.produce(topic, b"new", partition=0)
    producer.flush()
    message = consumer.poll(120)
    elapsed = time.monotonic() - began
    assert message is not None
    assert message.value() == b"new"
    consumer.close()
    return elapsed


def test_new_topics_partitions_and_configs_are_noticed_while_running(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    from heliograph.kafka.admin.admin import alter_topic_configs
    from heliograph.model import AddPartitions, AlterConfigs, ConfigChange

    first, second = f"{topic}-a", f"{topic}-b"
    make_topic(source, first)
    often = ("refresh.topics.interval.seconds=1", "sync.topic.configs.interval.seconds=1")
    file = write_file(tmp_path, source, target, alias, f"{topic}.*", *often)
    port = free_port()
    with Running(file, "--rest", str(port)) as heliograph:
        write(source, first, [{"value": b"1", "partition": 0}])
        wait_for(lambda: count(target, f"{alias}.{first}") == 1)
        make_topic(source, second)
        write(source, second, [{"value": b"2", "partition": 1}])
        wait_for(lambda: count(target, f"{alias}.{second}") == 1)
        admin_of(source).add_partitions([AddPartitions(first, 4)])
        assert admin_of(source).wait_for_leaders({first: 4}) == {}
        write(source, first, [{"value": b"3", "partition": 3}])
        wait_for(lambda: count(target, f"{alias}.{first}", 4) == 2)
        alter_topic_configs(admin_of(source), [AlterConfigs(first, (ConfigChange("retention.bytes", None, "12345"),))])
        wait_for(lambda: config_of(target, f"{alias}.{first}", "retention.bytes") == "12345")
        check_rest(port, alias, [f"{alias}.{first}", f"{alias}.{second}"])
        assert heliograph.stop() == 0
    assert read(target, f"{alias}.{first}", 4) == read(source, first, 4)


def check_rest(port: int, alias: str, remote_topics: list[str]) -> None:
    """What a file defines can be read through REST, and not changed."""

    def asked(method: str, path: str = "") -> tuple[int, Any]:
        status, _headers, body = ask(f"http://127.0.0.1:{port}", method, f"/connectors{path}")
        return status, json.loads(body)

    name = f"{alias}->target.MirrorSourceConnector"
    path = f"/{quote(name)}"
    assert name in asked("GET")[1]

    def are_running() -> bool:
        state = asked("GET", f"{path}/status")[1]
        return {state["connector"]["state"], *(task["state"] for task in state["tasks"])} == {"RUNNING"}

    wait_for(are_running)  # the task of the new partitions may have just begun
    wait_for(lambda: asked("GET", f"{path}/topics")[1] == {name: {"topics": remote_topics}})
    # Progress is committed once a second.
    wait_for(lambda: len(asked("GET", f"{path}/offsets")[1]["offsets"]) == 3)
    assert asked("DELETE", path)[0] == 403


def test_a_topic_that_cannot_be_made_is_a_sentence_and_an_exit_code(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 1)
    ended = run("run", write_file(tmp_path, source, target, alias, topic, "replication.factor=5"), "--once")
    assert ended.returncode == 1
    assert f"error: {alias}->target: The topics {alias}.{topic} cannot be created on 'target':" in ended.stderr
    assert "replication.factor is 5, but the cluster 'target' has 1 broker" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_record_the_target_does_not_take_fails_alone_and_the_exit_code_says_so(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    good, bad = f"{topic}-good", f"{topic}-bad"
    make_topic(target, f"{alias}.{bad}", max_message_bytes="2000")
    for name in (good, bad):
        make_topic(source, name)
        write(source, name, ({"value": b"x" * 100 * n, "partition": n % 2} for n in range(30)))
    file = write_file(tmp_path, source, target, alias, f"{topic}.*", "sync.topic.configs.enabled=false")
    ended = run("run", file, "--once")
    assert ended.returncode == 1
    assert f"error: {alias}->target {bad}-0: the batch at offset 10 was refused: its one record needs" in ended.stderr
    assert "errors.tolerance=all" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    assert count(target, f"{alias}.{good}") == 30
    with file.open("a") as more:
        more.write(f"{alias}->target.errors.tolerance=all\n")
    ended = run("run", file, "--once")
    assert ended.returncode == 0, ended.stderr
    assert "10 records were too large for the target and left out" in ended.stdout
    assert count(target, f"{alias}.{bad}") == 20
