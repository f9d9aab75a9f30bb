"""A day of faults on real brokers: what state, REST and readiness say within ten seconds, and that it clears by itself.

Each fault is measured from outside as well: lag by a client of the source, not by ours.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import quote

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.file_herder import FileHerder
from heliograph.driver.loops.mirror_process import MirrorProcess
from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster
from heliograph.kafka.admin.admin import alter_topic_configs
from heliograph.model import AlterConfigs, ConfigChange, TopicPartition
from tests.conftest import running_cluster
from tests.interop.rest_story import ask
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.config_files import FakeLookup
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import rest_worker
from tests.support.runs.copying import wait_for
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker

NOTICED_S = 10.0
SLACK_S = 5.0  # of a machine that runs other tests beside these


@pytest.fixture(scope="module")
def own_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("day-source", tmp_path_factory.mktemp("day-source"))


@pytest.fixture(scope="module")
def own_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("day-target", tmp_path_factory.mktemp("day-target"))


class Day:
    """One running flow, as REST shows it."""

    def __init__(
        self,
        url: str,
        process: MirrorProcess,
        alias: str,
        source: EmbeddedCluster,
        target: EmbeddedCluster,
        topic: str,
    ) -> None:
        self.url, self.process = url, process
        self.alias, self.source, self.target, self.topic = alias, source, target, topic
        self.flow = f"/heliograph/v1/flows/{quote(f'{alias}->target', safe='')}"

    def becomes(self, *lines: str) -> None:
        """Change the file's last lines while it runs."""
        self.process.apply(load(day_file(self.source, self.target, self.alias, self.topic, *lines), FakeLookup()))

    def get(self, path: str) -> tuple[int, Any]:
        status, _headers, body = ask(self.url, "GET", path)
        return status, json.loads(body)

    def partition(self, number: int = 0) -> dict[str, Any]:
        rows = self.get(f"{self.flow}/partitions?topic={self.topic}")[1]["partitions"]
        return dict(rows[number]) if number < len(rows) else {"state": None}

    def state(self, number: int = 0) -> str | None:
        found: str | None = self.partition(number)["state"]
        return found

    def ready(self) -> tuple[int, str]:
        status, body = self.get("/health/ready")
        return status, "; ".join(each["reason"] for each in body["reasons"])

    def tasks(self, kind: str) -> list[dict[str, Any]]:
        name = quote(f"{self.alias}->target.Mirror{kind}Connector", safe="")
        return list(self.get(f"/connectors/{name}/status")[1]["tasks"])

    def trace(self, kind: str = "Source") -> str:
        return "; ".join(task.get("trace") or "" for task in self.tasks(kind))

    def heartbeats_are(self, state: str) -> bool:
        """Whether the heartbeat connector says this of itself; the checkpoint connector has no group to look at."""
        return [task["state"] for task in self.tasks("Heartbeat")] == [state]

    def write(self, count: int, size: int = 10, partition: int = 0) -> None:
        write(self.source, self.topic, ({"value": b"x" * size, "partition": partition} for _ in range(count)))

    def end(self, cluster: EmbeddedCluster, topic: str, partition: int = 0) -> int:
        admin = admin_of(cluster)
        (end,) = admin.end_offsets([TopicPartition(topic, partition)]).values()
        admin.close()
        return end

    def wait_until_caught_up(self, *partitions: int) -> None:
        wait_for(lambda: all(self.state(each) == "caught_up" for each in partitions or (0, 1)))
        wait_for(lambda: self.ready() == (200, ""))


def day_file(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str, *lines: str) -> str:
    text = (
        f"clusters={alias}, target",
        f"{alias}.bootstrap.servers={source.bootstrap}",
        f"target.bootstrap.servers={target.bootstrap}",
        f"{alias}->target.enabled=true",
        f"{alias}->target.topics={topic}",
        "emit.checkpoints.interval.seconds=2",
        "heliograph.restart.backoff.max.ms=1000",
        *lines,
    )
    return "\n".join(text)


@contextmanager
def day(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str, *lines: str) -> Iterator[Day]:
    config = load(day_file(source, target, alias, topic, *lines), FakeLookup())
    process = MirrorProcess(config, thread_engine())
    herder = FileHerder(process, LogLevels(), lambda: "an id")
    process.start()
    try:
        with rest_worker(cast("FakeHerder", herder), read_only=True) as worker:
            yield Day(worker.url, process, alias, source, target, topic)
    finally:
        process.stop()
        process.control.stop()
        assert process.is_over


def test_the_lag_of_a_failed_partition_is_what_a_client_measures(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    remote = f"{alias}.{topic}"
    make_topic(own_target, remote, max_message_bytes="2000")
    config = ("sync.topic.configs.enabled=false", "heliograph.restart.backoff.max.ms=600000")
    with day(own_source, own_target, alias, topic, *config) as flow:
        flow.write(10)
        flow.wait_until_caught_up()
        flow.write(1, size=5000)
        flow.write(40)
        flow.write(7, partition=1)
        wait_for(lambda: flow.state() == "failed", NOTICED_S + SLACK_S)
        for _more in range(2):
            wait_for(lambda: flow.partition()["log_end"] == flow.end(own_source, topic))
            row = flow.partition()
            copied = flow.end(own_target, remote)
            assert (row["position"], row["lag_records"]) == (copied, flow.end(own_source, topic) - copied)
            assert row["lag_seconds"] is not None
            assert "offset 10" in row["reason"]
            flow.write(100)
        wait_for(lambda: flow.state(1) == "caught_up")
        whole = flow.get(flow.flow)[1]
        assert (whole["partitions"]["failed"], whole["lag_records"]) == (1, flow.partition()["lag_records"])
        assert flow.ready() == (200, ""), "its neighbour is copied"
        assert "offset 10" in flow.trace()


def test_a_failed_partition_continues_once_the_target_takes_its_record(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    remote = f"{alias}.{topic}"
    make_topic(own_target, remote, max_message_bytes="2000")
    with day(own_source, own_target, alias, topic, "sync.topic.configs.enabled=false") as flow:
        flow.write(1, size=5000)
        wait_for(lambda: flow.state() == "failed", NOTICED_S + SLACK_S)
        admin = admin_of(own_target)
        assert (
            alter_topic_configs(admin, [AlterConfigs(remote, (ConfigChange("max.message.bytes", None, "9000"),))]) == {}
        )
        admin.close()
        flow.wait_until_caught_up()
    assert read(own_target, remote, 2) == read(own_source, topic, 2)


@pytest.mark.parametrize("which", ["source", "target"])
def test_a_cluster_that_is_stopped_is_named_and_its_return_noticed(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str, which: str
) -> None:
    make_topic(own_source, topic)
    with day(own_source, own_target, alias, topic) as flow:
        flow.write(10)
        flow.wait_until_caught_up()
        victim = own_source if which == "source" else own_target
        name = alias if which == "source" else "target"
        (find_cluster(victim.name) or victim).stop()
        try:
            if which == "target":
                flow.write(25)
            wait_for(lambda: flow.ready()[0] == 503, NOTICED_S + SLACK_S)
            assert f"cluster '{name}'" in flow.ready()[1]
            assert f"cluster '{name}'" in flow.trace()
            if which == "target":
                wait_for(lambda: flow.state() == "retrying", NOTICED_S + SLACK_S)
                wait_for(lambda: flow.partition()["lag_records"] == 25)
            else:
                wait_for(lambda: flow.partition()["lag_records"] is None, 30)
                assert flow.partition()["log_end"] is None, "the end that it had is not known to be its end"
                assert flow.get(flow.flow)[1]["lag_records"] is None
        finally:
            for broker in victim.brokers:
                victim.start_broker(broker.node_id)
        flow.write(5)
        flow.wait_until_caught_up()


def test_a_target_that_hangs_is_noticed_within_ten_seconds_and_named(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    with day(own_source, own_target, alias, topic) as flow:
        flow.write(10)
        flow.wait_until_caught_up()
        running = find_cluster(own_target.name)  # another test may have started its broker again
        assert running is not None
        (broker,) = running.running
        process = running.broker_process(broker.node_id)
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        try:
            flow.write(30)
            wait_for(lambda: flow.ready()[0] == 503, NOTICED_S + SLACK_S)
            noticed_s = time.monotonic() - began
            # A request of the first connection is named by its address only.
            name = f"(broker {broker.node_id}|the broker) at 127.0.0.1:{broker.port}"
            sentence = re.compile(f"cluster 'target': {name} has not answered a")
            assert sentence.search(flow.ready()[1])
            assert sentence.search(flow.trace())
            wait_for(lambda: flow.state() == "retrying", NOTICED_S + SLACK_S)
            assert flow.partition()["lag_records"] == 30
            wait_for(lambda: flow.heartbeats_are("FAILED"), NOTICED_S + SLACK_S)
            assert "cluster 'target'" in flow.trace("Heartbeat")
            time.sleep(max(0.0, 45 - noticed_s))  # longer than a request may take, and than a connection's opening
            assert flow.ready()[0] == 503
            assert "TLS or SASL" not in flow.ready()[1] + flow.trace(), "it has worked before"
        finally:
            process.send_signal(signal.SIGCONT)
        flow.wait_until_caught_up()
        wait_for(lambda: flow.heartbeats_are("RUNNING"))
        assert noticed_s < NOTICED_S + SLACK_S


def test_partitions_of_a_flow_that_cannot_begin_are_not_ready(
    own_source: EmbeddedCluster, own_target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(own_source, topic)
    with day(own_source, own_target, alias, topic, "target.bootstrap.servers=127.0.0.1:1",
             "heliograph.connect.timeout.ms=1000") as flow:  # fmt: skip
        wait_for(lambda: flow.ready()[0] == 503)
        wait_for(lambda: "'target'" in flow.ready()[1])
        assert flow.get("/health/live")[0] == 200
