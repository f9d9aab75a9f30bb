"""`heliograph run` killed in mid copy, and started twice by mistake: nothing lost, nothing double."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.source_offsets import read_offsets
from tests.spark.test_run import count
from tests.support.clusters.clients import Seen, admin_of, make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, run, write_file

pytestmark = pytest.mark.spark

MILLION = 1_000_000
SOME = 200_000
THREE = ("process", "worker", "process")
PARTITIONS = 4


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("records", "victims", "rival"),
    [
        pytest.param(SOME, ("worker",), False, id="a worker, then the process"),
        pytest.param(MILLION, THREE, False, id="three in a million records", marks=pytest.mark.slow),
        pytest.param(MILLION, THREE, True, id="three, and a second writer", marks=pytest.mark.slow),
    ],
)
def test_kills_in_a_copy_lose_nothing_and_repeat_nothing(
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    topic: str,
    alias: str,
    tmp_path: Path,
    records: int,
    victims: tuple[str, ...],
    rival: bool,
) -> None:
    make_topic(source, topic, PARTITIONS)
    remote = f"{alias}.{topic}"
    # Slow enough for a kill at full load behind the last commit, also where looking for that commit takes seconds.
    slow = f"{alias}->target.heliograph.throttle.bytes.per.second={records * 3 // 2 // len(victims)}"
    file = write_file(tmp_path, source, target, alias, topic, slow)
    ended = threading.Event()
    writer = threading.Thread(target=write_until, args=(ended, target, remote))
    repeatable = 0
    try:
        for number, victim in enumerate(victims):
            part = range(number * records // len(victims), (number + 1) * records // len(victims))
            write_range(source, topic, part)
            repeatable += kill_in_mid_copy(file, target, remote, victim, part)
            if rival and number == 0:
                writer.start()
    finally:
        ended.set()
        if rival:
            writer.join()
    finished = run("run", write_file(tmp_path, source, target, alias, topic), "--once", timeout_s=300)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    duplicates = assert_complete_and_count_repeats(read(target, remote, PARTITIONS), records)
    print(f"{repeatable} records had been written behind the last commits; {duplicates} duplicates")
    assert repeatable > 0
    assert duplicates == 0


def write_range(source: EmbeddedCluster, topic: str, numbers: range) -> None:
    """A part of the records; the next one comes after a kill, so that a copy is never over before it is killed."""
    records = ({"value": f"{n:08}".encode(), "partition": n % PARTITIONS} for n in numbers)
    write(source, topic, records, **{"batch.size": 3000, "queue.buffering.max.messages": 1_000_000})


def write_until(ended: threading.Event, target: EmbeddedCluster, remote: str) -> None:
    while not ended.wait(0.02):
        write(target, remote, [{"value": b"rival", "partition": p} for p in range(PARTITIONS)])


def assert_complete_and_count_repeats(seen: dict[int, list[Seen]], records: int) -> int:
    duplicates = 0
    for p in range(PARTITIONS):
        values = [int(record.value) for record in seen[p] if record.value and record.value != b"rival"]
        times = Counter(values)
        assert sorted(times) == list(range(p, records, PARTITIONS)), f"partition {p} lacks records"
        duplicates += len(values) - len(times)
        assert_in_order_but_for_repeats(values)
    return duplicates


def kill_in_mid_copy(file: Path, target: EmbeddedCluster, remote: str, victim: str, part: range) -> int:
    """Kill in the copy of a part; returns how many records were written but not committed at that moment."""
    with Running(file) as heliograph:
        wait_for(lambda: committed(target, remote) > part.start + len(part) // 10)
        time.sleep(0.5)
        if victim == "process":
            heliograph.kill()
        else:
            for worker in heliograph.python_workers():
                worker.kill()
        repeatable = uncommitted(target, remote)
        if victim == "worker":
            wait_for(lambda: "Starting it again" in heliograph.output())
            at_restart = committed(target, remote)
            wait_for(lambda: committed(target, remote) > min(at_restart, part.stop - 1))  # it may have all already
            heliograph.kill()
    return repeatable


def committed(target: EmbeddedCluster, remote: str) -> int:
    """Records of the source that are committed as copied."""
    alias = remote.partition(".")[0]
    admin = admin_of(target)
    offsets = read_offsets(admin, f"mm2-offsets.{alias}.internal", "MirrorSourceConnector", alias)
    admin.close()
    return sum(source_offsets.offset + 1 for source_offsets in offsets.values())


def uncommitted(target: EmbeddedCluster, remote: str) -> int:
    """Ours that are on the target behind the last commit."""
    done = committed(target, remote)  # asked first: where only a worker was killed, the next one goes on meanwhile
    ours = sum(r.value != b"rival" for records in read(target, remote, PARTITIONS).values() for r in records)
    return ours - done


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
    files = [
        write_file(
            *(folder, source, target, alias, topic),
            "target.exactly.once.source.support=enabled",
            # By this and a random number below a second instances tell each other apart; here without the chance.
            f"target.producer.transaction.timeout.ms={timeout_ms}",
        )
        for folder, timeout_ms in ((tmp_path, 60_000), (tmp_path / "second", 50_000))
    ]

    def write_some() -> None:
        write(source, topic, ({"value": f"{n:06}".encode(), "partition": n % PARTITIONS} for n in range(2000)))

    def is_equal() -> bool:
        copied = read(target, remote, PARTITIONS, **{"isolation.level": "read_committed"})
        return copied == read(source, topic, PARTITIONS)

    write_some()
    with Running(files[0]) as first:
        wait_for(lambda: count(target, remote, PARTITIONS) and is_equal())
        with Running(files[1]) as second:
            # An instance with nothing to write learns nothing: so there is something, until the first one has ended.
            wait_for(lambda: write_some() or first.process.poll() is not None)
            assert first.process.poll() == 3
            assert "another instance has taken over as the producer" in first.output()
            write_some()
            wait_for(is_equal)
            assert second.stop() == 0
    assert is_equal()
