"""`run` and `worker` take a SIGTERM before they are imported; other commands leave it to the system."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# The signal arrives exactly where the command would be imported.
_SCRIPT = """
import os, signal, sys
from heliograph.cli import main
main.import_module = lambda _name: os.kill(os.getpid(), signal.{name})
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


def test_another_command_ends_by_the_signal() -> None:
    assert exit_code("plan", "SIGTERM") == -signal.SIGTERM
