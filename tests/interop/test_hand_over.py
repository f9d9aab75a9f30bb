"""A flow changes hands between Heliograph and Java MM2 under a producer that never rests: none missing, none twice.

Its groups change hands with it: checkpoints go on from the other's, never back, ours exact again behind the change.
Each moves the group on the target that the other has moved before.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Producer

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import TopicPartition
from tests.interop.gateway import Java
from tests.interop.java_mm2 import JavaMirrorMaker, small_cluster_lines
from tests.interop.translating import commit_groups
from tests.support.clusters.clients import admin_of, make_topic, read
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, write_file

pytestmark = pytest.mark.spark

PARTITIONS = 3
_RECORDS_PER_TURN = 300


class Writer:
    """Writes numbered records to a topic until told to stop; a source that never rests."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 2})
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.written = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Write no more; what was written is on the cluster."""
        self._stopping.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._stopping.wait(0.01):
            for _ in range(3):
                headers = [("number", b"%d" % self.written)]
                partition = self.written % PARTITIONS
                self._producer.produce(
                    self._topic, b"%08d" % self.written, key=b"k", partition=partition, headers=headers
                )
                self.written += 1
            self._producer.poll(0)
        self._producer.flush()


def end_of(cluster: EmbeddedCluster, topic: str) -> int:
    admin = admin_of(cluster)
    try:
        if admin.view([topic]).partition_counts.get(topic) != PARTITIONS:
            return 0
        return sum(admin.end_offsets([TopicPartition(topic, p) for p in range(PARTITIONS)]).values())
    finally:
        admin.close()


def committed(target: EmbeddedCluster, alias: str) -> dict[TopicPartition, int]:
    """The next source offset of each partition, by what is committed on the target."""
    admin = admin_of(target)
    offsets = read_offsets(admin, f"mm2-offsets.{alias}.internal", "MirrorSourceConnector", alias)
    admin.close()
    return {tp: source_offsets.offset + 1 for tp, source_offsets in offsets.items()}


class Readers:
    """A group on the source, and where Java's client says it goes on on the target."""

    def __init__(self, java: Java, source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str) -> None:
        self._java, self._source, self._target, self._alias, self._group = (
            java,
            source,
            target,
            alias,
            f"{alias}-readers",
        )
        self._tp, self._remote = TopicPartition(topic, 0), TopicPartition(f"{alias}.{topic}", 0)
        self._props = {"bootstrap.servers": target.bootstrap}
        self._utils = java.jvm.org.apache.kafka.connect.mirror.RemoteClusterUtils

    def read_up_to(self, position: int) -> None:
        commit_groups(self._source, {self._group: {self._tp: position}})

    def read_what_was_copied(self, target: EmbeddedCluster) -> int:
        """Read as far as the copy is; returns where the group is then."""
        admin = admin_of(target)
        position = admin.end_offsets([self._remote])[self._remote]
        admin.close()
        self.read_up_to(position)
        return position

    @property
    def translated(self) -> int:
        """-1 while there is no checkpoint."""
        if f"{self._alias}.checkpoints.internal" not in self._utils.checkpointTopics(self._props):
            return -1
        found = self._utils.translateOffsets(self._props, self._alias, self._group, self._java.seconds(60))
        at = found.get(self._java.tp(*self._remote))
        return -1 if at is None else at.offset()

    @property
    def offset_there(self) -> int | None:
        """The group's offset on the target, which only group sync sets."""
        admin = admin_of(self._target)
        offsets = GroupAdmin(admin).committed_answered([self._group]).of.get(self._group, {})
        admin.close()
        found = offsets.get(self._remote)
        return None if found is None else found.offset


def test_a_flow_goes_from_us_to_java_and_back_to_us(
    java: Java, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, PARTITIONS)
    remote = f"{alias}.{topic}"
    lines = [
        *small_cluster_lines(alias),
        f"groups={alias}-readers",
        "sync.group.offsets.enabled=true",
        "sync.group.offsets.interval.seconds=1",
    ]
    file = write_file(tmp_path, source, target, alias, topic, *lines)
    readers = Readers(java, source, target, alias, topic)
    ends = [0]

    def wait_for_a_turn() -> None:
        wait_for(lambda: end_of(target, remote) >= ends[-1] + _RECORDS_PER_TURN)

    def stop_under_load(copier: Running | JavaMirrorMaker) -> None:
        copier.stop()
        ends.append(end_of(target, remote))
        source_offsets = committed(target, alias)
        assert sum(source_offsets.values()) == ends[-1], (
            f"{source_offsets}: not all of it is committed. {copier.output()}"
        )

    with Writer(source, topic) as writer:
        with Running(file) as copier:
            wait_for_a_turn()
            readers.read_up_to(50)
            wait_for(lambda: readers.translated == readers.offset_there == 50)
            stop_under_load(copier)
        with JavaMirrorMaker(file) as copier:
            wait_for_a_turn()
            # Java translates only what follows the newest sync that it found at its start, whenever that was.
            wait_for(lambda: readers.read_what_was_copied(target) and readers.translated > 50)
            position = readers.read_what_was_copied(target)
            assert readers.translated <= position, "Java passes an unread record"
            wait_for(lambda: (readers.offset_there or 0) > 50)
            stop_under_load(copier)
        assert writer.written > ends[-1], "the producer rested"
        with Running(file) as copier:
            wait_for_a_turn()
            position = ends[-1] // PARTITIONS + 50
            readers.read_up_to(position)
            wait_for(lambda: readers.translated == readers.offset_there == position)
            writer.stop()
            wait_for(lambda: end_of(target, remote) >= writer.written)
            assert copier.stop() == 0
    assert read(target, remote, PARTITIONS) == read(source, topic, PARTITIONS)
    print(f"{writer.written} records; the target's end after each of the first two turns: {ends[1:]}")
