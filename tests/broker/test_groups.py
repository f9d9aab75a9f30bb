"""Consumer groups on real brokers: listed, described, read and moved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import GroupActiveError
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import CommittedOffset, TopicPartition
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.runs.copying import wait_for

pytestmark = pytest.mark.broker


@contextmanager
def groups_of(cluster: EmbeddedCluster) -> Iterator[GroupAdmin]:
    admin = admin_of(cluster)
    try:
        yield GroupAdmin(admin)
    finally:
        admin.close()


@contextmanager
def member(cluster: EmbeddedCluster, group: str, topic: str, **config: object) -> Iterator[Consumer]:
    """A consumer that has joined its group and holds its partitions; afterwards it has left."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, **config})
    consumer.subscribe([topic])
    with groups_of(cluster) as groups:

        def has_joined() -> bool:
            consumer.poll(0.1)  # a rebalance is answered here
            return bool(consumer.assignment()) and groups.states([group])[group] == "Stable"

        try:
            wait_for(has_joined)
            yield consumer
        finally:
            consumer.close()
        wait_for(lambda: groups.states([group])[group] in ("Empty", "Dead"))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_seen_active_then_empty_and_only_then_moved(
    source: EmbeddedCluster, topic: str, protocol: str
) -> None:
    group = f"{topic}-{protocol}"
    make_topic(source, topic)
    write(source, topic, [{"value": b"v", "partition": 0} for _ in range(10)])
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with groups_of(source) as groups:
        assert groups.states([group]) == {group: "Dead"}
        assert groups.committed([group]) == {group: {}}
        with member(source, group, topic, **{"group.protocol": protocol}) as consumer:
            consumer.commit(offsets=[Place(topic, 0, 7)], asynchronous=False)
            assert groups.list_groups()[group] == "Stable"
            with pytest.raises(GroupActiveError, match="active members"):
                groups.commit(group, {first: CommittedOffset(3)})
            assert groups.committed([group]) == {group: {first: CommittedOffset(7)}}
        assert groups.states([group]) == {group: "Empty"}
        assert groups.commit(group, {first: CommittedOffset(8, "ours"), second: CommittedOffset(0)}) == {}
        assert groups.committed([group]) == {group: {first: CommittedOffset(8, "ours"), second: CommittedOffset(0)}}


def test_a_commit_makes_a_group_that_was_not_there(source: EmbeddedCluster, topic: str) -> None:
    make_topic(source, topic)
    tp, missing = TopicPartition(topic, 1), TopicPartition(f"no-{topic}", 0)
    with groups_of(source) as groups:
        reasons = groups.commit(topic, {tp: CommittedOffset(5), missing: CommittedOffset(5)})
        assert reasons == {missing: "UNKNOWN_TOPIC_OR_PARTITION"}
        assert groups.states([topic]) == {topic: "Empty"}
        assert groups.list_groups()[topic] == "Empty"
        assert groups.committed([topic]) == {topic: {tp: CommittedOffset(5)}}
        assert groups.commit(topic, {}) == {}
