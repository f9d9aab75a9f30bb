"""Topics in the message formats of before Kafka 0.11 (magic 0 and 1) arrive as equal records on the newest Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.kafka.request_options import READ_UNCOMMITTED
from heliograph.kafka.topics.topic_reader import read_chunk
from heliograph.model import TopicPartition
from tests.conftest import KEEP_RECORDS
from tests.support.clusters.clients import Seen, admin_of, make_topic, read, write
from tests.support.runs.copying import Copy, wait_for

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    name = f"test-{os.getpid()}-oldest"
    cluster = start_cluster(name, data=tmp_path_factory.mktemp("oldest"), version="1.1.1", config=KEEP_RECORDS)
    try:
        yield cluster
    finally:
        cluster.stop()
        forget_cluster(name)


def plain_records(count: int = 200) -> Iterator[dict[str, object]]:
    """Records of every shape that these formats can hold: there are no headers."""
    for n in range(count):
        yield {
            "key": None if n % 5 == 0 else f"key-{n}".encode(),
            "value": None if n % 7 == 0 else (b"" if n % 11 == 0 else f"value-{n}".encode() * (n % 40)),
            "timestamp": 1_700_000_000_000 + n * 37 % 1000,
            "partition": n % 2,
        }


def magics_of(cluster: EmbeddedCluster, topic: str, *, at_end: bool = False) -> set[int]:
    """Which formats the first (or last) entries of the topic's partitions have on the wire."""
    admin = admin_of(cluster)
    tps = [TopicPartition(topic, p) for p in range(2)]
    offsets = {tp: end - 1 for tp, end in admin.end_offsets(tps).items()} if at_end else dict.fromkeys(tps, 0)
    fetched = [read_chunk(admin, tp, offset, READ_UNCOMMITTED) for tp, offset in offsets.items()]
    admin.close()
    return {data.records[16] for data in fetched if data.records is not None}


def without_timestamps(records: dict[int, list[Seen]]) -> dict[int, list[tuple[bytes | None, bytes | None]]]:
    return {p: [(r.key, r.value) for r in seen] for p, seen in records.items()}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize(("version", "magic"), [("0.10.0", 1), ("0.9.0", 0)])
def test_records_of_an_old_format_arrive_equal(
    oldest: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, version: str, magic: int, codec: str
) -> None:
    make_topic(oldest, topic, message_format_version=version)
    write(oldest, topic, plain_records(), **{"compression.type": codec})
    assert magics_of(oldest, topic) == {magic}
    copy = Copy(oldest, target, alias, topic)
    copy.once()
    written, arrived = read(oldest, topic, 2), read(target, copy.remote, 2)
    assert without_timestamps(arrived) == without_timestamps(written)
    assert sum(map(len, arrived.values())) == 200
    if magic == 1:  # magic 0 has no timestamps
        assert arrived == written
    assert copy.committed() == {TopicPartition(topic, p): 99 for p in range(2)}


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")  # 1.1 does not know what replaced it
def test_a_topic_whose_format_was_raised_arrives_in_order(
    oldest: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(oldest, topic, message_format_version="0.10.0")
    write(oldest, topic, plain_records(), **{"compression.type": "gzip"})
    client = AdminClient({"bootstrap.servers": oldest.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"message.format.version": "1.1"})
    client.alter_configs([resource])[resource].result(120)

    def is_raised() -> bool:
        write(oldest, topic, plain_records(), **{"compression.type": "gzip"})
        return magics_of(oldest, topic, at_end=True) == {2}

    wait_for(is_raised)
    assert magics_of(oldest, topic) == {1}
    copy = Copy(oldest, target, alias, topic)
    copy.once()
    written = read(oldest, topic, 2)
    assert sum(map(len, written.values())) >= 400
    assert read(target, copy.remote, 2) == written
