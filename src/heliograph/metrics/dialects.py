"""Names of Kafka's metrics in Prometheus: each exporter derives them from domain, group, attribute and tags.

The rules of the JMX exporter are those of Strimzi's example for MirrorMaker 2, and for Kafka Connect where these have
more; Strimzi's Metrics Reporter has one rule for all. With KIP-1280 the metrics of MM2 itself have another domain,
group and further tags; both exporters then name them in the same way, by the exporter's default rule.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from heliograph.metrics.metric import MetricType


class Dialect(StrEnum):
    """The names that a page has for Kafka's metrics."""

    JMX_EXPORTER = "jmx-exporter"
    METRICS_REPORTER = "metrics-reporter"
    KIP_1280 = "kip-1280"  # in addition to one of the others, the new names of MM2's own metrics


class KafkaName(NamedTuple):
    """A metric as Kafka names it. `tags` are the names of its tags; a text is one that is no number."""

    domain: str
    group: str
    attribute: str
    tags: tuple[str, ...]
    is_text: bool = False


class ExportedName(NamedTuple):
    """A name in Prometheus, without the suffix of its type; `text_label` contains the value of a text."""

    name: str
    type: MetricType
    labels: tuple[str, ...]
    text_label: str | None = None


class _Rule(NamedTuple):
    """One rule of the JMX exporter; the first that matches names the metric, and what matches none is not kept."""

    beans: str
    tags: tuple[str, ...]
    attributes: str
    prefix: str
    type: MetricType
    is_of_text: bool = False


NEW_SOURCE_TAGS = ("connector", "task", "source", "target", "topic", "partition")
NEW_CHECKPOINT_TAGS = ("connector", "task", "source", "target", "group", "topic", "partition")

_GAUGE, _COUNTER = MetricType.GAUGE, MetricType.COUNTER
_TASK = ("connector", "task")
_CLIENT = r"kafka\.(?P<domain>[\w.]+):(?P<group>[a-z-]+)-metrics"
_RULES = (
    _Rule(_CLIENT, ("client-id", "topic", "partition"), r".+-total", "kafka_{group}_", _COUNTER),
    _Rule(
        _CLIENT,
        ("client-id", "topic", "partition"),
        r"compression-rate|.+-(avg|replica|lag|lead)",
        "kafka_{group}_",
        _GAUGE,
    ),
    _Rule(_CLIENT, ("client-id", "topic"), r".+-total", "kafka_{group}_", _COUNTER),
    _Rule(_CLIENT, ("client-id", "topic"), r"compression-rate|.+-avg", "kafka_{group}_", _GAUGE),
    _Rule(
        r"kafka\.connect:connect-coordinator-metrics",
        ("client-id",),
        r".+-total",
        "kafka_connect_coordinator_",
        _COUNTER,
    ),
    _Rule(
        r"kafka\.connect:connect-coordinator-metrics",
        ("client-id",),
        r".+-(connectors|tasks|ago)",
        "kafka_connect_coordinator_",
        _GAUGE,
    ),
    _Rule(_CLIENT, ("client-id",), r".+-total", "kafka_{group}_", _COUNTER),
    _Rule(
        _CLIENT,
        ("client-id",),
        r".+-(avg|bytes|count|ratio|age|flight|threads|connectors|tasks|ago)",
        "kafka_{group}_",
        _GAUGE,
    ),
    _Rule(r"kafka\.connect:connector-task-metrics", _TASK, "status", "kafka_connect_connector_", _GAUGE, True),
    _Rule(r"kafka\.connect:(?P<group>[a-z-]+)-metrics", _TASK, r".+-total", "kafka_connect_{group}_", _COUNTER),
    _Rule(
        r"kafka\.connect:(?P<group>[a-z-]+)-metrics",
        _TASK,
        r".+-(count|ms|ratio|avg|failures|requests|timestamp|logged|errors|retries|skipped)",
        "kafka_connect_{group}_",
        _GAUGE,
    ),
    _Rule(r"kafka\.connect:connect-worker-metrics", ("connector",), r"[a-z-]+", "kafka_connect_worker_", _GAUGE),
    *(
        _Rule(f"kafka\\.connect:connect-{group}-metrics", (), attributes, f"kafka_connect_{name}_", kind)
        for group, name in (("worker", "worker"), ("worker-rebalance", "worker_rebalance"))
        for attributes, kind in ((r".+-total", _COUNTER), (r"[a-z-]+", _GAUGE))
    ),
    _Rule(
        r"kafka\.connect\.mirror:MirrorSourceConnector",
        ("source", "target", "topic", "partition"),
        r"[a-z-_]+",
        "kafka_connect_mirror_mirrorsourceconnector_",
        _GAUGE,
    ),
    _Rule(
        r"kafka\.connect\.mirror:MirrorCheckpointConnector",
        ("source", "target", "group", "topic", "partition"),
        r"[a-z-_]+",
        "kafka_connect_mirror_mirrorcheckpointconnector_",
        _GAUGE,
    ),
    *(
        _Rule(r"kafka\.connect:plugins", tags, r"[a-z-_]+", "kafka_connect_plugins_", MetricType.UNTYPED)
        for tags in (NEW_SOURCE_TAGS, NEW_CHECKPOINT_TAGS)
    ),
)
"""Strimzi's rules for MirrorMaker 2. For `type=plugins` it has none: the names are those of the exporter's default."""

_CONNECT_RULES = (
    _Rule(r"kafka\.connect:connector-metrics", ("connector",), "status", "kafka_connect_connector_", _GAUGE, True),
    _Rule(
        r"kafka\.connect:connector-metrics",
        ("connector",),
        "connector-(class|type|version)",
        "kafka_connect_connector_",
        _GAUGE,
        True,
    ),
    _Rule(r"kafka\.connect:connector-task-metrics", _TASK, "status", "kafka_connect_connector_task_", _GAUGE, True),
)
"""Strimzi's rules for Kafka Connect, where they keep more or name it differently."""

_AMBIGUOUS = "kafka_connect_connector_status"
_RESERVED = re.compile(r"_(total|created|bucket|info)\Z")


def jmx_exporter_names(name: KafkaName, *, is_worker: bool) -> tuple[ExportedName, ...]:
    """Return the names of a metric in a Connect worker, or in a process that runs a file; none if it is not kept.

    `kafka_connect_connector_status` is the state of a task by the rules for MM2, that of a connector by those for
    Connect. A worker has the second meaning, like the Connect workers beside it; `run` has the first, like dedicated
    MM2. Apart from that name, `run` has the names of both.
    """
    of_mm2, of_connect = _named(_RULES, name), _named(_CONNECT_RULES, name)
    if is_worker:
        return of_connect or of_mm2
    return *of_mm2, *(each for each in of_connect if each.name != _AMBIGUOUS)


def _named(rules: tuple[_Rule, ...], name: KafkaName) -> tuple[ExportedName, ...]:
    for rule in rules:
        match = re.fullmatch(rule.beans, f"{name.domain}:{name.group}")
        if match is None or rule.tags != name.tags or rule.is_of_text != name.is_text:
            continue
        if re.fullmatch(rule.attributes, name.attribute):
            exported = _clean(rule.prefix.format(**match.groupdict()) + name.attribute)
            labels = tuple(tag.replace("-", "").lower() for tag in name.tags)
            if rule.is_of_text:
                return (ExportedName(exported, rule.type, labels, _clean(name.attribute)),)
            return (ExportedName(exported.removesuffix(_suffix(rule.type)), rule.type, labels),)
    return ()


def _suffix(kind: MetricType) -> str:
    return "_total" if kind is MetricType.COUNTER else ""


def metrics_reporter_name(name: KafkaName) -> ExportedName:
    """Return the name by the rule of Strimzi's Metrics Reporter: every number is a gauge, every text an info."""
    exported = _clean(f"{name.domain}_{name.group}_{name.attribute}")
    while _RESERVED.search(exported):
        exported = _RESERVED.sub("", exported)
    labels = tuple(_clean(tag) for tag in name.tags)
    if name.is_text:
        return ExportedName(exported, MetricType.INFO, labels, _clean(name.attribute))
    return ExportedName(exported, MetricType.GAUGE, labels)


def _clean(text: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_:]", "_", text).lower()
