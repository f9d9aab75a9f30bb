"""What web pages of others can have a browser send: foreign hosts and origins are refused; over real sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from heliograph.config.effective.rest_config import RestAccess
from heliograph.errors import ConfigError, ConnectError
from heliograph.web.access.allowed_hosts import Hosts, ListenerAddress
from tests.support.connect.rest_worker import RestWorker, guarded_worker, rest_worker

HEARTBEAT = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"}
HOST_WORDS = "add it to heliograph.rest.allowed.hosts"
ORIGIN_WORDS = "add its origin to access.control.allow.origin"
OPEN_PLACE = ListenerAddress("0.0.0.0", is_loopback=False)  # noqa: S104


@pytest.fixture(scope="module")
def shared_worker() -> Iterator[RestWorker]:
    with rest_worker() as worker:
        yield worker


@pytest.fixture
def worker(shared_worker: RestWorker) -> RestWorker:
    shared_worker.herder.forget_all()
    shared_worker.herder.create("hb", {"name": "hb", **HEARTBEAT}, None)
    return shared_worker


def spoken(worker: RestWorker, request: bytes) -> bytes:
    """The whole answer to any bytes."""
    with socket.create_connection(("127.0.0.1", worker.server.listeners[0].port), 20) as client:
        client.sendall(request.removesuffix(b"\r\n") + b"Connection: close\r\n\r\n")
        answer = b""
        while chunk := client.recv(10_000):
            answer += chunk
    return answer


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.:8083", "localhost:18083", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8083"]
)
def test_this_machines_names_are_known_under_any_port(worker: RestWorker, host: str) -> None:
    assert worker.ask("GET", "/connectors", host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8083",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost:8083@evil.example",
        "localhost:8083:1",
        "localhost, evil.example",
        "192.168.1.1",
        "[::2]",
        "[::1",
        "::1",
        "",
        "a" * 1000,
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
def test_a_foreign_host_is_refused_and_its_name_not_repeated(worker: RestWorker, host: str, method: str) -> None:
    for path in ("/connectors/hb/pause", "/no/such/path"):
        reply = worker.ask(method, path, host=host)
        assert (reply.status, HOST_WORDS in reply.body["message"]) == (403, True)
        assert "evil" not in f"{reply.body}{reply.headers}"
    assert worker.herder.targets == {"hb": "STARTED"}


def test_requests_without_one_host_are_not_taken_for_another(worker: RestWorker) -> None:
    assert spoken(worker, b"GET /connectors HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    assert spoken(worker, b"GET /connectors HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    twice = b"GET /connectors HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert spoken(worker, twice).startswith(b"HTTP/1.1 400 ")
    absolute = spoken(worker, b"GET http://evil.example/connectors HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert absolute.startswith(b"HTTP/1.1 404 ")
    assert b"evil" not in absolute
    assert spoken(worker, b"GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n").startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://localhost:1"},
        {"origin": "http://localhost.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "anything"},
        {"origin": "http://localhost:8083", "sec_fetch_site": "cross-site"},
        {"origin": "http://evil.example", "sec_fetch_site": "same-origin"},
    ],
)
def test_a_page_of_another_origin_changes_nothing(worker: RestWorker, headers: dict[str, str]) -> None:
    sent = {"host": "localhost:8083", **headers}
    for method, path, body in (
        ("POST", "/connectors/hb/restart", None),
        ("PUT", "/connectors/hb/pause", None),
        ("DELETE", "/connectors/hb", None),
        ("POST", "/connectors", {"name": "x", "config": HEARTBEAT}),
        ("PATCH", "/connectors/hb/config", {"a": "b"}),
    ):
        reply = worker.ask(method, path, body, **sent)
        assert (reply.status, ORIGIN_WORDS in reply.body["message"]) == (403, True), (method, path)
    assert worker.herder.calls == []
    assert worker.herder.targets == {"hb": "STARTED"}
    assert worker.herder.connectors() == ["hb"]
    assert worker.ask("GET", "/connectors", **sent).status == 200, "a page cannot read the answer"


@pytest.mark.parametrize("site", [{}, {"sec_fetch_site": "same-origin"}])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_page_of_the_workers_own_address_may_change(worker: RestWorker, site: dict[str, str], scheme: str) -> None:
    origin = f"{scheme}://localhost:18083"
    assert worker.ask("PUT", "/connectors/hb/pause", host="localhost:18083", origin=origin, **site).status == 202


def test_a_file_allows_further_hosts_and_origins() -> None:
    lines = {
        "listeners": "http://127.0.0.1:0",
        "rest.advertised.host.name": "Connect-0.example.org",
        "heliograph.rest.allowed.hosts": "connect.example.org, [fd00::1]",
        "access.control.allow.origin": "https://ui.example.org,http://other.example:8000",
    }
    with guarded_worker(lines) as worker:
        worker.herder.create("hb", {"name": "hb", **HEARTBEAT}, None)
        for host in ("connect-0.example.org", "connect.example.org:443", "[fd00::1]:1", "localhost"):
            assert worker.ask("GET", "/connectors", host=host).status == 200, host
        assert worker.ask("GET", "/connectors", host="example.org").status == 403
        page = {"sec_fetch_site": "cross-site"}
        assert worker.ask("PUT", "/connectors/hb/pause", origin="https://UI.example.org", **page).status == 202
        assert worker.ask("PUT", "/connectors/hb/pause", origin="http://other.example:8000", **page).status == 202
        assert worker.ask("PUT", "/connectors/hb/pause", origin="http://ui.example.org", **page).status == 403
        assert worker.ask("PUT", "/connectors/hb/pause", origin="null", **page).status == 403


@pytest.mark.parametrize("host", ["http://a.example", "a.example:80", "*", "a/b", "ü.example"])
def test_an_allowed_host_that_is_none_is_a_sentence(host: str) -> None:
    lines = {"listeners": "http://127.0.0.1:0", "heliograph.rest.allowed.hosts": host}
    with pytest.raises(ConfigError, match=r"heliograph\.rest\.allowed\.hosts: .* is not a host"), guarded_worker(lines):
        pass


def allows(access: RestAccess, method: str, place: ListenerAddress = OPEN_PLACE, **headers: str) -> bool:
    try:
        Hosts(access).check(method, {name.replace("_", "-"): value for name, value in headers.items()}, place)
    except ConnectError:
        return False
    return True


def test_where_every_network_calls_any_host_may_be_named_but_not_as_its_own_origin() -> None:
    plain = RestAccess(advertised_host="connect-0.example.org")
    assert allows(plain, "PUT", host="service.example:8083")
    assert allows(plain, "GET", host="evil.example", origin="http://evil.example")
    assert not allows(plain, "PUT", host="evil.example", origin="http://evil.example"), "DNS rebinding looks like this"
    assert not allows(plain, "PUT", host="evil.example", origin="http://evil.example", sec_fetch_site="same-origin")
    for known in ("connect-0.example.org", "10.0.0.7:8083", "[fd00::1]:8083", "localhost:1"):
        assert allows(plain, "PUT", host=known, origin=f"http://{known}"), known


def test_with_allowed_hosts_every_listener_answers_to_known_names_only() -> None:
    access = RestAccess(advertised_host="connect-0.example.org", allowed_hosts=frozenset({"service.example"}))
    for known in ("service.example", "connect-0.example.org:8083", "10.0.0.7", socket.gethostname(), "127.0.0.1"):
        assert allows(access, "GET", host=known), known
    assert not allows(access, "GET", host="evil.example")


def test_every_origin_is_allowed_by_a_star_but_not_one_that_is_hidden() -> None:
    access = RestAccess(allowed_origins=frozenset({"*"}))
    assert allows(access, "PUT", host="a.example", origin="http://b.example", sec_fetch_site="cross-site")
    assert not allows(access, "PUT", host="a.example", origin="null", sec_fetch_site="cross-site")
    assert not allows(access, "PUT", host="a.example", sec_fetch_site="cross-site")


def test_a_new_connectors_address_names_no_host_that_is_not_known() -> None:
    (address,) = {"0.0.0.0"}  # noqa: S104
    with guarded_worker({"listeners": f"http://{address}:0"}) as worker:
        port = worker.server.listeners[0].port
        worker.server.listeners = (worker.server.listeners[0]._replace(host="127.0.0.1"),)
        body = {"name": "a", "config": HEARTBEAT}
        assert worker.ask("POST", "/connectors", body, host="evil.example").headers["location"] == "/connectors/a"
        known = worker.ask("POST", "/connectors", {**body, "name": "b"}, host=f"127.0.0.1:{port}")
        assert known.headers["location"] == f"http://127.0.0.1:{port}/connectors/b"


def test_a_request_is_passed_on_to_a_leader_by_its_advertised_name() -> None:
    lines = {"listeners": "http://127.0.0.1:0", "rest.advertised.host.name": "127.1"}
    with guarded_worker(lines) as leader, guarded_worker(lines) as follower:
        follower.herder.leader = f"http://127.1:{leader.server.listeners[0].port}"
        assert follower.ask("POST", "/connectors", {"name": "a", "config": HEARTBEAT}).status == 201
        assert leader.ask("GET", "/connectors", host="127.2").status == 403
        origin = {"origin": "http://evil.example"}
        assert follower.ask("DELETE", "/connectors/a", **origin).status == 403
        assert leader.herder.connectors() == ["a"]
