"""What a reader of the Slack channel sees: real Alertmanager with our templates, and a web server in Slack's place."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.monitoring.servers import Alertmanager, SlackReceiver
from tests.support.monitoring.stack import alertmanager_config
from tests.support.monitoring.tools import Tools
from tests.support.runs.copying import wait_for

LABELS = {"alertname": "HeliographFlowHalfDead", "job": "run", "flow": "A->B", "severity": "warning"}
ANNOTATIONS = {
    "summary": "A->B: 2 partitions stand still beside running ones",
    "description": "2 partitions of A->B have failed & wait.",
    "runbook_url": "https://heliograph.example/docs/guides/troubleshooting.html#partitions-stand-still",
}


@pytest.fixture
def slack() -> Iterator[SlackReceiver]:
    with SlackReceiver() as slack:
        yield slack


@pytest.fixture
def alertmanager(tools: Tools, slack: SlackReceiver, tmp_path: Path) -> Iterator[Alertmanager]:
    with Alertmanager(tools, tmp_path, alertmanager_config(tmp_path, slack.url)) as alertmanager:
        yield alertmanager


def post(alertmanager: Alertmanager, *alerts: dict[str, dict[str, str]], ended: bool = False) -> None:
    now = datetime.now(UTC)
    end = {"endsAt": now.isoformat()} if ended else {}
    body = [{**alert, "startsAt": (now - timedelta(minutes=5)).isoformat(), **end} for alert in alerts]
    request = urllib.request.Request(  # noqa: S310  (our own URL)
        f"{alertmanager.url}/api/v2/alerts", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30):  # noqa: S310
        pass


def test_a_message_has_the_summary_the_time_and_the_runbook(alertmanager: Alertmanager, slack: SlackReceiver) -> None:
    post(alertmanager, {"labels": LABELS, "annotations": ANNOTATIONS})
    wait_for(lambda: slack.messages)
    (message,) = slack.messages
    (attachment,) = message["attachments"]
    assert message["channel"] == "#kafka-replication"
    assert attachment["title"] == "Warning: A-&gt;B: 2 partitions stand still beside running ones"
    assert attachment["color"] == "warning"
    assert attachment["title_link"] == ANNOTATIONS["runbook_url"]
    first, second = attachment["text"].strip().splitlines()
    assert first == "2 partitions of A-&gt;B have failed &amp; wait."
    assert second.startswith("Since 20")
    assert second.endswith(f" UTC. <{ANNOTATIONS['runbook_url']}|What to do>")


def test_the_end_of_an_alert_is_a_message_with_its_duration(alertmanager: Alertmanager, slack: SlackReceiver) -> None:
    post(alertmanager, {"labels": LABELS, "annotations": ANNOTATIONS})
    wait_for(lambda: slack.messages)
    post(alertmanager, {"labels": LABELS, "annotations": ANNOTATIONS}, ended=True)
    wait_for(lambda: len(slack.messages) == 2)
    attachment = slack.messages[1]["attachments"][0]
    assert attachment["color"] == "good"
    assert attachment["title"].startswith("Resolved: A-&gt;B: 2 partitions")
    assert attachment["text"].startswith("Resolved after ")


def test_two_groups_of_a_flow_are_one_message(alertmanager: Alertmanager, slack: SlackReceiver) -> None:
    alerts = [{"labels": {**LABELS, "group": group}, "annotations": ANNOTATIONS} for group in ("shop", "cart <b>")]
    post(alertmanager, *alerts)
    # What has fired for longer than `group_wait` is sent at once: the first message may have one of the two.
    wait_for(lambda: any(text.count("What to do") == 2 for text in slack.texts()))
    assert slack.texts()[-1].partition("\n")[0].endswith(" (and 1 more)")


def test_what_follows_from_a_stopped_replication_is_not_sent(alertmanager: Alertmanager, slack: SlackReceiver) -> None:
    stopped = {**LABELS, "alertname": "HeliographReplicationStopped", "severity": "critical"}
    post(alertmanager, {"labels": stopped, "annotations": ANNOTATIONS})
    wait_for(lambda: slack.messages)
    for name in ("HeliographLagNotFalling", "HeliographFlowNotReady"):
        post(alertmanager, {"labels": {**LABELS, "alertname": name}, "annotations": ANNOTATIONS})
    other = {**LABELS, "alertname": "HeliographLagNotFalling", "flow": "C->B"}
    post(alertmanager, {"labels": other, "annotations": {**ANNOTATIONS, "summary": "C->B: other"}})
    wait_for(lambda: len(slack.messages) > 1)
    time.sleep(1)
    titles = [message["attachments"][0]["title"] for message in slack.messages]
    assert titles == [f"CRITICAL: {ANNOTATIONS['summary'].replace('>', '&gt;')}", "Warning: C-&gt;B: other"]
