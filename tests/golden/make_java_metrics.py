"""Records what Java MM2 and Java Connect 4.3.1 show to Prometheus through the JMX exporter, to java_metrics.json.

    python -m tests.golden.make_java_metrics

It starts two clusters, Java MM2 between them with the exporter and Strimzi's rules for MM2, then a Connect worker with
the same connectors and Strimzi's rules for Connect. The file has each name with its type, and for each set of labels
the number of series and some values of each label. Ports and ids of this run are replaced by words.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heliograph.embedded.jars import DEFAULT_VERSION
from heliograph.embedded.kafka_cluster import EmbeddedCluster, forget_cluster, start_cluster
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import CommittedOffset, TopicPartition
from tests.interop.java_connect import JavaConnect
from tests.interop.java_mm2 import JavaMirrorMaker, small_cluster_lines
from tests.interop.jmx_exporter import VERSION, JmxExporter, connect_rules, mm2_rules
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.monitoring.exposition import Metrics, scrape

FILE = Path(__file__).with_name("java_metrics.json")
TOPICS = {"orders": 2, "payments.eu": 1}
RECORDS = 600  # of each topic
# (Java's checkpoint connector gives its tasks a list of groups with commas between: a name may have none.)
GROUP, ODD_GROUP = "shop", 'cart: "new" 50%?'
_MIRROR = "org.apache.kafka.connect.mirror"
_EXAMPLES = 6
_PATIENCE_S = 120.0
_LAST = (
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms",
    "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms",
    "kafka_consumer_fetch_manager_records_lag",
    "kafka_connect_connector_task_offset_commit_avg_time_ms",
)
_OF_THIS_RUN = (
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
)


def main() -> None:
    """Run both, and write the file."""
    with (
        tempfile.TemporaryDirectory(prefix="heliograph-java-metrics-") as name,
        _cluster("A", Path(name)) as source,
        _cluster("B", Path(name)) as target,
    ):
        fill(source)
        recorded = {
            "kafka": DEFAULT_VERSION,
            "exporter": VERSION,
            "mirror_maker": summary(of_mirror_maker(source, target, Path(name))),
            "connect": summary(of_connect(source, target, Path(name))),
        }
    FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def _cluster(alias: str, folder: Path) -> Iterator[EmbeddedCluster]:
    name = f"java-metrics-{alias}"
    cluster = start_cluster(name, data=folder / alias)
    try:
        yield cluster
    finally:
        cluster.stop()
        forget_cluster(name)


def fill(source: EmbeddedCluster) -> None:
    """Write records, and commit offsets of two groups."""
    for topic, partitions in TOPICS.items():
        make_topic(source, topic, partitions)
        write(source, topic, ({"key": b"k", "value": b"v" * 100, "partition": n % partitions} for n in range(RECORDS)))
    admin = admin_of(source)
    for group, topic in ((GROUP, "orders"), (ODD_GROUP, "payments.eu")):
        end = CommittedOffset(
            RECORDS // TOPICS[topic]
        )  # Java translates only what follows the first sync that it reads
        places = {TopicPartition(topic, p): end for p in range(TOPICS[topic])}
        assert GroupAdmin(admin).commit(group, places) == {}
    admin.close()


def of_mirror_maker(source: EmbeddedCluster, target: EmbeddedCluster, folder: Path) -> Metrics:
    """Run Java MM2 until it has copied, committed and written checkpoints; return its page."""
    lines = [
        "clusters=A, B",
        f"A.bootstrap.servers={source.bootstrap}",
        f"B.bootstrap.servers={target.bootstrap}",
        "A->B.enabled=true",
        "A->B.topics=orders, payments.*",
        "B.offset.flush.interval.ms=1000",
        *small_cluster_lines("A", "B"),
    ]
    file = folder / "mm2.properties"
    file.write_text("\n".join(lines) + "\n")
    exporter = JmxExporter.with_rules(mm2_rules(), folder)
    with JavaMirrorMaker(file, exporter.option) as java:
        page = page_with(exporter.url, _LAST, java)
        java.stop()
    return page


def of_connect(source: EmbeddedCluster, target: EmbeddedCluster, folder: Path) -> Metrics:
    """Run the connectors on Java Connect, with the names of KIP-1280 beside the old ones; return the worker's page.

    The checkpoint connector may have one partition only: with the new names its second one fails in 4.3.1.
    """
    clusters = {
        "source.cluster.alias": "A",
        "target.cluster.alias": "C",
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "metric.names.formats": "legacy,new",
        "sync.topic.acls.enabled": "false",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        # not the topics that MM2 has left
        "replication.policy.class": f"{_MIRROR}.DefaultReplicationPolicy",
        "replication.policy.separator": "-",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }
    own = {
        "Source": {"topics": "orders, payments.*"},
        "Checkpoint": {"topics": "payments.*", "groups": "cart.*"},
        "Heartbeat": {},
    }
    exporter = JmxExporter.with_rules(connect_rules(), folder)
    worker = JavaConnect.on(target, folder, "client.id=worker-1", group="connect", jvm_options=[exporter.option])
    with worker:
        worker.wait_until_ready()
        for kind, settings in own.items():
            config = {"connector.class": f"{_MIRROR}.Mirror{kind}Connector", **clusters, **settings}
            _put(f"{worker.url}/connectors/mm2-{kind.lower()}-A/config", config)
        last = tuple(name for name in _LAST if "_mirror_" not in name)
        plugins = ("kafka_connect_plugins_replication_latency_ms", "kafka_connect_plugins_checkpoint_latency_ms")
        page = page_with(exporter.url, (*last, *plugins), worker)
        worker.stop()
    return page


def _put(url: str, body: dict[str, str]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="PUT")  # noqa: S310
    with urllib.request.urlopen(request, timeout=120):  # noqa: S310  (our own URL)
        pass


def page_with(url: str, names: tuple[str, ...], java: JavaMirrorMaker | JavaConnect) -> Metrics:
    """Return the page of an exporter once it has series of all these names, with values."""
    deadline = time.monotonic() + _PATIENCE_S
    missing: list[str] = list(names)
    while True:
        try:
            page = scrape(url)
            missing = [name for name in names if all(math.isnan(each.value) for each in page.of(name))]
            if java_groups(page) not in (0, 2):
                missing.append("both groups")
            if not missing:
                return page
        except urllib.error.URLError:
            pass
        assert java.is_running, java.output()[-3000:]
        assert time.monotonic() < deadline, f"never shown: {missing}\n{java.output()[-5000:]}"
        time.sleep(0.5)


def java_groups(page: Metrics) -> int:
    """Return the number of groups with checkpoints."""
    return len({each.labels["group"] for each in page.of(_LAST[1])})


def summary(page: Metrics) -> dict[str, Any]:
    """Return each name with its type and its sets of labels."""
    names: dict[str, dict[tuple[str, ...], list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for series in page.series:
        names[series.name][tuple(sorted(series.labels))].append(series.labels)
    return {
        name: {
            "type": page.type_of(name),
            "series": [
                {"labels": {label: _examples(rows, label) for label in labels}, "count": len(rows)}
                for labels, rows in sorted(sets.items())
            ],
        }
        for name, sets in names.items()
    }


def _examples(rows: list[dict[str, str]], label: str) -> list[str]:
    return sorted({_lasting(row[label]) for row in rows})[:_EXAMPLES]


def _lasting(value: str) -> str:
    for pattern, word in _OF_THIS_RUN:
        value = pattern.sub(word, value)
    return value


if __name__ == "__main__":
    main()
