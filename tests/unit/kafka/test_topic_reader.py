"""Followed topics that are deleted and created again, against scripted brokers."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from kafka.protocol.metadata import MetadataRequest

from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.topics.compacted_topic import StoredTopic
from heliograph.kafka.topics.topic_reader import LogTail
from heliograph.model import TopicPartition
from heliograph.wire.batches.log_records import LogRecord
from tests.support.brokers.batches import Record, encode
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.support.brokers.scripted_log import ScriptedLog

TOPIC = "syncs"
WITHOUT_IDS = 9  # the newest Metadata of brokers before Kafka 2.8


@pytest.fixture
def brokers() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(topics={TOPIC: 2}) as cluster:
        yield cluster


@pytest.fixture
def admin(brokers: ScriptedCluster) -> Iterator[Admin]:
    made = Admin("A", brokers.bootstrap, Security(), "test", timeout_s=5.0)
    yield made
    made.close()


@pytest.fixture
def tail(admin: Admin) -> LogTail:
    return LogTail(admin, TopicPartition(TOPIC, 0))


def append(brokers: ScriptedCluster, *values: str, partition: int = 0) -> None:
    for value in values:
        brokers.logs[TOPIC, partition].put(encode([Record(b"k", value.encode(), (), 1_700_000_000_000)]))


def recreate(brokers: ScriptedCluster) -> None:
    for partition in range(2):
        brokers.logs[TOPIC, partition] = ScriptedLog()
    brokers.topic_ids[TOPIC] = UUID(int=99)


def values_of(records: Iterator[LogRecord] | list[LogRecord]) -> list[str]:
    return [bytes(record.value or b"").decode() for record in records]


def test_a_tail_yields_what_is_new(brokers: ScriptedCluster, tail: LogTail) -> None:
    append(brokers, "1", "2")
    assert values_of(tail.read_new()) == ["1", "2"]
    assert values_of(tail.read_new()) == []
    append(brokers, "3")
    assert values_of(tail.read_new()) == ["3"]
    assert tail.recreations == 0


@pytest.mark.parametrize("count", [1, 2, 3], ids=["shorter", "as long", "longer"])
def test_a_recreated_topic_is_read_from_its_beginning(brokers: ScriptedCluster, tail: LogTail, count: int) -> None:
    append(brokers, "old 1", "old 2")
    assert len(list(tail.read_new())) == 2
    recreate(brokers)
    new = [f"new {number}" for number in range(count)]
    append(brokers, *new)
    assert values_of(tail.read_new()) == new
    assert tail.recreations == 1
    assert values_of(tail.read_new()) == []
    assert tail.recreations == 1


def test_without_topic_ids_a_shorter_log_is_a_recreated_one(brokers: ScriptedCluster, tail: LogTail) -> None:
    brokers.newest[MetadataRequest] = WITHOUT_IDS
    append(brokers, "old 1", "old 2")
    assert len(list(tail.read_new())) == 2
    recreate(brokers)
    append(brokers, "new")
    assert values_of(tail.read_new()) == ["new"]
    assert tail.recreations == 1


def test_all_partitions_of_a_recreated_topic_are_read_again_together(brokers: ScriptedCluster, admin: Admin) -> None:
    topic = StoredTopic(admin, TOPIC)
    append(brokers, "old 1", "old 2")
    append(brokers, "old 3", partition=1)
    assert values_of(topic.read_new()) == ["old 1", "old 2", "old 3"]
    recreate(brokers)
    append(brokers, "new 1")
    append(brokers, "new 2", "new 3", partition=1)
    assert values_of(topic.read_new()) == ["new 1", "new 2", "new 3"]
    assert topic.recreations == 1
