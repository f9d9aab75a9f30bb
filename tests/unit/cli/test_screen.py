"""What `run` shows: texts of others as they are, and no trouble of the screen's own keeps flows from being stopped."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from rich.console import Console

from heliograph.cli.commands import run as run_module
from heliograph.cli.main import cli
from heliograph.cli.output import LiveTable
from heliograph.driver.flow.flow_status import FlowStatus
from heliograph.executor.contract.task_report import PartitionReport, TaskReport
from heliograph.model import Flow
from tests.support.config_files import minimal


def shown(*statuses: FlowStatus) -> str:
    """What stands on the terminal in the end."""
    output = io.StringIO()
    table = LiveTable(Console(file=output, force_terminal=True, color_system=None, width=200))
    table.show(statuses)
    table.close()
    return output.getvalue()


@pytest.mark.parametrize(
    "issue", ["[fd00::1]:9092 cannot be reached", "no space left in [/data]", "[bold]x[/bold]", "took:eyes: a while"]
)
def test_an_issue_is_shown_as_it_is(issue: str) -> None:
    status = FlowStatus(Flow("A", "B"))
    status.note("topics", [issue])
    assert issue in shown(status)


def test_flows_and_topics_are_shown_as_they_are() -> None:
    waiting, copying = FlowStatus(Flow("[/a]", "B")), FlowStatus(Flow("[red]", "B"))
    copying.take("task", TaskReport([PartitionReport("[/topic]", 0, issue="[/why]")]))
    for words in ("[/a]->B", "starting", "[red]->B", "[/topic]", "[/topic]-0 waits: [/why]"):
        assert words in shown(waiting, copying)


@pytest.fixture
def _logging() -> Iterator[None]:
    log = logging.getLogger("heliograph")
    before = log.handlers, log.propagate, log.level
    yield
    log.handlers, log.propagate = before[:2]
    log.setLevel(before[2])


@pytest.mark.usefixtures("_logging")
def test_a_screen_that_cannot_be_closed_does_not_keep_flows_from_being_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = threading.Event()
    stopping.set()
    flow = Mock(flow=Flow("A", "B"), error=None, status=FlowStatus(Flow("A", "B")))
    process, engine = Mock(flows={flow.flow: flow}), Mock()
    process.config.paused = {}
    screen = Mock(close=Mock(side_effect=ValueError("closing tag '[/data]' has nothing to close")))
    fakes: dict[str, Any] = {
        "SparkDriver": Mock(),
        "SparkEngine": lambda *_args, **_kwargs: engine,
        "MirrorProcess": lambda *_args, **_kwargs: process,
        "make_screen": lambda **_kwargs: screen,
        "stop_on_signals": lambda: stopping,
        "warm_up": lambda: None,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(run_module, name, fake)
    (tmp_path / "mm2.properties").write_text(minimal())
    result = CliRunner().invoke(cli, ["run", str(tmp_path / "mm2.properties")], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    for call in (screen.close, process.start, process.stop, engine.close, process.control.stop):
        call.assert_called_once()
