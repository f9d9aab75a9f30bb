"""The server: listeners, ports, start and stop; and the page about the API."""

from __future__ import annotations

import base64
import errno
import http.client
import json
import resource
import socket
import threading
from contextlib import suppress
from pathlib import Path

import h11
import pytest
from docs import reference_pages

from heliograph.config.effective.rest_config import RestListener
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.embedded.process import free_ports
from heliograph.errors import HeliographError
from heliograph.web.endpoints.routes import ROUTES
from heliograph.web.error_responses import all_refusals
from heliograph.web.exchange import Worker
from heliograph.web.server import connections, rest_server
from heliograph.web.server.app import make_app
from heliograph.web.server.rest_server import RestServer
from tests.interop.rest_story import ask
from tests.support.clusters.certificates import Authority
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import guarded_worker, login_lines, real_pages, real_plugins
from tests.support.runs.copying import wait_for


def server(*listeners: RestListener, herder: FakeHerder | None = None) -> RestServer:
    return RestServer(make_app(Worker(herder or FakeHerder(), real_plugins(), LogLevels(), real_pages())), listeners)


def test_every_listener_is_served_and_released() -> None:
    one, another = free_ports(2)  # not of the system, who gives those away again at once
    rest = server(RestListener("127.0.0.1", one), RestListener("localhost", another))
    rest.start()
    urls = [listener.url for listener in rest.listeners]
    assert rest.url == urls[0]
    assert [ask(url, "GET", "/connectors")[0] for url in urls] == [200, 200]
    rest.stop()
    rest.stop()
    for url in urls:
        with pytest.raises(ConnectionRefusedError):
            ask(url, "GET", "/")


def test_a_port_in_use_is_reported_and_the_others_are_released() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        rest = server(RestListener("127.0.0.1", 0), RestListener("127.0.0.1", port))
        with pytest.raises(HeliographError, match=f"cannot listen on http://127.0.0.1:{port} .*`listeners`"):
            rest.start()
        rest.stop()


@pytest.mark.parametrize("is_let_in", [True, False])
def test_a_body_in_very_small_chunks_ends_its_connection(is_let_in: bool, tmp_path: Path) -> None:
    """Each took 30 us of the event loop; ten such bodies stopped REST for half a minute."""
    head = b"PUT /connectors/c/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    login = b"Authorization: Basic " + base64.b64encode(b"u:secret") + b"\r\n" if is_let_in else b""
    with guarded_worker(login_lines(tmp_path, "u")) as worker:
        address = ("127.0.0.1", int(worker.url.rpartition(":")[2]))
        with socket.create_connection(address, 30) as client:
            client.sendall(head + login + b"Transfer-Encoding: chunked\r\n\r\n")
            answered = b""
            with suppress(ConnectionError):
                client.sendall(b"1\r\n \r\n" * 100_000 + b"0\r\n\r\n")
                answered = client.recv(1 << 16)
            assert answered[:12] in (b"", b"HTTP/1.1 401")
        body = json.dumps({"name": "c", "connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"}).encode()
        with socket.create_connection(address, 30) as client:
            client.sendall(head + login + b"Transfer-Encoding: chunked\r\n\r\n")
            client.sendall(b"".join(b"1\r\n%c\r\n" % letter for letter in body) + b"0\r\n\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 201 " if is_let_in else b"HTTP/1.1 401 ")


def test_a_malformed_body_of_an_answered_request_leaves_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    """Anyone could write 40 lines of stack trace into the log with each request."""
    with guarded_worker({"listeners": "http://127.0.0.1:0"}) as worker:
        address = ("127.0.0.1", int(worker.url.rpartition(":")[2]))
        with socket.create_connection(address, 30) as client:
            client.sendall(b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 400 ")
        assert worker.ask("GET", "/")[0] == 200  # by now the request before it has ended
    assert "Exception in ASGI application" not in caplog.text


def test_small_chunks_of_a_refused_caller_are_not_gone_through() -> None:
    """What has come is parsed before the connection closes: 43,000 chunks in one read of a socket."""
    connection = rest_server._CountedChunks(h11.SERVER)
    connection.receive_data(b"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    connection.receive_data(b"1\r\n \r\n" * 40_000)
    with pytest.raises(rest_server._TooManyChunksError):
        for _event in range(1_100):
            connection.next_event()


def test_an_unknown_host_is_reported() -> None:
    with pytest.raises(HeliographError, match="cannot listen on http://no-such-host"):
        server(RestListener("no-such-host.invalid", 0)).start()


def test_a_stop_lets_the_request_under_way_finish() -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(FakeHerder):
        def connectors(self) -> list[str]:
            entered.set()
            release.wait(30)
            return ["late"]

    rest = server(RestListener("127.0.0.1", 0), herder=Slow())
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
    page = Path(__file__).parents[3] / "docs" / "reference" / "rest.md"
    assert page.read_text() == reference_pages.rest_page(), "run: make docs"


def test_every_row_of_the_tables_is_distinct() -> None:
    assert len({(row.method, row.path) for row in ROUTES}) == len(ROUTES)
    assert len({row.text for row in all_refusals()}) == len(all_refusals())
    assert all(row.doc for row in ROUTES)


# --- connections ----------------------------------------------------------------------------------
@pytest.fixture
def few_connections(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 10)
    return 10


def silent(rest: RestServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", rest.listeners[0].port), 20)


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed a connection; asked without waiting."""
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_silent_connections_keep_nobody_out_and_are_logged_once(
    few_connections: int, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    lines = {**authority.lines(), "listeners": "https://127.0.0.1:0, http://127.0.0.1:0"}
    with guarded_worker(lines) as worker:
        worker.tls = authority.client()
        for listener in worker.server.listeners:
            opened = [
                socket.create_connection(("127.0.0.1", listener.port), 20) for _client in range(10 * few_connections)
            ]
            wait_for(lambda: sum(map(is_closed, opened)) >= 9 * few_connections)  # noqa: B023
            assert worker.ask("GET", "/connectors").status == 200
            assert len(worker.server._connections) <= few_connections
            for client in opened:
                client.close()
    assert caplog.text.count("connections, its limit") == 1


def test_a_handshake_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("heliograph.web.server.rest_server._HANDSHAKE_S", 0.5)
    with guarded_worker(Authority(tmp_path).lines()) as worker, silent(worker.server) as client:
        wait_for(lambda: len(worker.server._connections) == 1)
        wait_for(lambda: is_closed(client), 20)
        wait_for(lambda: len(worker.server._connections) == 0)


def test_a_connection_that_is_served_is_not_closed_for_others_and_one_that_was_served_only_after_silent_ones(
    few_connections: int,
) -> None:
    entered, release = threading.Event(), threading.Event()

    class Slow(FakeHerder):
        def connectors(self) -> list[str]:
            entered.set()
            release.wait(60)
            return ["late"]

    rest = server(RestListener("127.0.0.1", 0), herder=Slow())
    with rest:
        served = http.client.HTTPConnection("127.0.0.1", rest.listeners[0].port, timeout=60)
        served.request("GET", "/connectors")
        assert entered.wait(30)
        idle = http.client.HTTPConnection("127.0.0.1", rest.listeners[0].port, timeout=60)
        idle.request("GET", "/health")
        assert idle.getresponse().read()
        opened = [silent(rest) for _client in range(5 * few_connections)]
        wait_for(lambda: sum(map(is_closed, opened)) >= 4 * few_connections)
        idle.request("GET", "/health")
        assert idle.getresponse().status == 200
        release.set()
        assert served.getresponse().read() == b'["late"]'
        for client in (*opened, idle, served):
            client.close()


def test_a_process_without_file_descriptors_logs_one_line_and_recovers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = iter([OSError(errno.EMFILE, "Too many open files")] * 3)
    accept = socket.socket.accept

    def exhausted(self: socket.socket) -> object:
        for failure in failures:
            raise failure
        return accept(self)

    with server(RestListener("127.0.0.1", 0)) as rest:
        monkeypatch.setattr(socket.socket, "accept", exhausted)
        assert ask(rest.url, "GET", "/connectors")[0] == 200
    assert caplog.text.count("Too many open files") == 1


def test_there_are_fewer_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, most in ((1024, 256), (20_000, 500), (resource.RLIM_INFINITY, 500)):
        monkeypatch.setattr(resource, "getrlimit", lambda _what, files=files: (files, files))
        assert connections._most_connections() == most
