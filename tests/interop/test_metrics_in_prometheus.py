"""A real Prometheus scrapes `run` and a group of workers: Strimzi's dashboards and ours have data, and it is right."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from deploy.monitoring.grafana import make_dashboard
from kafka.admin import KafkaAdminClient

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.model import TopicPartition as Tp
from tests.conftest import running_cluster
from tests.support.clusters.clients import admin_of, write
from tests.support.connect.connect_worker import RunningWorker, connector, free_port, worker_file
from tests.support.monitoring.load import Load
from tests.support.monitoring.servers import Prometheus
from tests.support.monitoring.stack import prometheus_config
from tests.support.monitoring.tools import Tools
from tests.support.monitoring.watched import (
    GROUP,
    PARTITIONS,
    TOPIC,
    Watched,
    flow_file,
    running_with_metrics,
    without_data,
)
from tests.support.runs.copying import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PANELS = json.loads((Path(__file__).parents[1] / "golden/strimzi_panels.json").read_text())
MM2, REPORTER, CONNECT = (
    "Strimzi Kafka Mirror Maker 2",
    "Strimzi Kafka Mirror Maker 2 (Strimzi Metrics Reporter)",
    "Strimzi Kafka Connect",
)
# By a part of the expression.
NO_DATA = {
    (MM2, "container_cpu_usage_seconds_total"): "a metric of the kubelet, of any container",
    (CONNECT, "!= 0"): "the panel leaves out zeros: it is empty while no task has an issue",
    (CONNECT, "kafka_admin_client_connection_count"): "NaN: connections of the driver's administrators are not counted",
}
# What known alerts on the names of the JMX exporter compare with a limit.
COMMUNITY = {
    "ConnectFailedConnector": 'sum(kafka_connect_connector_status{status=~"failed|running"}) by (namespace, pod)',
    "ConnectFailedTask": "sum(kafka_connect_worker_connector_failed_task_count) by (namespace, pod)",
    "MirrorMaker2TaskFailed": "kafka_connect_worker_connector_failed_task_count",
    "MirrorMaker2NoRecordsReplicated": "sum(rate(kafka_connect_source_task_source_record_write_total[1m]))",
    "MirrorMaker2ReplicationLagHigh": "max(kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms_max)",
    "MirrorMaker2OffsetSyncStale": (
        "sum(changes(kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms_max[30m]))"
    ),
    "HighErrorRate": "sum(rate(kafka_connect_task_error_total_errors_logged[1m]))",
    "WorkerHeapHigh": "jvm_memory_used_bytes",
    "RebalanceStorm": "rate(kafka_connect_worker_rebalance_completed_rebalances_total[5m])",
}
OF_RUN = {"", make_dashboard.GROUPS, make_dashboard.LOSSES}
DIALECTS = {"jmx-exporter": MM2, "metrics-reporter": REPORTER}
MIRROR = "kafka_connect_mirror_mirrorsourceconnector"
LAG_OF_CONSUMER = {
    "jmx-exporter": "kafka_consumer_fetch_manager_records_lag",
    "metrics-reporter": "kafka_consumer_consumer_fetch_manager_metrics_records_lag",
}
LATE_S = 5.0
"""Records are written with timestamps so long ago: a latency that ignores them would be a few milliseconds."""


def panels(dashboard: str, job: str) -> list[str]:
    """Return the expressions of a dashboard of Strimzi's that must have data, with its variables replaced."""
    variables = {"$kubernetes_namespace": "default", "$strimzi_mirror_maker_cluster_name": job}
    found = []
    for row in PANELS:
        expression = row["expr"]
        if row["dashboard"] == dashboard and not any(of == dashboard and part in expression for of, part in NO_DATA):
            for name, value in variables.items():
                expression = expression.replace(name, value)
            found.append(expression)
    return found


def ends(cluster: EmbeddedCluster, topic: str, partitions: int = PARTITIONS) -> int:
    """Return the number of records that a topic without gaps has."""
    admin = admin_of(cluster)
    found = admin.end_offsets([Tp(topic, p) for p in range(partitions)])
    admin.close()
    return sum(found.values())


def log_bytes(cluster: EmbeddedCluster, topic: str) -> int:
    """Return the size of a topic's logs, as its broker sees it."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        topics = [t for broker in client.describe_log_dirs() for d in broker["log_dirs"] for t in d["topics"]]
        return sum(p["partition_size"] for each in topics if each["name"] == topic for p in each["partitions"])
    finally:
        client.close()


def read_latencies_s(consumer: Consumer, count: int) -> list[float]:
    """Return for each of the next records how long after its timestamp it could be read."""
    found: list[float] = []
    deadline = time.monotonic() + 120
    while len(found) < count:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, timeout=0.05):
            if message.error() is None:
                found.append(time.time() - message.timestamp()[1] / 1000)
    return found


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    first = running_cluster("watched-a", tmp_path_factory.mktemp("watched-a"))
    second = running_cluster("watched-b", tmp_path_factory.mktemp("watched-b"))
    yield next(first), next(second)
    for each in (first, second):
        next(each, None)


@pytest.fixture(scope="module", params=DIALECTS)
def watched(
    request: pytest.FixtureRequest,
    clusters: tuple[EmbeddedCluster, EmbeddedCluster],
    tools: Tools,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Watched]:
    """A flow under load, in a dialect; its clusters are shared, and its topic is not."""
    (source, target), folder = clusters, tmp_path_factory.mktemp("watched")
    topic = f"{TOPIC}-{request.param}"
    file = flow_file(folder, source, target, topic, f"heliograph.metrics.dialect = {request.param}")
    with (
        Load(source, topic, PARTITIONS, group=f"{GROUP}-{request.param}") as load,
        running_with_metrics(file) as (running, url),
        Prometheus(tools, folder, prometheus_config(folder, {"run": [url.removeprefix("http://")]})) as prometheus,
    ):
        yield Watched(source, target, load, running, url, prometheus)
        assert running.stop() == 0, running.output()


def test_every_panel_of_strimzi_has_data(watched: Watched, request: pytest.FixtureRequest) -> None:
    dialect = request.node.callspec.params["watched"]
    assert without_data(watched.prometheus, panels(DIALECTS[dialect], "run")) == []


def test_every_panel_of_ours_has_data(watched: Watched) -> None:
    """But for those of a worker, of certificates and of faults, which a healthy `run` does not have."""
    wanted = [each.expr for each in make_dashboard.expressions() if each.needs in OF_RUN]
    assert len(wanted) > 30
    assert without_data(watched.prometheus, wanted) == []


def test_every_expression_of_the_rules_is_evaluated(watched: Watched) -> None:
    wait_for(lambda: all(rule["health"] != "unknown" for rule in rules(watched.prometheus)), pause_s=0.3)
    assert [rule for rule in rules(watched.prometheus) if rule["health"] == "err"] == []
    recorded = [rule["name"] for rule in rules(watched.prometheus) if rule["type"] == "recording"]
    recorded.remove("flow:heliograph_resting:max")  # of flows that are paused
    assert without_data(watched.prometheus, recorded) == []


def rules(prometheus: Prometheus) -> list[dict[str, Any]]:
    groups = prometheus.get("/api/v1/rules")["data"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_what_community_alerts_select_exists(watched: Watched, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["watched"] == "jmx-exporter":
        assert without_data(watched.prometheus, list(COMMUNITY.values())) == []


@pytest.fixture
def settled(watched: Watched) -> Iterator[int]:
    """The number of records of the topic, all of which are copied: nobody writes."""
    watched.load.pause()
    written = ends(watched.source, watched.load.topic)
    watched.wait_for_value(f'heliograph_topic_records_total{{topic="{watched.load.topic}"}}', written)
    yield written
    watched.load.resume()


def test_records_and_bytes_are_those_of_the_remote_topic(watched: Watched, settled: int) -> None:
    topic, remote = watched.load.topic, f"A.{watched.load.topic}"
    size = log_bytes(watched.target, remote)
    assert ends(watched.target, remote) == settled
    watched.wait_for_value(f'heliograph_topic_bytes_total{{topic="{topic}"}}', size)
    watched.wait_for_value(f'sum({MIRROR}_record_count{{topic="{remote}"}})', settled)
    watched.wait_for_value(f'sum({MIRROR}_byte_count{{topic="{remote}"}})', size)
    print(f"\nheliograph_* and kafka_*: {settled} records, {size} bytes, as the target's broker has")


def test_latencies_are_those_that_a_consumer_measures(watched: Watched, settled: int) -> None:
    source, target, topic, remote = watched.source, watched.target, watched.load.topic, f"A.{watched.load.topic}"
    latency = "heliograph_flow_latency_seconds"
    before = watched.page()
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "watch", "fetch.wait.max.ms": 20})
    consumer.assign([TopicPartition(remote, p, ends_of(target, remote, p)) for p in range(PARTITIONS)])
    for _batch in range(20):
        write(source, topic, ({"value": b"x", "partition": n % PARTITIONS, "timestamp": late_ms()} for n in range(20)))
    theirs = read_latencies_s(consumer, 400)
    consumer.close()
    watched.wait_for_value(f'sum(heliograph_topic_records_total{{topic="{topic}"}})', settled + 400)
    after = watched.page()
    # Heartbeats are copied meanwhile, with a latency of their own: they are one in a hundred or fewer.
    count = after.value(f"{latency}_count") - before.value(f"{latency}_count")
    total_s = after.value(f"{latency}_sum") - before.value(f"{latency}_sum")
    print(f"\nmean latency: heliograph_* {total_s / 400:.3f} s, consumer {sum(theirs) / 400:.3f} s")
    assert 400 <= count < 460
    assert abs(total_s / 400 - sum(theirs) / 400) < 1.0
    assert total_s / 400 >= LATE_S
    # Of the last minute, in which all others took less; measured times are reported every five seconds.
    longest = f'max({MIRROR}_replication_latency_ms_max{{topic="{remote}"}}) / 1000'
    wait_for(lambda: (watched.prometheus.value(longest) or 0) >= LATE_S, pause_s=0.3)
    longest_s = watched.prometheus.value(longest) or 0
    print(f"longest latency: kafka_* {longest_s:.3f} s, consumer {max(theirs):.3f} s")
    assert abs(longest_s - max(theirs)) < 1.0


def test_the_lag_is_what_was_written_while_the_target_hangs(
    watched: Watched, settled: int, request: pytest.FixtureRequest
) -> None:
    source, target, of_topic = watched.source, watched.target, f'{{topic="{watched.load.topic}"}}'
    lag = LAG_OF_CONSUMER[request.node.callspec.params["watched"]]
    broker = target.broker_process(1)
    broker.suspend()
    try:
        write(source, watched.load.topic, ({"value": b"x", "partition": n % PARTITIONS} for n in range(600)))
        watched.wait_for_value(f"heliograph_topic_lag_records{of_topic}", 600)
        watched.wait_for_value(f"sum({lag}{of_topic})", 600)
        assert ends(source, watched.load.topic) == settled + 600
        lag_s = watched.prometheus.value(f"heliograph_topic_lag_seconds{of_topic}")
        print(f"\nlag of 600 records: heliograph_* and kafka_* 600, {lag_s} s")
        assert lag_s is not None
        assert 0 < lag_s < 120
    finally:
        broker.resume()
    watched.wait_for_value(f"heliograph_topic_lag_records{of_topic}", 0)
    watched.wait_for_value(f"sum(heliograph_topic_records_total{of_topic})", settled + 600)
    assert ends(target, f"A.{watched.load.topic}") == settled + 600


def ends_of(cluster: EmbeddedCluster, topic: str, partition: int) -> int:
    admin = admin_of(cluster)
    tp = Tp(topic, partition)
    found = admin.end_offsets([tp])[tp]
    admin.close()
    return found


def late_ms() -> int:
    return int((time.time() - LATE_S) * 1000)


# --- a group of workers -----------------------------------------------------------------------------------------------


def of_the_page(settings: dict[str, str]) -> dict[str, str]:
    return {**settings, "replication.factor": "1", "sync.topic.acls.enabled": "false"}


class Group:
    """Two workers under a Prometheus; the first that started leads."""

    def __init__(
        self, workers: list[RunningWorker], prometheus: Prometheus, load: Load, target: EmbeddedCluster
    ) -> None:
        self.workers, self.prometheus, self.load, self.target = workers, prometheus, load, target

    def leader(self) -> RunningWorker | None:
        """Return the worker that Prometheus shows as the leader."""
        found = {row.labels["instance"] for row in self.prometheus.query("heliograph_worker_leader == 1")}
        return next((each for each in self.workers if {each.id} == found), None)


@pytest.fixture(scope="module")
def group(
    clusters: tuple[EmbeddedCluster, EmbeddedCluster], tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Group]:
    (source, target), folder = clusters, tmp_path_factory.mktemp("group")
    topic = "of-workers"
    ports = [free_port(), free_port()]
    files = [worker_file(folder, target, "watched", port) for port in ports]
    config = prometheus_config(folder, {"worker": [f"127.0.0.1:{p}" for p in ports]}, kind="KafkaConnect")
    own: dict[str, dict[str, str]] = {
        "Source": {"topics": topic, "offset-syncs.topic.replication.factor": "1"},
        "Checkpoint": {"topics": topic, "groups": "workers-.*", "emit.checkpoints.interval.seconds": "1"},
        "Heartbeat": {"heartbeats.topic.replication.factor": "1"},
    }
    with (
        Load(source, topic, PARTITIONS, group="workers-shop") as load,
        RunningWorker(files[0], ports[0]) as first,
        RunningWorker(files[1], ports[1]) as second,
        Prometheus(tools, folder, config) as prometheus,
    ):
        for worker in (first, second):
            worker.wait_until_ready()
        for kind, settings in own.items():
            body: dict[str, Any] = connector(kind, source, target, "W", **settings) | of_the_page(settings)
            assert first.ask("PUT", f"/connectors/mm2-{kind.lower()}-W/config", body)[0] == 201
        first.wait_for_state("mm2-source-W", "RUNNING", "RUNNING")
        yield Group([first, second], prometheus, load, target)


def test_every_panel_of_strimzis_connect_dashboard_has_data(group: Group) -> None:
    assert without_data(group.prometheus, panels(CONNECT, "worker")) == []
    assert {row["health"] for row in group.prometheus.targets()} == {"up"}


def test_panels_of_ours_on_workers_have_data(group: Group) -> None:
    wanted = [each.expr for each in make_dashboard.expressions() if each.needs == make_dashboard.WORKER]
    assert wanted
    assert without_data(group.prometheus, wanted) == []


def test_sums_over_a_hand_over_are_what_is_in_the_topic(group: Group) -> None:
    """Each worker counts what was copied while it led; the flow is never shown twice."""
    records = 'heliograph_topic_records_total{topic="of-workers"}'
    wait_for(lambda: group.leader() is not None, pause_s=0.3)
    first = group.leader()
    assert first is not None
    copied = settle(group, records)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    wait_for(lambda: group.leader() not in (None, first), pause_s=0.3)
    group.load.resume()
    wait_for(lambda: (group.prometheus.value(f"sum({records})") or 0) > 200, pause_s=0.3)
    total = settle(group, records)
    print(f"hand-over: {copied} records by the first leader, {total} by both; so many are in the remote topic")
    assert total > copied
    assert group.prometheus.value("max_over_time(count(heliograph_flow_ready)[10m:1s])") == 1
    assert {row.labels["instance"] for row in group.prometheus.query("up == 0")} == {first.id}


def settle(group: Group, records: str) -> float:
    """Stop writing, and wait until the counters of all leaders so far are what the remote topic has."""
    group.load.pause()
    written = ends(group.load.cluster, "of-workers")
    total = f"sum(max_over_time({records}[10m]))"
    wait_for(lambda: group.prometheus.value(total) == written, pause_s=0.3)
    assert ends(group.target, "W.of-workers") == written
    return written


def test_the_list_of_exceptions_is_short_and_names_panels_that_exist() -> None:
    assert len(NO_DATA) < 4
    assert [part for of, part in NO_DATA if not any(r["dashboard"] == of and part in r["expr"] for r in PANELS)] == []
    names = {name for row in PANELS for name in re.findall(r"kafka_\w+|jvm_\w+", row["expr"])}
    assert len(names) > 40
