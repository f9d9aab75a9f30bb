"""The page of metrics: formats, limits, and values as the snapshot has them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from prometheus_client import Gauge
from prometheus_client.openmetrics import parser as openmetrics_parser

from heliograph.metrics.families import families
from heliograph.metrics.metric import MetricType
from heliograph.metrics.page import OPENMETRICS, TEXT, MetricOptions, choose_format, render
from heliograph.status.flow_snapshot import Counts
from heliograph.status.partition_status import PartitionState
from heliograph.status.process_snapshot import EngineSnapshot
from heliograph.status.task_status import UNKNOWN_GAUGES, TaskGauges, TaskRow
from tests.support.connect.flow_snapshots import AT
from tests.support.connect.pages import JMX, ReadPage
from tests.support.connect.process_snapshots import (
    WORKER,
    checkpoints_of,
    copied,
    flow_of,
    group,
    group_partition,
    process_of,
    whole,
)

PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3_WITH_PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7," + PROMETHEUS_3
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain; version=0.0.4", TEXT),
        ("text/plain;version=0.0.4;q=0.3,*/*;q=0.2", TEXT),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", TEXT),
        ("application/json", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", OPENMETRICS),
        (PROMETHEUS_2_42, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS),
        (PROMETHEUS_3_WITH_PROTOBUF, OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4;q=0.5", TEXT),
        ("application/openmetrics-text;version=2.0.0", TEXT),
        ("text/plain, application/openmetrics-text;q=0.5", TEXT),
        ("text/plain;q=0.8, application/openmetrics-text;q=0.9", OPENMETRICS),
        ("application/openmetrics-text;q=0, text/plain;q=0.1", TEXT),
        ("application/openmetrics-text;q=nan", TEXT),
        ("application/openmetrics-text;version=abc;q=x;;,=;q", TEXT),
        ("application/openmetrics-text;version=1.0.0;escaping=\u00e4", OPENMETRICS),
        (",;=,;;q=,*" + ";" * 500, TEXT),
        ("application/openmetrics-text," * 1_000, TEXT),
    ],
)
def test_the_format_is_the_one_that_the_scraper_prefers(accept: str, content_type: str) -> None:
    assert choose_format(accept) == content_type


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_families_of_the_serving_process_are_appended(accept: str) -> None:
    gauge = Gauge("process_example", "An example.", registry=None)
    gauge.set(3)
    body = render(whole(), choose_format(accept), JMX, str, gauge.collect()).body.decode()
    assert "\nprocess_example 3.0\n" in body
    assert body.endswith("# EOF\n") == bool(accept)
    assert body.count("# EOF") == bool(accept)


def test_a_partition_that_stands_still_is_visible_under_a_running_task() -> None:
    stopped = copied("orders", 0, state=PartitionState.RETRYING)._replace(stopped_since=AT - 40)
    page = ReadPage(process_of(flow_of(stopped, copied("orders", 1))))
    assert page.value("heliograph_task_state", state="RUNNING") == 1
    assert page.value("heliograph_partition_state", partition="0", state="retrying", task="0") == 1
    assert page.values("heliograph_partition_state", partition="0") == [1]
    assert page.value("heliograph_partition_stopped_seconds", partition="0") == 40
    assert page.value("heliograph_partition_stopped_seconds", partition="1") == 0


def test_a_flow_shows_the_values_of_its_snapshot() -> None:
    page = ReadPage(whole())
    assert page.value("heliograph_flow_records_total", flow="A->B") == 14
    assert math.isnan(page.value("heliograph_flow_lag_records"))
    assert page.value("heliograph_flow_known_lag_records") == 3
    assert page.value("heliograph_flow_unknown_lag_partitions") == 1
    assert page.value("heliograph_flow_catch_up_seconds") == math.inf
    assert page.value("heliograph_flow_partitions", state="failed") == 1
    assert page.value("heliograph_loss_events_total", cause="source_truncated") == 1
    assert page.value("heliograph_lost_records_total", cause="source_truncated") == 250
    assert page.value("heliograph_loss_events_total", cause="source_cut") == 0
    assert page.value("heliograph_heartbeat_age_seconds", path="A->B") == 2
    assert page.value("heliograph_task_restarts_total", reason="failed") == 2
    assert page.value("heliograph_task_restarts_total", reason="lost") == 0, "the first one is an increase"
    assert page.value("heliograph_task_throttled_seconds_total") == 2.5
    assert page.value("heliograph_task_commit_seconds_sum") == 0.045
    assert page.value("heliograph_flow_latency_seconds_bucket", le="+Inf") == 122
    assert page.value("heliograph_flow_latency_seconds_bucket", le="0.025") == 3


def test_a_flow_that_has_not_found_its_partitions_has_no_numbers_of_them() -> None:
    flow = replace(flow_of(), has_found_partitions=False, catch_up_seconds=None)
    page = ReadPage(process_of(flow))
    for name in ("lag_records", "lag_seconds", "catch_up_seconds", "unknown_lag_partitions", "partitions"):
        values = page.values(f"heliograph_flow_{name}")
        assert values, name
        assert all(math.isnan(value) for value in values), name


def test_losses_are_not_counted_before_they_were_read() -> None:
    """A counter that begins at 0 and then has what happened last year would raise an alert at each start."""
    page = ReadPage(process_of(replace(flow_of(copied("t", 0)), loss_totals={})))
    assert page.rows("heliograph_loss_events_total") == []


def test_groups_are_not_counted_before_they_were_read() -> None:
    unread = checkpoints_of()._replace(passed_at=None)
    assert math.isnan(ReadPage(process_of(checkpoints=(unread,))).value("heliograph_checkpoints_groups"))
    assert ReadPage(process_of(checkpoints=(checkpoints_of(),))).value("heliograph_checkpoints_groups") == 0


def test_groups_show_what_a_failover_would_cost() -> None:
    page = ReadPage(whole())
    assert page.value("heliograph_group_read_again_records", group="idle") == 0
    assert math.isnan(page.value("heliograph_group_read_again_records", group="g"))
    assert page.value("heliograph_group_untranslated_partitions", group="g") == 1
    assert page.value("heliograph_group_translation_lag_seconds", group="g") == 9
    assert page.value("heliograph_checkpoints_complete_age_seconds") == 3
    assert page.value("heliograph_checkpoints_newest_age_seconds") == 30


def test_kafkas_metrics_have_the_values_of_the_snapshot() -> None:
    page = ReadPage(whole())
    mirror = "kafka_connect_mirror_mirrorsourceconnector_"
    labels = {"source": "A", "target": "B", "topic": "A.orders", "partition": "0"}
    assert page.value(f"{mirror}record_rate", **labels) == 12.5
    assert [page.value(f"{mirror}record_age_ms{what}", **labels) for what in ("", "_min", "_max", "_avg")] == [
        30,
        10,
        50,
        25,
    ]
    assert page.value(f"{mirror}replication_latency_ms", **labels) == 40
    latency = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
    assert page.value(latency, group="g", topic="A.orders", partition="0") == 7
    assert math.isnan(page.value(f"{latency}_max", group="g", topic="A.orders", partition="0"))
    assert page.value("kafka_producer_buffer_available_bytes") == 750_000
    assert page.value("kafka_connect_connector_task_offset_commit_avg_time_ms") == 15
    assert page.value("kafka_connect_worker_task_count") == 3


def test_a_rate_that_is_not_measured_has_no_series_so_that_the_sum_over_the_others_is_known() -> None:
    unmeasured = copied("orders", 1)._replace(window=None)
    page = ReadPage(process_of(flow_of(copied("orders", 0), unmeasured)))
    rate = "kafka_connect_mirror_mirrorsourceconnector_record_rate"
    assert [row["partition"] for row in page.rows(rate)] == ["0"]
    assert math.isnan(page.value("kafka_connect_mirror_mirrorsourceconnector_record_age_ms", partition="1"))


def test_a_task_without_a_run_has_no_buffer_that_would_look_exhausted() -> None:
    for gauges in (TaskGauges(), UNKNOWN_GAUGES):
        flow = flow_of(copied("t", 0))
        page = ReadPage(process_of(replace(flow, tasks=(flow.tasks[0]._replace(gauges=gauges),))))
        assert page.values("kafka_producer_buffer_available_bytes") == []


def test_every_task_of_every_connector_has_failures_so_that_sums_are_known() -> None:
    page = ReadPage(whole())
    failures = {
        row["connector"]: page.value("kafka_connect_task_error_total_record_failures", **row)
        for row in page.rows("kafka_connect_task_error_total_record_failures")
    }
    assert failures == {
        '"A->B.MirrorSourceConnector"': 7,
        '"A->B.MirrorCheckpointConnector"': 0,
        '"A->B.MirrorHeartbeatConnector"': 0,
    }


def test_the_lag_of_a_partition_without_a_task_is_shown() -> None:
    alone = replace(flow_of(copied("orders", 0)), tasks=(TaskRow(0, "RUNNING", None),))
    page = ReadPage(process_of(alone))
    (row,) = page.rows("kafka_consumer_fetch_manager_records_lag")
    assert row["clientid"] == '"A->B|A->B.MirrorSourceConnector-\\?|replication-consumer"'


def test_a_worker_that_does_not_lead_runs_nothing() -> None:
    """The sum over the workers of a group is the number of connectors."""
    page = ReadPage(process_of(worker=WORKER._replace(is_leader=False)))
    assert page.value("kafka_connect_worker_connector_count") == 0
    assert page.value("kafka_connect_coordinator_assigned_tasks") == 0
    assert page.value("heliograph_worker_leader") == 0
    assert page.rows("kafka_connect_connector_task_status") == []


def test_what_spark_does_not_answer_is_unknown() -> None:
    page = ReadPage(whole()._replace(engine=EngineSnapshot(None, 0, 0, None)))
    assert math.isnan(page.value("heliograph_spark_slots"))
    assert math.isnan(page.value("jvm_threads_current"))
    assert page.rows("jvm_gc_collection_seconds_sum") == []


def large(count: int = 30, topics: int = 3) -> tuple[ReadPage, ReadPage]:
    """Return the pages of a flow above and within the limit; two of its partitions are not copied."""
    partitions = [copied(f"t{number % topics}", number) for number in range(count)]
    partitions[4] = partitions[4]._replace(state=PartitionState.FAILED)
    partitions[7] = partitions[7]._replace(state=PartitionState.WAITING, window=None)
    total = Counts(sum(each.records for each in partitions), sum(each.bytes for each in partitions))
    process = process_of(replace(flow_of(*partitions), counts=total))
    return ReadPage(process, MetricOptions(partitions_max=10)), ReadPage(process)


def test_a_large_flow_shows_topics_and_the_partitions_that_are_not_copied() -> None:
    limited, full = large()
    assert {row["partition"] for row in limited.rows("heliograph_partition_state")} == {"4", "7"}
    assert len(full.rows("heliograph_partition_state")) == 30
    assert len(limited.rows("heliograph_topic_records_total")) == 3
    assert limited.value("heliograph_left_out_series", kind="partitions") == 28
    assert full.value("heliograph_left_out_series", kind="partitions") == 0
    assert limited.value("heliograph_topic_not_copied_partitions", topic="t1") == 2
    lag = "kafka_consumer_fetch_manager_records_lag"
    assert {row.get("partition") for row in limited.rows(lag)} == {None}


@pytest.mark.parametrize("topics", [3, 20])
def test_sums_over_a_large_flow_are_those_of_its_partitions(topics: int) -> None:
    """Topics without series of their own are in one series without a topic; it has the counts of the whole flow."""
    limited, full = large(topics=topics)
    assert len(limited.rows("heliograph_topic_records_total")) == min(topics, 10)
    for name in ("record_rate", "record_count", "byte_count"):
        metric = f"kafka_connect_mirror_mirrorsourceconnector_{name}"
        assert sum(limited.values(metric)) == pytest.approx(sum(full.values(metric)))
    lag = "kafka_consumer_fetch_manager_records_lag"
    assert sum(limited.values(lag)) == sum(full.values(lag)) == 90


def test_counts_of_a_large_flow_never_fall_while_other_topics_are_behind() -> None:
    """The topics with series stay the same, and a topic that is not copied any more leaves its counts in the sum."""

    def page(behind: int, failed: int | None = None) -> ReadPage:
        partitions = [copied(f"t{number:02}", 0, 900 if number == behind else 3) for number in range(20)]
        if failed is not None:
            partitions[failed] = partitions[failed]._replace(state=PartitionState.FAILED)
        flow = replace(flow_of(*partitions), counts=Counts(5_000, 50_000))
        return ReadPage(process_of(flow), MetricOptions(partitions_max=10))

    def topics(page: ReadPage) -> list[str]:
        return sorted(row["topic"] for row in page.rows("heliograph_topic_records_total"))

    names = [f"t{number:02}" for number in range(20)]
    assert topics(page(behind=0)) == topics(page(behind=19)) == names[:10]
    assert topics(page(0, failed=19)) == [*names[:9], "t19"]
    for name, total in (("record", 5_000), ("byte", 50_000)):
        metric = f"kafka_connect_mirror_mirrorsourceconnector_{name}_count"
        for each in (page(0), page(19), page(0, failed=19)):
            assert (each.rows(metric), each.values(metric)) == ([{"source": "A", "target": "B"}], [total])


def test_checkpoints_of_two_connectors_between_the_same_clusters_are_series_of_their_own() -> None:
    """Neither has the name of a flow if no or several source connectors copy between these clusters."""
    each = [
        checkpoints_of(group(name, group_partition("t", 0), lag_seconds=lag))._replace(connector=name, written=written)
        for name, lag, written in (("one", 0.0, 3), ("two", 5000.0, 4))
    ]
    page = ReadPage(process_of(checkpoints=tuple(each)), MetricOptions(partitions_max=0))
    for name, written in (("one", 3), ("two", 4)):
        assert page.value("heliograph_checkpoints_written_total", flow="A->B", connector=name) == written
    assert len(page.rows("heliograph_left_out_series")) == 4
    shown = ReadPage(process_of(checkpoints=tuple(each)))
    assert shown.value("heliograph_group_translation_lag_seconds", connector="two") == 5000
    assert [row["connector"] for row in shown.rows("heliograph_group_committed_offset")] == ["one", "two"]


def test_the_series_are_limited_even_if_nothing_is_copied() -> None:
    partitions = [copied(f"t{number}", 0, state=PartitionState.FAILED) for number in range(50)]
    page = ReadPage(process_of(flow_of(*partitions)), MetricOptions(partitions_max=10))
    assert len(page.rows("heliograph_partition_state")) == len(page.rows("heliograph_topic_lag_records")) == 10
    assert page.value("heliograph_left_out_series", kind="topics") == 40


def test_many_groups_show_those_that_need_attention() -> None:
    groups = [
        group(f"g{number}", *(group_partition("t", each) for each in range(5)), lag_seconds=float(number))
        for number in range(20)
    ]
    behind = group("behind", group_partition("t", 0, None, AT - 50), lag_seconds=50.0)
    page = ReadPage(process_of(checkpoints=(checkpoints_of(*groups, behind),)), MetricOptions(partitions_max=10))
    shown = {row["group"] for row in page.rows("heliograph_group_read_again_records")}
    assert len(shown) == 10
    assert {"behind", "g19"} <= shown
    assert [row["group"] for row in page.rows("heliograph_group_committed_offset")] == ["behind"]
    assert page.value("heliograph_left_out_series", kind="groups") == 11
    assert page.value("heliograph_left_out_series", kind="group_partitions") == 100
    latency = page.rows("kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms")
    assert {row["group"] for row in latency} == shown


def test_names_follow_the_conventions_of_prometheus() -> None:
    own = [each for each in families(JMX.dialects, has_legacy_names=True, is_worker=True) if each.dialect is None]
    for family in own:
        assert family.metric.help.endswith("."), family.name
        assert not family.name.endswith(("_ms", "_total", "_count", "_info")), family.name
        if family.type is not MetricType.INFO and family.unit:
            assert family.name.endswith(f"_{family.unit}")
    assert len({each.name for each in own}) == len(own)


def test_openmetrics_is_valid_with_everything_known() -> None:
    options = MetricOptions.of("jmx-exporter", ["legacy", "new"], 1_000)
    body = render(whole(WORKER), OPENMETRICS, options, str).body.decode()
    found = {each.name: each for each in openmetrics_parser.text_string_to_metric_families(body)}
    assert found["heliograph_flow_records"].type == "counter"
    assert found["heliograph_flow_latency_seconds"].unit == "seconds"
    empty = {each.name for each in families(options.dialects, has_legacy_names=True, is_worker=True)} - found.keys()
    assert empty == set()
