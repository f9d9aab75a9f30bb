"""Any request to the REST API: an answer in Connect's shapes, a worker that goes on, and bounded memory."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.connect.contract.log_levels import LogLevels
from heliograph.errors import HeliographError
from heliograph.web.endpoints.routes import LARGEST_CONFIG_BYTES, ROUTES
from heliograph.web.exchange import Worker
from heliograph.web.server.app import make_app
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import RestWorker, check_config, real_pages, real_plugins, rest_worker

_PLUGINS = real_plugins()
_JSON = {"application/json"}
_UNFORESEEN = "Unexpected error"


class Heard(NamedTuple):
    """What the app sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    chunks_taken: int


def ask(app: Any, method: str, target: str, headers: list[tuple[bytes, bytes]], chunks: Iterator[bytes]) -> Heard:
    """One request over ASGI, its body in any number of chunks; fails if the app ends without an answer."""
    path, _, query = target.partition("?")
    taken = 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        chunk = next(chunks, None)
        taken += chunk is not None
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path, errors="replace"),
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode("utf-8", "replace"),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8083),
    }
    anyio.run(app, scope, receive, send)
    begin = next(message for message in sent if message["type"] == "http.response.start")
    body = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    reported = {name.decode().lower(): value.decode("latin-1") for name, value in begin["headers"]}
    return Heard(begin["status"], reported, body, taken)


def check(heard: Heard) -> None:
    """Every answer is JSON, and every refusal is Connect's; a fault of ours is none that a stranger may cause."""
    if heard.headers.get("content-type", "").startswith("text/plain"):
        assert heard.headers["allow"]
        return
    if not heard.body:
        assert heard.status in (200, 204) or heard.status >= 400
        return
    assert heard.headers["content-type"] in _JSON
    reported = json.loads(heard.body)
    if heard.status >= 400 and not (isinstance(reported, dict) and "status" in reported):
        assert set(reported) == {"error_code", "message"}
        assert reported["error_code"] == heard.status
        assert _UNFORESEEN not in reported["message"], reported
        assert "Traceback" not in reported["message"]


def new_app(herder: FakeHerder | None = None, *, read_only: bool = False) -> Any:
    log_levels = LogLevels()
    herder = herder or FakeHerder(lambda config: check_config(_PLUGINS, config), log_levels)
    return make_app(Worker(herder, _PLUGINS, log_levels, real_pages()), read_only=read_only)


_parts = st.sampled_from(
    ["hb", "0", "..", "%2e%2e", "%00", "-1", "99999999999", "x" * 300, "ü", "a%2Fb", "{connector}"]
)
_texts = st.text(max_size=12).map(lambda text: quote(text, safe="", errors="replace")) | _parts
_methods = st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", ""])
_queries = st.lists(
    st.tuples(st.sampled_from(["expand", "forward", "scope", "level", "includeTasks", "connectorsOnly", "x"]), _texts)
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))


@st.composite
def targets(draw: st.DrawFn) -> str:
    """A path of the API with anything for its names, or any path."""
    path = draw(st.sampled_from([row.path for row in ROUTES]))
    for name in ("{connector}", "{task}", "{plugin}", "{logger}"):
        while name in path:
            path = path.replace(name, draw(_texts).replace("{", "%7B"), 1)
    path = draw(st.sampled_from([path, f"{path}/", f"/{path}"]) | _texts.map(lambda text: f"/{text}"))
    query = draw(_queries)
    return f"{path}?{query}" if query else path


_names = st.sampled_from([b"content-type", b"accept", b"authorization", b"content-length", b"host", b"x-forwarded-for"])
_header_values = st.sampled_from([b"application/json", b"*/*", b"text/html", b"Basic ====", b"\xff\xfe", b"", b"-1"])
_headers = st.lists(st.tuples(_names, _header_values | st.binary(max_size=30)), max_size=4) | st.just(
    [(b"content-type", b"application/json")]
)
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
_configs = st.dictionaries(
    st.sampled_from(["connector.class", "name", "tasks.max", "source.cluster.alias", "topics", "offset.lag.max"])
    | st.text(max_size=8),
    st.sampled_from(["org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", "[", "-1", "1e9", ""]) | _scalars,
    max_size=5,
)
_bodies = (
    st.binary(max_size=200)
    | _values.map(lambda value: json.dumps(value).encode())
    | _configs.map(lambda config: json.dumps(config).encode())
    | _configs.map(lambda config: json.dumps({"name": "hb", "config": config}).encode())
    | st.sampled_from(["a deep list", "a deep object", "a long number"])
)
_LARGE = {
    "a deep list": b"[" * 200_000,
    "a deep object": b'{"a":' * 100_000,
    "a long number": b'{"name":"a","config":{"x":' + b"9" * 20_000 + b"}}",
}


@given(st.lists(st.tuples(_methods, targets(), _headers, _bodies), min_size=1, max_size=6), st.booleans())
def test_any_requests_are_answered_in_connects_shapes(
    requests: list[tuple[str, str, list[tuple[bytes, bytes]], bytes | str]], read_only: bool
) -> None:
    app = new_app(read_only=read_only)
    for method, target, headers, given_body in requests:
        body = _LARGE[given_body] if isinstance(given_body, str) else given_body
        check(ask(app, method, target, headers, iter([body] if body else [])))
    assert ask(app, "GET", "/connectors", [], iter([])).status == 200


def test_a_body_without_an_end_is_read_no_further_than_the_limit() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 20)

    heard = ask(new_app(), "PUT", "/connectors/x/config", [(b"content-type", b"application/json")], endless())
    assert heard.status == 413
    assert heard.chunks_taken <= LARGEST_CONFIG_BYTES // (1 << 20) + 1


class Failing(FakeHerder):
    """Every question ends in an error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def _fail(self, *_arguments: object, **_more: object) -> Any:
        raise self._error

    leader_url = None  # type: ignore[assignment]
    is_ready = cluster_id = connectors = info = status = create = put_config = patch_config = delete = _fail
    task_configs = set_target_state = restart = restart_task = topics = reset_topics = offsets = alter_offsets = _fail


@pytest.mark.parametrize("error", [RuntimeError("hunter2"), KeyError("hunter2"), HeliographError("B does not answer.")])
def test_whatever_fails_inside_is_connects_error_without_its_insides(error: Exception) -> None:
    app = new_app(Failing(error))
    body = json.dumps({"name": "a", "config": {"connector.class": "x", "name": "a"}}).encode()
    for row in ROUTES:
        path = row.path.replace("{connector}", "a").replace("{task}", "0").replace("{plugin}", "x")
        headers = [] if row.method in ("GET", "DELETE") else [(b"content-type", b"application/json")]
        heard = ask(app, row.method, path.replace("{logger}", "root"), headers, iter([body] if headers else []))
        assert b"hunter2" not in heard.body
        assert b"Traceback" not in heard.body
        if heard.status == 500 and heard.body:
            reported = json.loads(heard.body)
            assert "error_code" in reported or "status" in reported


@pytest.fixture(scope="module")
def worker() -> Iterator[RestWorker]:
    with rest_worker() as running:
        yield running


@given(
    st.lists(
        st.binary(max_size=300)
        | st.sampled_from(
            [
                b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000,
                b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
                b"POST /connectors HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n{}",
                b"POST /connectors HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\n",
                b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
            ]
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_server_that_is_sent_any_bytes_goes_on(worker: RestWorker, blobs: list[bytes]) -> None:
    place = urlsplit(worker.url)
    for blob in blobs:
        with socket.create_connection((place.hostname, place.port), timeout=5) as sock:
            try:
                sock.sendall(blob)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
            except OSError:  # it hung up: it has had enough
                continue
    assert worker.ask("GET", "/connectors").status == 200
