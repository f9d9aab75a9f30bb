"""Mistakes in the commands about groups are told before any cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.main import cli

FILE = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
b->a.enabled = true
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return str(path)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize("command", ["failover", "failback"])
def test_groups_to_move_must_be_named(command: str, file: str) -> None:
    for given in ([], ["--all", "--group", "g"]):
        result = invoke(command, file, "--flow", "a->b", *given)
        assert result.exit_code == 2
        assert "Give --group, or --all for every group of the flow." in result.output


def test_a_stray_word_is_told(file: str) -> None:
    result = invoke("failover", file, "g", "--all")
    assert result.exit_code == 2
    assert "unexpected extra argument (g)" in result.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--flow", "a->c"], "--flow a->c: the file enables no such flow; it enables a->b, b->a."),
        ([], "--flow: the file has several flows; name one of a->b, b->a."),
    ],
)
def test_the_flow_must_be_one_of_the_file(file: str, given: list[str], words: str) -> None:
    assert str(invoke("failover", file, "--all", *given).exception) == words


def test_a_cluster_that_must_be_there_is_named(file: str) -> None:
    result = invoke("failover", file, "--all", "--flow", "a -> b")
    assert "127.0.0.1:1 cannot be reached" in str(result.exception)


def test_translate_wants_a_group_or_all() -> None:
    result = invoke("translate", "--bootstrap", "127.0.0.1:1", "--source", "a")
    assert result.exit_code == 2
    assert "Give --group, or --all" in result.output


def test_client_properties_of_translate_may_have_placeholders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOCOL", "SASL_NONSENSE")
    path = tmp_path / "client.properties"
    path.write_text("security.protocol = ${env:PROTOCOL}\n")
    result = invoke("translate", "--bootstrap", "127.0.0.1:1", "--source", "a", "--all", "--config", str(path))
    assert "SASL_NONSENSE" in str(result.exception)
