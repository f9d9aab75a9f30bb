"""The REST of `heliograph run` where its port is another's: it is not what the flows need."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import click
import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.rest_service import file_rest, rest_option, wanted_rest
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate import dedicated_file
from heliograph.errors import HeliographError

FILE = "clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"


def process_of(config: MirrorMakerConfig) -> Any:
    """A process of this file in which nothing runs."""
    return SimpleNamespace(config=config, flows={}, control=None)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def run(listeners: str, *arguments: str) -> bool:
    """Whether `run FILE ARGUMENTS` gets as far as its flows."""
    config = dedicated_file.load(f"{FILE}{listeners}\n", MachineLookup())
    has_run: list[bool] = []

    @click.command()
    @rest_option
    def command() -> None:
        with file_rest(wanted_rest(config), None, process_of(config)):
            has_run.append(True)

    command(list(arguments), standalone_mode=False)
    return has_run == [True]


def test_flows_run_where_the_files_port_is_taken(taken_port: int, caplog: pytest.LogCaptureFixture) -> None:
    assert run(f"listeners = http://127.0.0.1:{taken_port}")
    assert f"REST is not served: The REST server cannot listen on http://127.0.0.1:{taken_port} (" in caplog.text
    assert "for reading" not in caplog.text


def test_a_port_that_was_asked_for_must_be_free(taken_port: int) -> None:
    with pytest.raises(HeliographError, match=f"cannot listen on http://127.0.0.1:{taken_port}"):
        run("", "--rest", f"127.0.0.1:{taken_port}")


def test_what_fails_in_a_flow_is_no_matter_of_rest(taken_port: int) -> None:
    config = dedicated_file.load(f"{FILE}listeners = http://127.0.0.1:{taken_port}\n", MachineLookup())
    with (
        click.Context(click.Command("run")),
        pytest.raises(HeliographError, match=r"^of a flow$"),
        file_rest(wanted_rest(config), None, process_of(config)),
    ):
        raise HeliographError("of a flow")
