"""What `run` says at its end: a copy with `--once` that did not bring everything over is no success."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from heliograph.cli.commands import run as run_module
from heliograph.cli.commands.run import _summary, _watch
from heliograph.cli.main import cli
from heliograph.config import keys
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.flow_status import FlowStatus, SourceStep
from heliograph.driver.loops import mirror_process
from heliograph.driver.loops.file_loops import Control
from heliograph.driver.loops.mirror_process import MirrorProcess
from heliograph.driver.spark.spark_engine import LaunchOptions
from heliograph.errors import ClusterError, UnreachableError
from heliograph.model import Flow
from tests.support.config_files import FakeLookup, minimal

FLOW = Flow("A", "B")
REFUSED = "The principal needs WRITE on the topic A.checkpoints.internal of 'B'."


class EndedFlow:
    """A flow that is over."""

    def __init__(self, error: ClusterError | None = None) -> None:
        self.flow, self.error, self.status = FLOW, error, FlowStatus(FLOW)
        self.status.state = "DONE"


@pytest.fixture
def _logging() -> Iterator[None]:
    log = logging.getLogger("heliograph")
    before = log.handlers, log.propagate, log.level
    yield
    log.handlers, log.propagate = before[:2]
    log.setLevel(before[2])


def code_of(flow: EndedFlow, *, once: bool) -> int:
    return _summary(cast("list[Any]", [flow]), once=once)


def test_checkpoints_that_a_copy_could_not_write_are_in_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    ended = EndedFlow()
    control = Control(load(minimal(), FakeLookup()), {FLOW: ended.status})

    def refuse() -> None:
        raise ClusterError(REFUSED)

    monkeypatch.setattr(control.checkpoints[FLOW], "begin", refuse)
    control.run_once([FLOW])
    assert code_of(ended, once=True) == 1
    assert f"error: A->B: {REFUSED}" in capsys.readouterr().err
    assert REFUSED.rstrip(".") in caplog.text
    assert "will be tried again" not in caplog.text


@pytest.mark.parametrize("step", [SourceStep.ACLS, SourceStep.CONFIGS, SourceStep.SYNCS, "A->B checkpoints: groups"])
def test_a_failed_step_counts_if_no_next_run_repeats_it(step: str) -> None:
    ended = EndedFlow()
    ended.status.note(step, [REFUSED])
    assert code_of(ended, once=True) == 1
    assert code_of(ended, once=False) == 0


@pytest.mark.parametrize("step", [SourceStep.TOPICS, "task 0"])
def test_what_was_not_copied_counts_always(step: str) -> None:
    ended = EndedFlow()
    ended.status.note(step, [REFUSED])
    assert (code_of(ended, once=True), code_of(ended, once=False)) == (1, 1)


def test_a_copy_without_issues_is_a_success_and_one_that_could_not_begin_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of(EndedFlow(), once=True) == 0
    assert capsys.readouterr().out == "A->B: done, 0 records, 0 B, 0 topics\n"
    assert code_of(EndedFlow(UnreachableError("gone")), once=True) == 3


class WatchedFlow(EndedFlow):
    """A flow that has failed for good, or ends after some looks at it."""

    def __init__(self, error: ClusterError | None, looks: int = 0) -> None:
        super().__init__(error)
        self.looks = looks

    def join(self, _timeout_s: float) -> bool:
        self.looks -= 1
        return self.looks < 0


def watch(*flows: WatchedFlow) -> None:
    """Look at these flows, each of another file's flow, until `run` would end."""
    process = MirrorProcess(load(minimal(), FakeLookup()), Mock())
    process.flows = cast("Any", {Flow("A", str(number)): flow for number, flow in enumerate(flows)})
    _watch(process, Mock(), threading.Event(), Mock(error=None), Mock())


def test_a_flow_that_failed_for_good_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_POLL_S", 0.0)
    failed, copying = WatchedFlow(UnreachableError("gone")), WatchedFlow(None, looks=3)
    watch(failed, copying)
    assert copying.looks < 0, "it was waited for"


def test_nothing_is_left_to_watch_if_all_flows_have_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_POLL_S", 0.0)
    retrying = WatchedFlow(UnreachableError("gone"), looks=3)
    watch(retrying)
    assert retrying.looks == 2


@pytest.mark.usefixtures("_logging")
def test_each_flow_has_its_own_lease_time_out_and_permission_to_send_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: dict[str, LaunchOptions] = {}
    stopping = threading.Event()
    stopping.set()

    def make_flow(_config: Any, flow: Flow, _engine: Any, *, launch: LaunchOptions, **_more: Any) -> Mock:
        launches[str(flow)] = launch
        return Mock(flow=flow, error=None, status=FlowStatus(flow))

    fakes: dict[str, Any] = {
        "SparkDriver": Mock(),
        "SparkEngine": Mock(),
        "stop_on_signals": lambda: stopping,
        "warm_up": lambda: None,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(run_module, name, fake)
    monkeypatch.setattr(mirror_process, "SourceFlow", make_flow)
    monkeypatch.setattr(mirror_process, "Control", Mock())
    file = tmp_path / "mm2.properties"
    more = ("B->A.enabled=true", f"B->A.{keys.LEASE_TIMEOUT_MS.name}=5000")
    file.write_text(minimal(*more, f"B->A.{keys.UNENCRYPTED_SECRETS_ALLOWED.name}=true"))
    result = CliRunner().invoke(cli, ["run", str(file)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert launches == {"A->B": LaunchOptions(10_000, False), "B->A": LaunchOptions(5_000, True)}
