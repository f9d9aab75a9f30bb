"""What a new version of a file does to the flows and loops of a process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.driver.loops import mirror_process
from heliograph.driver.loops.mirror_process import MirrorProcess
from heliograph.errors import ClusterError, ConfigError, HeliographError
from heliograph.model import Flow
from tests.support.config_files import FakeLookup, minimal

AB, BA = Flow("A", "B"), Flow("B", "A")
BOTH = "B->A.enabled=true"


class FakeFlow:
    """A flow that ends when the test wants it to."""

    def __init__(self, config: Any, flow: Flow, _engine: Any, *, status: FlowStatus, **_more: Any) -> None:
        self.config, self.flow, self.status = config, flow, status
        self.error: HeliographError | None = None
        self.calls: list[str] = []
        self.has_ended = False

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def join(self, _timeout_s: float) -> bool:
        return self.has_ended

    def continue_from(self, last_run: FakeFlow) -> None:
        self.last_run = last_run

    def adopt(self, config: Any) -> None:
        self.config = config
        self.calls.append("adopt")


class Process:
    """A process with fake flows; its loops are real and not started."""

    def __init__(self, *lines: str) -> None:
        self.engine: Any = SimpleNamespace(shared_slots=None)
        self.real = MirrorProcess(config_of(*lines), self.engine, slots=lambda config: len(config.flows))
        for flow in self.real.flows.values():
            flow.start()

    def __getitem__(self, flow: Flow) -> FakeFlow:
        found: Any = self.real.flows[flow]
        return found

    def becomes(self, *lines: str) -> None:
        self.real.apply(config_of(*lines))


def config_of(*lines: str) -> Any:
    return load(minimal(*lines), FakeLookup())


@pytest.fixture(autouse=True)
def _fake_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_process, "SourceFlow", FakeFlow)


def test_a_live_change_is_adopted_and_nothing_is_restarted() -> None:
    process = Process(BOTH)
    before, loops = dict(process.real.flows), dict(process.real.control.checkpoints)
    process.becomes(BOTH, "A->B.topics=orders")
    assert dict(process.real.flows) == before
    assert (process[AB].calls, process[BA].calls) == (["start", "adopt"], ["start"])
    assert process.real.control.checkpoints[AB] is not loops[AB]
    assert process.real.control.checkpoints[BA] is loops[BA]


def test_a_flow_is_started_again_only_after_its_last_run_has_ended() -> None:
    process = Process(BOTH)
    old, other = process[AB], process[BA]
    process.becomes(BOTH, "A->B.tasks.max=3")
    assert old.calls == ["start", "stop"]
    process.real.look_after()
    assert process[AB] is old
    assert not process.real.is_over
    old.has_ended = True
    process.real.look_after()
    assert process[AB] is not old
    assert process[AB].calls == ["start"]
    assert process[AB].config is process.real.config
    assert process[AB].status is old.status, "its counts continue"
    assert (process[BA], other.calls) == (other, ["start"])


def test_a_flow_continues_from_its_last_run_unless_it_was_removed_meanwhile() -> None:
    process = Process(BOTH)
    old, removed = process[AB], process[BA]
    old.has_ended = removed.has_ended = True
    process.becomes("A->B.tasks.max=3")
    process.becomes(BOTH, "A->B.tasks.max=3")
    assert process[AB].last_run is old
    assert process[BA] is not removed
    assert not hasattr(process[BA], "last_run")


def test_no_flow_is_started_again_while_its_offsets_are_altered() -> None:
    process = Process()
    old = process[AB]
    old.has_ended = True
    with process.real.starting:
        process.becomes("A->B.tasks.max=3")
        process.real.look_after()
        assert process[AB] is old
        assert not process.real.is_over
    process.real.look_after()
    assert process[AB].calls == ["start"]


def test_a_flow_that_cannot_be_started_is_logged_each_time_and_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_arguments: object, **_more: object) -> None:
        raise ConfigError("no secret.")

    def try_to_start() -> None:
        process.real._try_at = 0.0
        process.real.look_after()

    process = Process()
    status = process[AB].status
    for time, tasks_max in enumerate((3, 4), 1):
        process[AB].has_ended = True
        monkeypatch.setattr(mirror_process, "SourceFlow", refuse)
        process.becomes(f"A->B.tasks.max={tasks_max}")
        for _try in range(3):
            try_to_start()
        assert caplog.messages == time * ["A->B: cannot be started: no secret. (will be tried again)"]
        assert (status.state, status.issue) == ("FAILED", "cannot be started: no secret.")
        monkeypatch.setattr(mirror_process, "SourceFlow", FakeFlow)
        try_to_start()
        assert process[AB].calls == ["start"]
        assert (status.state, status.issue) == ("STARTING", None)


def test_a_second_change_before_the_new_run_starts_is_what_it_starts_with() -> None:
    process = Process()
    old = process[AB]
    process.becomes("A->B.tasks.max=3")
    process.becomes("A->B.tasks.max=4")
    assert old.calls == ["start", "stop"]
    old.has_ended = True
    process.real.look_after()
    assert process[AB].config.raw["A->B.tasks.max"] == "4"


def test_flows_come_and_go() -> None:
    process = Process()
    process.becomes(BOTH)
    added = process[BA]
    assert added.calls == ["start"]
    assert BA in process.real.control.checkpoints
    assert process.engine.shared_slots == 2
    process.becomes()
    assert added.calls == ["start", "stop"]
    assert BA not in process.real.flows
    assert BA not in process.real.control.checkpoints
    process.becomes(BOTH)
    assert BA not in process.real.flows, "its last run has not ended"
    added.has_ended = True
    process.real.look_after()
    assert process[BA].calls == ["start"]


def test_a_flow_that_cannot_run_is_started_again_for_any_change() -> None:
    process = Process()
    old = process[AB]
    old.error, old.has_ended = ClusterError("refused"), True
    process.becomes("A->B.topics=orders")
    assert old.calls == ["start", "stop"]
    assert process[AB] is not old
    assert process[AB].calls == ["start"]


def test_a_file_that_turns_out_to_be_unusable_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    config, loops = process.real.config, dict(process.real.control.checkpoints)

    def refuse(*_arguments: object) -> None:
        raise ConfigError("no.")

    monkeypatch.setattr("heliograph.driver.loops.file_loops.CheckpointSync", refuse)
    with pytest.raises(ConfigError):
        process.becomes("A->B.tasks.max=3")
    assert process.real.config is config
    assert process[AB].calls == ["start"]
    assert process.real.control.checkpoints == loops


def test_a_process_whose_first_file_cannot_run_ends_and_one_that_was_changed_waits_for_a_correction() -> None:
    process = Process()
    process[AB].error = ClusterError("refused")
    assert process.real.cannot_run
    process.becomes("A->B.topics=orders")
    process[AB].error = ClusterError("refused")
    assert not process.real.cannot_run
