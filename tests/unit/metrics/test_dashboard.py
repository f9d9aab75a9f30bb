"""The dashboard is made of the table of metrics, and shows what is unknown as unknown."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from deploy.monitoring.grafana import make_dashboard

from heliograph.metrics.families import families
from heliograph.metrics.own_metrics import OWN_METRICS
from tests.support.connect.pages import JMX, ReadPage
from tests.support.connect.process_snapshots import WORKER, whole

FOLDER = make_dashboard.FILE.parents[1]
NOT_SHOWN = {
    "heliograph_snapshot_timestamp_seconds",
    "heliograph_heartbeats_written_total",
    "heliograph_heartbeats_written_timestamp_seconds",
    "heliograph_worker_generation",
    "heliograph_worker_rebalanced_timestamp_seconds",
    "heliograph_worker_rebalances_total",
    "heliograph_worker_rebalancing",
    "heliograph_partition_state_since_timestamp_seconds",
    "heliograph_partition_bytes_total",
    "heliograph_task_partitions",
    "heliograph_task_records_total",
    "heliograph_task_bytes_total",
    "heliograph_task_failed_commits_total",
    "heliograph_task_source_connections",
    "heliograph_task_target_connections",
    "heliograph_group_committed_offset",
    "heliograph_group_translated_offset",
    "heliograph_group_partition_read_again_records",
    "heliograph_flow_latency_seconds_count",
    "heliograph_flow_latency_seconds_sum",
}


def panels() -> list[dict[str, Any]]:
    found = json.loads(make_dashboard.FILE.read_text())["panels"]
    return [panel for each in found for panel in (each, *each.get("panels", ())) if panel["type"] != "row"]


def test_the_dashboard_is_up_to_date() -> None:
    assert make_dashboard.FILE.read_text() == make_dashboard.text(), "run: make docs"


def test_a_panel_cannot_name_what_does_not_exist() -> None:
    make_dashboard.check('sum(heliograph_flow_lag_records{flow="x"})')
    for wrong in ("heliograph_lag_seconds", 'heliograph_flow_lag_records{topic="t"}', "vector(1)"):
        with pytest.raises(ValueError, match=r"is not a metric|has no label|no metric"):
            make_dashboard.check(wrong)


def test_every_metric_of_ours_is_shown_or_left_out_on_purpose() -> None:
    shown = " ".join(each.expr for each in make_dashboard.expressions())
    own = [each for each in families(JMX.dialects, has_legacy_names=True, is_worker=True) if each.metric in OWN_METRICS]
    names = {name for family in own for name in family.sample_names}
    assert {name for name in names if not re.search(rf"\b{name}\b", shown)} == NOT_SHOWN


def test_every_expression_has_series_in_a_process_with_everything() -> None:
    page = ReadPage(whole(WORKER))
    for each in make_dashboard.expressions():
        assert "$" not in each.expr
        for name in re.findall(r"\b(?:heliograph|jvm)_\w+", each.expr):
            assert page.rows(name), each


def test_an_unknown_value_is_shown_as_unknown_and_never_as_the_last_known() -> None:
    for panel in panels():
        special = [each for each in panel["fieldConfig"]["defaults"]["mappings"] if each["type"] == "special"]
        assert special[0]["options"]["result"]["text"] == "unknown"
        assert "lastNotNull" not in json.dumps(panel["options"])
        assert panel["fieldConfig"]["defaults"].get("custom", {}).get("spanNulls") in (False, None)


def test_panels_have_places_of_their_own() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    taken = [
        (x, y)
        for panel in panels()
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert all(0 <= x < 24 for x, _y in taken)


def test_every_panel_says_what_it_shows_and_a_number_has_an_explanation() -> None:
    assert all(panel["title"] for panel in panels())
    assert [panel["title"] for panel in panels() if panel["type"] == "stat" and not panel["description"]] == []


def test_grafana_finds_the_dashboard_and_the_data_source() -> None:
    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    (provider,) = yaml.safe_load((FOLDER / "provisioning/dashboards/heliograph.yml").read_text())["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
