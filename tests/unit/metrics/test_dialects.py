"""Names of Kafka's metrics: as the exporters make them by their rules, and as dashboards query them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from heliograph.metrics.dialects import Dialect, KafkaName, jmx_exporter_names, metrics_reporter_name
from heliograph.metrics.families import families
from heliograph.metrics.label_values import jmx_value
from heliograph.metrics.metric import MetricType
from tests.support.connect.pages import JMX, REPORTER, ReadPage
from tests.support.connect.process_snapshots import WORKER, whole

PANELS = json.loads((Path(__file__).parents[2] / "golden" / "strimzi_panels.json").read_text())
NOT_OURS = {
    "container_cpu_usage_seconds_total",  # of the kubelet
    "process_cpu_seconds_total",  # added by the process that serves the page
}
CLIENT, CLIENT_TOPIC = ("client-id",), ("client-id", "topic", "partition")
TASK = ("connector", "task")
SOURCE = ("source", "target", "topic", "partition")


@pytest.mark.parametrize(
    ("bean", "tags", "attribute", "name", "kind", "labels"),
    [
        (
            "kafka.consumer:consumer-metrics",
            CLIENT,
            "incoming-byte-total",
            "kafka_consumer_incoming_byte",
            "counter",
            ("clientid",),
        ),
        (
            "kafka.consumer:consumer-metrics",
            CLIENT,
            "connection-count",
            "kafka_consumer_connection_count",
            "gauge",
            ("clientid",),
        ),
        (
            "kafka.consumer:consumer-fetch-manager-metrics",
            CLIENT_TOPIC,
            "records-lag",
            "kafka_consumer_fetch_manager_records_lag",
            "gauge",
            ("clientid", "topic", "partition"),
        ),
        (
            "kafka.producer:producer-metrics",
            CLIENT,
            "buffer-available-bytes",
            "kafka_producer_buffer_available_bytes",
            "gauge",
            ("clientid",),
        ),
        (
            "kafka.admin.client:admin-client-metrics",
            CLIENT,
            "connection-count",
            "kafka_admin_client_connection_count",
            "gauge",
            ("clientid",),
        ),
        (
            "kafka.connect:connect-worker-metrics",
            (),
            "connector-count",
            "kafka_connect_worker_connector_count",
            "gauge",
            (),
        ),
        (
            "kafka.connect:connect-worker-metrics",
            ("connector",),
            "connector-failed-task-count",
            "kafka_connect_worker_connector_failed_task_count",
            "gauge",
            ("connector",),
        ),
        (
            "kafka.connect:connect-worker-rebalance-metrics",
            (),
            "rebalancing",
            "kafka_connect_worker_rebalance_rebalancing",
            "gauge",
            (),
        ),
        (
            "kafka.connect:connect-worker-rebalance-metrics",
            (),
            "completed-rebalances-total",
            "kafka_connect_worker_rebalance_completed_rebalances",
            "counter",
            (),
        ),
        (
            "kafka.connect:connect-coordinator-metrics",
            CLIENT,
            "assigned-tasks",
            "kafka_connect_coordinator_assigned_tasks",
            "gauge",
            ("clientid",),
        ),
        (
            "kafka.connect:source-task-metrics",
            TASK,
            "source-record-write-total",
            "kafka_connect_source_task_source_record_write",
            "counter",
            TASK,
        ),
        (
            "kafka.connect:connector-task-metrics",
            TASK,
            "offset-commit-avg-time-ms",
            "kafka_connect_connector_task_offset_commit_avg_time_ms",
            "gauge",
            TASK,
        ),
        (
            "kafka.connect:task-error-metrics",
            TASK,
            "total-record-failures",
            "kafka_connect_task_error_total_record_failures",
            "gauge",
            TASK,
        ),
        (
            "kafka.connect.mirror:MirrorSourceConnector",
            SOURCE,
            "record-age-ms-avg",
            "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg",
            "gauge",
            SOURCE,
        ),
        (
            "kafka.connect.mirror:MirrorSourceConnector",
            SOURCE,
            "record-count",
            "kafka_connect_mirror_mirrorsourceconnector_record_count",
            "gauge",
            SOURCE,
        ),
    ],
)
def test_the_jmx_exporter_names_a_bean_by_strimzis_rules(
    bean: str, tags: tuple[str, ...], attribute: str, name: str, kind: str, labels: tuple[str, ...]
) -> None:
    domain, _, group = bean.partition(":")
    for is_worker in (False, True):
        (found,) = jmx_exporter_names(KafkaName(domain, group, attribute, tags), is_worker=is_worker)
        assert (found.name, found.type, found.labels, found.text_label) == (name, MetricType(kind), labels, None)


@pytest.mark.parametrize(
    ("bean", "tags", "attribute"),
    [
        ("kafka.consumer:consumer-metrics", CLIENT, "incoming-byte-rate"),
        ("kafka.consumer:consumer-fetch-manager-metrics", CLIENT_TOPIC, "records-lag-max"),
        ("kafka.connect:source-task-metrics", TASK, "source-record-write-rate"),
        ("kafka.connect:connector-task-metrics", TASK, "batch-size-max"),
        ("kafka.connect:connector-metrics", ("connector",), "connector-count"),
    ],
)
def test_the_jmx_exporter_does_not_keep_what_no_rule_names(bean: str, tags: tuple[str, ...], attribute: str) -> None:
    domain, _, group = bean.partition(":")
    assert jmx_exporter_names(KafkaName(domain, group, attribute, tags), is_worker=False) == ()


@pytest.mark.parametrize(
    ("bean", "attribute", "name"),
    [
        ("kafka.consumer:consumer-metrics", "incoming-byte-total", "kafka_consumer_consumer_metrics_incoming_byte"),
        (
            "kafka.consumer:consumer-fetch-manager-metrics",
            "records-lag",
            "kafka_consumer_consumer_fetch_manager_metrics_records_lag",
        ),
        ("kafka.connect:connect-worker-metrics", "task-count", "kafka_connect_connect_worker_metrics_task_count"),
        (
            "kafka.connect.mirror:MirrorSourceConnector",
            "byte-rate",
            "kafka_connect_mirror_mirrorsourceconnector_byte_rate",
        ),
    ],
)
def test_the_metrics_reporter_has_one_rule_and_only_gauges(bean: str, attribute: str, name: str) -> None:
    domain, _, group = bean.partition(":")
    found = metrics_reporter_name(KafkaName(domain, group, attribute, CLIENT))
    assert (found.name, found.type, found.labels) == (name, MetricType.GAUGE, ("client_id",))


def test_a_text_is_an_info_of_the_metrics_reporter() -> None:
    page = ReadPage(whole(), REPORTER)
    name = "kafka_connect_connector_task_metrics_status_info"
    assert {"connector": "A->B.MirrorSourceConnector", "task": "0", "status": "running"} in page.rows(name)


def test_the_status_of_a_connector_has_the_meaning_that_users_of_the_process_know() -> None:
    """Of a task by the rules for MM2, of a connector by those for Connect."""
    name = "kafka_connect_connector_status"
    connector = '"A->B.MirrorSourceConnector"'
    assert {"connector": connector, "task": "0", "status": "running"} in ReadPage(whole()).rows(name)
    assert {"connector": connector, "status": "running"} in ReadPage(whole(WORKER)).rows(name)
    for page in (ReadPage(whole()), ReadPage(whole(WORKER))):
        assert page.value("kafka_connect_connector_task_status", connector=connector, task="0", status="running") == 1
        assert page.value("kafka_connect_connector_connector_type", connector=connector, connector_type="source") == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("orders", "orders"),
        ("my orders-1.x%", "my orders-1.x%"),
        ("A->B", '"A->B"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("a*b?c\\d", '"a\\*b\\?c\\\\d"'),
        ("two\nlines", '"two\\nlines"'),
        ("größe", '"größe"'),
        ("", ""),
    ],
)
def test_a_special_value_is_in_quotes_as_in_the_name_of_a_bean(value: str, shown: str) -> None:
    assert jmx_value(value) == shown


def test_only_the_jmx_exporter_shows_quotes() -> None:
    assert {
        row["client_id"] for row in ReadPage(whole(), REPORTER).rows("kafka_consumer_consumer_metrics_incoming_byte")
    } == {"A->B|A->B.MirrorSourceConnector-0|replication-consumer"}
    assert {row["clientid"] for row in ReadPage(whole()).rows("kafka_consumer_incoming_byte_total")} == {
        '"A->B|A->B.MirrorSourceConnector-0|replication-consumer"'
    }


def test_the_new_names_replace_the_old_ones_of_mm2_or_are_beside_them() -> None:
    old, new = "kafka_connect_mirror_mirrorsourceconnector_record_count", "kafka_connect_plugins_record_count"
    checkpoint = "kafka_connect_plugins_checkpoint_latency_ms"
    legacy, both, only_new = (
        ReadPage(whole(), JMX.of("jmx-exporter", formats, 1_000))
        for formats in (["legacy"], ["legacy", "new"], ["new"])
    )
    assert [bool(page.rows(old)) for page in (legacy, both, only_new)] == [True, True, False]
    assert [bool(page.rows(new)) for page in (legacy, both, only_new)] == [False, True, True]
    tags = {"connector", "task", "source", "target", "topic", "partition"}
    assert all(set(row) == tags for row in both.rows(new))
    assert all(set(row) == {*tags, "group"} for row in both.rows(checkpoint))
    assert only_new.rows("kafka_connect_worker_connector_count") == [{}]


def names_in(expression: str) -> set[str]:
    without_labels = re.sub(r"\{[^}]*\}|\b(by|on|group_left) \([^)]*\)|\b(on|group_left)\([^)]*\)", "", expression)
    return set(re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", without_labels)) - {"group_left"}


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: f"{each['id']} {each['panel']}")
@pytest.mark.parametrize("is_worker", [False, True], ids=["run", "worker"])
def test_every_panel_of_strimzis_dashboards_has_its_metrics(panel: dict[str, str], is_worker: bool) -> None:
    reporter = "Reporter" in panel["dashboard"]
    dialect = Dialect.METRICS_REPORTER if reporter else Dialect.JMX_EXPORTER
    found = families((dialect,), has_legacy_names=True, is_worker=is_worker)
    samples = {name for family in found for name in family.sample_names}
    names = names_in(panel["expr"])
    assert names
    assert names - NOT_OURS <= samples


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: f"{each['id']} {each['panel']}")
def test_the_matchers_of_every_panel_match_series(panel: dict[str, str]) -> None:
    """Literal quotes in client ids and connectors are part of the queries."""
    page = ReadPage(whole(), REPORTER if "Reporter" in panel["dashboard"] else JMX)
    for name, matchers in re.findall(r"([a-z_]+)\{([^}]*)\}", panel["expr"]):
        own = re.findall(r'(clientid|client_id|connector|task)=~"((?:[^"\\]|\\.)*)"', matchers)
        rows = [] if name in NOT_OURS else page.rows(name)
        matching = [
            row for row in rows if all(re.fullmatch(value.replace('\\"', '"'), row[label]) for label, value in own)
        ]
        assert matching or name in NOT_OURS
