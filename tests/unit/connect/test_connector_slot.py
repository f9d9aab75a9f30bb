"""A connector's slot: one run at a time, back-off after a failure, and no transition that its table lacks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.runtime import connector_slot
from heliograph.connect.runtime.connector_run import RunState
from heliograph.connect.runtime.connector_slot import ConnectorSlot, ConnectorSlots, SlotState
from heliograph.connect.storage.config_store import StoredConnector
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.errors import ConfigError
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import Flow, TopicPartition
from heliograph.status.flow_snapshot import FlowSnapshot
from heliograph.status.losses import Loss, LossCause
from tests.support.config_files import WORKER_FILE, FakeLookup
from tests.support.runs.copying import wait_for
from tests.unit.connect.test_herder import FakeWorker

T0 = TopicPartition("t", 0)
LOSS = Loss(1_000, Flow("A", "B"), "t", 0, 3, 4, 2, LossCause.SOURCE_TRUNCATED)


UNREACHABLE = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
}


class FakeRun:
    """A run whose life is in the test's hands."""

    made: list[FakeRun] = []  # noqa: RUF012  (cleared for each slot)
    cannot_start = False

    def __init__(self, config: Any, _engine: object, status: FlowStatus) -> None:
        if FakeRun.cannot_start:
            raise ConfigError("topics: it cannot be used.")
        self.status = status
        self.config = config
        self.error: str | None = None
        self.is_fenced = self.has_begun = self.is_stopped = self.has_ended = False
        self.task_configs = ({"task.index": "0"},)
        self.state = RunState("RUNNING", None, (("RUNNING", None),))
        FakeRun.made.append(self)

    def start(self) -> None:
        """Its clusters answer when the test says so."""

    def stop(self, *, drains: bool = True) -> None:
        self.is_stopped, self.is_drained = True, drains

    def is_over(self) -> bool:
        return self.is_stopped and self.has_ended

    def adopt(self, config: Any) -> bool:
        return "live" in config

    def restart_tasks(self, numbers: list[int]) -> bool:
        return bool(numbers)

    def look_again(self) -> bool:
        return True

    def log_progress(self) -> None:
        """Nothing is copied."""

    def take_topics(self) -> list[str]:
        return []

    @property
    def flow(self) -> FlowSnapshot:
        return self.status.snapshot("c", "c", ())

    def copy(self, records: int, lag: int, loss: Loss) -> None:
        """As a flow does that copies one partition."""
        self.status.state = "RUNNING"
        self.status.partitions.set_replicated({T0: "A.t"})
        row = PartitionReport(*T0, records=records, next_offset=records, log_end=records + lag, log_end_age_ms=0)
        self.status.take("c-0", TaskReport([row], [], [], 0))
        self.status.losses = (loss,)


class Bench:
    """A slot, its clock, and the config and target state that are stored for it."""

    def __init__(self) -> None:
        FakeRun.made.clear()
        FakeRun.cannot_start = False
        self.slot = make_slot("c")
        self.clock = SimpleNamespace(now=100.0)
        self.slots = ConnectorSlots(lambda _name: self.slot)
        self.stored = StoredConnector({"connector.class": "MirrorSourceConnector"})

    @property
    def time(self) -> SimpleNamespace:
        return SimpleNamespace(monotonic=lambda: self.clock.now, time=lambda: 1e9 + self.clock.now)

    @property
    def runs(self) -> list[FakeRun]:
        return FakeRun.made

    @property
    def flows(self) -> list[FlowSnapshot]:
        """The flows that REST shows while the worker leads."""
        if self.slots.leads_since is None:
            self.slots.lead(1)
        return self.slots.flows({"c": self.stored})

    @property
    def flow(self) -> FlowSnapshot:
        (flow,) = self.flows
        return flow

    def step(self) -> str | None:
        """Advance; return the state to publish."""
        snapshot = self.slot.advance(self.stored)
        return None if snapshot is None else snapshot.state.state

    def change(self, **config: str) -> None:
        self.stored = self.stored._replace(config={**self.stored.config, **config})

    def run(self) -> FakeRun:
        """Bring the slot to RUNNING; return its run."""
        self.step()
        self.runs[-1].has_begun = True
        assert self.step() == "RUNNING"
        return self.runs[-1]

    def fail(self, *, is_fenced: bool = False) -> None:
        self.runs[-1].error, self.runs[-1].is_fenced = "its source does not answer.", is_fenced
        self.step()


def make_slot(name: str) -> ConnectorSlot:
    return ConnectorSlot(name, cast("Any", FakeWorker()), cast("Any", None))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench()
    monkeypatch.setattr(connector_slot, "ConnectorRun", FakeRun)
    monkeypatch.setattr(connector_slot, "time", bench.time)
    yield bench
    FakeRun.cannot_start = False


def test_a_run_that_has_not_begun_is_unassigned_and_then_runs(bench: Bench) -> None:
    assert (bench.step(), bench.slot.state) == ("UNASSIGNED", SlotState.STARTING)
    bench.run()
    assert bench.slot.state is SlotState.RUNNING


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_connector_that_is_not_to_run_stops_and_rests_when_its_run_has_ended(bench: Bench, state: Any) -> None:
    run = bench.run()
    bench.stored = bench.stored._replace(target_state=state)
    assert (bench.step(), bench.slot.state, run.is_stopped) == (None, SlotState.IDLE, True)
    run.has_ended = True
    assert bench.step() == state


def test_a_failed_run_backs_off_and_its_successor_waits_for_its_end(bench: Bench) -> None:
    run = bench.run()
    bench.fail()
    assert (bench.slot.state, bench.step(), run.is_stopped) == (SlotState.BACKING_OFF, "FAILED", True)
    bench.clock.now += 3600
    assert (bench.step(), len(bench.runs)) == ("FAILED", 1), "the failed run has not ended"
    run.has_ended = True
    assert (bench.step(), bench.slot.state, len(bench.runs)) == ("FAILED", SlotState.STARTING, 2)
    bench.runs[1].has_begun = True
    assert (bench.step(), bench.slot.failure) == ("RUNNING", None)


def test_a_run_that_cannot_be_made_backs_off_too(bench: Bench) -> None:
    FakeRun.cannot_start = True
    assert (bench.step(), bench.slot.state) == ("FAILED", SlotState.BACKING_OFF)
    bench.clock.now += 3600
    assert (bench.step(), bench.slot.state) == ("FAILED", SlotState.BACKING_OFF)
    FakeRun.cannot_start = False
    bench.clock.now += 3600
    assert (bench.step(), bench.slot.state) == ("FAILED", SlotState.STARTING)


def test_a_fenced_run_stays_failed_until_it_is_reset(bench: Bench) -> None:
    bench.run().has_ended = True
    bench.fail(is_fenced=True)
    bench.clock.now += 86_400
    assert (bench.step(), bench.slot.state, len(bench.runs)) == ("FAILED", SlotState.FAILED, 1)
    bench.slot.reset()
    assert (bench.step(), bench.slot.state, len(bench.runs)) == ("UNASSIGNED", SlotState.STARTING, 2)


def test_a_config_that_no_task_must_notice_keeps_the_run(bench: Bench) -> None:
    run = bench.run()
    bench.change(live="yes")
    assert (bench.step(), bench.slot.state, run.is_stopped) == ("RUNNING", SlotState.RUNNING, False)


def test_any_other_config_ends_the_run_and_clears_a_failure(bench: Bench) -> None:
    bench.run().has_ended = True
    bench.fail(is_fenced=True)
    bench.change(topics="others")
    assert (bench.step(), bench.slot.state) == ("UNASSIGNED", SlotState.STARTING)
    assert bench.runs[1].config["topics"] == "others"


def test_a_lost_lead_stops_every_run_and_advances_nothing(bench: Bench) -> None:
    slots = ConnectorSlots(make_slot)
    slots.lead(1)
    assert set(slots.advance({"a": bench.stored, "b": bench.stored}) or ()) == {"a", "b"}
    slots.lead(None)
    assert [run.is_stopped for run in bench.runs] == [True, True]
    assert [run.is_drained for run in bench.runs] == [False, False], "the next leader may run them already"
    assert (slots.advance({"a": bench.stored}), slots.is_running("b")) == (None, True)


def test_a_deleted_connector_is_known_until_its_run_has_ended(bench: Bench) -> None:
    slots = ConnectorSlots(make_slot)
    slots.lead(1)
    slots.advance({"a": bench.stored})
    slots.advance({})
    assert (bench.runs[0].is_stopped, slots.is_known("a"), slots.has_runs()) == (True, True, True)
    bench.runs[0].has_ended = True
    slots.advance({})
    assert (slots.is_known("a"), slots.has_runs()) == (False, False)


# --- the flow that REST shows ---------------------------------------------------------------------
def test_a_failed_connector_is_unready_in_its_pause_and_during_the_next_attempt(bench: Bench) -> None:
    run = bench.run()
    run.copy(5, 7, LOSS)
    assert (bench.flow.state, bench.flow.lag.records, bench.flow.unready) == ("RUNNING", 7, ())
    bench.fail()
    shown = [bench.flow]
    run.has_ended = True
    bench.step()
    shown.append(bench.flow)
    bench.clock.now += 3600
    bench.step()
    assert bench.slot.state is SlotState.STARTING
    shown.append(bench.flow)
    for flow in shown:
        assert (flow.state, flow.since, flow.unready) == ("FAILED", 1e9 + 100, ("its source does not answer.",))
        assert (flow.counts.records, flow.losses) == (5, (LOSS,))
    assert [flow.lag.records for flow in shown] == [7, None, None], "that of a run that has ended is not known"
    assert [each.next_offset for each in shown[1].partitions] == [None]
    bench.run()
    assert bench.flow.issues == ()


@pytest.mark.parametrize("is_fenced", [False, True])
def test_a_connector_that_is_not_started_again_stays_unready(bench: Bench, *, is_fenced: bool) -> None:
    bench.run().has_ended = True
    bench.fail(is_fenced=is_fenced)
    bench.step()
    assert (bench.flow.state, bench.flow.unready) == ("FAILED", ("its source does not answer.",))


def test_a_connector_whose_run_cannot_be_made_is_unready(bench: Bench) -> None:
    FakeRun.cannot_start = True
    bench.step()
    assert (bench.flow.state, bench.flow.unready) == ("FAILED", ("topics: it cannot be used.",))


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_connector_at_rest_on_request_is_shown_and_not_unready(bench: Bench, state: Any) -> None:
    run = bench.run()
    run.copy(5, 7, LOSS)
    bench.stored = bench.stored._replace(target_state=state)
    bench.step()
    assert (bench.flow.state, bench.flow.unready) == ("RUNNING", ()), "its run has not ended"
    run.has_ended = True
    bench.step()
    flow = bench.flow
    assert (flow.state, flow.unready, flow.issues, flow.losses) == (state, (), (), (LOSS,))
    assert (flow.counts.records, flow.lag.records, len(flow.partitions)) == (5, None, 1)
    bench.stored = bench.stored._replace(target_state="STARTED")
    assert bench.flow.unready == ("the flow is STARTING",)


def test_a_new_leader_shows_every_source_connector_before_it_has_started_any(bench: Bench) -> None:
    other = StoredConnector({"connector.class": "MirrorHeartbeatConnector"})
    assert bench.slots.flows({"c": bench.stored, "h": other}) == [], "it does not lead"
    bench.slots.lead(1)
    (flow,) = bench.slots.flows({"c": bench.stored, "h": other})
    assert (flow.name, flow.state, flow.unready) == ("c", "STARTING", ("the flow is STARTING",))


def test_a_cluster_that_cannot_be_reached_is_a_reason_at_every_moment() -> None:
    worker = load_worker(f"{WORKER_FILE}\nheliograph.connect.timeout.ms=100", FakeLookup())
    slots = ConnectorSlots(lambda name: ConnectorSlot(name, worker, cast("Any", SimpleNamespace(slots=1))))
    slots.lead(1)
    stored = {"mirror": StoredConnector(UNREACHABLE)}
    failures: set[tuple[str, ...]] = set()
    ends_at = time.monotonic() + 4
    while time.monotonic() < ends_at:
        slots.advance(stored)
        (flow,) = slots.flows(stored)
        assert flow.unready
        assert flow.flow == Flow("us", "eu")
        failures.add(flow.unready)
        time.sleep(0.02)
    slots.lead(None)
    wait_for(lambda: not slots.has_runs())
    assert len(failures) == 2, failures
    assert any("127.0.0.1:1" in reason for (reason,) in failures)


# --- the machine ----------------------------------------------------------------------------------
EVENTS: dict[str, Callable[[Bench], object]] = {
    "step": Bench.step,
    "begin": lambda bench: [setattr(run, "has_begun", True) for run in bench.runs],
    "fail": lambda bench: [setattr(run, "error", "no reason") for run in bench.runs[-1:]],
    "fence": lambda bench: [setattr(run, "is_fenced", True) for run in bench.runs[-1:]],
    "end": lambda bench: [setattr(run, "has_ended", True) for run in bench.runs],
    "wait": lambda bench: setattr(bench.clock, "now", bench.clock.now + 3600),
    "break": lambda _bench: setattr(FakeRun, "cannot_start", True),
    "repair": lambda _bench: setattr(FakeRun, "cannot_start", False),
    "pause": lambda bench: setattr(bench, "stored", bench.stored._replace(target_state="PAUSED")),
    "resume": lambda bench: setattr(bench, "stored", bench.stored._replace(target_state="STARTED")),
    "live": lambda bench: bench.change(live=str(bench.clock.now)),
    "change": lambda bench: bench.change(topics=str(len(bench.runs))),
    "restart": lambda bench: bench.slot.reset(),
    "restart tasks": lambda bench: bench.slot.restart_tasks([]),
}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=30))
def test_no_sequence_of_events_leaves_the_table_or_runs_two_at_once(events: list[str]) -> None:
    bench = Bench()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(connector_slot, "ConnectorRun", FakeRun)
        patched.setattr(connector_slot, "time", bench.time)
        for event in itertools.chain.from_iterable((event, "step") for event in events):
            made = len(bench.runs)
            EVENTS[event](bench)
            assert len(bench.runs) == made or all(run.is_over() for run in bench.runs[:made])
            has_run = any(not run.is_stopped for run in bench.runs)
            assert has_run == (bench.slot.state in (SlotState.STARTING, SlotState.RUNNING))
