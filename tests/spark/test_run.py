"""`heliograph run` on real clusters and real Spark: replicate, stop, go on, survive kill -9."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from heliograph.embedded.cluster import EmbeddedCluster
from tests.clients import admin_of, make_topic, read, write
from tests.copying import wait_for
from tests.running import Running, run, write_file

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


def test_once_copies_what_is_there_and_exits_with_a_summary(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 3, retention_ms="86400000", min_insync_replicas="1")
    write(source, topic, ({"value": f"{n}".encode(), "partition": n % 3} for n in range(500)))
    file = write_file(tmp_path, source, target, alias, topic)
    ended = run("run", file, "--once")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{alias}->target: done, 500 records" in ended.stdout
    assert "WARN" not in ended.stderr
    assert "Exception" not in ended.stdout + ended.stderr
    assert read(target, f"{alias}.{topic}", 3) == read(source, topic, 3)
    configs = {c.name: c for c in admin_of(target).topic_configs([f"{alias}.{topic}"])[f"{alias}.{topic}"]}
    assert configs["retention.ms"].value == "86400000"
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
    for round_ in range(3):
        with Running(file) as heliograph:
            wait_for(lambda want=(round_ + 1) * 101 - 1: count(target, remote) >= want, 90)
            seconds = one_record_through(source, target, topic, remote)
            print(f"a new record arrived after {seconds * 1000:.1f} ms")
            assert heliograph.stop(signal.SIGINT if round_ else signal.SIGTERM) == 0
        write(source, topic, ({"value": f"{round_}-{n}".encode(), "partition": n % 2} for n in range(100)))
    ended = run("run", file, "--once")
    assert ended.returncode == 0
    assert read(target, remote, 2) == read(source, topic, 2)


def one_record_through(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, remote: str) -> float:
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "probe", "fetch.wait.max.ms": 100})
    _low, end = consumer.get_watermark_offsets(TopicPartition(remote, 0), timeout=30)
    consumer.assign([TopicPartition(remote, 0, end)])
    consumer.poll(0.5)
    producer = Producer({"bootstrap.servers": source.bootstrap, "linger.ms": 0})
    began = time.monotonic()
    producer.produce(topic, b"new", partition=0)
    producer.flush()
    message = consumer.poll(30)
    elapsed = time.monotonic() - began
    assert message is not None
    assert message.value() == b"new"
    consumer.close()
    return elapsed


def test_a_new_topic_and_new_partitions_are_noticed_while_running(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    from heliograph.mirror.topics import AddPartitions

    first, second = f"{topic}-a", f"{topic}-b"
    make_topic(source, first)
    file = write_file(tmp_path, source, target, alias, f"{topic}.*", "refresh.topics.interval.seconds=1")
    with Running(file) as heliograph:
        write(source, first, [{"value": b"1", "partition": 0}])
        wait_for(lambda: count(target, f"{alias}.{first}") == 1, 90)
        make_topic(source, second)
        write(source, second, [{"value": b"2", "partition": 1}])
        wait_for(lambda: count(target, f"{alias}.{second}") == 1, 60)
        admin_of(source).add_partitions([AddPartitions(first, 4)])
        admin_of(source).wait_for_leaders({first: 4})
        write(source, first, [{"value": b"3", "partition": 3}])
        wait_for(lambda: count(target, f"{alias}.{first}", 4) == 2, 60)
        assert heliograph.stop() == 0
    assert read(target, f"{alias}.{first}", 4) == read(source, first, 4)


def test_a_topic_that_cannot_be_forwarded_fails_alone_and_the_exit_code_says_so(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    good, bad = f"{topic}-good", f"{topic}-bad"
    make_topic(source, good)
    make_topic(source, bad, message_timestamp_type="LogAppendTime")
    for name in (good, bad):
        write(source, name, ({"value": b"x", "partition": n % 2} for n in range(10)))
    ended = run("run", write_file(tmp_path, source, target, alias, f"{topic}.*"), "--once")
    assert ended.returncode == 1
    assert f"error: {alias}->target {bad}-0: the batch at offset 0 cannot be forwarded" in ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
    assert count(target, f"{alias}.{good}") == 10
    assert count(target, f"{alias}.{bad}") == 0


MILLION = 1_000_000
PARTITIONS = 4


@pytest.mark.parametrize("victim", ["worker", "process"])
def test_kill_9_in_mid_copy_of_a_million_records_loses_nothing(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path, victim: str
) -> None:
    make_topic(source, topic, PARTITIONS)
    numbers = ({"value": f"{n:08}".encode(), "partition": n % PARTITIONS} for n in range(MILLION))
    write(source, topic, numbers, **{"batch.size": 3000, "queue.buffering.max.messages": 1_000_000})
    remote = f"{alias}.{topic}"
    file = write_file(tmp_path, source, target, alias, topic)
    repeatable = kill_in_mid_copy(file, target, remote, victim)
    copied = count(target, remote, PARTITIONS)
    print(f"killed the {victim} after {copied} records; {repeatable} had been written behind the last commit")
    if victim == "process":
        ended = run("run", file, "--once", timeout_s=200)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    seen = read(target, remote, PARTITIONS)
    duplicates = 0
    for p in range(PARTITIONS):
        values = [int(record.value or b"") for record in seen[p]]
        times = Counter(values)
        assert sorted(times) == list(range(p, MILLION, PARTITIONS)), f"partition {p} lacks records"
        duplicates += len(values) - len(times)
        assert_in_order_but_for_repeats(values)
    print(f"{duplicates} duplicates")
    assert duplicates <= repeatable


def kill_in_mid_copy(file: Path, target: EmbeddedCluster, remote: str, victim: str) -> int:
    """Kill once a part has been copied; returns how many records were written but not committed at that moment."""
    with Running(file) as heliograph:
        wait_for(lambda: count(target, remote, PARTITIONS) > MILLION // 20, 120)
        if victim == "process":
            heliograph.kill()
            assert count(target, remote, PARTITIONS) < MILLION, "the copy was over before the kill"
            return uncommitted(target, remote)
        for worker in heliograph.python_workers():
            worker.kill()
        at_the_kill = count(target, remote, PARTITIONS)
        assert at_the_kill < MILLION, "the copy was over before the kill"
        repeatable = uncommitted(target, remote)
        wait_for(lambda: "Starting it again" in heliograph.output(), 30)
        wait_for(lambda: committed(target, remote) == MILLION, 180)
        assert heliograph.stop() == 0
    return repeatable


def committed(target: EmbeddedCluster, remote: str) -> int:
    """Records of the source that are committed as copied."""
    from heliograph.worker.offset_store import read_offsets

    alias = remote.partition(".")[0]
    admin = admin_of(target)
    offsets = read_offsets(admin, f"mm2-offsets.{alias}.internal", "MirrorSourceConnector", alias)
    admin.close()
    return sum(offset + 1 for offset in offsets.values())


def uncommitted(target: EmbeddedCluster, remote: str) -> int:
    return count(target, remote, PARTITIONS) - committed(target, remote)


def assert_in_order_but_for_repeats(values: list[int]) -> None:
    """Going back is only allowed to where a restart began again: the first sight of each record is in order."""
    highest = -1
    for value in values:
        if value > highest:
            assert value == highest + PARTITIONS or highest == -1, f"{value} came after {highest}"
            highest = value
