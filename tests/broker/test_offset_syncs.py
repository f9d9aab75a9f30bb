"""Where records went is told exactly: the runs in the offset syncs of real copies, compared with both logs."""

from __future__ import annotations

import random

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_spec import SyncsSpec
from heliograph.kafka.topics.topic_reader import LogTail
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.model import TopicPartition
from heliograph.wire.records.mirror_records import decode_offset_sync
from tests.support.clusters.clients import (
    admin_of,
    make_topic,
    read_with_offsets,
    transactional_producer,
    wait_for_markers,
    write,
)
from tests.support.runs.copying import Copy, HandLease, cluster_spec, wait_for

pytestmark = pytest.mark.broker

COMMITTED = {"isolation.level": "read_committed"}


def syncs_on(cluster: EmbeddedCluster, alias: str, lag_max: int = 100) -> SyncsSpec:
    topic = f"mm2-offset-syncs.{alias}.internal"
    make_topic(cluster, topic, 1, cleanup_policy="compact")
    return SyncsSpec(cluster_spec(alias, cluster), topic, lag_max)


def known_from(cluster: EmbeddedCluster, syncs: SyncsSpec) -> OffsetMap:
    admin = admin_of(cluster)
    known = OffsetMap()
    for record in LogTail(admin, TopicPartition(syncs.topic, 0)).read_new():
        sync = decode_offset_sync(record.key, record.value, record.headers)
        assert sync is not None
        known.take(sync)
    admin.close()
    return known


def assert_exact(copy: Copy, known: OffsetMap) -> None:
    """Every position of a group is translated to its next unread record, or to nothing before it but markers."""
    for cluster, topic in ((copy.source, copy.topic), (copy.target, copy.remote)):
        wait_for_markers(cluster, topic, copy.partitions)
    written = read_with_offsets(copy.source, copy.topic, copy.partitions, **COMMITTED)
    copied = read_with_offsets(copy.target, copy.remote, copy.partitions, **COMMITTED)
    for p in range(copy.partitions):
        upstream, downstream = written[p], copied[p]
        assert [record for _, record in upstream] == [record for _, record in downstream]
        pairs = [(u, d) for (u, _), (d, _) in zip(upstream, downstream, strict=True)]
        at = 0
        for position in range(pairs[0][0], pairs[-1][0] + 2):
            while at < len(pairs) and pairs[at][0] < position:
                at += 1
            translated = known.translate(TopicPartition(copy.topic, p), position)
            assert translated is not None
            next_unread = pairs[at][1] if at < len(pairs) else pairs[-1][1] + 1
            last_read = pairs[at - 1][1] if at else -1
            assert last_read < translated <= next_unread, (p, position)


def write_transactions(cluster: EmbeddedCluster, topic: str, name: str, count: int, seed: int) -> None:
    """Committed and aborted transactions of random length: gaps in the offsets a consumer sees."""
    chance = random.Random(seed)
    producer = transactional_producer(cluster, name)
    for number in range(count):
        producer.begin_transaction()
        for n in range(chance.randint(1, 40)):
            producer.produce(topic, f"{number}-{n}".encode(), partition=n % 2)
        producer.flush()  # an abort would take back what has not left yet: no gap, and now and then a fatal error
        producer.abort_transaction() if chance.random() < 0.3 else producer.commit_transaction()
    wait_for_markers(cluster, topic, 2)


@pytest.mark.parametrize("location", ["source", "target"])
def test_transactions_at_the_source_are_translated_exactly(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, location: str
) -> None:
    make_topic(source, topic)
    write_transactions(source, topic, alias, 40, seed=3)
    holder = source if location == "source" else target
    syncs = syncs_on(holder, alias)
    copy = Copy(source, target, alias, topic)
    copy.once(syncs=syncs)
    assert_exact(copy, known_from(holder, syncs))


def test_exactly_once_tells_only_what_is_committed(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write_transactions(source, topic, alias, 20, seed=4)
    syncs = syncs_on(source, alias)
    copy = Copy(source, target, alias, topic)
    lease = HandLease()
    join = copy.background(lease, syncs=syncs, transactional_id=f"{alias}-mm2-0", commit_interval_ms=100)
    for n in range(5):
        write_transactions(source, topic, f"{alias}-{n}", 4, seed=5 + n)
    wait_for(
        lambda: (
            lease.reports
            and all((row.log_end or 9**9) - (row.next_offset or 0) <= 1 for row in lease.reports[-1].partitions)
        )
    )
    lease.stop_reason = "test"
    join()
    copy.once(syncs=syncs, transactional_id=f"{alias}-mm2-0")
    assert_exact(copy, known_from(source, syncs))


def test_a_run_goes_on_over_a_restart(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
    make_topic(source, topic)
    syncs = syncs_on(source, alias, lag_max=10**9)
    copy = Copy(source, target, alias, topic)
    for _round in range(3):
        write(source, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(1000)))
        copy.once(syncs=syncs)
    assert [source_offsets.run_count for source_offsets in copy.source_offsets().values()] == [1500, 1500]
    known = known_from(source, syncs)
    assert_exact(copy, known)
    assert [len(runs) for runs in known._runs.values()] == [1, 1]


def test_a_sync_topic_that_is_missing_does_not_stop_the_copy(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(1000)))
    syncs = SyncsSpec(cluster_spec(alias, source), f"mm2-offset-syncs.{alias}.internal")
    copy = Copy(source, target, alias, topic)
    lease = HandLease()
    join = copy.background(lease, syncs=syncs)
    wait_for(lambda: lease.reports and sum(row.records for row in lease.reports[-1].partitions) == 1000)
    wait_for(lambda: any("offset syncs" in words for words in lease.reports[-1].issue))
    make_topic(source, syncs.topic, 1, cleanup_policy="compact")
    wait_for(lambda: not lease.reports[-1].issue)
    lease.stop_reason = "test"
    join()
    assert_exact(copy, known_from(source, syncs))
