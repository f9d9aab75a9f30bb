"""The embedded cluster is a normal Kafka: the protocols that its version switches on by itself work on it."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from heliograph.embedded.cluster import EmbeddedCluster
from heliograph.kafka.connection import open_connection
from heliograph.kafka.security import Security
from heliograph.model import Address
from tests.clients import make_topic, write
from tests.copying import wait_for

pytestmark = pytest.mark.broker


def test_features_are_at_the_levels_that_kafka_sets_when_it_formats(source: EmbeddedCluster) -> None:
    connection = open_connection(Address("127.0.0.1", source.brokers[0].port), Security(), "test", timeout_s=60)
    levels = connection.features
    connection.sock.close()
    assert {name: levels.get(name) for name in ("group.version", "share.version", "transaction.version")} == {
        "group.version": 1,
        "share.version": 1,
        "transaction.version": 2,
    }


def test_a_consumer_of_the_new_group_protocol_reads(source: EmbeddedCluster, topic: str) -> None:
    make_topic(source, topic)
    write(source, topic, [{"value": f"{n}".encode(), "partition": n % 2} for n in range(10)])
    settings = {"bootstrap.servers": source.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "group.protocol": "consumer"})
    consumer.subscribe([topic])
    seen: set[bytes] = set()

    def has_all() -> bool:
        seen.update(message.value() for message in consumer.consume(10, timeout=0.2) if message.error() is None)
        return len(seen) == 10

    try:
        wait_for(has_all)
    finally:
        consumer.close()
