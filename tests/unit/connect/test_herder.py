"""The reconciler over stores of plain dictionaries: one run at a time, none without the lead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast
from unittest.mock import Mock

import pytest

from heliograph.config.effective.rest_config import RestAccess
from heliograph.config.resolve.settings import Settings
from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime import connector_slot
from heliograph.connect.runtime.connector_run import RunState
from heliograph.connect.runtime.reconciler import Reconciler
from heliograph.connect.storage.config_store import ConfigChanges, StoredConnector
from heliograph.errors import ClusterError, ConfigError, ConnectError
from heliograph.model import RestartRequest
from heliograph.wire.records.connect_configs import LoggerRecord, RestartRecord
from heliograph.wire.records.connect_status import Status
from tests.support.config_files import WORKER_FILE, FakeLookup
from tests.support.runs.copying import wait_for

SOURCE = {"connector.class": "MirrorSourceConnector"}
WORKER, GENERATION = "here:8083", 7


class FakeConfigs:
    def __init__(self) -> None:
        self.connectors: dict[str, StoredConnector] = {}
        self.lets_write = True

    def refresh(self) -> ConfigChanges:
        return ConfigChanges()

    def claim(self) -> None:
        if not self.lets_write:
            raise ClusterError("no transaction coordinator")

    def take_log_levels(self) -> list[LoggerRecord]:
        return []

    def take_restarts(self) -> list[RestartRecord]:
        return []

    def put_tasks(self, name: str, configs: list[dict[str, str]]) -> None:
        self.connectors[name] = self.connectors[name]._replace(task_configs=tuple(configs))


class FakeStatuses:
    def __init__(self) -> None:
        self.reported: dict[str, tuple[Status, dict[int, Status]]] = {}
        self.writes = 0
        self.is_readable = True
        self.lets_write = threading.Event()
        self.lets_write.set()

    def refresh(self) -> None:
        if not self.is_readable:
            raise ClusterError("the status topic has no leader")

    def names(self) -> list[str]:
        return sorted(self.reported)

    def connector(self, name: str) -> Status | None:
        return self.reported[name][0] if name in self.reported else None

    def tasks(self, name: str) -> dict[int, Status]:
        return self.reported[name][1] if name in self.reported else {}

    def put_all(self, name: str, status: Status, tasks: dict[int, Status]) -> None:
        self.writes += 1
        self.lets_write.wait(30)
        self.reported[name] = (status, tasks)

    def put_topic(self, name: str, topic: str) -> None:
        """Not looked at."""

    def delete_connector(self, name: str) -> None:
        del self.reported[name]


class FakeRun:
    """A run whose life is in the test's hands."""

    started: ClassVar[list[FakeRun]] = []
    begins = True

    def __init__(self, config: Any, _engine: object, _status: object) -> None:
        if "broken" in config:
            raise config["broken"]
        self.config = config
        self.has_begun, self.error, self.is_fenced = self.begins, None, False
        self.is_stopped = self.has_ended = False
        self.task_configs = ({"task.index": "0"},)

    def start(self) -> None:
        self.started.append(self)

    def stop(self, *, drains: bool = True) -> None:
        self.is_stopped, self.is_drained = True, drains

    def is_over(self) -> bool:
        return self.has_ended

    def adopt(self, _config: Any) -> bool:
        return False

    def log_progress(self) -> None:
        """Nothing is copied."""

    def take_topics(self) -> list[str]:
        return []

    @property
    def state(self) -> RunState:
        return RunState("RUNNING", None, (("RUNNING", None),))


class FakeConfig(dict[str, Any]):
    """What a run is made with."""

    name, flow = "the connector", None

    def settings(self, _flow: None) -> Settings:
        return FakeWorker.settings


class FakeWorker:
    settings = load_worker(WORKER_FILE, FakeLookup()).settings

    rest = RestAccess()

    def connector(self, _name: str, config: dict[str, Any], _secrets: tuple[str, ...] | None = None) -> FakeConfig:
        return FakeConfig(config)


class Herd:
    """A reconciler that leads, its stores, and the runs it has started."""

    def __init__(self) -> None:
        self.configs, self.statuses = FakeConfigs(), FakeStatuses()
        stores = cast("Any", (self.configs, self.statuses))
        self.engine = Mock()
        self.reconciler = Reconciler(cast("Any", FakeWorker()), cast("Any", self.engine), stores, WORKER, LogLevels())
        self.reconciler.lead(GENERATION)
        self.runs: list[FakeRun] = FakeRun.started

    def want(self, name: str, state: Any = "STARTED", **config: Any) -> None:
        tasks = self.configs.connectors[name].task_configs if name in self.configs.connectors else ()
        self.configs.connectors[name] = StoredConnector({**SOURCE, **config}, state, tasks)

    def tick(self) -> None:
        self.reconciler._reconcile()

    def state(self, name: str) -> str:
        return self.statuses.reported[name][0].state


@pytest.fixture
def herd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Herd]:
    monkeypatch.setattr(connector_slot, "ConnectorRun", FakeRun)
    monkeypatch.setattr(FakeRun, "started", [])
    made = Herd()
    yield made
    made.statuses.lets_write.set()


@pytest.mark.parametrize("error", [ConfigError("no such policy"), ZeroDivisionError("a class of the user's")])
def test_a_connector_that_cannot_be_made_is_reported_as_failed_and_affects_no_other(
    herd: Herd, error: Exception
) -> None:
    herd.want("a", broken=error)
    herd.want("b")
    herd.tick()
    assert (herd.state("a"), herd.state("b")) == ("FAILED", "RUNNING")
    assert str(error) in (herd.statuses.reported["a"][0].trace or "")
    herd.want("a")
    herd.tick()
    assert herd.state("a") == "RUNNING"


def test_a_successor_starts_only_after_its_predecessor_has_ended(herd: Herd) -> None:
    herd.want("a")
    herd.tick()
    herd.want("a", topics="others")
    herd.tick()
    first = herd.runs[0]
    assert first.is_stopped
    assert len(herd.runs) == 1
    first.has_ended = True
    herd.tick()
    assert herd.runs[1].config["topics"] == "others"


def test_a_failed_connector_stays_failed_until_it_has_begun_again(herd: Herd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_slot.Restarts, "pause_s", lambda _self, _ran_s: 0.0)
    herd.want("a")
    herd.tick()
    herd.runs[0].error, herd.runs[0].has_ended = "its source does not answer.", True
    monkeypatch.setattr(FakeRun, "begins", False)
    herd.tick()
    herd.tick()
    assert (herd.state("a"), len(herd.runs)) == ("FAILED", 2)
    herd.runs[1].has_begun = True
    herd.tick()
    assert herd.state("a") == "RUNNING"
    assert herd.statuses.tasks("a")[0].state == "RUNNING"


def test_a_new_config_is_tried_at_once_though_the_old_one_waits(herd: Herd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_slot.Restarts, "pause_s", lambda _self, _ran_s: 3600.0)
    herd.want("a")
    herd.tick()
    herd.runs[0].error, herd.runs[0].has_ended = "its source does not answer.", True
    herd.tick()
    herd.tick()
    assert len(herd.runs) == 1
    herd.want("a", topics="others")
    herd.tick()
    assert len(herd.runs) == 2


def test_a_lost_lead_ends_the_runs_at_once_though_a_state_cannot_be_written(herd: Herd) -> None:
    herd.want("a")
    herd.statuses.lets_write.clear()
    telling = threading.Thread(target=herd.tick)
    telling.start()
    wait_for(lambda: herd.statuses.writes == 1)
    herd.reconciler.lead(None)
    assert (herd.runs[0].is_stopped, herd.runs[0].is_drained) == (True, False)
    herd.statuses.lets_write.set()
    telling.join()
    herd.tick()
    assert len(herd.runs) == 1


def test_only_the_leader_has_a_spark_application(herd: Herd) -> None:
    spark = herd.engine.driver
    spark.start.assert_called_once()
    herd.reconciler.lead(None)
    spark.stop.assert_called_once_with(is_awaited=False)
    herd.reconciler.lead(GENERATION + 2)
    assert spark.start.call_count == 2


def test_a_stopping_leader_drains_its_runs(herd: Herd) -> None:
    herd.want("a")
    herd.tick()
    herd.runs[0].has_ended = True
    herd.reconciler.stop()
    assert (herd.runs[0].is_stopped, herd.runs[0].is_drained) == (True, True)


def test_a_lead_won_again_starts_what_had_failed_under_the_last_one(herd: Herd) -> None:
    herd.want("a")
    herd.tick()
    run = herd.runs[0]
    run.error, run.is_fenced, run.has_ended = "another instance has taken over", True, True
    herd.tick()
    herd.tick()
    assert (herd.state("a"), len(herd.runs)) == ("FAILED", 1)
    herd.reconciler.lead(None)
    herd.reconciler.lead(GENERATION + 2)
    herd.tick()
    assert (herd.state("a"), len(herd.runs)) == ("RUNNING", 2)


def test_a_stopping_worker_takes_no_lead_any_more(herd: Herd) -> None:
    herd.want("a")
    herd.tick()
    herd.runs[0].has_ended = True
    herd.reconciler.stop()
    herd.reconciler.lead(GENERATION + 1)
    herd.tick()
    assert herd.runs[0].is_stopped
    assert len(herd.runs) == 1


def test_what_another_worker_left_in_the_status_topic_is_put_right(herd: Herd) -> None:
    late = Status("RUNNING", "there:8083", GENERATION - 1)
    herd.want("a", "PAUSED")
    herd.statuses.reported = {"a": (late, {}), "deleted": (late, {})}
    herd.tick()
    assert (herd.state("a"), herd.statuses.names()) == ("PAUSED", ["a"])
    herd.statuses.reported["a"] = (late, {0: late})
    herd.tick()
    writes = herd.statuses.writes
    assert (herd.state("a"), herd.statuses.tasks("a")) == ("PAUSED", {})
    herd.tick()
    assert herd.statuses.writes == writes, "what is published is not published again"


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda herd: herd.want("a", "PAUSED"), ("PAUSED", ["PAUSED"])),
        (lambda herd: herd.want("a", "STOPPED"), ("STOPPED", [])),
    ],
)
def test_a_connector_rests_only_when_its_run_has_ended(
    herd: Herd, change: Callable[[Herd], None], reported: tuple[str, list[str]]
) -> None:
    herd.want("a")
    herd.tick()
    herd.tick()
    change(herd)
    herd.tick()
    assert herd.state("a") == "RUNNING"
    herd.runs[0].has_ended = True
    herd.tick()
    assert (herd.state("a"), [task.state for task in herd.statuses.tasks("a").values()]) == reported


@pytest.mark.parametrize(("name", "status"), [("a", 409), ("b", 404)])
def test_partitions_of_a_connector_at_rest_are_not_restarted(herd: Herd, name: str, status: int) -> None:
    herd.want("a", "PAUSED")
    herd.tick()
    with pytest.raises(ConnectError) as refused:
        herd.reconciler.restart_partitions(name, RestartRequest())
    assert (refused.value.status, "PAUSED" in str(refused.value)) == (status, status == 409)


def test_a_status_topic_that_cannot_be_read_holds_up_no_run(herd: Herd) -> None:
    herd.statuses.is_readable = False
    herd.want("a")
    with pytest.raises(ClusterError):
        herd.tick()
    assert len(herd.runs) == 1
    herd.want("a", "PAUSED")
    with pytest.raises(ClusterError):
        herd.tick()
    assert herd.runs[0].is_stopped


def test_a_config_topic_that_cannot_be_claimed_holds_up_no_run(herd: Herd) -> None:
    herd.configs.lets_write = False
    herd.want("a")
    with pytest.raises(ClusterError):
        herd.tick()
    assert (len(herd.runs), herd.statuses.reported) == (1, {})
    herd.configs.lets_write = True
    herd.tick()
    assert (len(herd.runs), herd.state("a")) == (1, "RUNNING")


def test_a_connector_made_again_under_its_name_does_not_inherit_a_failure(herd: Herd) -> None:
    herd.want("a")
    herd.tick()
    run = herd.runs[0]
    run.error, run.is_fenced, run.has_ended = "another instance has taken over", True, True
    herd.tick()
    herd.reconciler.reset("a")
    herd.tick()
    assert (herd.state("a"), len(herd.runs)) == ("RUNNING", 2)
