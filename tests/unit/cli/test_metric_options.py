"""The names that a page has: those that the file, or any connector of a worker, asks for."""

from __future__ import annotations

from typing import cast

from heliograph.cli.metrics_service import FileOptions, worker_options
from heliograph.config.effective.metrics_config import MetricsConfig
from heliograph.config.validate.dedicated_file import load
from heliograph.connect.contract.herder import Herder
from heliograph.connect.runtime.connect_worker import StartingHerder
from heliograph.metrics.dialects import Dialect
from heliograph.metrics.page import MetricOptions
from tests.support.config_files import FakeLookup, minimal
from tests.support.connect.fake_herder import FakeHerder

JMX, REPORTER, NEW = Dialect.JMX_EXPORTER, Dialect.METRICS_REPORTER, Dialect.KIP_1280


def test_a_new_version_of_the_file_changes_the_page() -> None:
    lookup = FakeLookup({"FORMATS": "legacy"})
    file = [load(minimal(), lookup)]
    options = FileOptions(lambda: file[-1])
    assert options() == MetricOptions((JMX,), 1_000)
    lines = ("heliograph.metrics.dialect=metrics-reporter", "heliograph.metrics.partitions.max=5")
    file.append(load(minimal(*lines, "A->B.metric.names.formats=legacy,new"), lookup))
    assert options() == MetricOptions((REPORTER, NEW), 5)


def test_values_behind_placeholders_are_not_read_at_each_scrape() -> None:
    lookup = FakeLookup({"FORMATS": "new"})
    config = load(minimal("A->B.metric.names.formats=${env:FORMATS}"), lookup)
    options = FileOptions(lambda: config)
    lookup.variables.clear()
    assert options().dialects == (JMX, NEW)


def test_a_version_whose_secrets_cannot_be_read_now_keeps_the_options_before() -> None:
    lookup = FakeLookup({"FORMATS": "new"})
    file = [load(minimal(), lookup)]
    options = FileOptions(lambda: file[-1])
    file.append(load(minimal("A->B.metric.names.formats=${env:FORMATS}"), lookup))
    lookup.variables.clear()
    assert options().dialects == (JMX,)


def test_a_worker_has_the_names_that_its_connectors_ask_for() -> None:
    herder, config = FakeHerder(), MetricsConfig((), "metrics-reporter", 7)
    view = cast("Herder", herder)
    assert worker_options(config, view) == MetricOptions((REPORTER,), 7)
    for name, formats in (("a", "legacy"), ("b", "legacy, new")):
        herder.configs[name] = {"connector.class": "MirrorSource", "metric.names.formats": formats}
        herder.targets[name] = "STARTED"
    assert worker_options(config, view).dialects == (REPORTER, NEW)


def test_legacy_names_are_left_out_if_no_connector_asks_for_them() -> None:
    herder, config = FakeHerder(), MetricsConfig((), "jmx-exporter", 7)
    view = cast("Herder", herder)
    herder.configs["a"] = {"connector.class": "MirrorSource", "metric.names.formats": "new"}
    herder.configs["hb"] = {"connector.class": "MirrorHeartbeat"}
    herder.targets |= {"a": "STARTED", "hb": "STARTED"}
    assert worker_options(config, view) == MetricOptions((JMX, NEW), 7, has_legacy_names=False)
    herder.configs["b"] = {"connector.class": "MirrorCheckpoint"}
    herder.targets["b"] = "STARTED"
    assert worker_options(config, view).has_legacy_names


def test_a_worker_that_is_starting_has_the_usual_names() -> None:
    view = cast("Herder", StartingHerder())
    assert worker_options(MetricsConfig((), "jmx-exporter", 1), view).dialects == (JMX,)
