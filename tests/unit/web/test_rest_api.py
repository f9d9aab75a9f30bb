"""Every endpoint of the REST API over a herder of dictionaries, beyond the recorded story of calls."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from heliograph.connect.contract.herder import ConnectorInfo
from heliograph.errors import ConnectError, UnreachableError
from heliograph.web.access.guard import Access
from heliograph.web.endpoints.routes import LARGEST_CONFIG_BYTES, ROUTES, Endpoint
from heliograph.web.endpoints.worker_endpoints import health, unhealthy
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import RestWorker, rest_worker

HEARTBEAT = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"}
SOURCE = {"connector.class": "MirrorSource", "source.cluster.alias": "A"}


@pytest.fixture(scope="module")
def shared_worker() -> Iterator[RestWorker]:
    with rest_worker() as worker:
        yield worker


@pytest.fixture
def worker(shared_worker: RestWorker) -> RestWorker:
    """A worker without connectors; one server is enough for all tests that only ask."""
    shared_worker.herder.forget_all()
    return shared_worker


def create(worker: RestWorker, name: str, config: dict[str, str] = HEARTBEAT, **more: str) -> None:
    assert worker.ask("POST", "/connectors", {"name": name, "config": config, **more}).status == 201


def test_json_is_written_without_blanks_in_connects_order_and_unescaped(worker: RestWorker) -> None:
    create(worker, "hb-ü")
    connection = http.client.HTTPConnection(worker.url.removeprefix("http://"))
    connection.request("GET", "/connectors/hb-%C3%BC")
    config = '{"connector.class":"MirrorHeartbeat","source.cluster.alias":"A","name":"hb-ü"}'
    tasks = '[{"connector":"hb-ü","task":0}]'
    expected = f'{{"name":"hb-ü","config":{config},"tasks":{tasks},"type":"source"}}'
    assert connection.getresponse().read().decode() == expected
    connection.close()


def test_the_location_of_a_created_connector_has_the_host_of_the_request(worker: RestWorker) -> None:
    reply = worker.ask("POST", "/connectors", {"name": "a b", "config": HEARTBEAT}, host="localhost:18083")
    assert reply.headers["location"] == "http://localhost:18083/connectors/a%20b"


def test_a_name_is_trimmed_and_becomes_part_of_the_config(worker: RestWorker) -> None:
    reply = worker.ask("POST", "/connectors", {"name": " hb ", "config": HEARTBEAT})
    assert reply.body["name"] == reply.body["config"]["name"] == "hb"


@pytest.mark.parametrize(("word", "state"), [("RUNNING", "RUNNING"), ("paused", "PAUSED"), ("STOPPED", "STOPPED")])
def test_a_connector_begins_in_the_state_asked_for(worker: RestWorker, word: str, state: str) -> None:
    create(worker, "hb", initial_state=word)
    assert worker.ask("GET", "/connectors/hb/status").body["connector"]["state"] == state


def test_a_trace_is_returned_only_if_there_is_one(worker: RestWorker) -> None:
    create(worker, "good")
    create(worker, "bad")
    worker.herder.traces["bad"] = "The source cluster is not reachable."
    states = worker.ask("GET", "/connectors?expand=status").body
    assert states["bad"]["status"]["connector"]["trace"] == "The source cluster is not reachable."
    assert "trace" not in states["good"]["status"]["connector"]


def test_a_connector_without_a_status_yet_is_listed_without_it() -> None:
    class Slow(FakeHerder):
        def status(self, name: str) -> object:  # type: ignore[override]
            raise ConnectError(404, f"No status found for connector {name}")

    herder = Slow()
    with rest_worker(herder) as worker:
        create(worker, "hb")
        listed = worker.ask("GET", "/connectors?expand=info&expand=status").body
        assert list(listed["hb"]) == ["info"]


def test_a_patch_replaces_and_removes_keys(worker: RestWorker) -> None:
    create(worker, "hb", HEARTBEAT | {"a": "1", "b": "2"})
    patched = worker.ask("PATCH", "/connectors/hb/config", {"a": None, "b": 3, "c": True}).body["config"]
    assert patched == {**HEARTBEAT, "name": "hb", "b": "3", "c": "true"}


@pytest.mark.parametrize(
    ("query", "flags", "status"),
    [
        ("", (False, False), 204),
        ("?includeTasks=true", (True, False), 202),
        ("?includeTasks=TRUE&onlyFailed=true", (True, True), 202),
        ("?onlyFailed=true", (False, True), 202),
        ("?includeTasks=1&onlyFailed=", (False, False), 204),
    ],
)
def test_a_restart_passes_its_flags_on(worker: RestWorker, query: str, flags: tuple[bool, bool], status: int) -> None:
    create(worker, "hb")
    assert worker.ask("POST", f"/connectors/hb/restart{query}").status == status
    assert worker.herder.calls == [("restart", "hb", *flags)]


def test_offsets_that_were_written_are_read_back_as_numbers(worker: RestWorker) -> None:
    create(worker, "src", SOURCE, initial_state="STOPPED")
    entry = {"partition": {"cluster": "A", "partition": 0, "topic": "t"}, "offset": {"offset": 2**40}}
    assert worker.ask("PATCH", "/connectors/src/offsets", {"offsets": [entry]}).status == 200
    assert worker.ask("GET", "/connectors/src/offsets").body == {"offsets": [entry]}


# --- plugins --------------------------------------------------------------------------------------
def test_a_connectors_keys_are_the_same_under_each_of_its_names(worker: RestWorker) -> None:
    named = [
        worker.ask("GET", f"/connector-plugins/{name}/config").body
        for name in ("MirrorSource", "MirrorSourceConnector", "org.apache.kafka.connect.mirror.MirrorSourceConnector")
    ]
    assert named[0] == named[1] == named[2]
    assert "topics" in {definition["name"] for definition in named[0]}


def test_only_connectors_are_plugins(worker: RestWorker) -> None:
    of_all = worker.ask("GET", "/connector-plugins?connectorsOnly=false").body
    assert of_all == worker.ask("GET", "/connector-plugins").body
    assert len(of_all) == 3


def test_a_validation_with_errors_is_still_a_success(worker: RestWorker) -> None:
    reply = worker.ask(
        "PUT", "/connector-plugins/MirrorSource/config/validate", {"connector.class": "MirrorSource", "x": None}
    )
    assert (reply.status, reply.body["name"], reply.body["error_count"]) == (200, "MirrorSource", 3)


def test_a_refusal_that_shows_a_config_hides_its_secrets(worker: RestWorker) -> None:
    config = {"source.cluster.sasl.jaas.config": "user=x password=y", "a": "b"}
    reply = worker.ask("PUT", "/connectors/x/config", config)
    assert reply.body["message"] == (
        "Connector config {source.cluster.sasl.jaas.config=[hidden], a=b, name=x} contains no connector type"
    )


# --- the web server -------------------------------------------------------------------------------
def test_every_path_returns_its_methods(worker: RestWorker) -> None:
    for path in {row.path for row in ROUTES}:
        wanted = {row.method for row in ROUTES if row.path == path} | {"OPTIONS"}
        wanted |= {"HEAD"} if "GET" in wanted else set()
        asked = (
            path.replace("{connector}", "x").replace("{task}", "0").replace("{plugin}", "p").replace("{logger}", "l")
        )
        reply = worker.ask("OPTIONS", asked)
        assert (reply.status, set(reply.headers["allow"].split(","))) == (200, wanted)
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - wanted:
            refused = worker.ask(method, asked)
            assert (refused.status, refused.body["message"]) == (405, "HTTP 405 Method Not Allowed"), (method, path)


@pytest.mark.parametrize(
    "path", ["/connector", "/connectors/x/y/z", "//connectors", "/connectors//status", "/Connectors", "/%00"]
)
def test_an_unknown_path_is_not_found(worker: RestWorker, path: str) -> None:
    assert worker.ask("GET", path).status == 404


def test_a_head_request_returns_the_length_without_the_body(worker: RestWorker) -> None:
    reply = worker.ask("HEAD", "/connectors")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, "", "2")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ("APPLICATION/JSON", 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
def test_only_json_is_taken(worker: RestWorker, content_type: str, status: int) -> None:
    body = json.dumps(HEARTBEAT).encode()
    assert worker.send("PUT", "/connectors/hb/config", body, {"content-type": content_type}).status == status


@pytest.mark.parametrize(
    ("accept", "status"),
    [("*/*", 200), ("text/html, application/json;q=0.5", 200), ("application/*", 200), ("text/*", 406), ("x", 406)],
)
def test_only_json_is_given(worker: RestWorker, accept: str, status: int) -> None:
    assert worker.ask("GET", "/connectors", accept=accept).status == status


def test_a_body_beyond_all_reason_is_refused(worker: RestWorker) -> None:
    body = b" " * (LARGEST_CONFIG_BYTES + 1)
    try:
        status = worker.send("PUT", "/connectors/x/config", body, {"content-type": "application/json"}).status
    except ConnectionError:
        status = 413  # refused before all of it was sent
    assert status == 413
    assert worker.ask("GET", "/connectors").status == 200


# --- when things go wrong -------------------------------------------------------------------------
def failing(error: Exception) -> FakeHerder:
    class Failing(FakeHerder):
        def connectors(self) -> list[str]:
            raise error

    return Failing()


def test_an_error_of_a_cluster_is_returned_with_its_message() -> None:
    with rest_worker(failing(UnreachableError("No broker of B answered."))) as worker:
        reply = worker.ask("GET", "/connectors")
    assert (reply.status, reply.body) == (500, {"error_code": 500, "message": "No broker of B answered."})


def test_a_fault_of_ours_is_logged_without_secrets_and_its_text_stays_inside(caplog: pytest.LogCaptureFixture) -> None:
    with rest_worker(failing(RuntimeError("password=hunter2"))) as worker:
        reply = worker.ask("GET", "/connectors")
    assert reply.body == {
        "error_code": 500,
        "message": "Unexpected error: RuntimeError; see the worker's log.",
    }
    assert "RuntimeError: password=[hidden]" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_request_that_takes_too_long_is_answered_and_the_next_one_served() -> None:
    release = threading.Event()

    class Stuck(FakeHerder):
        def connectors(self) -> list[str]:
            release.wait(30)
            return []

    routes = [
        replace(row, timeout_s=0.05) if row.path == "/connectors" and row.method == "GET" else row for row in ROUTES
    ]
    with rest_worker(Stuck(), routes=routes) as worker:
        reply = worker.ask("GET", "/connectors")
        assert (reply.status, reply.body["message"]) == (500, "Request timed out")
        assert worker.ask("GET", "/connectors/x").status == 404
        release.set()


def test_a_thread_is_counted_until_it_ends_and_health_waits_for_none() -> None:
    release, running = threading.Event(), Counter[str]()

    class Stuck(FakeHerder):
        def connectors(self) -> list[str]:
            running["threads"] += 1
            release.wait(60)
            return []

    routes = [
        replace(row, timeout_s=0.05) if row.path == "/connectors" and row.method == "GET" else row for row in ROUTES
    ]
    with rest_worker(Stuck(), routes=routes) as worker:
        for _caller in range(40):
            assert worker.ask("GET", "/connectors").status == 500
        assert running["threads"] == 32, "those who were answered still have their threads"
        assert worker.ask("GET", "/health").status == 200
        release.set()


def test_large_bodies_are_handled_one_at_a_time() -> None:
    entered, release, at_once = threading.Event(), threading.Event(), Counter[str]()

    class Slow(FakeHerder):
        def put_config(self, name: str, config: Mapping[str, str]) -> tuple[bool, ConnectorInfo]:
            at_once["now"] += 1
            at_once["most"] = max(at_once["most"], at_once["now"])
            entered.set()
            release.wait(60)
            at_once["now"] -= 1
            return super().put_config(name, config)

    with rest_worker(Slow()) as worker, ThreadPoolExecutor(4) as callers:
        large = [
            callers.submit(worker.ask, "PUT", f"/connectors/{name}/config", {**HEARTBEAT, "x": "y" * 300_000})
            for name in "abcd"
        ]
        assert entered.wait(60)
        assert worker.ask("GET", "/connectors").status == 200, "small ones do not wait"
        release.set()
        assert [each.result().status for each in large] == [201] * 4
    assert at_once["most"] == 1


def test_health_reports_a_starting_worker_and_one_that_is_stuck() -> None:
    release = threading.Event()

    class Stuck(FakeHerder):
        def is_ready(self) -> bool:
            return release.wait(30)

    with rest_worker() as worker:
        worker.herder.ready = False
        reply = worker.ask("GET", "/health")
        assert (reply.status, reply.body["status"]) == (503, "starting")
        worker.herder.ready = True
        assert worker.ask("GET", "/health").status == 200
    row = Endpoint(
        "GET", "/health", health, "", "", Access.BE_KNOWN, is_local=True, timeout_s=0.05, on_timeout=unhealthy
    )
    with rest_worker(Stuck(), routes=[row]) as worker:
        reply = worker.ask("GET", "/health")
        assert (reply.status, reply.body["status"]) == (500, "unhealthy")
        release.set()


# --- connectors of a file -------------------------------------------------------------------------
def test_connectors_of_a_file_can_be_read_but_not_changed() -> None:
    herder = FakeHerder()
    herder.create("hb", {"name": "hb", **HEARTBEAT}, None)
    with rest_worker(herder, read_only=True) as worker:
        for row in ROUTES:
            path = row.path.replace("{connector}", "hb").replace("{task}", "0")
            reply = worker.ask(row.method, path, None if row.method == "GET" else {})
            if row.is_action:
                assert (reply.status, "--rest-actions" in reply.body["message"]) == (403, True), row
            elif row.is_change:
                assert (reply.status, "change the file" in reply.body["message"]) == (403, True), row
            else:
                assert reply.status != 403, row
    assert herder.configs == {"hb": {"name": "hb", **HEARTBEAT}}
    assert herder.targets == {"hb": "STARTED"}


def test_with_actions_connectors_of_a_file_can_be_restarted_and_stopped_but_not_defined() -> None:
    herder = FakeHerder()
    herder.create("hb", {"name": "hb", **HEARTBEAT}, None)
    with rest_worker(herder, read_only=True, has_actions=True) as worker:
        for row in ROUTES:
            path = row.path.replace("{connector}", "hb").replace("{task}", "0")
            reply = worker.ask(row.method, path, None if row.method == "GET" else {})
            is_refused = reply.status == 403 and "change the file" in reply.body["message"]
            assert is_refused == (row.is_change and not row.is_action), row
        assert worker.ask("PUT", "/connectors/hb/stop").status == 204
    assert herder.configs == {"hb": {"name": "hb", **HEARTBEAT}}
    assert herder.targets == {"hb": "STOPPED"}


def test_only_reads_and_what_concerns_the_process_are_not_changes() -> None:
    others = {(row.method, row.path) for row in ROUTES if not row.is_change and row.method != "GET"}
    assert others == {
        ("PUT", "/connector-plugins/{plugin}/config/validate"),
        ("PUT", "/admin/loggers/{logger}"),
        ("POST", "/connectors/{connector}/tasks"),
        ("PUT", "/connectors/{connector}/fence"),
    }
