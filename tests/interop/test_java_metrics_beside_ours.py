"""Java MM2 with the JMX exporter and Heliograph on the same topics: names, types, labels and values compared.

`DIFFERENCES` lists what Java shows and we do not, with the reason: any other difference is a failure, and so is a row
that has become superfluous.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import CommittedOffset, TopicPartition
from tests.conftest import running_cluster
from tests.interop.java_mm2 import JavaMirrorMaker, small_cluster_lines
from tests.interop.jmx_exporter import JmxExporter, mm2_rules
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.monitoring.exposition import Metrics, scrape
from tests.support.monitoring.watched import running_with_metrics
from tests.support.runs.copying import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPICS = {"orders": 2, "payments.eu": 1}
RECORDS = 600  # of each topic
GROUPS = {"shop": "orders", 'cart: "new" 50%?': "payments.eu"}
_CLIENTS = "(admin_client|connect|consumer|producer)"
_OF_JVM = "memory_used_bytes|gc_collection_seconds_(count|sum)|threads_current"

DIFFERENCES = {
    r"jmx_.*": "the exporter's own",
    rf"jvm_(?!({_OF_JVM})$).*": "of the JVM that copies; here no JVM does, and Spark's has what the dashboards show",
    rf"kafka_{_CLIENTS}_(commit_id|version|start_time_seconds)": "versions of Java's client library",
    rf"kafka_{_CLIENTS}_(.*_)?(io|io_wait|io_waittime|iotime|select|network_io)_.*": "Java's selector",
    rf"kafka_{_CLIENTS}_.*authentication.*": "a login that fails is an issue of the flow, with its text",
    rf"kafka_{_CLIENTS}_node_.*": "by broker; we count by task and cluster",
    rf"kafka_{_CLIENTS}_connection_(close|creation)_total": "the number of connections is there",
    rf"kafka_{_CLIENTS}_(request|response)_.*": "by client; bytes and latencies are there",
    r"kafka_connect_(connection_count|(incoming|outgoing)_byte_total)": "of the worker's own group client",
    r"kafka_admin_client_(incoming|outgoing)_byte_total": "of administration, not of the copy",
    r"kafka_consumer_outgoing_byte_total|kafka_producer_incoming_byte_total": "requests without records",
    r"kafka_(connect|consumer)_coordinator_(?!assigned_).*": "a task is in no consumer group",
    r"kafka_consumer_(commit_sync|committed|last_poll|time_between|poll_idle).*": "Java's poll loop",
    r"kafka_consumer_fetch_manager_(?!records_lag$|records_consumed).*": "details of a fetch",
    r"kafka_producer_(?!buffer_available|outgoing|record_send|connection_count).*": "details of Java's producer",
    r"kafka_connect_connector_task_(batch_size_avg|pause_ratio|running_ratio)": "of Java's poll loop and its pauses",
    r"kafka_connect_source_task_poll_.*": "of Java's poll loop",
    r"kafka_connect_task_error_(deadletterqueue|last_error|total_records_skipped).*": "no converters, no dead letters",
    r"kafka_connect_worker_(connector|task)_startup_.*": "starts are states and restarts here",
    r"kafka_connect_worker_rebalance_(epoch|rebalance_(avg|max)_time_ms|time_since_last_rebalance_ms)": (
        "heliograph_worker_ has the rebalances"
    ),
}
ADDED = r"heliograph_.*|process_.*|python_.*|kafka_connect_connector_(connector_(class|type|version)|task_status)"
MIRRORS = re.compile(r"kafka_connect_mirror_mirror(source|checkpoint)connector_\w+")


class Pages(NamedTuple):
    """The pages of both, on the same topics and groups."""

    java: Metrics
    ours: Metrics


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    names = ("java-source", "java-target", "our-target")
    clusters = [running_cluster(f"beside-{name}", tmp_path_factory.mktemp(name)) for name in names]
    source, target_of_java, target = (next(each) for each in clusters)
    for topic, partitions in TOPICS.items():
        make_topic(source, topic, partitions)
        write(source, topic, ({"value": b"v" * 100, "partition": n % partitions} for n in range(RECORDS)))
    admin = admin_of(source)
    for group, topic in GROUPS.items():
        end = CommittedOffset(RECORDS // TOPICS[topic])
        places = {TopicPartition(topic, p): end for p in range(TOPICS[topic])}
        assert GroupAdmin(admin).commit(group, places) == {}
    admin.close()
    folder = tmp_path_factory.mktemp("beside")
    common = (f"A.bootstrap.servers={source.bootstrap}", "clusters=A, B", "A->B.enabled=true")
    common += ("A->B.topics=orders, payments.*", "heartbeats.replication.enabled=false", "A->B.tasks.max=1")
    common += ("B.offset.flush.interval.ms=1000", *small_cluster_lines("A", "B"))
    files = []
    for name, cluster in (("java", target_of_java), ("ours", target)):
        files.append(folder / f"{name}.properties")
        files[-1].write_text("\n".join((*common, f"B.bootstrap.servers={cluster.bootstrap}")) + "\n")
    exporter = JmxExporter.with_rules(mm2_rules(), folder)
    with JavaMirrorMaker(files[0], exporter.option) as java, running_with_metrics(files[1]) as (running, url):
        for page, output in ((exporter.url, java.output), (f"{url}/metrics", running.output)):
            wait_for(lambda: has_all(page), pause_s=0.5)  # noqa: B023
            assert output() is not None
        yield Pages(scrape(exporter.url), scrape(f"{url}/metrics"))
        assert running.stop() == 0
        java.stop()
    for each in clusters:
        next(each, None)


def has_all(url: str) -> bool:
    """Return whether all records are copied, and all groups have a checkpoint."""
    try:
        page = scrape(url)
    except OSError:
        return False
    copied = sum(row.value for row in page.of("kafka_connect_mirror_mirrorsourceconnector_record_count"))
    checkpoints = page.of("kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms")
    known = {row.labels["group"] for row in checkpoints if not math.isnan(row.value)}
    ages = page.of("kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg")
    is_measured = bool(ages) and not any(math.isnan(row.value) for row in ages)
    return copied == RECORDS * len(TOPICS) and len(known) == len(GROUPS) and is_measured


def names(page: Metrics) -> set[str]:
    return {row.name for row in page.series}


def label_sets(page: Metrics, name: str) -> set[frozenset[str]]:
    """Return the sets of label names; the exporter adds `_objectname` where its rules make two series the same."""
    return {frozenset(row.labels.keys() - {"_objectname"}) for row in page.of(name)}


def test_what_java_shows_and_we_do_not_is_listed_with_its_reason(pages: Pages) -> None:
    missing = names(pages.java) - names(pages.ours)
    patterns = {pattern: re.compile(pattern) for pattern in DIFFERENCES}
    assert [name for name in sorted(missing) if not any(p.fullmatch(name) for p in patterns.values())] == []
    assert [text for text, pattern in patterns.items() if not any(map(pattern.fullmatch, missing))] == []


def test_what_we_show_and_java_does_not_is_ours(pages: Pages) -> None:
    added = names(pages.ours) - names(pages.java)
    assert [name for name in sorted(added) if not re.fullmatch(ADDED, name)] == []


def test_types_and_labels_of_what_both_show_are_the_same(pages: Pages) -> None:
    both = names(pages.java) & names(pages.ours)
    assert len(both) > 40
    assert {name for name in both if pages.java.type_of(name) != pages.ours.type_of(name)} == set()
    assert {name for name in both if not label_sets(pages.ours, name) <= label_sets(pages.java, name)} == set()


def test_mirror_metrics_have_the_same_series(pages: Pages) -> None:
    """All attributes and label values, with the quotes of the odd group."""
    wanted = {name for name in names(pages.java) if MIRRORS.fullmatch(name)}
    assert len(wanted) == 12 + 4
    for name in wanted:
        theirs, ours = (
            {tuple(sorted(row.labels.items())) for row in page.of(name)} for page in (pages.java, pages.ours)
        )
        assert ours == theirs, name


def test_client_ids_have_javas_shape_and_quotes(pages: Pages) -> None:
    """Ours have the connector's name as Strimzi gives it; in dedicated mode Java's have it without the flow."""
    name = "kafka_consumer_fetch_manager_records_lag"
    theirs, ours = (
        {row.labels["clientid"] for row in page.of(name) if row.labels["topic"] == "orders"}
        for page in (pages.java, pages.ours)
    )
    assert theirs == {'"A->B|MirrorSourceConnector-0|replication-consumer"'}
    assert ours == {'"A->B|A->B.MirrorSourceConnector-0|replication-consumer"'}


def test_counts_are_equal_and_times_have_the_same_meaning(pages: Pages) -> None:
    mirror = "kafka_connect_mirror_mirrorsourceconnector_"
    for row in pages.java.of(f"{mirror}record_count"):
        assert pages.ours.value(f"{mirror}record_count", **row.labels) == row.value
        for what in ("record_age_ms", "replication_latency_ms"):
            for page in pages:  # the records are older than the start of both, and not by minutes
                assert 0 < page.value(f"{mirror}{what}", **row.labels) < 300_000
