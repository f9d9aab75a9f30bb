"""Alerts fire by real causes on real brokers, reach Slack's place as messages, and end; none fires on a healthy flow.

The rules are those of deploy/monitoring with all durations divided by twenty. What takes hours, and alerts on values
that a test would have to invent, are in deploy/monitoring/tests.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from deploy.monitoring.grafana import make_dashboard
from kafka.admin import KafkaAdminClient

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.admin import alter_topic_configs
from heliograph.model import AlterConfigs, ConfigChange
from tests.conftest import running_cluster
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.monitoring.exposition import scrape
from tests.support.monitoring.load import Load
from tests.support.monitoring.servers import Alertmanager, Prometheus, SlackReceiver
from tests.support.monitoring.stack import alertmanager_config, prometheus_config
from tests.support.monitoring.tools import Tools
from tests.support.monitoring.watched import FLOW, Watched, flow_file, running_with_metrics, without_data
from tests.support.runs.copying import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FASTER = 20
TOPIC, PARTITIONS = "orders", 4
BIG = "big-records"
MOVED = "recreated"
HEALTHY_S = 20.0
BUDGET = "HeliographLagBudget.*"
"""What is used up by one test is not there for the next ones: the windows of these alerts are days."""
_PATIENCE_S = 300.0
"""For alerts: some last for the longest window of the rules, an hour, which is three minutes here."""


class Observed(NamedTuple):
    """A watched flow, and what Slack receives."""

    watched: Watched
    slack: SlackReceiver

    def firing(self, but: str = "") -> set[str]:
        """Return the names of the alerts that fire, but for those that match a regular expression."""
        rows = self.watched.prometheus.query(f'ALERTS{{alertstate="firing", alertname!~"{but}"}}')
        return {row.labels["alertname"] for row in rows}

    @contextmanager
    def fires(self, name: str, *texts: str) -> Iterator[None]:
        """Run a block that causes an alert: it fires inside, is sent, and ends after the block, which is sent too.

        `texts` are found in the message.
        """
        wait_for(lambda: not self.firing(but=BUDGET), _PATIENCE_S, pause_s=0.3)
        before = len(self.slack.messages)
        yield
        wait_for(lambda: self._has(before, "Resolved", *texts[:1]), _PATIENCE_S, pause_s=0.3)
        wait_for(lambda: not self.watched.prometheus.firing(name), _PATIENCE_S, pause_s=0.3)

    def wait_for_message(self, name: str, *texts: str) -> None:
        """Wait until an alert fires, and its message has arrived."""
        wait_for(lambda: self.watched.prometheus.firing(name), _PATIENCE_S, pause_s=0.3)
        wait_for(lambda: self._has(0, *texts), _PATIENCE_S, pause_s=0.3)

    def _has(self, after: int, *texts: str) -> bool:
        attachments = [each for message in self.slack.messages[after:] for each in message["attachments"]]
        found = [f"{each['title']}\n{each['text']}" for each in attachments]
        return any(all(text in message for text in texts) for message in found)


@pytest.fixture(scope="module")
def observed(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("alerts")
    clusters = [running_cluster(f"alerts-{name}", tmp_path_factory.mktemp(f"alerts-{name}")) for name in "ab"]
    source, target = (next(each) for each in clusters)
    for topic in (BIG, MOVED):
        make_topic(source, topic, 1)
    file = flow_file(
        folder,
        source,
        target,
        f"{TOPIC}, {BIG}, {MOVED}",
        "tasks.max = 1",
        "sync.topic.configs.enabled = false",
        "heliograph.restart.backoff.max.ms = 3000",
        "heliograph.on.recreated = restart",
    )
    with (
        Load(source, TOPIC, PARTITIONS, group="shop") as load,
        running_with_metrics(file) as (running, url),
        SlackReceiver() as slack,
        Alertmanager(tools, folder, alertmanager_config(folder, slack.url)) as alertmanager,
        running_prometheus(tools, folder, url, alertmanager) as prometheus,
    ):
        watched = Watched(source, target, load, running, url, prometheus)
        write(source, MOVED, ({"value": b"x", "partition": 0} for _n in range(10)))
        watched.wait_for_value(f'heliograph_topic_records_total{{topic="{MOVED}"}}', 10)
        yield Observed(watched, slack)
        print("", *slack.texts(), sep="\n")
    for each in clusters:
        next(each, None)


@contextmanager
def running_prometheus(tools: Tools, folder: Path, url: str, alertmanager: Alertmanager) -> Iterator[Prometheus]:
    """Start Prometheus once the flow runs: a start takes longer than a twentieth of what the rules allow for it."""

    def has_begun() -> bool:
        page = scrape(f"{url}/metrics")
        return any(row.value == 0 for row in page.of("heliograph_flow_unknown_lag_partitions")) and any(
            row.labels["topic"] == TOPIC for row in page.of("heliograph_partition_state")
        )

    wait_for(has_begun, pause_s=0.3)
    config = prometheus_config(folder, {"run": [url.removeprefix("http://")]}, alertmanager.address, faster=FASTER)
    with Prometheus(tools, folder, config) as prometheus:
        yield prometheus


@contextmanager
def suspended(cluster: EmbeddedCluster) -> Iterator[None]:
    """Stop a cluster's broker as SIGSTOP does: its connections stay open, and nothing answers."""
    broker = cluster.broker_process(1)
    broker.suspend()
    try:
        yield
    finally:
        broker.resume()


def limit_records(cluster: EmbeddedCluster, topic: str, largest: int) -> None:
    admin = admin_of(cluster)
    change = ConfigChange("max.message.bytes", None, str(largest))
    assert alter_topic_configs(admin, [AlterConfigs(topic, (change,))]) == {}
    admin.close()


def delete_topic(cluster: EmbeddedCluster, topic: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    client.delete_topics([topic])
    client.close()
    wait_for(lambda: not list(Path(cluster.folder).glob(f"node-*/data/{topic}-[0-9]")))


def of_dashboard(word: str) -> list[str]:
    """Return those expressions of our dashboard that have data only with a fault, and contain a word."""
    stopped = make_dashboard.STOPPED
    found = [each.expr for each in make_dashboard.expressions() if each.needs == stopped and word in each.expr]
    assert found
    return found


def test_a_healthy_flow_is_quiet(observed: Observed) -> None:
    before = len(observed.slack.messages)
    end = time.monotonic() + HEALTHY_S
    while time.monotonic() < end:
        assert observed.firing() == set()
        time.sleep(0.5)
    assert len(observed.slack.messages) == before


def test_a_target_that_hangs(observed: Observed) -> None:
    name, sentence = "HeliographReplicationStopped", "A-&gt;B: replication has stopped"
    with observed.fires(name, sentence), suspended(observed.watched.target):
        observed.wait_for_message(name, f"CRITICAL: {sentence}", "more records", "|What to do>")
        assert without_data(observed.watched.prometheus, of_dashboard("stopped")) == []


def test_a_source_that_hangs(observed: Observed) -> None:
    """The unknown lag follows from it, and is not sent."""
    name, sentence = "HeliographFlowNotReady", "A-&gt;B: not ready for 5 minutes"
    with observed.fires(name, sentence), suspended(observed.watched.source):
        observed.wait_for_message(name, f"CRITICAL: {sentence}")
        for follows in ("HeliographLagUnknown", "HeliographLagBudgetBurnsFast"):
            wait_for(lambda: observed.watched.prometheus.firing(follows), _PATIENCE_S, pause_s=0.3)  # noqa: B023
        assert not observed.watched.prometheus.firing("HeliographReplicationStopped")
        assert not any("is unknown" in text for text in observed.slack.texts())
        assert without_data(observed.watched.prometheus, of_dashboard("unknown")) == []


def test_a_partition_that_fails_beside_running_ones(observed: Observed) -> None:
    with observed.fires("HeliographFlowHalfDead", "1 partitions stand still"):
        limit_records(observed.watched.target, f"A.{BIG}", 2_000)
        write(observed.watched.source, BIG, [{"value": b"x" * 5000, "partition": 0}])
        observed.wait_for_message("HeliographFlowHalfDead", "Warning: A-&gt;B: 1 partitions stand still")
        states = observed.watched.prometheus.query('heliograph_partition_state{state="failed"}')
        assert [(row.labels["topic"], row.labels["partition"]) for row in states] == [(BIG, "0")]
        assert observed.watched.prometheus.value("heliograph_flow_ready") == 1
        limit_records(observed.watched.target, f"A.{BIG}", 1_048_588)


def test_a_topic_that_is_created_again(observed: Observed) -> None:
    watched = observed.watched
    events = 'heliograph_loss_events_total{cause="source_recreated"}'
    with observed.fires("HeliographRecordsLost", "records lost (source_recreated)"):
        with suspended(watched.target):
            write(watched.source, MOVED, ({"value": b"x", "partition": 0} for _n in range(45)))
            watched.wait_for_value(f'heliograph_topic_lag_records{{topic="{MOVED}"}}', 45)
            delete_topic(watched.source, MOVED)
            make_topic(watched.source, MOVED, 1)
            write(watched.source, MOVED, ({"value": b"new", "partition": 0} for _n in range(100)))
        observed.wait_for_message("HeliographRecordsLost", "records lost (source_recreated)", "heliograph losses FILE")
        assert watched.prometheus.value(events) == 1


def test_a_python_worker_that_is_killed_in_a_loop(observed: Observed) -> None:
    watched = observed.watched
    with observed.fires("HeliographTaskRestarting", "task 0 restarts again and again"):
        for _round in range(8):
            if watched.prometheus.firing("HeliographTaskRestarting"):
                break
            wait_for(lambda: watched.prometheus.query('heliograph_task_state{state="RUNNING"} == 1'), pause_s=0.3)
            for worker in watched.running.python_workers():
                worker.kill()
            time.sleep(4)
        observed.wait_for_message("HeliographTaskRestarting", "Warning: A-&gt;B: task 0 restarts again and again")
        restarts = 'sum(increase(heliograph_task_restarts_total{reason=~"failed|lost"}[10m]))'
        assert (watched.prometheus.value(restarts) or 0) > 2.5


def test_a_process_that_does_not_answer(observed: Observed) -> None:
    process = observed.watched.running.process
    with observed.fires("HeliographScrapeMissing", "no metrics for 3 minutes"):
        process.send_signal(signal.SIGSTOP)
        try:
            observed.wait_for_message("HeliographScrapeMissing", "CRITICAL: ", "no metrics for 3 minutes")
        finally:
            process.send_signal(signal.SIGCONT)


def test_a_flow_that_no_process_shows(observed: Observed) -> None:
    """The last one: the process ends."""
    with observed.fires("HeliographFlowMissing", "no process shows this flow"):
        assert observed.watched.running.stop() == 0
        observed.wait_for_message("HeliographFlowMissing", f"{FLOW.replace('>', '&gt;')}: no process shows this flow")
