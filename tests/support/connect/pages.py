"""Pages of metrics, read as Prometheus reads them."""

from __future__ import annotations

from prometheus_client import parser

from heliograph.metrics.page import TEXT, MetricOptions, render
from heliograph.status.process_snapshot import ProcessSnapshot

JMX = MetricOptions.of("jmx-exporter", ["legacy"], 1_000)
REPORTER = MetricOptions.of("metrics-reporter", ["legacy"], 1_000)

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class ReadPage:
    """The samples of a page."""

    def __init__(self, snapshot: ProcessSnapshot, options: MetricOptions = JMX) -> None:
        self.text = render(snapshot, TEXT, options, str).body.decode()
        self.families = {each.name: each for each in parser.text_string_to_metric_families(self.text)}
        self._samples = [sample for each in self.families.values() for sample in each.samples]

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the labels of each series of a metric."""
        return [sample.labels for sample in self._samples if sample.name == name]

    def values(self, name: str, **labels: str) -> list[float]:
        """Return the values of the series that have the labels."""
        return [
            sample.value for sample in self._samples if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name: str, **labels: str) -> float:
        """Return the value of the only series that has the labels."""
        (value,) = self.values(name, **labels)
        return value
