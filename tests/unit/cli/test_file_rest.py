"""REST and metrics of `heliograph run` where their port is another's: they are not what the flows need."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import click
import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.metrics_service import metrics_option, wanted_metrics
from heliograph.cli.rest_service import file_rest, rest_option, wanted_rest
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate import dedicated_file
from heliograph.embedded.process import free_ports
from heliograph.errors import ConfigError, HeliographError
from heliograph.status.process_snapshot import EngineSnapshot

FILE = "clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"


def process_of(config: MirrorMakerConfig) -> Any:
    """A process of this file in which nothing runs."""
    control = SimpleNamespace(checkpoints={}, heartbeats={}, issues=lambda *_: [])
    engine = SimpleNamespace(snapshot=lambda: EngineSnapshot(None, 0, 0))
    return SimpleNamespace(config=config, flows={}, control=control, engine=engine)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def run(listeners: str, *arguments: str, look: Callable[[], object] = lambda: None) -> bool:
    """Whether `run FILE ARGUMENTS` gets as far as its flows; `look` is called while they run."""
    config = dedicated_file.load(f"{FILE}{listeners}\n", MachineLookup())
    has_run: list[bool] = []

    @click.command()
    @rest_option
    @metrics_option
    def command() -> None:
        with file_rest(wanted_rest(config), wanted_metrics(config.raw, config.resolver), process_of(config)):
            look()
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


def test_flows_run_where_the_port_of_metrics_is_taken(taken_port: int, caplog: pytest.LogCaptureFixture) -> None:
    assert run(f"heliograph.metrics.listeners = http://127.0.0.1:{taken_port}")
    warned = f"Metrics are not served: The metrics server cannot listen on http://127.0.0.1:{taken_port} ("
    assert warned in caplog.text
    assert "name another address in `heliograph.metrics.listeners`" in caplog.text


def test_a_port_of_metrics_that_was_asked_for_must_be_free(taken_port: int) -> None:
    with pytest.raises(HeliographError, match=f"The metrics server cannot listen on http://127.0.0.1:{taken_port}"):
        run("", "--metrics", f"{taken_port}")


def test_the_option_overrides_the_file(taken_port: int) -> None:
    found: list[bytes] = []
    free = free_ports(1)[0]

    def look() -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{free}/metrics", timeout=10) as answer:
            found.append(answer.read())

    taken = f"heliograph.metrics.listeners = http://127.0.0.1:{taken_port}"
    assert run(taken, "--metrics", f"localhost:{free}", look=look)
    assert found[0]


def test_an_address_that_is_none_is_an_error_of_the_option() -> None:
    with pytest.raises(ConfigError, match="--metrics nowhere: write it as PORT or HOST:PORT"):
        run("", "--metrics", "nowhere")


def test_metrics_that_cannot_be_secured_as_asked_for_are_not_served(caplog: pytest.LogCaptureFixture) -> None:
    assert run("heliograph.metrics.listeners = https://127.0.0.1:0")
    assert "Metrics are not served" in caplog.text
    assert "an https listener needs a key" in caplog.text
    with pytest.raises(ConfigError, match="an https listener needs a key"):
        run("", "--metrics", "https://127.0.0.1:0")
