"""`run` and `worker` take signals before they are imported; other commands leave them to the system."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from click.testing import CliRunner

from heliograph.cli.commands import worker as worker_module
from heliograph.cli.main import cli
from tests.support.config_files import WORKER_FILE

# The signal arrives exactly where the command would be imported.
_SCRIPT = """
import os, signal, sys
from heliograph.cli import main
main.import_module = lambda _name: os.kill(os.getpid(), signal.{name})
sys.argv = ["heliograph", "{command}"]
main.main()
"""


# The second signal arrives where Spark would be started.
_HANGUPS = """
import os, signal, sys
from types import SimpleNamespace
import click
from heliograph.cli import main, signals

def hang_up():
    os.kill(os.getpid(), signal.SIGHUP)

@click.command()
def command():
    print(signals.hung_up().is_set())
    signals.stop_on_signals()
    signals.hung_up().clear()
    hang_up()
    print(signals.hung_up().is_set())

def import_module(_name):
    hang_up()
    return SimpleNamespace(run=command, worker=command)

main.import_module = import_module
sys.argv = ["heliograph", "{command}"]
main.main()
"""


def exit_code(command: str, name: str) -> int:
    script = _SCRIPT.format(command=command, name=name)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=120).returncode


@pytest.mark.parametrize("command", ["run", "worker"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_command_that_runs_until_it_is_stopped_ends_with_0(command: str, name: str) -> None:
    assert exit_code(command, name) == 0


@pytest.mark.parametrize("command", ["run", "worker"])
def test_a_reload_that_is_requested_while_a_command_starts_is_remembered(command: str) -> None:
    script = _HANGUPS.format(command=command)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, text=True, timeout=120)
    assert (ran.returncode, ran.stdout.split()) == (0, ["True", "True"]), ran.stderr


def test_another_command_ends_by_the_signal() -> None:
    assert exit_code("plan", "SIGTERM") == -signal.SIGTERM


def test_a_worker_answers_a_reload_with_what_to_do_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hung_up = threading.Event()
    hung_up.set()
    stopping = Mock(wait=Mock(side_effect=[False, False, True]))
    fakes: dict[str, Any] = {
        "SparkDriver": lambda _settings, **_options: Mock(error=None),
        "SparkEngine": Mock(),
        "serving": MagicMock(),
        "stop_on_signals": lambda: stopping,
        "hung_up": lambda: hung_up,
        "make_screen": Mock(),
        "warm_up": lambda: None,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(worker_module, name, fake)
    file = tmp_path / "connect-distributed.properties"
    file.write_text(WORKER_FILE)
    result = CliRunner().invoke(cli, ["worker", str(file)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert [line for line in caplog.messages if "SIGHUP" in line] == [worker_module._NO_RELOAD]
