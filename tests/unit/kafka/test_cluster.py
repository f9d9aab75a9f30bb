"""A task's view of a cluster: the topics whose metadata it requests, and when it has an issue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from heliograph.model import TopicPartition
from tests.support.brokers.producing import TP, Producing
from tests.support.brokers.scripted_broker import ScriptedCluster
from tests.unit.kafka.test_fetch_sessions import Fetching

T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)
TOPIC_DENIED = 29


@pytest.fixture(autouse=True)
def _short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.kafka.net.cluster._STILL_WANTED_S", 1.0)


@pytest.fixture
def brokers() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(2, topics={"t": 2, "gone": 1}) as cluster:
        cluster.leaders["t", 1] = 2
        yield cluster


@pytest.fixture
def reading(brokers: ScriptedCluster) -> Iterator[Fetching]:
    """Reads all partitions, from both brokers."""
    with Fetching(brokers) as fetching:
        for tp in (T0, T1, GONE):
            fetching.fetcher.add(tp, 0)
        fetching.until(lambda: all(not p.needs_ends for p in fetching.fetcher.partitions.values()))
        fetching.until(lambda: fetching.requests(1) and fetching.requests(2))
        yield fetching


@pytest.fixture
def writing(brokers: ScriptedCluster) -> Iterator[Producing]:
    with Producing(brokers) as producing:
        producing.reads_again = True
        yield producing


def next_asked(ours: Fetching | Producing) -> list[str]:
    """The topics of the next metadata request."""
    before = len(ours.brokers.requests(MetadataRequest))
    ours.cluster.want_metadata()
    ours.until(lambda: len(ours.brokers.requests(MetadataRequest)) > before)
    return sorted(topic.name for topic in ours.brokers.requests(MetadataRequest)[-1].topics)


# --- topics -----------------------------------------------------------------------------------------------------------


def test_metadata_of_a_deleted_topic_is_not_requested_once_it_is_not_read(
    brokers: ScriptedCluster, reading: Fetching
) -> None:
    del brokers.leaders["gone", 0]
    assert next_asked(reading) == ["gone", "t"]
    reading.until(lambda: reading.cluster.is_unsettled)
    reading.fetcher.remove(GONE)
    reading.until(lambda: not reading.cluster.is_unsettled and not reading.fetcher.has_retries)
    assert next_asked(reading) == ["t"]
    reading.until(lambda: not reading.cluster.is_unsettled)
    assert not [tp for tp in reading.cluster.leaders if tp.topic == "gone"]
    assert "gone" not in reading.cluster.topic_ids


def test_a_topic_is_asked_for_as_long_as_one_of_its_partitions_is_read(reading: Fetching) -> None:
    reading.fetcher.remove(T0)
    reading.fetcher.remove(T0)
    assert next_asked(reading) == ["gone", "t"]
    reading.fetcher.remove(T1)
    assert next_asked(reading) == ["gone"]
    reading.put(1)
    reading.fetcher.add(T1, 0)
    reading.until_read(2)


def test_a_topic_that_another_watches_too_is_asked_for_when_the_fetcher_leaves_it(reading: Fetching) -> None:
    reading.cluster.watch(["gone"])
    reading.fetcher.remove(GONE)
    assert next_asked(reading) == ["gone", "t"]


def test_a_removed_target_partition_without_a_leader_causes_no_requests(
    brokers: ScriptedCluster, writing: Producing
) -> None:
    del brokers.leaders["gone", 0]
    writing.send(1, tp=GONE)
    writing.until(lambda: writing.producer.partitions[GONE].issue)
    assert writing.producer.has_retries
    writing.producer.discard(GONE)
    writing.until(lambda: not writing.producer.has_retries and not writing.cluster.is_unsettled)
    assert next_asked(writing) == []


def test_a_target_partition_that_was_taken_away_is_followed_until_its_last_answer(
    brokers: ScriptedCluster, writing: Producing
) -> None:
    brokers.hold(ProduceRequest)
    writing.send(1, 2)
    writing.until(writing.sent)
    writing.producer.discard(TP)
    assert next_asked(writing) == ["t"]
    brokers.release(ProduceRequest)
    writing.until_acked(1)
    assert next_asked(writing) == []
    writing.reads_again = False  # its leader has to be found first
    writing.send(3)
    writing.until_acked(1, 3)
    assert writing.in_log() == [0, 2]


def test_a_target_partition_that_was_given_up_is_not_asked_for(brokers: ScriptedCluster, writing: Producing) -> None:
    brokers.script(ProduceRequest, TOPIC_DENIED)
    writing.send(1, tp=GONE)
    writing.until(lambda: writing.failed)
    assert next_asked(writing) == []


# --- issues -----------------------------------------------------------------------------------------------------------


def test_unused_connections_that_a_broker_closes_are_no_issue(brokers: ScriptedCluster, writing: Producing) -> None:
    writing.send(1, tp=T0)
    writing.send(2, tp=T1)
    writing.until(lambda: len(writing.acked) == 2 and not writing.cluster.is_unsettled)
    connection = writing.cluster.connection_to(1)
    brokers.brokers[1].hang_up()
    writing.until(lambda: writing.cluster._nodes[1].link(0).connection is None)
    assert connection is not None
    assert writing.cluster.issue is None
    writing.send(3, tp=T0)
    writing.until(lambda: len(writing.acked) == 3)


def test_the_issue_of_a_broker_ends_when_it_is_not_needed_any_more(brokers: ScriptedCluster, reading: Fetching) -> None:
    brokers.brokers[1].stop()
    reading.until(lambda: reading.cluster.issue)
    del brokers.brokers[1]
    brokers.leaders = dict.fromkeys(brokers.leaders, 2)
    reading.until(lambda: reading.cluster.issue is None)
    reading.put(0)
    reading.until_read(2)
    assert reading.cluster.issue is None


def test_the_issue_of_a_broker_that_is_needed_stays(brokers: ScriptedCluster, reading: Fetching) -> None:
    brokers.brokers[2].stop()
    reading.until(lambda: reading.cluster.issue)
    asked = len(brokers.requests(MetadataRequest))

    def is_reported() -> bool:
        assert reading.cluster.issue is not None
        return len(brokers.requests(MetadataRequest)) > asked + 4

    reading.until(is_reported)


# --- traffic ----------------------------------------------------------------------------------------------------------


def test_bytes_of_connections_that_were_lost_still_count(brokers: ScriptedCluster, reading: Fetching) -> None:
    before = reading.cluster.traffic
    assert before.connections >= 2
    assert min(before.received_bytes, before.sent_bytes) > 100
    for node in reading.cluster._nodes.values():
        for link in node.lanes.values():
            if link.connection is not None:
                reading.network.drop(link.connection, "test")
    after = reading.cluster.traffic
    assert (after.connections, after.received_bytes, after.sent_bytes) == (0, *before[1:])
    requests = len(brokers.requests(MetadataRequest))
    reading.cluster.want_metadata()
    reading.until(lambda: len(brokers.requests(MetadataRequest)) > requests)
    assert reading.cluster.traffic.sent_bytes > before.sent_bytes
