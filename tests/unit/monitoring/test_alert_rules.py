"""The files of deploy/monitoring: promtool accepts the rules, each alert has a test, and a runbook that exists."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs.site_pages import pages

from heliograph.metrics.families import families
from tests.support.monitoring.tools import Tools

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/monitoring"
RULES = yaml.safe_load((FOLDER / "rules.yml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
RECORDS = [rule for group in RULES["groups"] for rule in group["rules"] if "record" in rule]
TESTS = sorted((FOLDER / "tests").glob("*.yml"))
RUNBOOKS = "https://heliograph.example/"
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CHOICE = re.compile(r"{{ if [^}]*}}(.*?){{ else }}(.*?){{ end }}")
_METRIC = re.compile(r"\bheliograph_\w+")


def check(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=FOLDER, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def anchors(text: str) -> Iterator[str]:
    for heading in _HEADING.findall(text):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_promtool_accepts_the_configuration_and_the_rules(tools: Tools) -> None:
    assert f"{len(ALERTS) + len(RECORDS)} rules found" in check(tools.promtool, "check", "rules", "rules.yml")
    check(tools.promtool, "check", "config", "prometheus.yml")
    check(tools.amtool, "check-config", "alertmanager.yml")


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_alerts_fire_with_their_cause_and_resolve(tools: Tools, file: Path) -> None:
    check(tools.promtool, "test", "rules", file)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_is_tested_to_fire_and_to_be_silent(alert: dict[str, Any]) -> None:
    expected: list[Any] = []
    for test in (test for file in TESTS for test in yaml.safe_load(file.read_text())["tests"]):
        for row in test["promql_expr_test"]:
            if re.search(rf'alertname=~?"[^"]*\b{re.match("[A-Za-z]+", alert["alert"])[0]}\b', row["expr"]) or (  # type: ignore[index]
                ".*" in row["expr"] and alert["alert"].startswith("HeliographCertificate")
            ):
                expected.append(row["exp_samples"])
        expected += [row["exp_alerts"] for row in test.get("alert_rule_test", ()) if row["alertname"] == alert["alert"]]
    assert [] in expected, "no test has it silent"
    assert any(expected), "no test has it firing"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_can_be_read_in_a_chat(alert: dict[str, Any]) -> None:
    assert alert["alert"].startswith("Heliograph")
    assert alert["labels"]["severity"] in ("critical", "warning")
    summary, description = alert["annotations"]["summary"], alert["annotations"]["description"]
    for branch in (r"\1", r"\2"):
        assert len(_CHOICE.sub(branch, summary)) < 110
    assert description.endswith(".")
    assert "\n" not in summary + description


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_runbook_is_a_section_of_the_guide(alert: dict[str, Any]) -> None:
    url = alert["annotations"]["runbook_url"]
    assert url.startswith(RUNBOOKS)
    page, _, anchor = url.removeprefix(RUNBOOKS).partition("#")
    file = Path(page).with_suffix(".md")
    assert file in pages()
    assert anchor in set(anchors((ROOT / file).read_text()))


def test_the_troubleshooting_guide_names_every_alert() -> None:
    text = (ROOT / "docs/guides/troubleshooting.md").read_text()
    assert [alert["alert"] for alert in ALERTS if f"`{alert['alert']}`" not in text] == []


def test_rules_name_only_metrics_that_exist() -> None:
    """Those of the table, with the suffixes that a page adds, and the rules' own."""
    shown = {name for family in families((), has_legacy_names=False, is_worker=True) for name in family.sample_names}
    recorded = {rule["record"].partition(":")[2].partition(":")[0] for rule in RECORDS}
    for rule in ALERTS + RECORDS:
        assert set(_METRIC.findall(rule["expr"])) <= shown | recorded


def test_recorded_series_are_used_or_shown() -> None:
    """Each name says its level and its operation, as Prometheus' own practice has it."""
    assert all(re.fullmatch(r"flow:heliograph_\w+:\w+", rule["record"]) for rule in RECORDS)
