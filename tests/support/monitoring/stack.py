"""The files of deploy/monitoring as configurations for a test: other addresses, and minutes that last seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "deploy/monitoring"
_DURATION = re.compile(r"(?<![\w.])(\d+)(s|m|h|d)\b")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def alertmanager_config(folder: Path, slack_url: str, *, group_wait: str = "100ms") -> dict[str, Any]:
    """Return alertmanager.yml for a receiver in Slack's place; messages are sent at once."""
    config: dict[str, Any] = yaml.safe_load((FOLDER / "alertmanager.yml").read_text())
    webhook = folder / "slack-webhook"
    webhook.write_text(slack_url)
    config["templates"] = [str(FOLDER / name) for name in config["templates"]]
    config["route"] |= {"group_wait": group_wait, "group_interval": "1s"}
    for receiver in config["receivers"]:
        for slack in receiver["slack_configs"]:
            slack["api_url_file"] = str(webhook)
    return config


def prometheus_config(
    folder: Path,
    targets: Mapping[str, Sequence[str]],
    alertmanager: str | None = None,
    *,
    kind: str = "KafkaMirrorMaker2",
    interval: str = "1s",
    faster: int = 1,
) -> dict[str, Any]:
    """Return prometheus.yml for other targets, by job, with the labels of a pod of Strimzi's `kind`.

    With `faster` all durations of the rules are divided by it.
    """
    config: dict[str, Any] = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    config["global"] |= {"scrape_interval": interval, "evaluation_interval": interval}
    relabelled = config["scrape_configs"][0]["relabel_configs"]
    config["scrape_configs"] = [
        {
            "job_name": job,
            "static_configs": [{"targets": list(addresses)}],
            "relabel_configs": [*relabelled, *_of_pod(job, kind)],
        }
        for job, addresses in targets.items()
    ]
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump(faster_rules(faster), sort_keys=False))
    config["rule_files"] = [str(rules)]
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [alertmanager]}]}] if alertmanager else []
    return config


def _of_pod(job: str, kind: str) -> list[dict[str, str]]:
    """Return what the Prometheus operator adds, and Strimzi's kind."""
    labels = {"strimzi_io_kind": kind, "pod": f"{job}-mirrormaker2-0", "container": f"{job}-mirrormaker2"}
    return [{"target_label": name, "replacement": value} for name, value in labels.items()]


def faster_rules(factor: int) -> dict[str, Any]:
    """Return rules.yml with its windows and waiting times divided, and everything else unchanged."""
    rules: dict[str, Any] = yaml.safe_load((FOLDER / "rules.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["expr"] = _divided(rule["expr"], factor)
            if "for" in rule:
                rule["for"] = _divided(rule["for"], factor)
    return rules


def _divided(text: str, factor: int) -> str:
    return _DURATION.sub(lambda found: f"{int(found[1]) * _SECONDS[found[2]] * 1000 // factor}ms", text)
