"""The copy loop between real brokers: everything arrives unchanged, progress is kept, nothing is lost in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as KafkaTopicPartition

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.request_options import READ_UNCOMMITTED, ProduceLimits
from heliograph.kafka.topics.topic_reader import read_chunk
from heliograph.model import ChangeActions, SourceOffset, TopicPartition
from heliograph.status.losses import LossCause
from heliograph.wire.batches.forward import ForwardOptions, prepare
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import Copy, HandLease, wait_for

pytestmark = pytest.mark.broker


def odd_records(count: int = 200) -> Iterator[dict[str, object]]:
    """Records of every shape: null keys and values, tombstones, repeated headers, null and empty header values."""
    for n in range(count):
        yield {
            "key": None if n % 5 == 0 else f"key-{n}".encode(),
            "value": None if n % 7 == 0 else (b"" if n % 11 == 0 else f"value-{n}".encode() * (n % 40)),
            "headers": [("h", b"1"), ("a", None), ("h", b"2"), ("e", b""), ("ü", b"\x00\xff")][: n % 6],
            "timestamp": 1_700_000_000_000 + n * 37 % 1000,
            "partition": n % 2,
        }


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_part_of_a_record_arrives_unchanged(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, codec: str
) -> None:
    make_topic(source, topic)
    write(source, topic, odd_records(), **{"compression.type": codec})
    copy = Copy(source, target, alias, topic)
    report = copy.once()
    assert [row.failure for row in report.partitions] == [None, None]
    assert sum(row.records for row in report.partitions) == 200
    written = read(source, topic, 2)
    assert read(target, copy.remote, 2) == written
    assert sum(map(len, written.values())) == 200
    assert codecs_of(target, copy.remote) == codecs_of(source, topic)


def codecs_of(cluster: EmbeddedCluster, topic: str) -> set[int]:
    """Not how many batches have each: a slow producer makes more, and small ones are merged."""
    admin = admin_of(cluster)
    codecs = set()
    for p in range(2):
        data = read_chunk(admin, TopicPartition(topic, p), 0, READ_UNCOMMITTED)
        assert data.records is not None
        pieces, _next, error, _epochs = prepare(
            memoryview(bytearray(data.records)), 0, (), ForwardOptions(merge_below_bytes=0)
        )
        assert error is None
        codecs |= {piece.view[22] & 7 for piece in pieces}
    admin.close()
    return codecs


def test_a_restart_goes_on_where_the_last_run_stopped(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    for _round in range(3):
        write(source, topic, odd_records(50))
        copy.once()
    assert read(target, copy.remote, 2) == read(source, topic, 2)
    assert copy.committed() == {TopicPartition(topic, p): 74 for p in range(2)}


def test_a_stopped_copy_has_committed_all_it_wrote(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    lease = HandLease()
    join = copy.background(lease, commit_interval_ms=600_000)
    write(source, topic, odd_records(100))
    wait_for(lambda: sum(map(len, read(target, copy.remote, 2).values())) == 100)
    lease.stop_reason = "test"
    report = join()
    assert copy.committed() == {row.tp: (row.next_offset or 0) - 1 for row in report.partitions}
    assert {row.next_offset for row in report.partitions} == {50}


def test_a_partition_is_taken_over_while_running(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, odd_records(100))
    copy = Copy(source, target, alias, topic)
    both = copy.spec(once=False).partitions
    lease = HandLease()
    join = copy.background(lease, partitions=both[:1])
    wait_for(lambda: len(read(target, copy.remote, 2).get(0, [])) == 50)
    assert 1 not in read(target, copy.remote, 2)
    lease.assignment = both
    wait_for(lambda: read(target, copy.remote, 2) == read(source, topic, 2))
    lease.stop_reason = "test"
    join()


def test_without_progress_latest_begins_at_the_end(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, odd_records(100))
    copy = Copy(source, target, alias, topic)
    lease = HandLease()
    join = copy.background(lease, offset_reset="latest")
    wait_for(lambda: lease.reports and [row.next_offset for row in lease.reports[-1].partitions] == [50, 50])
    write(source, topic, odd_records(10))
    wait_for(lambda: sum(map(len, read(target, copy.remote, 2).values())) == 10)
    lease.stop_reason = "test"
    join()


def test_a_small_buffer_only_makes_it_slower(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, ({"value": bytes([n % 256]) * 50_000, "partition": n % 2} for n in range(200)))
    copy = Copy(source, target, alias, topic)
    copy.once(buffer_bytes=1 << 20)
    assert read(target, copy.remote, 2) == read(source, topic, 2)


def test_several_connections_per_broker_keep_the_order(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(
        source, topic, ({"value": f"{n}".encode(), "partition": n % 2} for n in range(20_000)), **{"batch.size": 2000}
    )
    copy = Copy(source, target, alias, topic)
    copy.once(produce_limits=ProduceLimits(lanes=2))
    assert read(target, copy.remote, 2) == read(source, topic, 2)


def failures_of(copy: Copy) -> list[str]:
    return [row.failure for row in copy.once().partitions if row.failure]


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    client.delete_records({KafkaTopicPartition(topic, p): offset for p in range(2)})
    client.close()


def test_records_gone_from_the_source_are_told_and_counted(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    for _batch in range(3):
        write(source, topic, odd_records(20))
        if _batch == 0:
            copy.once()
    delete_before(source, topic, 20)
    report = copy.once()
    assert [row.lost_offsets for row in report.partitions] == [10, 10]
    assert any("offsets 10 to 19 are gone from the source" in event.message for event in report.events)
    assert [len(records) for records in read(target, copy.remote, 2).values()] == [20, 20]


def test_records_gone_from_the_source_can_stop_their_partition(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    copy = Copy(source, target, alias, topic)
    write(source, topic, odd_records(20))
    copy.once()
    write(source, topic, odd_records(40))
    delete_before(source, topic, 20)
    report = copy.once(ChangeActions(truncation="fail"))
    assert "offsets 10 to 19 are gone from the source" in str(report.partitions[0].failure)
    found = {(loss.cause, loss.first_offset, loss.last_offset, loss.count) for loss in report.losses}
    assert (len(report.losses), found) == (2, {(LossCause.SOURCE_TRUNCATED, 10, 19, 10)}), (
        "a restart may leave them out"
    )
    assert [len(records) for records in read(target, copy.remote, 2).values()] == [10, 10]


def test_a_topic_created_again_stops_with_a_sentence(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, odd_records(20))
    copy = Copy(source, target, alias, topic)
    copy.once()
    client = KafkaAdminClient(bootstrap_servers=source.bootstrap)
    client.delete_topics([topic])
    client.close()
    wait_for(lambda: topic not in admin_of(source).view().partition_counts)
    make_topic(source, topic)
    failures = failures_of(copy)
    assert "the topic has another id than before" in failures[0]
    assert "heliograph.on.recreated=restart" in failures[0]
    write(source, topic, odd_records(40))
    report = copy.once(ChangeActions(recreated="restart"))
    assert any("copying it from its start" in event.message for event in report.events)
    assert [len(records) for records in read(target, copy.remote, 2).values()] == [30, 30]


def test_a_log_shorter_than_our_position_is_told_where_topics_have_no_ids(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, odd_records(20))
    copy = Copy(source, target, alias, topic)
    spec = copy.spec()
    ahead = tuple(replace(p, source_offsets=SourceOffset(p.tp, 99)) for p in spec.partitions)
    failures = [row.failure for row in copy.once(partitions=ahead).partitions]
    assert "the source's log ends at offset 10, before our position 100" in str(failures[0])
