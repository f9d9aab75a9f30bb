"""The Prometheus JMX exporter in Java MM2 and Java Connect, with rules that make of a bean what Strimzi's rules make.

`mm2_rules` and `connect_rules` are the rules of the two, as a table; the patterns decide which attributes are kept, so
they are those that Strimzi's users have. The agent's jar is fetched as Kafka's are, and has a pinned SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from heliograph.embedded.jars import JarSet, ensure_jars
from heliograph.embedded.process import free_ports

VERSION = "1.0.1"
_JARS = JarSet(
    f"jmx-exporter-{VERSION}",
    (("io.prometheus.jmx", "jmx_prometheus_javaagent", VERSION),),
    hashes=Path(__file__).with_name("jmx_exporter_hashes.txt"),
)


class Rule(NamedTuple):
    """One rule: the first whose pattern is found in `domain<properties><>attribute: value` names the series."""

    pattern: str
    name: str | None = None
    type: str | None = None
    labels: Mapping[str, str] = {}
    value: float | None = None
    factor: float | None = None

    def as_json(self) -> dict[str, object]:
        """Return the rule as the exporter's file has it."""
        texts = {"name": self.name, "type": self.type, "labels": dict(self.labels)}
        numbers = {"value": self.value, "valueFactor": self.factor}
        wanted = {**texts, **numbers}
        return {"pattern": self.pattern, **{key: value for key, value in wanted.items() if value not in (None, {})}}


COUNTER, GAUGE, UNTYPED = "COUNTER", "GAUGE", "UNTYPED"
_MEANS = ".+-avg|.+-bytes|.+-count|.+-ratio|.+-age|.+-flight|.+-threads|.+-connectors|.+-tasks|.+-ago"
_OF_TASKS = ".+-avg|.+-failures|.+-requests|.+-timestamp|.+-logged|.+-errors|.+-retries|.+-skipped"
_CLIENT = "kafka.(.+)<type=(.+)-metrics, client-id="

APPS = (
    Rule(
        "kafka.(.+)<type=app-info, client-id=(.+)><>start-time-ms",
        "kafka_$1_start_time_seconds",
        GAUGE,
        {"clientId": "$2"},
        factor=0.001,
    ),
    Rule(
        "kafka.(.+)<type=app-info, client-id=(.+)><>(commit-id|version): (.+)",
        "kafka_$1_$3_info",
        UNTYPED,
        {"clientId": "$2", "$3": "$4"},
        1,
    ),
)
WORKERS = (
    Rule(
        "kafka.connect<type=connect-worker-metrics, connector=(.+)><>([a-z-]+)",
        "kafka_connect_worker_$2",
        GAUGE,
        {"connector": "$1"},
    ),
    Rule("kafka.connect<type=connect-worker-metrics><>([a-z-]+-total)", "kafka_connect_worker_$1", COUNTER),
    Rule("kafka.connect<type=connect-worker-metrics><>([a-z-]+)", "kafka_connect_worker_$1", GAUGE),
)
REBALANCES = tuple(
    Rule(f"kafka.connect<type=connect-worker-rebalance-metrics><>({kept})", "kafka_connect_worker_rebalance_$1", kind)
    for kept, kind in (("[a-z-]+-total", COUNTER), ("[a-z-]+", GAUGE))
)


def mm2_rules() -> tuple[Rule, ...]:
    """Return the rules for MirrorMaker 2."""
    of_partition = {"clientId": "$3", "topic": "$4", "partition": "$5"}
    of_topic = {"clientId": "$3", "topic": "$4"}
    of_node = {"clientId": "$3", "nodeId": "$4"}
    of_client = {"clientId": "$3"}
    lags = "compression-rate|.+-avg|.+-replica|.+-lag|.+-lead"
    return (
        *APPS,
        Rule(f"{_CLIENT}(.+), topic=(.+), partition=(.+)><>(.+-total)", "kafka_$2_$6", COUNTER, of_partition),
        Rule(f"{_CLIENT}(.+), topic=(.+), partition=(.+)><>({lags})", "kafka_$2_$6", GAUGE, of_partition),
        Rule(f"{_CLIENT}(.+), topic=(.+)><>(.+-total)", "kafka_$2_$5", COUNTER, of_topic),
        Rule(f"{_CLIENT}(.+), topic=(.+)><>(compression-rate|.+-avg)", "kafka_$2_$5", GAUGE, of_topic),
        Rule(f"{_CLIENT}(.+), node-id=(.+)><>(.+-total)", "kafka_$2_$5", COUNTER, of_node),
        Rule(f"{_CLIENT}(.+), node-id=(.+)><>(.+-avg)", "kafka_$2_$5", GAUGE, of_node),
        Rule(f"{_CLIENT}(.*)><>(.+-total)", "kafka_$2_$4", COUNTER, of_client),
        Rule(f"{_CLIENT}(.*)><>({_MEANS})", "kafka_$2_$4", GAUGE, of_client),
        _task_status("kafka_connect_connector_status"),
        *_tasks(".+-count|.+-ms|.+-ratio"),
        *WORKERS,
        *REBALANCES,
        *_mirrors("MirrorSourceConnector", "source", "target", "topic", "partition"),
        *_mirrors("MirrorCheckpointConnector", "source", "target", "group", "topic", "partition"),
    )


def connect_rules() -> tuple[Rule, ...]:
    """Return the rules for Kafka Connect; the last keeps, by the exporter's own naming, what KIP-1280 has added."""
    consumer = "kafka.consumer<type=consumer-fetch-manager-metrics, client-id=(.+), topic=(.+), partition=(.+)><>"
    producer = "kafka.producer<type=producer-topic-metrics, client-id=(.+), topic=(.+)><>"
    of_partition = {"clientId": "$1", "topic": "$2", "partition": "$3"}
    of_topic = {"clientId": "$1", "topic": "$2"}
    of_node = {"clientId": "$3", "nodeId": "$4"}
    lags = "compression-rate|.+-avg|.+-replica|.+-lag|.+-lead"
    texts = "connector-class|connector-type|connector-version|status"
    return (
        *APPS,
        Rule(f"{consumer}(.+-total)", "kafka_consumer_fetch_manager_$4", COUNTER, of_partition),
        Rule(f"{consumer}({lags})", "kafka_consumer_fetch_manager_$4", GAUGE, of_partition),
        Rule(f"{producer}(.+-total)", "kafka_producer_topic_$3", COUNTER, of_topic),
        Rule(f"{producer}(compression-rate|.+-avg|.+rate)", "kafka_producer_topic_$3", GAUGE, of_topic),
        Rule(f"{_CLIENT}(.+), node-id=(.+)><>(.+-total)", "kafka_$2_$5", COUNTER, of_node),
        Rule(f"{_CLIENT}(.+), node-id=(.+)><>(.+-avg|.+-rate)", "kafka_$2_$5", GAUGE, of_node),
        Rule(f"{_CLIENT}(.*)><>(.+-total)", "kafka_$2_$4", COUNTER, {"clientId": "$3"}),
        Rule(f"{_CLIENT}(.*)><>({_MEANS})", "kafka_$2_$4", GAUGE, {"clientId": "$3"}),
        Rule(
            f"kafka.connect<type=connector-metrics, connector=(.+)><>({texts}): (.+)",
            "kafka_connect_connector_$2",
            GAUGE,
            {"connector": "$1", "$2": "$3"},
            1,
        ),
        _task_status("kafka_connect_connector_task_status"),
        *_tasks(".+-count|.+-ms|.+-ratio|.+-seq-no|.+-rate|.+-max"),
        *WORKERS,
        Rule(
            "kafka.connect<type=connect-worker-rebalance-metrics><>(leader-name|connect-protocol): (.+)",
            "kafka_connect_worker_rebalance_$1",
            UNTYPED,
            {"$1": "$2"},
            1,
        ),
        *REBALANCES,
        Rule(
            "kafka.connect<type=connect-coordinator-metrics><>(assigned-connectors|assigned-tasks)",
            "kafka_connect_coordinator_$1",
            GAUGE,
        ),
        Rule("kafka.connect<type=plugins.*"),
    )


def _task_status(name: str) -> Rule:
    labels = {"connector": "$1", "task": "$2", "status": "$3"}
    pattern = "kafka.connect<type=connector-task-metrics, connector=(.+), task=(.+)><>status: ([a-z-]+)"
    return Rule(pattern, name, GAUGE, labels, 1)


def _tasks(kept: str) -> tuple[Rule, Rule]:
    task = "kafka.connect<type=(.+)-metrics, connector=(.+), task=(.+)><>"
    labels = {"connector": "$2", "task": "$3"}
    return (
        Rule(f"{task}(.+-total)", "kafka_connect_$1_$4", COUNTER, labels),
        Rule(f"{task}({kept}|{_OF_TASKS})", "kafka_connect_$1_$4", GAUGE, labels),
    )


def _mirrors(connector: str, *tags: str) -> tuple[Rule, ...]:
    properties = ", ".join(f"{tag}=(.+)" for tag in tags)
    labels = {tag: f"${number}" for number, tag in enumerate(tags, start=1)}
    name = f"kafka_connect_mirror_{connector.lower()}_${len(tags) + 1}"
    return (Rule(f"kafka.connect.mirror<type={connector}, {properties}><>([a-z-_]+)", name, GAUGE, labels),)


class JmxExporter(NamedTuple):
    """The agent for one JVM: the option that starts it, and where its page will be."""

    option: str
    url: str

    @classmethod
    def with_rules(cls, rules: tuple[Rule, ...], folder: Path) -> JmxExporter:
        """Prepare the agent on a free port."""
        settings = {"lowercaseOutputName": True, "lowercaseOutputLabelNames": True}
        port = free_ports(1)[0]
        file = folder / f"jmx-exporter-{port}.yml"
        file.write_text(json.dumps({**settings, "rules": [rule.as_json() for rule in rules]}, indent=1))
        jar = next(ensure_jars(_JARS).glob("jmx_prometheus_javaagent-*.jar"))
        return cls(f"-javaagent:{jar}=127.0.0.1:{port}:{file}", f"http://127.0.0.1:{port}/metrics")
