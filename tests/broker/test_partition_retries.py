"""A failed partition is tried again inside its running task; the other partitions of the task do not stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from heliograph.driver.flow import source_flow
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.admin import alter_topic_configs
from heliograph.model import AlterConfigs, ConfigChange, TopicPartition
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker

RETRIES = 10
ONE_TASK = ("tasks.max = 1", "heliograph.restart.backoff.max.ms = 10")


@pytest.fixture
def clusters(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    monkeypatch.setattr(source_flow, "_TASKS_INTERVAL_S", 0.2)
    return Clusters(source, target, alias)


@contextmanager
def writing(clusters: Clusters, topic: str) -> Iterator[Callable[[], int]]:
    """Write to a topic until the block ends; yields the number written so far."""
    stopping, written = threading.Event(), [0]

    def run() -> None:
        while not stopping.wait(0.02):
            write(clusters.source, topic, [{"value": b"%d" % written[0], "partition": 0}])
            written[0] += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: written[0]
    finally:
        stopping.set()
        thread.join()


def let_in(clusters: Clusters, remote: str) -> None:
    admin = admin_of(clusters.target)
    alter_topic_configs(admin, [AlterConfigs(remote, (ConfigChange("max.message.bytes", None, "100000"),))])
    admin.close()


def longest_pause_ms(clusters: Clusters, remote: str) -> int:
    """The longest time between two records of a topic with the time of the append."""
    times = [seen.timestamp[1] for seen in read(clusters.target, remote, 1)[0]]
    return max(later - earlier for earlier, later in pairwise(times))


def end_of(clusters: Clusters, remote: str) -> int:
    """The end of a log; a topic that is being written may not be read to its end."""
    admin = admin_of(clusters.target)
    try:
        return admin.end_offsets([TopicPartition(remote, 0)])[TopicPartition(remote, 0)]
    finally:
        admin.close()


def test_ten_retries_of_one_partition_do_not_stop_the_other(clusters: Clusters, topic: str) -> None:
    busy, bad = f"{topic}-busy", f"{topic}-bad"
    remote_busy, remote_bad = f"{clusters.alias}.{busy}", f"{clusters.alias}.{bad}"
    make_topic(clusters.target, remote_busy, 1, message_timestamp_type="LogAppendTime")
    make_topic(clusters.target, remote_bad, 1, max_message_bytes="2000")
    make_topic(clusters.source, busy, 1)
    make_topic(clusters.source, bad, 1)
    write(clusters.source, bad, ({"value": b"%d" % n + b"x" * 100 * n, "partition": 0} for n in range(40)))
    engine = ThreadEngine()
    with (
        writing(clusters, busy) as written,
        clusters.running(clusters.file(f"{topic}.*", *ONE_TASK), engine),
    ):
        wait_for(lambda: engine.openings[TopicPartition(bad, 0)] >= RETRIES, 120)
        let_in(clusters, remote_bad)
        wait_for(lambda: read(clusters.target, remote_bad, 1) == read(clusters.source, bad, 1))
        after = written()
        wait_for(lambda: end_of(clusters, remote_busy) > after)
    assert len(engine.started) == 1
    copied = [seen.value for seen in read(clusters.target, remote_busy, 1)[0]]
    assert copied == [b"%d" % n for n in range(len(copied))]
    print(f"longest pause of the busy partition: {longest_pause_ms(clusters, remote_busy)} ms")


def test_a_partition_that_was_tried_again_continues_with_what_follows(clusters: Clusters, topic: str) -> None:
    remote = f"{clusters.alias}.{topic}"
    make_topic(clusters.target, remote, 1, max_message_bytes="2000")
    make_topic(clusters.source, topic, 1)
    engine = ThreadEngine()
    with clusters.running(clusters.file(topic, *ONE_TASK), engine):
        for size in (3000, 5000):  # it fails, is let in, copies, fails again
            write(clusters.source, topic, ({"value": b"%d" % n, "partition": 0} for n in range(50)))
            wait_for(lambda: read(clusters.target, remote, 1) == read(clusters.source, topic, 1))
            tries = engine.openings[TopicPartition(topic, 0)]
            write(clusters.source, topic, [{"value": b"x" * size, "partition": 0}])
            wait_for(lambda: engine.openings[TopicPartition(topic, 0)] > tries + 1)  # noqa: B023
            admin = admin_of(clusters.target)
            change = ConfigChange("max.message.bytes", None, f"{size + 1000}")
            alter_topic_configs(admin, [AlterConfigs(remote, (change,))])
            admin.close()
            wait_for(lambda: read(clusters.target, remote, 1) == read(clusters.source, topic, 1))
    assert len(engine.started) == 1
