"""The commands that `heliograph acls` prints, given to Kafka's own tool; then a whole `run --once` with only these."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from heliograph.cli.main import cli
from tests.interop.gateway import Java
from tests.support.clusters.clients import read
from tests.support.clusters.guarded import guarded_cluster
from tests.support.clusters.least_privilege import RECORDS, GuardedFlow
from tests.support.runs.running import run

pytestmark = pytest.mark.spark

TOOL = "org.apache.kafka.tools.AclCommand"


@pytest.mark.slow
def test_kafkas_own_tool_takes_the_commands_and_a_run_needs_no_more(
    java: Java, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with (
        guarded_cluster("tool-here", tmp_path_factory.mktemp("tool-here"), ("r0",)) as here,
        guarded_cluster("tool-there", tmp_path_factory.mktemp("tool-there"), ("w0",)) as there,
    ):
        flow = GuardedFlow(0, here, there, tmp_path)
        flow.add_lines(f"{flow.target}.exactly.once.source.support=enabled")
        flow.prepare()
        printed = CliRunner().invoke(cli, ["acls", str(flow.file)]).stdout
        doors = {str(guarded.address): guarded.cluster.bootstrap for guarded in (here, there)}
        for words in _commands(shlex.split(printed, comments=True)):
            java.main(TOOL, *(doors.get(word, word) for word in words))
        ended = run("run", flow.file, "--once")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "needs" not in ended.stdout + ended.stderr
        copied = read(there.cluster, flow.remote, 2, **{"isolation.level": "read_committed"})
        assert sum(map(len, copied.values())) == RECORDS


def _commands(words: list[str]) -> list[list[str]]:
    """The words of a script, command by command, without the name of the tool."""
    commands: list[list[str]] = []
    for word in words:
        if word == "kafka-acls":
            commands.append([])
        else:
            commands[-1].append(word)
    assert len(commands) > 10
    return commands
