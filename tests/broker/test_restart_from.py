"""`restart` of a topic or a partition at another offset, as seen from outside; the other partitions are not touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient

from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import ConnectError
from heliograph.model import RestartRequest, TopicPartition
from heliograph.status.losses import LossCause
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker

ONCE, TWICE = 20, 40
EXACTLY_ONCE = "exactly.once.source.support = enabled"


class Run:
    """A running flow of one topic with two partitions, of which each has twenty records on both clusters."""

    def __init__(self, clusters: Clusters, topic: str, *lines: str) -> None:
        self.clusters, self.topic, self.remote = clusters, topic, f"{clusters.alias}.{topic}"
        self.lines = ("tasks.max = 1", *lines)
        make_topic(clusters.source, topic)
        self.write(ONCE)

    def write(self, count: int) -> None:
        for partition in range(2):
            records = ({"value": b"%d-%d" % (partition, n), "partition": partition} for n in range(count))
            write(self.clusters.source, self.topic, records)

    def values(self, partition: int) -> list[bytes | None]:
        return [seen.value for seen in read(self.clusters.target, self.remote, 2).get(partition, [])]

    @contextmanager
    def flow(self, engine: ThreadEngine) -> Iterator[SourceFlow]:
        with self.clusters.running(self.clusters.file(self.topic, *self.lines), engine) as flow:
            wait_for(lambda: flow.life.is_running)
            yield flow


def numbers(partition: int, *counts: int) -> list[bytes]:
    return [b"%d-%d" % (partition, n) for count in counts for n in range(count)]


@pytest.fixture
def clusters(source: EmbeddedCluster, target: EmbeddedCluster, alias: str) -> Clusters:
    return Clusters(source, target, alias)


def test_from_the_beginning_copies_one_partition_again_and_a_restart_of_the_process_keeps_that(
    clusters: Clusters, topic: str
) -> None:
    run, engine = Run(clusters, topic), ThreadEngine()
    with run.flow(engine) as flow:
        wait_for(lambda: run.values(0) == numbers(0, ONCE) and run.values(1) == numbers(1, ONCE))
        (restarted,) = flow.restart_partitions(RestartRequest(topic, 0, "beginning"))
        assert (restarted.tp, restarted.position) == (TopicPartition(topic, 0), 0)
        wait_for(lambda: run.values(0) == numbers(0, ONCE, ONCE))
        assert len(engine.started) == 1
    with run.flow(engine):
        run.write(1)
        wait_for(lambda: run.values(0) == numbers(0, ONCE, ONCE, 1) and run.values(1) == numbers(1, ONCE, 1))


def test_from_an_offset_copies_what_follows_it_again(clusters: Clusters, topic: str) -> None:
    run, engine = Run(clusters, topic), ThreadEngine()
    with run.flow(engine) as flow:
        wait_for(lambda: run.values(1) == numbers(1, ONCE))
        flow.restart_partitions(RestartRequest(topic, 1, ONCE - 3))
        wait_for(lambda: run.values(1) == numbers(1, ONCE) + numbers(1, ONCE)[-3:])
        with pytest.raises(ConnectError, match="the source has offsets 0 to 20"):
            flow.restart_partitions(RestartRequest(topic, 1, ONCE + 1))
        with pytest.raises(ConnectError, match="does not replicate partition 7"):
            flow.restart_partitions(RestartRequest(topic, 7))
        assert run.values(0) == numbers(0, ONCE)
    assert len(engine.started) == 1


def test_from_the_end_leaves_out_what_a_failed_partition_has_not_copied(
    clusters: Clusters, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_topic(clusters.target, f"{clusters.alias}.{topic}", max_message_bytes="2000")
    run, engine = Run(clusters, topic), ThreadEngine()
    with run.flow(engine) as flow:
        wait_for(lambda: run.values(0) == numbers(0, ONCE))
        write(clusters.source, topic, [{"value": b"x" * 5000, "partition": 0}, {"value": b"after", "partition": 0}])
        wait_for(lambda: flow.status.failures)
        wait_for(lambda: flow.status.partitions.next_offset_of(TopicPartition(topic, 0)) == ONCE)
        (restarted,) = flow.restart_partitions(RestartRequest(topic, 0, "end"))
        assert restarted.skipped == 2
        wait_for(lambda: not flow.status.failures)
        run.write(1)
        wait_for(lambda: run.values(0) == numbers(0, ONCE, 1))
        (loss,) = flow.snapshot("A->B", "A->B").losses
        assert (loss.tp, loss.cause, loss.count) == (TopicPartition(topic, 0), LossCause.LEFT_OUT, 2)
    assert len(engine.started) == 1
    assert f"{topic}-0: offsets {ONCE} to {ONCE + 1} (2) are left out on request" in caplog.text


def test_where_it_is_nothing_is_copied_again(clusters: Clusters, topic: str) -> None:
    run, engine = Run(clusters, topic), ThreadEngine()
    with run.flow(engine) as flow:
        wait_for(lambda: run.values(0) == numbers(0, ONCE) and run.values(1) == numbers(1, ONCE))
        for _again in range(3):
            flow.restart_partitions(RestartRequest(topic))
            run.write(1)
        wait_for(lambda: run.values(0) == numbers(0, ONCE, 1, 1, 1) and run.values(1) == numbers(1, ONCE, 1, 1, 1))
    assert len(engine.started) == 1


@pytest.mark.parametrize("lines", [(), (EXACTLY_ONCE,)])
def test_a_whole_flow_is_copied_again_by_restarted_tasks(
    clusters: Clusters, topic: str, lines: tuple[str, ...]
) -> None:
    run, engine = Run(clusters, topic, *lines), ThreadEngine()
    with run.flow(engine) as flow:
        wait_for(lambda: run.values(0) == numbers(0, ONCE) and run.values(1) == numbers(1, ONCE))
        flow.restart_partitions(RestartRequest(start="beginning"))
        wait_for(lambda: run.values(0) == numbers(0, ONCE, ONCE) and run.values(1) == numbers(1, ONCE, ONCE))
    assert len(engine.started) == 2


def test_a_topic_that_was_created_again_is_copied_from_its_beginning_without_a_restart_of_the_process(
    clusters: Clusters, topic: str
) -> None:
    run, engine = Run(clusters, topic), ThreadEngine()
    with run.flow(engine) as flow:
        wait_for(lambda: run.values(0) == numbers(0, ONCE) and run.values(1) == numbers(1, ONCE))
        client = AdminClient({"bootstrap.servers": clusters.source.bootstrap})
        client.delete_topics([topic])[topic].result()
        admin = admin_of(clusters.source)
        wait_for(lambda: topic not in admin.view([topic]).partition_counts)
        admin.close()
        make_topic(clusters.source, topic)
        run.write(5)
        wait_for(lambda: len(flow.status.failures) == 2)
        flow.restart_partitions(RestartRequest(topic, None, "beginning"))
        wait_for(lambda: run.values(0) == numbers(0, ONCE, 5) and run.values(1) == numbers(1, ONCE, 5))
        assert flow.status.failures == []
