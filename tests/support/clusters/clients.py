"""Reads and writes topics with confluent-kafka (librdkafka): an implementation that shares nothing with ours."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from kafka.protocol.admin import UpdateFeaturesRequest, UpdateFeaturesResponse

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.error_codes import INVALID_REPLICATION_FACTOR
from heliograph.kafka.request_options import LATEST, READ_COMMITTED
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import Address, CreateTopic
from heliograph.model import TopicPartition as Tp

_MOMENTARY = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)


class Seen(NamedTuple):
    """What a consumer sees of a record, its offset aside."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: tuple[int, int]


def admin_of(cluster: EmbeddedCluster) -> Admin:
    addresses = tuple(Address("127.0.0.1", broker.port) for broker in cluster.brokers)
    return Admin(cluster.name, addresses, Security(), "test", timeout_s=60)


def make_topic(cluster: EmbeddedCluster, topic: str, partitions: int = 2, factor: int = 1, **configs: str) -> None:
    admin = admin_of(cluster)
    named = tuple((name.replace("_", "."), value) for name, value in configs.items())
    wanted, deadline = [CreateTopic(topic, partitions, factor, named)], time.monotonic() + 120
    while refused := admin.create_topics(wanted):  # an old broker answers before its cluster counts it
        is_early = refused[topic].code == INVALID_REPLICATION_FACTOR and factor <= len(cluster.brokers)
        assert is_early and time.monotonic() < deadline, str(refused[topic])
        time.sleep(0.2)
    assert admin.wait_for_leaders({topic: partitions}) == {}
    admin.close()


def write(cluster: EmbeddedCluster, topic: str, records: Iterable[dict[str, object]], **config: object) -> None:
    """Produce records given as keyword arguments of `Producer.produce`."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5, **config})
    failures: list[object] = []
    for number, record in enumerate(records):
        while True:
            try:
                producer.produce(topic, on_delivery=lambda e, _m: failures.append(e) if e else None, **record)
                break
            except BufferError:
                producer.poll(0.05)
        if not number % 1000:
            producer.poll(0)
    producer.flush()
    assert failures == []


def transactional_producer(cluster: EmbeddedCluster, name: str) -> Producer:
    """A producer of transactions that may last for minutes: a busy machine shall not end one."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": name,
            "linger.ms": 2,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions()
    return producer


def wait_for_markers(cluster: EmbeddedCluster, topic: str, partitions: int) -> None:
    """A commit is answered before the markers are in the logs: wait until a committed reader sees everything."""
    tps = [Tp(topic, p) for p in range(partitions)]
    admin = admin_of(cluster)
    deadline = time.monotonic() + 120
    while admin.list_offsets(tps, LATEST, READ_COMMITTED) != admin.end_offsets(tps):
        assert time.monotonic() < deadline, f"{topic} has transactions that do not end"
        time.sleep(0.02)
    admin.close()


def read(cluster: EmbeddedCluster, topic: str, partitions: int, **config: object) -> dict[int, list[Seen]]:
    """Everything in a topic, by partition, in order; up to the first open transaction where the reader is committed."""
    found = read_with_offsets(cluster, topic, partitions, **config)
    return {p: [record for _offset, record in records] for p, records in found.items()}


def read_with_offsets(
    cluster: EmbeddedCluster, topic: str, partitions: int, **config: object
) -> dict[int, list[tuple[int, Seen]]]:
    """As `read`, each record with its offset."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "tests", "enable.partition.eof": True}
    settings |= {"enable.auto.commit": False, **config}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    wanted = set(range(partitions))
    seen: dict[int, list[tuple[int, Seen]]] = defaultdict(list)
    deadline = time.monotonic() + 240
    while wanted:
        assert time.monotonic() < deadline, f"{topic}: partitions {wanted} did not reach their end"
        for message in consumer.consume(10_000, timeout=0.1):
            p = message.partition()
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    wanted.discard(p)
                else:  # of a broker that is away for a moment; the client connects again by itself
                    assert message.error().code() in _MOMENTARY, message.error()
                continue
            headers = tuple((name, value) for name, value in message.headers() or ())
            record = Seen(message.key(), message.value(), headers, message.timestamp())
            seen[p].append((message.offset(), record))
    consumer.close()
    return dict(seen)


UPGRADE, SAFE_DOWNGRADE = 1, 2


def set_feature(cluster: EmbeddedCluster, feature: str, level: int, upgrade_type: int = UPGRADE) -> None:
    """Set the level of a feature, such as `transaction.version`, on a running cluster."""
    admin = admin_of(cluster)
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, allow_downgrade=False, upgrade_type=upgrade_type
    )
    view = admin.view([])
    answer = admin.ask_at(
        view.brokers[view.controller_id],
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
        lambda version: UpdateFeaturesRequest(
            version=version, timeout_ms=30_000, feature_updates=[update], validate_only=False
        ),
        newest=1,
    )
    admin.close()
    assert answer.error_code == 0, answer
    assert all(result.error_code == 0 for result in answer.results or ()), answer
