"""The leader's log has a line for each request that changes a connector, with names of keys and never their values."""

from __future__ import annotations

import logging
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.connect_herder import ConnectHerder
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.connect.storage.config_store import StoredConnector
from heliograph.wire.records.connect_configs import TargetState
from tests.support.config_files import WORKER_FILE, FakeLookup

HEARTBEAT = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A", "name": "hb"}


class Configs:
    """The config topic as a dictionary."""

    def __init__(self) -> None:
        self.connectors: dict[str, StoredConnector] = {}

    def claim(self) -> None:
        """We lead."""

    def check_lead(self) -> None:
        """We still do."""

    def put_connector(
        self,
        name: str,
        config: dict[str, str],
        _state: TargetState | None = None,
        secrets: tuple[str, ...] | None = None,
    ) -> None:
        assert secrets is None
        self.connectors[name] = StoredConnector(config, "STARTED", ())

    def put_target_state(self, name: str, state: TargetState) -> None:
        self.connectors[name] = self.connectors[name]._replace(target_state=state)

    def delete_connector(self, name: str) -> None:
        del self.connectors[name]


@pytest.fixture
def herder() -> ConnectHerder:
    statuses, reconciler = MagicMock(), MagicMock()
    statuses.tasks.return_value = {0: None}
    reconciler.restart.return_value.tasks = ()
    stores = cast("Any", (Configs(), statuses))
    worker = load_worker(WORKER_FILE, FakeLookup())
    return ConnectHerder(worker, stores, reconciler, MagicMock(), LogLevels(), "http://here:8083", lambda: "id")


def test_each_change_of_a_connector_is_logged(
    herder: ConnectHerder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "heliograph")
    herder.create("hb", HEARTBEAT, None)
    herder.create("idle", {**HEARTBEAT, "name": "idle"}, "PAUSED")
    secret = {"target.cluster.sasl.jaas.config": "password=hunter2", "tasks.max": "3"}
    herder.put_config("hb", {**HEARTBEAT, **secret})
    herder.patch_config("hb", {"tasks.max": None})
    herder.put_config("hb", {**HEARTBEAT, **secret, "tasks.max": "1"} | {f"my.own.{n:02}": "x" for n in range(30)})
    herder.put_config("idle", {**HEARTBEAT, "name": "idle"})
    for state in ("PAUSED", "STARTED", "STOPPED"):
        herder.set_target_state("hb", cast("TargetState", state))
    monkeypatch.setattr(ConnectorOffsets, "of", MagicMock())
    cast("Any", herder)._changes._reconciler.is_running.return_value = False
    herder.alter_offsets("hb", [({"topic": "t"}, None)])
    herder.alter_offsets("hb", None)
    herder.restart("hb", include_tasks=False, only_failed=False)
    herder.restart("hb", include_tasks=True, only_failed=True)
    herder.restart_task("hb", 0)
    herder.delete("hb")
    reported = [record.message for record in caplog.records if record.levelno == logging.INFO]
    keys = ", ".join(f"my.own.{n:02}" for n in range(20))
    assert reported == [
        "Connector hb: created",
        "Connector idle: created PAUSED",
        "Connector hb: reconfigured; changed: target.cluster.sasl.jaas.config, tasks.max",
        "Connector hb: reconfigured; changed: tasks.max",
        f"Connector hb: reconfigured; changed: {keys} and 11 others",
        "Connector idle: reconfigured; no key differs",
        "Connector hb: paused",
        "Connector hb: resumed",
        "Connector hb: stopped",
        "Connector hb: 1 offset altered",
        "Connector hb: all offsets reset",
        "Connector hb: restarted without its tasks",
        "Connector hb: restarted with its tasks, only what has failed",
        "Connector hb: task 0 restarted",
        "Connector hb: deleted",
    ]
    assert "hunter2" not in caplog.text
