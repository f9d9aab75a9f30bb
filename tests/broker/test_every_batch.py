"""Topics of every kind a source can hold: what a consumer of the source sees, a consumer of the target sees."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.request_options import FetchLimits
from heliograph.kafka.topics.topic_reader import read_chunk
from heliograph.model import TopicPartition
from heliograph.wire.batches.scan import scan
from tests.support.clusters.clients import (
    Seen,
    admin_of,
    make_topic,
    read,
    transactional_producer,
    wait_for_markers,
    write,
)
from tests.support.runs.copying import Copy, HandLease, wait_for

pytestmark = pytest.mark.broker

COMMITTED = {"isolation.level": "read_committed"}


def mixed(count: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Records of every shape, over two partitions."""
    rng = random.Random(seed)
    for n in range(count):
        yield {
            "key": rng.choice([None, b"", f"key-{n % 50}".encode()]),
            "value": rng.choice([None, b"", rng.randbytes(rng.randint(1, 300)), b"x" * 200]),
            "headers": [(rng.choice(["h", "ü", ""]), rng.choice([None, b"", b"\x00\xff"]))] * rng.randint(0, 3),
            "timestamp": 1_700_000_000_000 + rng.randint(-5000, 5000),
            "partition": n % 2,
        }


def visible(seen: dict[int, list[Seen]]) -> dict[int, list[tuple[object, ...]]]:
    """All but the kind of timestamp, which LogAppendTime topics do not share with their copies."""
    return {p: [(r.key, r.value, r.headers, r.timestamp[1]) for r in records] for p, records in seen.items()}


def batch_count(cluster: EmbeddedCluster, topic: str) -> int:
    admin = admin_of(cluster)
    total = 0
    for p in range(2):
        data = read_chunk(admin, TopicPartition(topic, p), 0, 0)
        assert data.records is not None
        rows, *_rest = scan(np.frombuffer(data.records, np.uint8), 0, np.empty((0, 2), np.int64))
        total += len(rows)
    admin.close()
    return total


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_one_record_batches_are_merged_and_equal(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, codec: str
) -> None:
    make_topic(source, topic)
    # librdkafka leaves a batch as it is where compression does not help
    records = ({**record, "value": b"value-%d " % n * 40} for n, record in enumerate(mixed(2000)))
    write(source, topic, records, **{"batch.num.messages": 1, "linger.ms": 0, "compression.type": codec})
    copy = Copy(source, target, alias, topic)
    copy.once()
    assert read(target, copy.remote, 2) == read(source, topic, 2)
    assert batch_count(source, topic) == 2000
    assert batch_count(target, copy.remote) < 200


def test_codecs_may_change_from_batch_to_batch(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    for number in range(30):
        codec = ["none", "gzip", "snappy", "lz4", "zstd"][number % 5]
        size = [1, 1000][number % 2]
        write(source, topic, mixed(40, number), **{"compression.type": codec, "batch.num.messages": size})
    copy = Copy(source, target, alias, topic)
    copy.once()
    assert read(target, copy.remote, 2) == read(source, topic, 2)


def test_a_log_append_time_topic_shows_the_same_times(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic, message_timestamp_type="LogAppendTime")
    write(source, topic, mixed(500), **{"batch.num.messages": 20})
    copy = Copy(source, target, alias, topic)
    copy.once()
    written = read(source, topic, 2)
    assert {r.timestamp[0] for records in written.values() for r in records} == {2}
    assert visible(read(target, copy.remote, 2)) == visible(written)


def compacted(source: EmbeddedCluster, topic: str) -> None:
    """A topic whose cleaner has made holes in its batches."""
    make_topic(
        source,
        topic,
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        segment_ms="100",
        delete_retention_ms="600000",
        min_compaction_lag_ms="0",
    )
    rng = random.Random(5)
    for _round in range(6):
        records = (
            {
                "key": f"key-{rng.randint(0, 120)}".encode(),
                "value": rng.choice([None, rng.randbytes(60)]),
                "partition": n % 2,
            }
            for n in range(800)
        )
        write(source, topic, records, **{"batch.num.messages": 25, "linger.ms": 20})
        time.sleep(0.2)  # the next round begins a new segment, and this one can be cleaned
    wait_for(lambda: all(is_clean(source, topic, p) for p in range(2)), 240, pause_s=0.2)
    assert sum(map(len, read(source, topic, 2).values())) < 2400


def is_clean(cluster: EmbeddedCluster, topic: str, partition: int) -> bool:
    """Whether the cleaner has come as far as it goes: to the segment that is being written."""
    data = Path(cluster.folder) / "node-1" / "data"
    last_segment = max(int(file.stem) for file in (data / f"{topic}-{partition}").glob("*.log"))
    noted = data / "cleaner-offset-checkpoint"
    return noted.exists() and f"{topic} {partition} {last_segment}" in noted.read_text().splitlines()


def test_a_compacted_topic_with_gaps_is_equal(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    compacted(source, topic)
    copy = Copy(source, target, alias, topic)
    report = copy.once()
    assert [row.failure for row in report.partitions] == [None, None]
    assert read(target, copy.remote, 2) == read(source, topic, 2)
    assert copy.once().partitions[0].records == 0


def test_aborted_records_never_arrive_and_open_transactions_are_waited_for(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    rng = random.Random(7)
    writers = [transactional_producer(source, f"{alias}-{n}") for n in range(3)]
    for number in range(40):
        writer = rng.choice(writers)
        writer.begin_transaction()
        for n in range(rng.randint(1, 30)):
            writer.produce(topic, f"{number}-{n}".encode(), partition=n % 2)
        writer.flush()
        if number % 5 == 0:
            write(source, topic, [{"value": f"plain-{number}".encode(), "partition": number % 2}])
        writer.abort_transaction() if rng.random() < 0.4 else writer.commit_transaction()
    wait_for_markers(source, topic, 2)
    copy = Copy(source, target, alias, topic)
    lease = HandLease()
    join = copy.background(lease)
    wait_for(lambda: read(target, copy.remote, 2, **COMMITTED) == read(source, topic, 2, **COMMITTED))
    writers[0].begin_transaction()
    writers[0].produce(topic, b"open", partition=0)
    writers[0].flush()
    write(source, topic, [{"value": b"behind", "partition": 0}, {"value": b"other", "partition": 1}])
    wait_for(lambda: read(target, copy.remote, 2)[1][-1].value == b"other")
    assert read(target, copy.remote, 2)[0][-1].value not in (b"open", b"behind")
    writers[0].commit_transaction()
    wait_for(lambda: [r.value for r in read(target, copy.remote, 2)[0][-2:]] == [b"open", b"behind"])
    lease.stop_reason = "test"
    join()
    uncommitted_view = read(target, copy.remote, 2, **{"isolation.level": "read_uncommitted"})
    assert uncommitted_view == read(source, topic, 2, **COMMITTED)
    ends = admin_of(source).end_offsets([TopicPartition(topic, p) for p in range(2)])
    assert copy.committed() == {tp: end - 1 for tp, end in ends.items()}


def test_read_uncommitted_copies_what_was_aborted_too(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    writer = transactional_producer(source, alias)
    for number in range(4):
        writer.begin_transaction()
        writer.produce(topic, f"{number}".encode(), partition=number % 2)
        writer.flush()
        writer.abort_transaction() if number < 2 else writer.commit_transaction()
    wait_for_markers(source, topic, 2)
    copy = Copy(source, target, alias, topic)
    copy.once(limits=FetchLimits(isolation_level=0))
    values = {p: [r.value for r in records] for p, records in read(target, copy.remote, 2).items()}
    assert values == {0: [b"0", b"2"], 1: [b"1", b"3"]}


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_batch_too_large_for_the_target_is_split(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, codec: str
) -> None:
    make_topic(source, topic)
    make_topic(target, f"{alias}.{topic}", max_message_bytes="4000")
    rng = random.Random(1)
    records = ({"value": rng.randbytes(rng.randint(1, 900)), "partition": n % 2} for n in range(600))
    write(source, topic, records, **{"compression.type": codec, "linger.ms": 50})
    copy = Copy(source, target, alias, topic)
    copy.once()
    assert read(target, copy.remote, 2) == read(source, topic, 2)


def with_a_large_record(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> Copy:
    make_topic(source, topic)
    make_topic(target, f"{alias}.{topic}", max_message_bytes="2000")
    records = [{"value": f"{n}".encode() * 100, "partition": n % 2} for n in range(20)]
    records[6] = {"value": b"x" * 5000, "partition": 0}
    records[19] = {"value": b"x" * 5000, "partition": 1}
    write(source, topic, records, **{"linger.ms": 50})
    return Copy(source, target, alias, topic)


def test_a_record_too_large_for_the_target_stops_its_partition_with_a_sentence(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    copy = with_a_large_record(source, target, topic, alias)
    failure, _other = [str(row.failure) for row in copy.once().partitions]
    assert f"{topic}-0: the batch at offset 3 was refused: its one record needs 50" in failure
    assert f"{copy.remote} on the target takes at most 2000 (max.message.bytes)" in failure
    assert "errors.tolerance=all" in failure
    assert [len(records) for _p, records in sorted(read(target, copy.remote, 2).items())] == [3, 9]
    assert copy.committed()[TopicPartition(topic, 0)] == 2


def test_a_record_too_large_for_the_target_can_be_left_out(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    copy = with_a_large_record(source, target, topic, alias)
    copy.once()
    report = copy.once(tolerates_too_large=True)
    assert [row.skipped_records for row in report.partitions] == [1, 1]
    written = read(source, topic, 2)
    del written[0][3], written[1][9]
    assert read(target, copy.remote, 2) == written
    assert copy.committed() == {TopicPartition(topic, p): 9 for p in range(2)}
