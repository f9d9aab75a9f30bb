"""Java's own translation of group positions, and how far from the truth a translation is.

    with java_copying(folder, source, target, alias, tp):
        write_records_with_gaps()
    positions = random.sample(range(end), 1000)
    translated = java_translations(java, source, target, alias, tp, positions)
    print(judge(pairs_of(source, target, tp, remote), translated))

Java's `MirrorCheckpointTask` does the work, with real groups on the source: what the checkpoint connector runs, without
a Connect worker around it. It reads whatever offset syncs are there: Java's or ours.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from heliograph.config.effective.mirror_config import SOURCE_CONNECTOR_NAME
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.model import Checkpoint, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint
from tests.interop.gateway import MIRROR, Java
from tests.interop.java_mm2 import JavaMirrorMaker, small_cluster_lines
from tests.support.clusters.clients import admin_of
from tests.support.runs.copying import wait_for
from tests.support.runs.running import write_file

_TIMEOUT_S = 180
_COPY_TIMEOUT_S = 300


# --- the truth --------------------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """What becomes of groups that go on where they were translated to; sums over all of them."""

    groups: int
    exact: int
    untranslated: int
    read: int
    read_again: int
    passed_over: int

    def __str__(self) -> str:
        return (
            f"{self.exact} of {self.groups} groups go on with exactly the next record; {self.read_again} of"
            f" {self.read} records are read again, {self.passed_over} never; {self.untranslated} groups begin anew"
        )


class Pairs(NamedTuple):
    """The offsets of a partition's records on both sides, in order."""

    upstream: list[int]
    downstream: list[int]


def pairs_of(source: EmbeddedCluster, target: EmbeddedCluster, tp: TopicPartition, remote: str) -> Pairs:
    """Where each record of the source is on the target, found by reading both; they must hold the same records."""
    upstream, written = _offsets_and_records(source, tp)
    downstream, copied = _offsets_and_records(target, TopicPartition(remote, tp.partition))
    assert written == copied, f"{remote} does not hold the records of {tp}"
    return Pairs(upstream, downstream)


def _offsets_and_records(cluster: EmbeddedCluster, tp: TopicPartition) -> tuple[list[int], list[int]]:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "truth", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([ClientPartition(*tp, OFFSET_BEGINNING)])
    offsets: list[int] = []
    records: list[int] = []
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        assert time.monotonic() < deadline, f"{tp} did not reach its end"
        for message in consumer.consume(10_000, timeout=1.0):
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                consumer.close()
                return offsets, records
            offsets.append(message.offset())
            records.append(hash((message.key(), message.value(), message.timestamp())))


def judge(pairs: Pairs, translated: dict[int, int | None]) -> Judged:
    """Compare translations (by position on the source; None: the group begins at the start) with the truth."""
    first_unread = {position: bisect_left(pairs.upstream, position) for position in translated}
    goes_on = {position: bisect_left(pairs.downstream, at or 0) for position, at in translated.items()}
    return Judged(
        groups=len(translated),
        exact=sum(goes_on[position] == unread for position, unread in first_unread.items()),
        untranslated=sum(at is None for at in translated.values()),
        read=sum(first_unread.values()),
        read_again=sum(max(0, unread - goes_on[position]) for position, unread in first_unread.items()),
        passed_over=sum(max(0, goes_on[position] - unread) for position, unread in first_unread.items()),
    )


# --- Java's copy and translation -------------------------------------------------------------------------------------


@contextmanager
def java_copying(
    folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, alias: str, tp: TopicPartition
) -> Iterator[None]:
    """Java MM2 copies a topic from its first record on, and until it has committed what then can be read of `tp`.

    Of a backlog Java may tell only the last offset sync; what is written inside this block is copied as it comes.
    """
    committed = f"{alias}.consumer.isolation.level=read_committed"
    # A copy that is compacted as its source is may lose records that the source still has in its last segment.
    uncompacted = "config.properties.exclude=.*"
    lines = [*small_cluster_lines(alias), committed, uncompacted, "target.offset.flush.interval.ms=500"]
    file = write_file(folder, source, target, alias, tp.topic, *lines)
    offsets_topic = f"mm2-offsets.{alias}.internal"
    admin = admin_of(target)

    def has_copied(offset: int) -> bool:
        if offsets_topic not in admin.view([offsets_topic]).partition_counts:
            return False
        source_offsets = read_offsets(admin, offsets_topic, SOURCE_CONNECTOR_NAME, alias).get(tp)
        return source_offsets is not None and source_offsets.offset >= offset

    with JavaMirrorMaker(file) as java:
        wait_for(lambda: has_copied(0) or not java.is_running, _COPY_TIMEOUT_S)
        yield
        last = _offsets_and_records(source, tp)[0][-1]
        wait_for(lambda: has_copied(last) or not java.is_running, _COPY_TIMEOUT_S)
        assert java.is_running, java.output()
        java.stop()
    admin.close()


def java_translations(
    java: Java,
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    alias: str,
    tp: TopicPartition,
    positions: Iterable[int],
    settings: dict[str, str] | None = None,
) -> dict[int, int | None]:
    """Where Java lets groups at those positions of a source partition go on; None where it makes no checkpoint."""
    by_group = {f"{alias}-at-{position}": position for position in positions}
    with groups_at(source, {group: {tp: position} for group, position in by_group.items()}):
        checkpoints = {c.group: c for c in java_checkpoints(java, source, target, alias, list(by_group), settings)}
    found = {position: checkpoints.get(group) for group, position in by_group.items()}
    return {position: None if at is None else at.downstream for position, at in found.items()}


def java_checkpoints(
    java: Java,
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    alias: str,
    groups: list[str],
    settings: dict[str, str] | None = None,
) -> list[Checkpoint]:
    """What Java's checkpoint task would write for these groups; the checkpoints topic must be there."""
    task = java.new(f"{MIRROR}.MirrorCheckpointTask")
    task.start(
        {
            "name": "MirrorCheckpointConnector",
            "connector.class": f"{MIRROR}.MirrorCheckpointConnector",
            "source.cluster.alias": alias,
            "target.cluster.alias": "target",
            "source.cluster.bootstrap.servers": source.bootstrap,
            "target.cluster.bootstrap.servers": target.bootstrap,
            "task.index": "0",
            "task.assigned.groups": ",".join(groups),
            "emit.checkpoints.interval.seconds": "0",
            **(settings or {}),
        }
    )
    try:
        _wait_until_read(java, java.field(task, "offsetSyncStore"))
        return [_decoded(record) for record in task.poll() or ()]
    finally:
        task.stop()


def _wait_until_read(java: Java, store: Any) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not java.field(store, "readToEnd"):
        assert time.monotonic() < deadline, f"Java did not read the offset syncs: {java.log.read_text()}"
        time.sleep(0.05)


def _decoded(record: Any) -> Checkpoint:
    checkpoint = decode_checkpoint(bytes(record.key()), bytes(record.value()))
    assert checkpoint is not None
    return checkpoint


def commit_groups(cluster: EmbeddedCluster, positions: dict[str, dict[TopicPartition, int]]) -> None:
    """Give groups these committed offsets; a coordinator that is still loading is asked again."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    missing = dict(positions)

    def are_all_committed() -> bool:
        asked = [_asked(group, offsets) for group, offsets in missing.items()]
        for answer in [future for one in asked for future in admin.alter_consumer_group_offsets([one]).values()]:
            group = answer.result(_TIMEOUT_S)
            if all(tp.error is None for tp in group.topic_partitions):
                del missing[group.group_id]
        return not missing

    wait_for(are_all_committed)


@contextmanager
def groups_at(cluster: EmbeddedCluster, positions: dict[str, dict[TopicPartition, int]]) -> Iterator[None]:
    """Groups with these committed offsets, as long as they are needed."""
    commit_groups(cluster, positions)
    try:
        yield
    finally:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for deleted in admin.delete_consumer_groups(list(positions)).values():
            deleted.result(_TIMEOUT_S)


def _asked(group: str, offsets: dict[TopicPartition, int]) -> ConsumerGroupTopicPartitions:
    return ConsumerGroupTopicPartitions(group, [ClientPartition(*tp, offset) for tp, offset in offsets.items()])
