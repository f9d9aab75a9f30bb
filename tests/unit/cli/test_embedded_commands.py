"""`kafka start` remembers what a cluster was started with; the demo's last words fit the shell that reads them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.commands import demo, kafka
from heliograph.cli.main import cli
from heliograph.embedded.kafka_cluster import Broker, EmbeddedCluster

BROKERS = (Broker(1, 9292, 1), Broker(2, 9293, 2))
KNOWN = EmbeddedCluster("big", "3.9.1", "/data/big", "id", BROKERS, (("log.retention.hours", "1"),))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What clusters would be started with."""
    seen: list[dict[str, Any]] = []

    def start_cluster(name: str, **options: Any) -> EmbeddedCluster:
        del options["on_progress"]
        seen.append({"name": name, **options})
        return KNOWN

    monkeypatch.setattr(kafka, "start_cluster", start_cluster)
    monkeypatch.setattr(kafka, "find_cluster", lambda name: KNOWN if name == KNOWN.name else None)
    return seen


def start(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["kafka", "start", *arguments])


def test_a_known_cluster_starts_as_it_was(started: list[dict[str, Any]]) -> None:
    assert start("big").exit_code == 0
    as_it_was = {"port": 9292, "brokers": 2, "version": "3.9.1", "data": Path("/data/big")}
    assert started == [{"name": "big", **as_it_was, "config": {"log.retention.hours": "1"}}]


def test_what_is_given_counts_more_than_what_was(started: list[dict[str, Any]]) -> None:
    assert start("big", "--port", "9392", "--brokers", "1", "--config", "a=b").exit_code == 0
    assert (started[0]["port"], started[0]["brokers"], started[0]["config"]) == (9392, 1, {"a": "b"})
    assert started[0]["version"] == "3.9.1"


def test_a_new_cluster_needs_a_port(started: list[dict[str, Any]]) -> None:
    reported = start("new")
    assert reported.exit_code == 2
    assert "Missing option '--port': 'new' is a new cluster" in reported.output
    assert start("new", "--port", "9092").exit_code == 0
    usual = {"brokers": 1, "version": kafka.DEFAULT_VERSION, "data": None, "config": {}}
    assert started == [{"name": "new", "port": 9092, **usual}]


def test_the_demo_tells_how_to_get_the_command_where_the_shell_lacks_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setenv("PATH", "/nowhere")
    assert demo._activation().startswith("    . .venv/bin/activate ")
    command = tmp_path / ".venv" / "bin" / "heliograph"
    command.parent.mkdir(parents=True)
    command.touch(0o755)
    monkeypatch.setenv("PATH", str(command.parent))
    assert demo._activation() == ""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert demo._activation() == ""
