"""`/metrics` of a running process over HTTP: the page is there at once, also while a cluster does not answer."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.embedded.process import free_ports
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import CommittedOffset, TopicPartition
from tests.conftest import running_cluster
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.connect.connect_worker import RunningWorker, connector, worker_file
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running, write_file

pytestmark = pytest.mark.spark

AT_ONCE_S = 1.0
JVM_MEMORY = re.compile(r"heap_bytes=[0-9]{6}|jvm_memory_used_bytes\{[^}]*heap[^}]*\} [1-9]")
STOPPED_S = 12.0  # a request to a broker counts as unanswered, and the lease of a leader ends


@pytest.fixture(scope="module")
def own_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("metrics-target", tmp_path_factory.mktemp("metrics-target"))


@contextmanager
def suspended(cluster: EmbeddedCluster) -> Iterator[None]:
    """A broker whose connections stay open, and which answers nothing."""
    process = cluster.broker_process(cluster.brokers[0].node_id)
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def page(port: int, path: str = "/metrics") -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 200, text
    return text


def has(port: int, *texts: str) -> bool:
    try:
        found = page(port)
    except OSError:
        return False
    return all(text in found for text in texts)


def check_answers_at_once(*ports: int) -> None:
    """Scrape for as long as everything that waits for a broker takes to notice it."""
    until = time.monotonic() + STOPPED_S
    while time.monotonic() < until:
        for port in ports:
            began_at = time.monotonic()
            assert page(port)
            assert time.monotonic() - began_at < AT_ONCE_S
        time.sleep(0.4)


def commit(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    admin = admin_of(cluster)
    assert GroupAdmin(admin).commit(f"{topic}-readers", {TopicPartition(topic, 0): CommittedOffset(offset)}) == {}
    admin.close()


def test_run_serves_metrics_while_its_target_is_stopped(
    source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic)
    write(source, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(1000)))
    commit(source, topic, 100)
    intervals = ("emit.checkpoints.interval.seconds=1", "refresh.groups.interval.seconds=1")
    file = write_file(tmp_path, source, own_target, alias, topic, *intervals, f"groups={topic}-readers")
    port = free_ports(1)[0]
    with Running(file, "--metrics", str(port)) as heliograph:
        wait_for(lambda: has(port, f"{alias}->target", topic, f"{topic}-readers"))
        assert page(port, "/health/live")
        wait_for(lambda: JVM_MEMORY.search(page(port)))
        with suspended(own_target):
            check_answers_at_once(port)
        (jvm,) = (each for each in psutil.Process(heliograph.process.pid).children() if each.name() == "java")
        jvm.suspend()
        try:
            began_at = time.monotonic()
            assert page(port)
            assert time.monotonic() - began_at < AT_ONCE_S
        finally:
            jvm.resume()
        wait_for(lambda: has(port, f"{alias}->target", topic))
        assert heliograph.stop() == 0
    assert f"Metrics are at http://127.0.0.1:{port}/metrics" in heliograph.output()


def test_every_worker_of_a_group_serves_metrics_while_their_cluster_is_stopped(
    source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic)
    write(source, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(1000)))
    rest_of_one, of_one, rest_of_other, of_other = free_ports(4)

    def file_of(rest: int, metrics: int) -> Path:
        return worker_file(
            tmp_path, own_target, f"{alias}-group", rest, f"heliograph.metrics.listeners=http://127.0.0.1:{metrics}"
        )

    with RunningWorker(file_of(rest_of_one, of_one), rest_of_one) as one:
        one.wait_until_ready()
        with RunningWorker(file_of(rest_of_other, of_other), rest_of_other) as other:
            other.wait_until_ready()
            name = f"{alias}-source"
            config = connector("Source", source, own_target, alias, topics=topic)
            config |= {"heartbeats.replication.enabled": "false"}
            assert other.ask("POST", "/connectors", {"name": name, "config": config})[0] == 201
            wait_for(lambda: has(of_one, name, topic))
            assert page(rest_of_one), "REST has the page, too"
            assert topic not in page(of_other), "a follower has no flows"
            assert topic not in page(rest_of_other), "and does not ask the leader for them"
            with suspended(own_target):
                check_answers_at_once(of_one, of_other, rest_of_one, rest_of_other)
            wait_for(lambda: has(of_one, name, topic) or has(of_other, name, topic))
