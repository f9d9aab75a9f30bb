"""Share groups (KIP-932) move between real clusters: Java's share consumers continue, and lose nothing."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from heliograph.cli.main import cli
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.embedded.jars import broker_jars, ensure_jars
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.admin.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from heliograph.model import CommittedOffset, GroupType, TopicPartition
from tests.broker.test_checkpoints import Lab
from tests.broker.test_copy import delete_before
from tests.interop.gateway import Java
from tests.support.clusters.clients import admin_of, write
from tests.support.runs.copying import wait_for

pytestmark = pytest.mark.broker

GONE = 30  # so many records at the beginning of each partition were never copied: offsets differ by as many
_STRINGS = "org.apache.kafka.common.serialization.StringDeserializer"


class Got(NamedTuple):
    """A record as a share consumer got it."""

    partition: int
    offset: int
    value: str


class ShareLab(Lab):
    """A flow whose source has lost its first records before they were copied, and one share group."""

    def __init__(self, java: Java, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
        super().__init__(source, target, topic, alias)
        self.java, self.group, self.written = java, f"{alias}-sharing", 0
        self.lines = [f"topics = {topic}", f"groups = {alias}-.*"]

    def prepare(self, folder: Path) -> CheckpointSync:
        """Hundred records in each partition, of which 30 are gone, and the group at the beginning of the others."""
        self.file = folder / "mm2.properties"
        self.file.write_text(self.text())
        for _batch in range(10):  # share groups acquire whole batches
            self.write_on(20)
        delete_before(self.source, self.topic, GONE)
        sync = self.checkpoint_sync()
        self.replicate()
        self.set_starts(self.source, self.topic, {0: GONE, 1: GONE})
        return sync

    def write_on(self, count: int) -> None:
        """Write a batch of records; each has its number as its value."""
        first, self.written = self.written, self.written + count
        write(
            self.source,
            self.topic,
            ({"value": b"%d" % n, "partition": n % 2} for n in range(first, first + count)),
        )

    def text(self) -> str:
        aliases = ((self.flow.source, self.source), (self.flow.target, self.target))
        servers = [f"{alias}.bootstrap.servers = {cluster.bootstrap}" for alias, cluster in aliases]
        enabled = [f"clusters = {self.flow.source}, {self.flow.target}", f"{self.flow}.enabled = true"]
        return "\n".join([*enabled, *servers, "sync.group.offsets.enabled = true", *self.lines])

    def set_starts(self, cluster: EmbeddedCluster, topic: str, starts: dict[int, int]) -> None:
        offsets = {TopicPartition(topic, p): CommittedOffset(start) for p, start in starts.items()}
        admin = admin_of(cluster)
        wait_for(lambda: GroupAdmin(admin).set_offsets(self.group, GroupType.SHARE, offsets) == {})
        admin.close()

    def starts(self, cluster: EmbeddedCluster, topic: str) -> dict[int, int]:
        """By Kafka's own tool for administrators."""
        offsets = self._java_starts(cluster)
        return {p: offset for (name, p), offset in offsets.items() if name == topic}

    def _java_starts(self, cluster: EmbeddedCluster) -> dict[tuple[str, int], int]:
        jvm = self.java.jvm
        with self.java_admin(cluster) as admin:
            spec = jvm.org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec()
            asked = jvm.java.util.HashMap()
            asked.put(self.group, spec)
            found = admin.listShareGroupOffsets(asked).partitionsToOffsetInfo(self.group).get()
            return {
                (e.getKey().topic(), e.getKey().partition()): e.getValue().startOffset() for e in each(found.entrySet())
            }

    @contextmanager
    def java_admin(self, cluster: EmbeddedCluster) -> Iterator[Any]:
        properties = self.java.jvm.java.util.Properties()
        properties.put("bootstrap.servers", cluster.bootstrap)
        admin = self.java.call("org.apache.kafka.clients.admin.Admin", "create", properties)
        try:
            yield admin
        finally:
            admin.close()

    def delete_share_group(self, cluster: EmbeddedCluster) -> None:
        with self.java_admin(cluster) as admin:
            admin.deleteShareGroups([self.group]).all().get()

    @contextmanager
    def consumer(self, cluster: EmbeddedCluster, topic: str, most: int = 500) -> Iterator[Any]:
        """A share consumer that acknowledges what it is told to."""
        jvm = self.java.jvm
        properties = jvm.java.util.Properties()
        for key, value in {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": self.group,
            "key.deserializer": _STRINGS,
            "value.deserializer": _STRINGS,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": str(most),
        }.items():
            properties.put(key, value)
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaShareConsumer(properties)
        consumer.subscribe([topic])
        try:
            yield consumer
        finally:
            consumer.close()

    def consume(self, cluster: EmbeddedCluster, topic: str, count: int, most: int = 500) -> list[Got]:
        """Acknowledge at least so many records, each batch by itself; what is acknowledged."""
        got: list[Got] = []
        accept = self.java.jvm.org.apache.kafka.clients.consumer.AcknowledgeType.ACCEPT
        with self.consumer(cluster, topic, most) as consumer:

            def has_enough() -> bool:
                for record in each(consumer.poll(self.java.seconds(1))):
                    got.append(Got(record.partition(), record.offset(), record.value()))
                    consumer.acknowledge(record, accept)
                consumer.commitSync()
                return len(got) >= count

            wait_for(has_enough)
        return got

    def heliograph(self, *words: str, code: int) -> Any:
        result = CliRunner().invoke(cli, [words[0], str(self.file), *words[1:], "--json"])
        assert result.exit_code == code, (result.output, result.exception)
        return json.loads(result.output)


def each(iterable: Any) -> Iterator[Any]:
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


@pytest.fixture
def lab(java: Java, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> ShareLab:
    return ShareLab(java, source, target, topic, alias)


@pytest.fixture
def sync(lab: ShareLab, tmp_path: Path) -> Iterator[CheckpointSync]:
    with ExitStack() as stack:
        yield stack.enter_context(closing(lab.prepare(tmp_path)))


def round_of(sync: CheckpointSync) -> list[str]:
    return [*sync.refresh_groups(), *sync.emit(), *sync.sync_groups()]


def in_source(got: list[Got]) -> list[tuple[int, int, str]]:
    """Records of the copy with the offsets they have on the source."""
    return [(partition, offset + GONE, value) for partition, offset, value in got]


def test_a_share_group_continues_on_the_target_and_loses_nothing(lab: ShareLab, sync: CheckpointSync) -> None:
    done = lab.consume(lab.source, lab.topic, 60, most=5)
    before = lab.starts(lab.source, lab.topic)
    assert any(start > GONE for start in before.values()), "the group has got on"
    assert round_of(sync) == []
    assert lab.starts(lab.target, lab.remote) == {p: start - GONE for p, start in before.items()}
    assert lab.checkpoints() == []
    left = sum(100 - start for start in before.values())
    got = in_source(lab.consume(lab.target, lab.remote, left))
    assert {*done, *got} == {(p, n, str(2 * n + p)) for p in range(2) for n in range(GONE, 100)}, "none is lost"
    assert all(offset >= before[p] for p, offset, _value in got), "none from before the start offset comes again"


def test_a_share_group_that_has_done_all_gets_only_what_is_new(lab: ShareLab, sync: CheckpointSync) -> None:
    lab.consume(lab.source, lab.topic, 140, most=20)
    wait_for(lambda: round_of(sync) == [] and lab.starts(lab.target, lab.remote) == {0: 70, 1: 70})
    lab.write_on(10)
    lab.replicate()
    got = lab.consume(lab.target, lab.remote, 10)
    assert sorted(got) == [(p, 70 + n, str(200 + 2 * n + p)) for p in range(2) for n in range(5)]


def test_a_share_group_moves_by_the_commands_and_goes_home(lab: ShareLab, sync: CheckpointSync) -> None:
    lab.set_starts(lab.source, lab.topic, {0: 50, 1: 60})
    (flow,) = lab.heliograph("groups", code=0)["flows"]
    assert {(row["type"], row["partition"], row["translated_offset"]) for row in flow["groups"]} == {
        ("share", 0, 20),
        ("share", 1, 30),
    }
    (dry,) = lab.heliograph("failover", "--all", "--dry-run", code=0)["groups"]
    assert (dry["moved"], lab.starts(lab.target, lab.remote)) == (True, {})
    (moved,) = lab.heliograph("failover", "--all", code=0)["groups"]
    assert (moved["moved"], moved["partitions"]) == (True, dry["partitions"])
    assert lab.starts(lab.target, lab.remote) == {0: 20, 1: 30}
    lab.set_starts(lab.target, lab.remote, {0: 40})
    lab.heliograph("failback", "--group", lab.group, code=0)
    assert lab.starts(lab.source, lab.topic) == {0: 70, 1: 60}
    assert round_of(sync) == []
    assert lab.starts(lab.target, lab.remote) == {0: 40, 1: 30}


def test_a_share_group_with_members_on_the_target_is_left_to_them(lab: ShareLab, sync: CheckpointSync) -> None:
    lab.set_starts(lab.source, lab.topic, {0: 50, 1: 60})
    lab.set_starts(lab.target, lab.remote, {0: 5, 1: 5})
    with lab.consumer(lab.target, lab.remote) as consumer:
        wait_for(lambda: not consumer.poll(lab.java.seconds(1)).isEmpty())
        assert round_of(sync) == []
        (refused,) = lab.heliograph("failover", "--all", code=1)["groups"]
        assert refused["refused"] == "it has active members there (Stable); stop them first"
        assert lab.starts(lab.target, lab.remote) == {0: 5, 1: 5}
    wait_for(lambda: round_of(sync) == [] and lab.starts(lab.target, lab.remote) == {0: 20, 1: 30})


def test_a_share_group_with_the_name_of_a_followed_consumer_group(lab: ShareLab, sync: CheckpointSync) -> None:
    lab.delete_share_group(lab.source)
    lab.commit(lab.group, {0: 50})
    lab.set_starts(lab.target, lab.remote, {0: 20})
    (issue,) = round_of(sync)
    assert f"the consumer group '{lab.group}' is not moved: '{lab.flow.target}' has a share group of this name" in issue
    assert round_of(sync) == [issue], "the same sentence, so that it is logged once"
    (row,) = lab.heliograph("groups", code=0)["flows"][0]["groups"]
    assert row["why_not"] in issue
    dry = lab.heliograph("failover", "--all", "--dry-run", code=1)["groups"]
    assert dry == lab.heliograph("failover", "--all", code=1)["groups"]
    assert dry[0]["refused"] == row["why_not"]
    lab.delete_share_group(lab.target)
    assert round_of(sync) == []
    assert lab.on_target(lab.group) == {0: 20}


def test_a_consumer_group_with_the_name_of_a_followed_share_group(lab: ShareLab, sync: CheckpointSync) -> None:
    lab.commit(lab.group, {0: 7}, on_target=True)
    (issue,) = round_of(sync)
    assert f"the share group '{lab.group}' is not moved: '{lab.flow.target}' has a consumer group" in issue
    dry = lab.heliograph("failover", "--all", "--dry-run", code=1)["groups"]
    assert dry == lab.heliograph("failover", "--all", code=1)["groups"]
    assert lab.on_target(lab.group) == {0: 7}


@pytest.mark.parametrize(
    "message",
    [
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsResponse,
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsResponse,
    ],
)
def test_our_messages_are_those_of_kafka(message: Any) -> None:
    (jar,) = ensure_jars(broker_jars()).glob("kafka-clients-*.jar")
    with zipfile.ZipFile(jar) as clients:
        text = clients.read(f"common/message/{message.name}.json").decode()
    lines = (line for line in text.splitlines() if not line.strip().startswith("//"))
    assert bare(message.json) == bare(json.loads("\n".join(lines)))


def bare(part: Any) -> Any:
    """A schema without what only people and generators of code read."""
    if isinstance(part, dict):
        unused = ("about", "entityType", "listeners", "doc", "license")
        return {name: bare(value) for name, value in part.items() if name not in unused}
    return [bare(each_part) for each_part in part] if isinstance(part, list) else part
