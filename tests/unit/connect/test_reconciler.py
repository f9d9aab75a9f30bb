"""What a worker runs, of what its config topic wants: one change touches one connector, failures are bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from heliograph.config.effective.connect_config import is_live_change
from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.contract.refusals import NOT_WRITTEN, REBALANCE
from heliograph.connect.runtime import connector_slot, status_publisher
from heliograph.connect.runtime.connector_run import RunState
from heliograph.connect.runtime.reconciler import Reconciler
from heliograph.connect.storage.config_store import ConfigChanges, ConfigState
from heliograph.errors import BrokerError, ClusterError, ConfigError, ConnectError, FencedError
from heliograph.wire.records.connect_configs import (
    CommitRecord,
    ConnectorConfigRecord,
    RestartRecord,
    TargetStateRecord,
    TaskConfigRecord,
)
from tests.support.config_files import FakeLookup
from tests.support.runs.copying import wait_for
from tests.unit.connect import test_herder

MIRROR = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
    "heliograph.restart.backoff.max.ms": "1",
}


class FakeConfigs:
    """The config topic as a list of records."""

    def __init__(self) -> None:
        self._state = ConfigState()
        self._changes = ConfigChanges()
        self.refuses: Callable[[str], None] = lambda _name: None
        self.tried: list[str] = []

    @property
    def connectors(self) -> Any:
        return self._state.connectors

    def refresh(self) -> ConfigChanges:
        return ConfigChanges()

    def claim(self) -> None:
        """Nobody else is there."""

    def take_log_levels(self) -> list[Any]:
        return []

    def take_restarts(self) -> list[RestartRecord]:
        taken, self._changes = self._changes.restarts, ConfigChanges()
        return taken

    @property
    def has_restarts(self) -> bool:
        return bool(self._changes.restarts)

    def take(self, *records: Any) -> None:
        for record in records:
            self._state.take(record, self._changes)

    def put_tasks(self, name: str, configs: list[dict[str, str]]) -> None:
        self.tried.append(name)
        self.refuses(name)
        tasks = [TaskConfigRecord(name, number, config) for number, config in enumerate(configs)]
        self.take(*tasks, CommitRecord(name, len(configs)))


class FakeStatuses(test_herder.FakeStatuses):
    """The last status of each connector, and its topics."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: set[str] = set()

    def put_topic(self, name: str, topic: str) -> None:
        self.topics.add(f"{name}:{topic}")

    def put_all(self, name: str, status: Any, tasks: Any) -> None:
        if name == "huge":
            raise BrokerError("the status topic refused a record: MESSAGE_TOO_LARGE.", 10)
        super().put_all(name, status, tasks)

    def states(self, name: str) -> tuple[str, ...]:
        """Of the connector and its tasks."""
        if name not in self.reported:
            return ()
        own, tasks = self.reported[name]
        return (own.state, *(task.state for task in tasks.values()))


class FakeRun:
    """A connector's run with one task; it does what the test says."""

    made: list[FakeRun] = []  # noqa: RUF012  (cleared by the fixture)

    def __init__(self, config: Any, _engine: Any, _status: Any) -> None:
        if config.raw.get("topics") == "bad":
            raise ConfigError("topics: it cannot be used.")
        self.config = config
        self.error: str | None = "the cluster is gone." if config.raw.get("topics") == "lost" else None
        self.is_fenced = config.raw.get("topics") == "lost" and "fenced" in config.name
        self.has_begun = self.error is None
        self.task = "RUNNING"
        self.calls: list[object] = []
        self.looks = 0
        FakeRun.made.append(self)

    def start(self) -> None:
        self.calls.append("start")

    def stop(self, *, drains: bool = True) -> None:  # noqa: ARG002
        self.calls.append("stop")

    def is_over(self) -> bool:
        return "stop" in self.calls

    def adopt(self, config: Any) -> bool:
        if not is_live_change(self.config.raw, config.raw):
            return False
        self.config = config
        self.calls.append("adopt")
        return True

    def restart_tasks(self, numbers: list[int]) -> bool:
        self.calls.append(("restart", numbers))
        return True

    def look_again(self) -> bool:
        self.calls.append("look again")
        return True

    def log_progress(self) -> None:
        self.looks += 1

    def take_topics(self) -> list[str]:
        return ["A.t"]

    @property
    def state(self) -> RunState:
        return RunState("RUNNING", None, ((cast("Any", self.task), None),))

    @property
    def task_configs(self) -> tuple[Mapping[str, str], ...]:
        return ({**self.config.raw, "task.index": "0"},)


class World:
    """A reconciler over fakes, leading."""

    def __init__(self) -> None:
        self.configs, self.statuses = FakeConfigs(), FakeStatuses()
        stores = cast("Any", (self.configs, self.statuses))
        engine = cast("Any", SimpleNamespace(slots=1, driver=Mock()))
        self.reconciler = Reconciler(
            load_worker(test_herder.WORKER_FILE, FakeLookup()), engine, stores, "w:1", LogLevels()
        )

    def put(self, name: str, **more: str) -> None:
        changed = {key.replace("_", "."): value for key, value in more.items()}
        self.configs.take(ConnectorConfigRecord(name, {**MIRROR, "name": name, **changed}))
        self.reconciler.wake()

    def want(self, name: str, state: Any) -> None:
        self.configs.take(TargetStateRecord(name, state))
        self.reconciler.wake()

    def ask_for_restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """As a record of another worker, Java's or an older one."""
        self.configs.take(RestartRecord(name, include_tasks, only_failed))
        self.reconciler.wake()

    def wait(self, name: str, state: str, *tasks: str) -> None:
        wait_for(lambda: self.statuses.states(name) == (state, *tasks))

    def runs(self, name: str) -> list[FakeRun]:
        return [run for run in FakeRun.made if run.config.name == name]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(connector_slot, "ConnectorRun", FakeRun)
    FakeRun.made.clear()
    world = World()
    world.reconciler.start()
    world.reconciler.lead(1)
    yield world
    world.reconciler.stop()


def test_progress_is_logged_by_the_leader_only(world: World) -> None:
    world.put("m")
    wait_for(lambda: world.runs("m") and world.runs("m")[0].looks > 1)
    world.reconciler.lead(None)
    looks = world.runs("m")[0].looks
    world.reconciler._reconcile()
    assert [run.looks for run in world.runs("m")] == [looks]


def test_a_new_leader_reads_the_config_topic_before_it_starts_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_slot, "ConnectorRun", FakeRun)
    FakeRun.made.clear()
    world = World()
    world.put("m")
    for _round in range(3):  # a follower that polls less and less often
        world.reconciler._reconcile()

    def refresh() -> ConfigChanges:
        world.want("m", "STOPPED")
        return ConfigChanges(target_states={"m"})

    monkeypatch.setattr(world.configs, "refresh", refresh)
    world.reconciler._slots.lead(1)  # at a moment at which the loop is not woken
    world.reconciler._reconcile()
    assert FakeRun.made == []


def test_a_lead_that_begins_after_the_poll_waits_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_slot, "ConnectorRun", FakeRun)
    FakeRun.made.clear()
    world = World()
    world.put("m")

    def take_log_levels() -> list[Any]:
        world.reconciler.lead(1)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(world.configs, "take_log_levels", take_log_levels)
        world.reconciler._reconcile()
    assert FakeRun.made == []
    world.reconciler._reconcile()
    assert len(FakeRun.made) == 1
    assert FakeRun.made[0].calls == ["start"]


def test_the_same_config_again_touches_nothing(world: World) -> None:
    world.put("m")
    world.put("other")
    world.wait("m", "RUNNING", "RUNNING")
    world.put("m")
    world.put("late")
    world.wait("late", "RUNNING", "RUNNING")  # the one before it was seen too
    assert [run.calls for run in world.runs("m")] == [["start"]]


def test_a_change_that_no_task_must_notice_is_taken_over(world: World) -> None:
    world.put("m")
    world.wait("m", "RUNNING", "RUNNING")
    world.put("m", topics="more")
    wait_for(lambda: world.configs.connectors["m"].task_configs[0].get("topics") == "more")
    assert [run.calls for run in world.runs("m")] == [["start", "adopt"]]


def test_any_other_change_needs_a_new_run_of_that_connector_alone(world: World) -> None:
    world.put("m")
    world.put("other")
    world.wait("m", "RUNNING", "RUNNING")
    world.wait("other", "RUNNING", "RUNNING")
    world.put("m", tasks_max="5")
    wait_for(lambda: len(world.runs("m")) == 2)
    assert [run.calls for run in world.runs("m")] == [["start", "stop"], ["start"]]
    assert [run.calls for run in world.runs("other")] == [["start"]]


def test_a_refused_status_keeps_no_other_connector_from_being_published(world: World) -> None:
    world.put("huge")
    world.put("later")
    world.wait("later", "RUNNING", "RUNNING")
    wait_for(lambda: "connector huge: the status topic refused" in str(world.reconciler.issue))


def not_written(why: Exception) -> ConnectError:
    """As the leader's transactions end."""
    error = NOT_WRITTEN.error()
    error.__cause__ = why
    return error


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(BrokerError("the configs are too large.", 10), id="plain"),
        pytest.param(not_written(ClusterError("the configs are too large.")), id="in a transaction"),
    ],
)
def test_task_configs_that_are_refused_silence_nobody_and_are_not_tried_at_each_tick(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refusal: Exception
) -> None:
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(status_publisher, "time", clock)

    def refuse(name: str) -> None:
        if name == "big":
            raise refusal

    world.configs.refuses = refuse
    world.put("big")
    world.put("later")
    world.wait("big", "RUNNING", "RUNNING")
    world.wait("later", "RUNNING", "RUNNING")
    wait_for(lambda: world.reconciler.issue == "connector big: the configs are too large.")
    looks = world.runs("big")[0].looks
    wait_for(lambda: world.runs("big")[0].looks > looks + 2)
    assert world.configs.tried.count("big") == 1
    assert "The worker's topics: connector big: the configs are too large" in caplog.text
    clock.now += 2
    wait_for(lambda: world.configs.tried.count("big") == 2)
    world.put("big", topics="fewer")  # what is changed was not refused yet
    wait_for(lambda: world.configs.tried.count("big") == 3)
    world.configs.refuses = lambda _name: None
    clock.now += 60
    wait_for(lambda: world.configs.connectors["big"].task_configs)
    wait_for(lambda: world.reconciler.issue is None)


@pytest.mark.parametrize("lost", [REBALANCE.error(), not_written(FencedError("taken over"))], ids=["lost", "fenced"])
def test_a_worker_that_has_lost_the_lead_publishes_no_further_connector(world: World, lost: ConnectError) -> None:
    def refuse(_name: str) -> None:
        raise lost

    world.configs.refuses = refuse
    world.put("first")
    world.put("later")
    wait_for(lambda: world.configs.tried.count("first") > 2)
    assert (world.statuses.states("later"), world.reconciler.issue) == ((), None)


def test_any_refused_write_is_reported_as_an_issue(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise not_written(ClusterError("the config topic takes nothing."))

    monkeypatch.setattr(world.reconciler._session_keys, "keep_fresh", refuse)
    wait_for(lambda: world.reconciler.issue == "the config topic takes nothing.")


def test_the_status_of_a_deleted_connector_is_deleted_while_another_is_refused(world: World) -> None:
    world.put("gone")
    world.wait("gone", "RUNNING", "RUNNING")
    world.put("huge")
    wait_for(lambda: world.reconciler.issue is not None)
    world.configs.take(ConnectorConfigRecord("gone", None))
    wait_for(lambda: "gone" not in world.statuses.reported)


def test_a_connector_that_fails_is_started_again_and_again(world: World) -> None:
    world.put("m", topics="lost")
    wait_for(lambda: len(world.runs("m")) >= 4)
    assert world.statuses.reported["m"][0].trace == "the cluster is gone."


def test_after_the_last_attempt_it_stays_failed_until_it_is_restarted(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.put("m", topics="lost", heliograph_restart_attempts_max="2")
    wait_for(lambda: "It is not started again, by heliograph.restart.attempts.max." in caplog.text)
    world.wait("m", "FAILED")
    world.put("late")
    world.wait("late", "RUNNING", "RUNNING")
    assert len(world.runs("m")) == 3
    assert world.reconciler.restart("m", include_tasks=False, only_failed=True) == ("RESTARTING", None, ())
    wait_for(lambda: len(world.runs("m")) == 6)


def test_a_changed_config_is_tried_at_once_after_the_last_attempt(world: World) -> None:
    world.put("m", topics="bad", heliograph_restart_attempts_max="0")
    world.wait("m", "FAILED")
    assert world.statuses.reported["m"][0].trace == "topics: it cannot be used."
    world.put("m", topics="good")
    world.wait("m", "RUNNING", "RUNNING")


def test_a_fenced_connector_is_not_started_again(world: World) -> None:
    world.put("fenced", topics="lost")
    world.wait("fenced", "FAILED")
    world.put("late")
    world.wait("late", "RUNNING", "RUNNING")
    assert len(world.runs("fenced")) == 1


def test_restarts_touch_what_they_are_asked_for(world: World) -> None:
    world.put("m")
    world.wait("m", "RUNNING", "RUNNING")
    restart = world.reconciler.restart
    assert restart("m", include_tasks=True, only_failed=True) is None
    assert restart("m", include_tasks=False, only_failed=True) is None
    assert restart("m", include_tasks=False, only_failed=False) == ("RESTARTING", None, (("RUNNING", None),))
    world.wait("m", "RUNNING", "RUNNING")
    assert [run.calls for run in world.runs("m")] == [["start", "look again"]]
    world.runs("m")[0].task = "FAILED"
    world.wait("m", "RUNNING", "FAILED")
    assert restart("m", include_tasks=True, only_failed=True) == ("RUNNING", None, (("RESTARTING", None),))
    assert world.runs("m")[0].calls[2:] == [("restart", [0])]
    world.wait("m", "RUNNING", "FAILED")
    assert restart("m", include_tasks=True, only_failed=False) == ("RESTARTING", None, (("RESTARTING", None),))
    wait_for(lambda: len(world.runs("m")) == 2)


def test_a_restart_in_the_config_topic_is_done_once(world: World) -> None:
    world.put("m")
    world.put("other")
    world.wait("m", "RUNNING", "RUNNING")
    world.wait("other", "RUNNING", "RUNNING")
    world.ask_for_restart("m", include_tasks=True, only_failed=False)
    world.ask_for_restart("unknown", include_tasks=True, only_failed=False)
    wait_for(lambda: len(world.runs("m")) == 2)
    world.put("late")
    world.wait("late", "RUNNING", "RUNNING")
    assert [run.calls for run in world.runs("m")] == [["start", "stop"], ["start"]]
    assert [run.calls for run in world.runs("other")] == [["start"]]
    assert world.runs("unknown") == []


def test_a_restart_in_the_config_topic_may_be_of_what_has_failed_or_without_tasks(world: World) -> None:
    world.put("m")
    world.wait("m", "RUNNING", "RUNNING")
    run = world.runs("m")[0]
    world.ask_for_restart("m", include_tasks=True, only_failed=True)  # nothing has
    run.task = "FAILED"
    world.wait("m", "RUNNING", "FAILED")
    assert run.calls == ["start"]
    world.ask_for_restart("m", include_tasks=True, only_failed=True)
    wait_for(lambda: run.calls == ["start", ("restart", [0])])
    world.ask_for_restart("m", include_tasks=False, only_failed=False)
    wait_for(lambda: run.calls == ["start", ("restart", [0]), "look again"])
    assert len(world.runs("m")) == 1


def test_a_restart_that_was_read_while_another_led_is_not_done_again(world: World) -> None:
    world.put("m")
    world.wait("m", "RUNNING", "RUNNING")
    world.reconciler.lead(None)
    world.ask_for_restart("m", include_tasks=True, only_failed=False)
    wait_for(lambda: not world.configs.has_restarts)
    world.reconciler.lead(3)
    wait_for(lambda: len(world.runs("m")) == 2)
    world.put("late")
    world.wait("late", "RUNNING", "RUNNING")
    assert [run.calls for run in world.runs("m")] == [["start", "stop"], ["start"]]


def test_a_paused_connector_keeps_its_tasks_and_a_stopped_one_has_none(world: World) -> None:
    world.put("m")
    world.wait("m", "RUNNING", "RUNNING")
    assert world.statuses.topics == {"m:A.t"}
    world.want("m", "PAUSED")
    world.wait("m", "PAUSED", "PAUSED")
    world.want("m", "STOPPED")
    world.wait("m", "STOPPED")
    assert world.configs.connectors["m"].task_configs == ()
    world.want("m", "STARTED")
    world.wait("m", "RUNNING", "RUNNING")


def test_a_connector_that_has_not_begun_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRun, "start", lambda run: setattr(run, "has_begun", False))
    world.put("m")
    world.wait("m", "UNASSIGNED")
    world.runs("m")[0].has_begun = True
    world.wait("m", "RUNNING", "RUNNING")
