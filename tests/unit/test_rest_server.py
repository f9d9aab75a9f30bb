"""The server: listeners, ports, start and stop; and the page about the API."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from heliograph.api import reference
from heliograph.api.app import make_app
from heliograph.api.errors import refusals
from heliograph.api.exchange import Worker
from heliograph.api.routes import ROUTES
from heliograph.api.server import RestServer
from heliograph.config.listeners import Listener
from heliograph.embedded.ports import free_ports
from heliograph.errors import HeliographError
from heliograph.worker.log_levels import LogLevels
from tests.fake_herder import FakeHerder
from tests.interop.rest_story import ask
from tests.rest_worker import real_plugins


def server(*listeners: Listener, herder: FakeHerder | None = None) -> RestServer:
    return RestServer(make_app(Worker(herder or FakeHerder(), real_plugins(), LogLevels())), listeners)


def test_every_listener_is_served_and_released() -> None:
    one, another = free_ports(2)  # not of the system, who gives those away again at once
    rest = server(Listener("127.0.0.1", one), Listener("localhost", another))
    rest.start()
    urls = [listener.url for listener in rest.listeners]
    assert rest.url == urls[0]
    assert [ask(url, "GET", "/connectors")[0] for url in urls] == [200, 200]
    rest.stop()
    rest.stop()
    for url in urls:
        with pytest.raises(ConnectionRefusedError):
            ask(url, "GET", "/")


def test_a_port_that_is_taken_is_told_and_the_others_are_released() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        rest = server(Listener("127.0.0.1", 0), Listener("127.0.0.1", port))
        with pytest.raises(HeliographError, match=f"cannot listen on http://127.0.0.1:{port} .*`listeners`"):
            rest.start()
        rest.stop()


def test_a_host_that_is_not_there_is_told() -> None:
    with pytest.raises(HeliographError, match="cannot listen on http://no-such-host"):
        server(Listener("no-such-host.invalid", 0)).start()


def test_a_stop_lets_the_request_under_way_finish() -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(FakeHerder):
        def connectors(self) -> list[str]:
            entered.set()
            release.wait(30)
            return ["late"]

    rest = server(Listener("127.0.0.1", 0), herder=Slow())
    rest.start()
    answers: list[bytes] = []
    asking = threading.Thread(target=lambda: answers.append(ask(rest.url, "GET", "/connectors")[2]))
    asking.start()
    entered.wait(30)
    stopping = threading.Thread(target=rest.stop)
    stopping.start()
    release.set()
    stopping.join()
    asking.join()
    assert answers == [b'["late"]']


def test_the_page_about_the_api_is_fresh() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "rest.md"
    assert page.read_text() == reference.render(), "run: make docs"


def test_every_row_of_the_tables_is_told_apart() -> None:
    assert len({(row.method, row.path) for row in ROUTES}) == len(ROUTES)
    assert len({row.text for row in refusals()}) == len(refusals())
    assert all(row.doc for row in ROUTES)
