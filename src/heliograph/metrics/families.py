"""The families of a page: every metric under the name that it has there, for the dialects that were chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from heliograph.metrics.dialects import Dialect, ExportedName, jmx_exporter_names, metrics_reporter_name
from heliograph.metrics.jvm_metrics import JVM_METRICS
from heliograph.metrics.kafka_metrics import KAFKA_METRICS, MIRROR_DOMAIN, NEW_GROUP, KafkaMetric
from heliograph.metrics.metric import Metric, MetricType
from heliograph.metrics.own_metrics import OWN_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Family:
    """One metric on a page. `metric` has its values; `labels` are the names for those of its subject."""

    name: str
    type: MetricType
    labels: tuple[str, ...]
    metric: Metric[Any] | KafkaMetric[Any]
    dialect: Dialect | None = None  # of a metric of Kafka
    text_label: str | None = None
    unit: str = ""

    @property
    def shown_name(self) -> str:
        """The name that queries use; counts of a summary or histogram need a further suffix."""
        suffixes = {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}
        return self.name + suffixes.get(self.type, "")

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names of its samples."""
        if self.type is MetricType.SUMMARY:
            return f"{self.name}_count", f"{self.name}_sum"
        if self.type is MetricType.HISTOGRAM:
            return f"{self.name}_bucket", f"{self.name}_count", f"{self.name}_sum"
        return (self.shown_name,)

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The names of all labels of its samples, sorted."""
        added = ("le",) if self.type is MetricType.HISTOGRAM else ()
        return tuple(sorted((*self.labels, *((self.text_label,) if self.text_label else ()), *added)))


@lru_cache(maxsize=16)
def families(dialects: tuple[Dialect, ...], *, has_legacy_names: bool, is_worker: bool) -> tuple[Family, ...]:
    """Return the families of a page; a name that two dialects share is that of the first."""
    found: dict[str, Family] = {}
    for family in (*_own(), *_of_kafka(dialects, has_legacy_names=has_legacy_names, is_worker=is_worker)):
        found.setdefault(family.name, family)
    return tuple(found.values())


def _own() -> Iterator[Family]:
    for metric in (*OWN_METRICS, *JVM_METRICS):
        yield Family(metric.name, metric.type, metric.subject.labels, metric, unit=metric.unit)


def _of_kafka(dialects: tuple[Dialect, ...], *, has_legacy_names: bool, is_worker: bool) -> Iterator[Family]:
    for dialect in dialects:
        for metric in KAFKA_METRICS:
            if metric.name.group == NEW_GROUP and Dialect.KIP_1280 not in dialects:
                continue
            if metric.name.domain == MIRROR_DOMAIN and not has_legacy_names:
                continue
            for name in exported_names(dialect, metric, is_worker=is_worker):
                yield Family(name.name, name.type, name.labels, metric, dialect, name.text_label)


def exported_names(dialect: Dialect, metric: KafkaMetric[Any], *, is_worker: bool) -> tuple[ExportedName, ...]:
    """Return the names that a dialect has for a metric of Kafka."""
    if dialect is Dialect.JMX_EXPORTER:
        return jmx_exporter_names(metric.name, is_worker=is_worker)
    if dialect is Dialect.METRICS_REPORTER:
        return (metrics_reporter_name(metric.name),)
    return (metrics_reporter_name(metric.name),) if metric.name.group == NEW_GROUP else ()
