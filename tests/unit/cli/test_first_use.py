"""What a newcomer reads: help, counts and warnings in one style."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import heliograph
from heliograph.cli.commands import run as run_module
from heliograph.cli.commands import worker as worker_module
from heliograph.cli.main import cli
from heliograph.model import counted
from tests.support.config_files import WORKER_FILE, minimal

_JAVAS = {"connect/contract/refusals.py"}  # Connect's own sentences


def commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield command
        if isinstance(command, click.Group):
            yield from commands(command, context)


def test_every_option_that_can_be_repeated_says_so_in_the_same_words() -> None:
    options = [
        (command.name, option)
        for command in commands(cli, click.Context(cli))
        for option in command.params
        if isinstance(option, click.Option) and option.multiple
    ]
    assert len(options) >= 9
    for command_name, option in options:
        assert (option.help or "").endswith("; may be repeated."), (command_name, option.name)
        assert "..." not in (option.metavar or ""), (command_name, option.name)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["validat"], "No such command 'validat'. Did you mean 'validate'?"),
        (["nothing-like-it"], "No such command 'nothing-like-it'."),
        (["deploy", "mm2-msc-A.json"], "'mm2-msc-A.json' is a file; name the cluster: heliograph deploy A --dir ."),
    ],
)
def test_a_slip_of_the_pen_gets_a_hint(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code != 0
    assert sentence in f"{result.output} {result.exception}"


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    assert all(f"  {name} " in result.output for name in ("run", "worker", "validate", "plan", "kafka", "convert"))


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (2000, "2,000 records")]
)
def test_a_count_agrees_with_its_noun(number: int, words: str) -> None:
    assert counted(number, "record") == words


def test_no_text_leaves_the_number_of_a_noun_open() -> None:
    folder = Path(heliograph.__file__).parent
    found = [
        f"{file.relative_to(folder)}:{node.lineno}"
        for file in folder.rglob("*.py")
        if file.relative_to(folder).as_posix() not in _JAVAS
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "(s)" in node.value
    ]
    assert found == []


@pytest.mark.parametrize(
    ("command", "text", "line"),
    [("worker", WORKER_FILE + "tsaks.max = 3\n", 7), ("run", minimal("A->B.topcis=x"), None)],
)
def test_a_warning_names_its_file_and_line(
    command: str,
    text: str,
    line: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "its.properties"
    file.write_text(text)
    module = {"worker": worker_module, "run": run_module}[command]
    monkeypatch.setattr(module, "make_screen", lambda **_: _NoScreen())
    monkeypatch.setattr(module, "stop_on_signals", _begin)
    caplog.set_level(logging.INFO, "heliograph")
    CliRunner().invoke(cli, [command, str(file)])
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings
    assert all(warning.startswith(f"{file}: line ") for warning in warnings)
    assert line is None or f"{file}: line {line}: tsaks.max" in warnings[0]


def _begin() -> None:
    """The command would start Spark now."""
    raise click.Abort


class _NoScreen:
    def close(self) -> None:
        """Nothing to leave."""
