"""What `run` says at its end: a copy with `--once` that did not bring everything over is no success."""

from __future__ import annotations

from typing import Any, cast

import pytest

from heliograph.cli.commands.run import _summary
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.flow_status import FlowStatus, SourceStep
from heliograph.driver.loops.file_loops import Control
from heliograph.errors import ClusterError, UnreachableError
from heliograph.model import Flow
from tests.unit.config.test_dedicated_file import FakeLookup, minimal

FLOW = Flow("A", "B")
REFUSED = "The principal needs WRITE on the topic A.checkpoints.internal of 'B'."


class EndedFlow:
    """A flow that is over."""

    def __init__(self, error: ClusterError | None = None) -> None:
        self.flow, self.error, self.status = FLOW, error, FlowStatus(FLOW)
        self.status.state = "DONE"


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
def test_a_step_in_trouble_counts_where_no_next_run_does_it_again(step: str) -> None:
    ended = EndedFlow()
    ended.status.note(step, [REFUSED])
    assert code_of(ended, once=True) == 1
    assert code_of(ended, once=False) == 0


@pytest.mark.parametrize("step", [SourceStep.TOPICS, "task 0"])
def test_what_was_not_copied_counts_always(step: str) -> None:
    ended = EndedFlow()
    ended.status.note(step, [REFUSED])
    assert (code_of(ended, once=True), code_of(ended, once=False)) == (1, 1)


def test_a_copy_without_trouble_is_a_success_and_one_that_could_not_begin_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of(EndedFlow(), once=True) == 0
    assert capsys.readouterr().out == "A->B: done, 0 records, 0 B, 0 topics\n"
    assert code_of(EndedFlow(UnreachableError("gone")), once=True) == 3
