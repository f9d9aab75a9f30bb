"""Names, types and labels of Kafka's metrics against a recording of Java with the JMX exporter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliograph.metrics.dialects import Dialect
from heliograph.metrics.families import Family, families
from heliograph.metrics.kafka_metrics import MIRROR_DOMAIN, NEW_GROUP, KafkaMetric
from heliograph.metrics.label_values import jmx_value

FILE = Path(__file__).with_name("java_metrics.json")

# Java's exporter adds it where two attributes get one name, of which we have one: `records-lag` and `records-lag-max`.
AMBIGUOUS_NAMES = "_objectname"
# `run` has what the rules for Connect keep beside those for MM2, whose file Java MM2 was recorded with.
ONLY_BY_RULES_FOR_CONNECT = {
    "kafka_connect_connector_connector_class",
    "kafka_connect_connector_connector_type",
    "kafka_connect_connector_connector_version",
    "kafka_connect_connector_task_status",
}


def recorded(part: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(FILE.read_text(encoding="utf-8"))[part]
    return found


def labels_of(row: dict[str, object]) -> set[tuple[str, ...]]:
    series: list[dict[str, dict[str, list[str]]]] = row["series"]  # type: ignore[assignment]
    return {tuple(sorted(set(each["labels"]) - {AMBIGUOUS_NAMES})) for each in series}


def of_kafka(*, is_worker: bool) -> list[Family]:
    found = families((Dialect.JMX_EXPORTER, Dialect.KIP_1280), has_legacy_names=True, is_worker=is_worker)
    return [each for each in found if each.dialect is Dialect.JMX_EXPORTER or each.name.startswith("jvm_")]


def is_of(family: Family, *, new: bool) -> bool:
    """Return whether it is one of MM2's own metrics, by its old or its new name."""
    metric = family.metric
    if not isinstance(metric, KafkaMetric):
        return False
    return metric.name.group == NEW_GROUP if new else metric.name.domain == MIRROR_DOMAIN


@pytest.mark.parametrize(("part", "is_worker"), [("mirror_maker", False), ("connect", True)])
def test_names_types_and_labels_are_those_of_java(part: str, is_worker: bool) -> None:
    """Java MM2 was recorded with the old names of MM2's metrics, Connect with the new ones."""
    java = recorded(part)
    compared = 0
    for family in of_kafka(is_worker=is_worker):
        if is_of(family, new=not is_worker) or (not is_worker and family.name in ONLY_BY_RULES_FOR_CONNECT):
            continue
        for name in family.sample_names:
            assert name in java, name
            assert (name, java[name]["type"]) == (name, family.type.value)
            assert family.all_labels in labels_of(java[name]), name
            compared += 1
    assert compared > 40


def test_values_are_quoted_as_java_quotes_them() -> None:
    """A group of the recording has a name with spaces, quotes and a question mark."""
    row = recorded("mirror_maker")["kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"]
    series: list[dict[str, dict[str, list[str]]]] = row["series"]  # type: ignore[assignment]
    groups = {value for each in series for value in each["labels"]["group"]}
    assert jmx_value('cart: "new" 50%?') in groups
    assert jmx_value("shop") in groups
