"""The stack of deploy/monitoring/compose.yml: files that exist, pinned images, ports of this machine only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[3] / "deploy/monitoring"
COMPOSE = yaml.safe_load((FOLDER / "compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
WRITTEN_BY_THE_USER = {"slack-webhook"}


def test_it_is_the_stack_of_document_001_with_alerts() -> None:
    assert set(SERVICES) == {"prometheus", "alertmanager", "grafana"}


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_services_have_no_more_rights_than_they_need(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", service["image"])
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "healthcheck" in service


@pytest.mark.parametrize("name", SERVICES)
def test_mounted_files_exist_and_cannot_be_written(name: str) -> None:
    for volume in SERVICES[name]["volumes"]:
        place, _, options = volume.partition(":")
        if not place.startswith("./"):
            assert place in COMPOSE["volumes"]
            continue
        assert options.endswith(":ro")
        if place == "./slack-webhook" or (place.startswith("./grafana") and not (FOLDER / "grafana").exists()):
            continue  # the first is a secret of the user
        assert (FOLDER / place).exists()


def test_no_secret_is_in_a_file() -> None:
    assert SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"].startswith("${GRAFANA_PASSWORD:?")
    alertmanager = (FOLDER / "alertmanager.yml").read_text()
    assert "api_url_file" in alertmanager
    assert "hooks.slack.com" not in alertmanager


def test_prometheus_and_alertmanager_read_what_is_mounted() -> None:
    inside = {volume.split(":")[1] for name in ("prometheus", "alertmanager") for volume in SERVICES[name]["volumes"]}
    prometheus = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    assert {f"/etc/prometheus/{file}" for file in prometheus["rule_files"]} <= inside
    (address,) = prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert address.partition(":")[0] in SERVICES
    alertmanager = yaml.safe_load((FOLDER / "alertmanager.yml").read_text())
    assert {f"/etc/alertmanager/{file}" for file in alertmanager["templates"]} <= inside
    assert alertmanager["receivers"][0]["slack_configs"][0]["api_url_file"] in inside
