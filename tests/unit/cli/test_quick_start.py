"""The list of commands is quick and whole: a command loads what it needs, when it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
from click.testing import CliRunner

from heliograph.cli.main import cli
from tests.support.config_files import minimal

_RUN = """
import sys
from heliograph.cli.main import main
try:
    main()
except SystemExit:
    pass
print("LOADED", *sys.modules)
"""
HEAVY = {"numba", "numpy", "pyspark", "starlette", "uvicorn", "rich"}


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that are loaded when a command has run."""
    done = subprocess.run([sys.executable, "-c", _RUN, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("LOADED ")[2].split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "heliograph"}


def test_help_and_version_load_no_command() -> None:
    for option in ("--help", "--version"):
        loaded = loaded_by(option)
        assert not loaded & (HEAVY | {"kafka", "cryptography", "yaml"})
        assert len(ours(loaded)) <= 8, sorted(ours(loaded))


def test_validate_loads_neither_kernels_nor_spark_nor_the_web_server(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(minimal("A->B.topics=t"))
    loaded = loaded_by("validate", str(file))
    assert "heliograph.config.validate.dedicated_file" in loaded
    assert not loaded & HEAVY
    assert not {name for name in ours(loaded) if name.startswith(("heliograph.executor", "heliograph.connect.runtime"))}


def test_no_summary_is_cut_off_or_wrapped() -> None:
    shown = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    assert "..." not in shown.partition("Options:")[2]
    rows = [line for line in shown.partition("Options:")[2].splitlines() if line.startswith("  ") and line.strip()]
    assert len(rows) == 2 + len(cli.list_commands(click.Context(cli)))


def test_every_listed_command_exists() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name
