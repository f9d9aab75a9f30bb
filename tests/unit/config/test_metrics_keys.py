"""The keys of metrics: at the top of a dedicated-mode file, in a worker's file, and per connector."""

from __future__ import annotations

import pytest

from heliograph.config import keys
from heliograph.config.effective.file_changes import Effect, compare_files
from heliograph.config.effective.metrics_config import MetricsConfig, metrics_config
from heliograph.config.effective.rest_config import RestListener
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.validate.dedicated_file import examine, load
from heliograph.config.validate.worker_file import examine_worker
from heliograph.model import Flow
from tests.support.config_files import FakeLookup, minimal
from tests.support.diagnostics import texts

WORKER = "\n".join(
    (
        "bootstrap.servers=a:1",
        "group.id=g",
        *(f"{store}.storage.topic={store}" for store in ("config", "offset", "status")),
    )
)


def read(*lines: str) -> MetricsConfig:
    config = load(minimal(*lines), FakeLookup({"PORT": "9404"}))
    return metrics_config(config.raw, config.resolver)


def test_without_keys_there_are_no_listeners_and_the_names_of_the_jmx_exporter() -> None:
    assert read() == MetricsConfig((), "jmx-exporter", 1_000)


def test_a_listener_without_a_host_is_reached_from_this_machine_only() -> None:
    found = read("heliograph.metrics.listeners=http://:9404, https://192.0.2.1:9405, http://[::1]:0").listeners
    assert found == (
        RestListener("127.0.0.1", 9404),
        RestListener("192.0.2.1", 9405, is_https=True),
        RestListener("::1", 0),
    )


def test_values_may_be_placeholders() -> None:
    assert read("heliograph.metrics.listeners=http://:${env:PORT}").listeners == (RestListener("127.0.0.1", 9404),)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("heliograph.metrics.listeners=9404", "http://HOST:PORT"),
        ("heliograph.metrics.listeners=http://:9404, tcp://:1", "http://HOST:PORT"),
        ("heliograph.metrics.listeners=http://:99999", "http://HOST:PORT"),
        ("heliograph.metrics.listeners=http://user@host:1", "http://HOST:PORT"),
        ("heliograph.metrics.listeners=http://:1/metrics", "http://HOST:PORT"),
        ("heliograph.metrics.dialect=prometheus", "must be one of jmx-exporter, metrics-reporter"),
        ("heliograph.metrics.partitions.max=-1", "must be at least 0"),
        ("heliograph.metrics.partitions.max=many", "not a whole number"),
    ],
)
def test_a_wrong_value_is_a_problem_of_its_line_in_both_kinds_of_files(line: str, words: str) -> None:
    for report in (examine(minimal(line), FakeLookup()), examine_worker(f"{WORKER}\n{line}", FakeLookup())):
        problems = texts(report.problems)
        assert len(problems) == 1
        assert words in problems[0]
        assert line.partition("=")[0] in problems[0]


def test_a_problem_of_a_file_names_the_address_that_is_wrong() -> None:
    problems = texts(examine(minimal("heliograph.metrics.listeners=http://:1, 9404"), FakeLookup()).problems)
    assert "'9404' is not an address; write it as http://HOST:PORT" in problems[0]


def test_a_typo_is_noticed() -> None:
    for report in (
        examine(minimal("heliograph.metrics.listener=http://:9404"), FakeLookup()),
        examine_worker(f"{WORKER}\nheliograph.metrics.listener=http://:9404", FakeLookup()),
    ):
        assert any("heliograph.metrics.listeners" in text for text in texts(report.warnings))


@pytest.mark.parametrize(("text", "formats"), [("new", ("new",)), ("legacy, new", ("legacy", "new"))])
def test_the_names_of_kip_1280_are_chosen_for_each_flow(text: str, formats: tuple[str, ...]) -> None:
    config = load(minimal(f"A->B.metric.names.formats={text}"), FakeLookup())
    assert config.settings(Flow("A", "B"))[keys.METRIC_NAMES_FORMATS] == formats
    assert texts(config.notes) == ()


@pytest.mark.parametrize("text", ["old", "legacy,new,newer", ""])
def test_other_names_are_refused(text: str) -> None:
    report = examine(minimal(f"A->B.metric.names.formats={text}"), FakeLookup())
    assert any("must be legacy, new or both" in each for each in texts(report.problems))


def test_a_change_of_names_and_limits_restarts_no_task_and_one_of_listeners_needs_a_new_process() -> None:
    old = load(minimal(), FakeLookup())
    new = load(
        minimal(
            "heliograph.metrics.listeners=http://:9404",
            "heliograph.metrics.dialect=metrics-reporter",
            "metric.names.formats=new",
        ),
        FakeLookup(),
    )
    changes = compare_files(old, new)
    assert changes.flows[Flow("A", "B")] is not Effect.RESTART
    assert changes.unapplied == ("heliograph.metrics.listeners",)


def test_a_value_of_a_patient_resolver_is_not_needed_before_it_is_read() -> None:
    resolver = Resolver(FakeLookup(), {}, is_patient=True)
    assert metrics_config({}, resolver).listeners == ()
