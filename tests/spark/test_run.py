"""`heliograph run` on real clusters and real Spark: replicate, stop, go on, survive kill -9."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.engine.offset_store import read_offsets
from tests.clients import Seen, admin_of, make_topic, read, write
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
    file = write_file(tmp_path, source, target, alias, topic)
    ended = run("run", file, "--once")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{alias}->target: done, 500 records" in ended.stdout
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


def test_new_topics_partitions_and_configs_are_noticed_while_running(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    from heliograph.kafka.config_admin import alter_topic_configs
    from heliograph.mirror.config_sync import AlterConfigs, ConfigChange
    from heliograph.mirror.topics import AddPartitions

    first, second = f"{topic}-a", f"{topic}-b"
    make_topic(source, first)
    often = ("refresh.topics.interval.seconds=1", "sync.topic.configs.interval.seconds=1")
    file = write_file(tmp_path, source, target, alias, f"{topic}.*", *often)
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
        alter_topic_configs(admin_of(source), [AlterConfigs(first, (ConfigChange("retention.bytes", None, "12345"),))])
        wait_for(lambda: config_of(target, f"{alias}.{first}", "retention.bytes") == "12345", 60)
        assert heliograph.stop() == 0
    assert read(target, f"{alias}.{first}", 4) == read(source, first, 4)


def test_a_topic_that_cannot_be_made_is_a_sentence_and_an_exit_code(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 1)
    ended = run("run", write_file(tmp_path, source, target, alias, topic, "replication.factor=5"), "--once")
    assert ended.returncode == 1
    assert f"error: {alias}->target: The topics {alias}.{topic} cannot be made on 'target':" in ended.stderr
    assert "replication.factor is 5, but the cluster 'target' has 1 broker(s)" in ended.stderr
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


MILLION = 1_000_000
PARTITIONS = 4


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rival", [False, True], ids=["alone", "with a second writer"])
def test_three_kills_in_a_copy_of_a_million_records_lose_nothing_and_repeat_nothing(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path, rival: bool
) -> None:
    make_topic(source, topic, PARTITIONS)
    numbers = ({"value": f"{n:08}".encode(), "partition": n % PARTITIONS} for n in range(MILLION))
    write(source, topic, numbers, **{"batch.size": 3000, "queue.buffering.max.messages": 1_000_000})
    remote = f"{alias}.{topic}"
    # Slow enough for three kills, each at full load behind the last commit.
    slow = f"{alias}->target.heliograph.throttle.bytes.per.second=1500000"
    file = write_file(tmp_path, source, target, alias, topic, slow)
    ended = threading.Event()
    writer = threading.Thread(target=write_until, args=(ended, target, remote))
    repeatable = 0
    try:
        for number, victim in enumerate(("process", "worker", "process"), start=1):
            repeatable += kill_in_mid_copy(file, target, remote, victim, at_least=number * MILLION // 5)
            if rival and number == 1:
                writer.start()
    finally:
        ended.set()
        if rival:
            writer.join()
    finished = run("run", write_file(tmp_path, source, target, alias, topic), "--once", timeout_s=200)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    duplicates = assert_complete_and_count_repeats(read(target, remote, PARTITIONS))
    print(f"three kills; {repeatable} records had been written behind the last commits; {duplicates} duplicates")
    assert repeatable > 0
    assert duplicates == 0


def write_until(ended: threading.Event, target: EmbeddedCluster, remote: str) -> None:
    while not ended.wait(0.02):
        write(target, remote, [{"value": b"rival", "partition": p} for p in range(PARTITIONS)])


def assert_complete_and_count_repeats(seen: dict[int, list[Seen]]) -> int:
    duplicates = 0
    for p in range(PARTITIONS):
        values = [int(record.value) for record in seen[p] if record.value and record.value != b"rival"]
        times = Counter(values)
        assert sorted(times) == list(range(p, MILLION, PARTITIONS)), f"partition {p} lacks records"
        duplicates += len(values) - len(times)
        assert_in_order_but_for_repeats(values)
    return duplicates


def kill_in_mid_copy(file: Path, target: EmbeddedCluster, remote: str, victim: str, at_least: int) -> int:
    """Kill once so much has been committed; returns how many records were written but not committed at that moment."""
    with Running(file) as heliograph:
        wait_for(lambda: committed(target, remote) > at_least, 120)
        time.sleep(0.5)
        if victim == "process":
            heliograph.kill()
        else:
            for worker in heliograph.python_workers():
                worker.kill()
        repeatable = uncommitted(target, remote)
        assert committed(target, remote) < MILLION, "the copy was over before the kill"
        if victim == "worker":
            wait_for(lambda: "Starting it again" in heliograph.output(), 30)
            wait_for(lambda: committed(target, remote) > at_least + MILLION // 10, 60)
            heliograph.kill()
    return repeatable


def committed(target: EmbeddedCluster, remote: str) -> int:
    """Records of the source that are committed as copied."""
    alias = remote.partition(".")[0]
    admin = admin_of(target)
    offsets = read_offsets(admin, f"mm2-offsets.{alias}.internal", "MirrorSourceConnector", alias)
    admin.close()
    return sum(progress.offset + 1 for progress in offsets.values())


def uncommitted(target: EmbeddedCluster, remote: str) -> int:
    """Ours that are on the target behind the last commit."""
    ours = sum(r.value != b"rival" for records in read(target, remote, PARTITIONS).values() for r in records)
    return ours - committed(target, remote)


def assert_in_order_but_for_repeats(values: list[int]) -> None:
    """Going back is only allowed to where a restart began again: the first sight of each record is in order."""
    highest = -1
    for value in values:
        if value > highest:
            assert value == highest + PARTITIONS or highest == -1, f"{value} came after {highest}"
            highest = value


def test_of_two_instances_with_exactly_once_the_first_ends_with_a_sentence_and_nothing_is_double(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, PARTITIONS)
    remote = f"{alias}.{topic}"
    (tmp_path / "second").mkdir()
    lines = ("target.exactly.once.source.support=enabled",)
    files = [write_file(folder, source, target, alias, topic, *lines) for folder in (tmp_path, tmp_path / "second")]

    def write_some() -> None:
        write(source, topic, ({"value": f"{n:06}".encode(), "partition": n % PARTITIONS} for n in range(2000)))

    def is_equal() -> bool:
        copied = read(target, remote, PARTITIONS, **{"isolation.level": "read_committed"})
        return copied == read(source, topic, PARTITIONS)

    write_some()
    with Running(files[0]) as first:
        wait_for(lambda: count(target, remote, PARTITIONS) and is_equal(), 90)
        with Running(files[1]) as second:
            # An instance with nothing to write learns nothing: so there is something, until the first one has ended.
            wait_for(lambda: write_some() or first.process.poll() is not None, 90)
            assert first.process.poll() == 3
            assert "another instance has taken over as the producer" in first.output()
            write_some()
            wait_for(is_equal, 90)
            assert second.stop() == 0
    assert is_equal()
