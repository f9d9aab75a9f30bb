"""`/metrics`: formats, compression, who sees what, and how much one scraper can cost."""

from __future__ import annotations

import gzip
import http.client
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.connect_worker import StartingHerder
from heliograph.metrics.page import Page
from heliograph.model import Flow
from heliograph.status.group_status import CheckpointsSnapshot
from heliograph.status.process_snapshot import Certificate, HeartbeatsSnapshot
from heliograph.web.endpoints import metric_pages
from heliograph.web.endpoints.metric_pages import MetricPages, accepts_gzip
from heliograph.web.endpoints.routes import METRIC_ROUTES
from heliograph.web.exchange import Worker
from heliograph.web.server.app import make_app
from heliograph.web.server.rest_server import RestServer
from tests.support.clusters.certificates import Authority
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.flow_snapshots import flow as flow_of
from tests.support.connect.rest_worker import (
    ANY_PORT,
    RestWorker,
    guarded_worker,
    login_lines,
    real_pages,
    real_plugins,
    rest_worker,
)

OPEN_METRICS = "application/openmetrics-text"
PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("header", "expected"),
    [("gzip", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("identity", False), ("", False)],
)
def test_a_page_is_compressed_only_if_the_scraper_takes_that(header: str, expected: bool) -> None:
    assert accepts_gzip(header) is expected


@pytest.fixture
def worker() -> Iterator[RestWorker]:
    with rest_worker() as running:
        yield running


def scrape(worker: RestWorker, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """A scrape as Prometheus sends it, the body as it was received."""
    connection = http.client.HTTPConnection(worker.url.partition("//")[2], timeout=10)
    connection.request("GET", "/metrics", headers={name.replace("_", "-"): text for name, text in headers.items()})
    response = connection.getresponse()
    answered = {name.lower(): text for name, text in response.getheaders()}
    body = response.read()
    connection.close()
    return response.status, answered, body


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [(PROMETHEUS_2_42, OPEN_METRICS), (PROMETHEUS_3, OPEN_METRICS), ("text/plain; version=0.0.4", "text/plain")],
)
def test_prometheus_gets_the_format_it_accepts(worker: RestWorker, accept: str, content_type: str) -> None:
    status, headers, _body = scrape(worker, accept=accept)
    assert (status, headers["content-type"].partition(";")[0]) == (200, content_type)
    assert "allow" not in headers


def test_other_endpoints_still_answer_in_json_only(worker: RestWorker) -> None:
    assert worker.ask("GET", "/connectors", accept="text/plain").status == 406
    assert worker.ask("GET", "/connectors", accept=PROMETHEUS_3.replace(",*/*;q=0.2", "")).status == 406


def test_a_large_page_is_compressed_and_a_small_one_is_not(worker: RestWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_pages, "render", lambda *_: Page(b"up 1\n", "text/plain; charset=utf-8"))
    _status, headers, body = scrape(worker, accept_encoding="gzip")
    assert ("content-encoding" in headers, body) == (False, b"up 1\n")
    monkeypatch.setattr(metric_pages, "render", lambda *_: Page(b"up 1\n" * 10_000, "text/plain; charset=utf-8"))
    with rest_worker() as other:
        status, headers, body = scrape(other, accept_encoding="gzip")
        assert (status, headers["content-encoding"]) == (200, "gzip")
        assert "accept-encoding" in headers["vary"]
        assert gzip.decompress(body) == b"up 1\n" * 10_000
        assert len(body) < 1_000
        assert scrape(other)[2] == b"up 1\n" * 10_000


def test_a_follower_and_a_worker_that_is_starting_answer_themselves() -> None:
    herder = FakeHerder()
    herder.leader = "http://127.0.0.1:1"
    with rest_worker(herder) as worker:
        assert worker.ask("GET", "/metrics").status == 200
    with rest_worker(cast("FakeHerder", StartingHerder())) as worker:
        assert scrape(worker)[0] == 200


def test_a_head_request_has_no_body(worker: RestWorker) -> None:
    assert worker.send("HEAD", "/metrics", None).status == 200
    assert worker.ask("POST", "/metrics", {}).status == 405


# --- who sees what --------------------------------------------------------------------------------
RULES = """
- users: [payments]
  see: payments-.*
- users: [platform]
  change: .*
  worker: see
"""


def lines_of_business() -> FakeHerder:
    herder = FakeHerder()
    for line in ("payments", "orders"):
        herder.configs |= {f"{line}-{kind}": {} for kind in ("source", "checkpoint", "heartbeat")}
        herder.targets |= {f"{line}-{kind}": "STARTED" for kind in ("source", "checkpoint", "heartbeat")}
        flow = Flow("west", f"east-{line}")
        herder.flow_snapshots.append(replace(flow_of(f"{line}-source"), flow=flow))
        herder.checkpoints.append(
            CheckpointsSnapshot(f"{line}-source", f"{line}-checkpoint", flow, 1.0, None, None, 0, ())
        )
        herder.heartbeats.append(HeartbeatsSnapshot(f"{line}-heartbeat", flow, 1, 1.0))
    herder.certificates.append(Certificate("east-orders", "own", "CN=orders", 1.0))
    return herder


@pytest.fixture
def _page_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with everything that it is made of."""
    shown = "text/plain; version=0.0.4; charset=utf-8"
    monkeypatch.setattr(metric_pages, "render", lambda snapshot, *_: Page(repr(snapshot).encode(), shown))


@pytest.mark.usefixtures("_page_of_everything")
def test_a_caller_sees_only_its_own_connectors_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    lines = login_lines(tmp_path, "payments", "platform", "stranger")
    lines |= {"heliograph.rest.rules.file": str(tmp_path / "rules.yaml")}
    with guarded_worker(lines, lines_of_business()) as worker:
        everything = worker.log_in("platform").ask("GET", "/metrics").body
        assert "orders" in everything
        assert "payments" in everything
        own = worker.log_in("payments").ask("GET", "/metrics").body
        assert "payments-source" in own
        assert "payments-heartbeat" in own
        assert "orders" not in own
        assert worker.log_in("platform").ask("GET", "/metrics").body == everything, "pages of callers were mixed up"
        assert worker.log_in("stranger").ask("GET", "/metrics").status == 403
        assert worker.log_in(None).ask("GET", "/metrics").status == 401


@pytest.mark.usefixtures("_page_of_everything")
def test_the_name_of_a_hidden_flow_is_not_that_of_its_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("- users: [payments]\n  see: .*-checkpoint\n")
    lines = login_lines(tmp_path, "payments") | {"heliograph.rest.rules.file": str(tmp_path / "rules.yaml")}
    with guarded_worker(lines, lines_of_business()) as worker:
        page = worker.log_in("payments").ask("GET", "/metrics").body
        assert "orders-checkpoint" in page
        assert "name='west->east-orders'" in page
        assert "orders-source" not in page


def test_an_https_listener_requires_what_rest_requires(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with guarded_worker(authority.lines("required"), routes=METRIC_ROUTES) as worker:
        worker.tls = authority.client(authority.issue("prometheus", "prometheus"))
        assert worker.ask("GET", "/metrics").status == 200
        worker.tls = authority.client()
        with pytest.raises(OSError, match=r"(?i)certificate required|alert|EOF|reset|closed"):
            worker.ask("GET", "/metrics")


def test_the_listeners_for_metrics_have_nothing_else() -> None:
    with rest_worker(routes=METRIC_ROUTES) as worker:
        assert [worker.ask("GET", path).status for path in ("/metrics", "/health/live", "/health/ready")] == [200] * 3
        for path in ("/", "/connectors", "/health", "/admin/loggers", "/heliograph/v1/flows"):
            assert worker.ask("GET", path).status == 404
        assert worker.ask("PUT", "/connectors/x/pause").status == 404


# --- what it costs --------------------------------------------------------------------------------
class Counted:
    """A renderer that counts, and waits until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.may_go = threading.Event()
        self.may_go.set()
        self.now = 100.0
        self.pages = MetricPages(lambda: cast("Any", None), clock=lambda: self.now)
        monkeypatch.setattr(metric_pages, "render", self.render)

    def render(self, _snapshot: object, content_type: str, *_rest: object) -> Page:
        self.count += 1
        assert self.may_go.wait(10)
        return Page(f"{self.count}".encode(), content_type)

    def get(self, viewer: str | None = None, accept: str = "") -> bytes:
        return self.pages.page(lambda: cast("Any", None), viewer, {"accept": accept}).body


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def test_scrapes_within_a_second_share_a_page(counted: Counted) -> None:
    assert [counted.get(), counted.get()] == [b"1", b"1"]
    counted.now += 1.0
    assert counted.get() == b"2"


def test_each_format_and_each_view_has_a_page_of_its_own(counted: Counted) -> None:
    assert [counted.get(), counted.get("a"), counted.get("b"), counted.get(accept=OPEN_METRICS)] == [
        *(b"1", b"2", b"3", b"4")
    ]
    assert [counted.get(), counted.get("a")] == [b"1", b"2"]


def test_scrapes_at_the_same_time_wait_for_one_page(counted: Counted) -> None:
    counted.may_go.clear()
    with ThreadPoolExecutor(8) as threads:
        pages = [threads.submit(counted.get) for _scrape in range(8)]
        time.sleep(0.1)
        counted.may_go.set()
        assert {page.result() for page in pages} == {b"1"}
    assert counted.count == 1


def test_only_a_few_pages_are_kept_whatever_is_sent(counted: Counted) -> None:
    for n in range(100):
        counted.get(f"caller {n}", f"{OPEN_METRICS};version=1.0.0;escaping=x{n}")
    assert len(counted.pages._pages) <= 8
    counted.now += 2
    counted.get()
    assert len(counted.pages._pages) == 1


def test_a_failure_is_not_kept(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_pages, "render", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        counted.get()
    monkeypatch.setattr(metric_pages, "render", counted.render)
    assert counted.get() == b"1"


def test_a_failure_is_answered_without_its_details(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_pages, "render", lambda *_: {}["a secret"])
    with rest_worker() as worker:
        reply = worker.ask("GET", "/metrics")
        assert (reply.status, "secret" in str(reply.body)) == (500, False)


def _blocked(count: int, blocked: Callable[[], object]) -> Iterator[threading.Thread]:
    for _thread in range(count):
        thread = threading.Thread(target=blocked, daemon=True)
        thread.start()
        yield thread


def test_a_slow_page_delays_no_other_request_and_slow_requests_delay_no_page(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    herder = FakeHerder()
    may_go = threading.Event()

    def wait() -> list[str]:
        may_go.wait(10)
        return []

    monkeypatch.setattr(herder, "connectors", wait)
    monkeypatch.setattr(herder, "process", lambda: None)
    app = make_app(Worker(herder, real_plugins(), LogLevels(), counted.pages))
    with RestServer(app, ANY_PORT) as server:
        worker = RestWorker(server, herder, LogLevels())
        slow = list(_blocked(40, lambda: worker.ask("GET", "/connectors")))
        time.sleep(0.3)
        begun = time.monotonic()
        assert worker.ask("GET", "/metrics").status == 200
        assert time.monotonic() - begun < 2
        counted.now += 5
        counted.may_go.clear()
        pages = list(_blocked(20, lambda: worker.ask("GET", "/metrics")))
        time.sleep(0.3)
        assert worker.ask("GET", "/health/live").status == 200
        assert worker.ask("GET", "/health").status == 200
        may_go.set()
        counted.may_go.set()
        for thread in (*slow, *pages):
            thread.join(10)


def test_headers_are_bounded(worker: RestWorker) -> None:
    with suppress(OSError, http.client.HTTPException):  # the connection may be closed while the headers are sent
        assert scrape(worker, accept="a/b," * 500_000)[0] == 400
    assert scrape(worker, accept="a/b," * 7_000)[0] == 200
    assert scrape(worker, accept=f"{OPEN_METRICS}," * 500)[0] == 200
    assert scrape(worker, accept_encoding="gzip," * 2_000)[0] == 200


def test_known_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = []

    def rendered(*arguments: object) -> Page:
        hidden.append(arguments[3])
        return Page(b"", "text/plain")

    monkeypatch.setattr(metric_pages, "render", rendered)
    real_pages().page(lambda: cast("Any", None), None, {})
    assert hidden == [metric_pages.hide_known]


def test_a_scraper_that_does_not_read_its_page_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    body = b"up 1\n" * 4_000_000
    monkeypatch.setattr(metric_pages, "_READ_WITHIN_S", 0.5)
    monkeypatch.setattr(metric_pages, "render", lambda *_: Page(body, "text/plain; charset=utf-8"))
    with rest_worker() as worker:
        slow = [socket.create_connection(("127.0.0.1", worker.server.listeners[0].port)) for _reader in range(5)]
        for each in slow:
            each.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert scrape(worker)[2] == body, "others get theirs"
        time.sleep(1.5)
        for each in slow:
            each.settimeout(10)
            received = 0
            with suppress(ConnectionResetError):
                while part := each.recv(1 << 20):
                    received += len(part)
            assert received < len(body)
            each.close()
        assert worker.ask("GET", "/health/live").status == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
