"""Two workers of a group whose REST asks for TLS, certificates, a login and rules: any of them can be asked."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from heliograph.cli.commands.worker import serving
from heliograph.cli.inputs import MachineLookup
from heliograph.config.validate.worker_file import load_worker
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.topics.topic_reader import read_topic
from tests.interop.rest_story import ask
from tests.support.clusters.certificates import Authority
from tests.support.clusters.clients import admin_of
from tests.support.connect.connect_worker import connector, worker_file
from tests.support.connect.rest_worker import PASSWORD, login_lines
from tests.support.runs.copying import wait_for
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker


class Asked:
    """Both workers, asked as a user."""

    def __init__(self, urls: list[str], authority: Authority) -> None:
        self.urls = urls
        self._tls = authority.client(authority.issue("client"))

    def each(self, user: str, method: str, path: str, body: object = None) -> list[tuple[int, Any]]:
        """What each worker answers."""
        return [self.one(worker, user, method, path, body) for worker in range(len(self.urls))]

    def one(self, worker: int, user: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        headers = {
            "authorization": f"Basic {b64encode(f'{user}:{PASSWORD}'.encode()).decode()}",
            "content-type": "application/json",
        }
        sent = None if body is None else json.dumps(body).encode()
        status, _headers, raw = ask(self.urls[worker], method, path, sent, headers, self._tls)
        return status, json.loads(raw) if raw else None


@pytest.fixture
def asked(target: EmbeddedCluster, alias: str, tmp_path: Path) -> Iterator[Asked]:
    authority = Authority(tmp_path)
    (tmp_path / "rules.yaml").write_text(
        "- {users: payments, change: payments-.*}\n- {users: oncall, see: .*}\n- {users: platform, change: .*}\n"
    )
    lines = {**login_lines(tmp_path, "payments", "oncall", "platform"), **authority.lines("required")}
    lines["heliograph.rest.rules.file"] = f"{tmp_path}/rules.yaml"
    text = worker_file(tmp_path, target, alias, 0, *(f"{key}={value}" for key, value in lines.items())).read_text()
    with ExitStack() as stack:
        urls = []
        for _worker in range(2):
            urls.append(stack.enter_context(serving(load_worker(text, MachineLookup()), thread_engine())))
        both = Asked(urls, authority)
        wait_for(lambda: [status for status, _body in both.each("platform", "GET", "/connectors")] == [200, 200])
        yield both


def test_any_worker_holds_any_caller_to_its_rules(
    source: EmbeddedCluster, target: EmbeddedCluster, alias: str, asked: Asked
) -> None:
    config = connector("Heartbeat", source, target, alias)
    for worker, name in enumerate(("payments-1", "orders-1")):  # one of the two forwards
        assert asked.one(worker, "platform", "PUT", f"/connectors/{name}/config", config)[0] == 201
    assert asked.each("payments", "GET", "/connectors") == [(200, ["payments-1"])] * 2
    assert asked.each("oncall", "GET", "/connectors") == [(200, ["orders-1", "payments-1"])] * 2
    assert [status for status, _ in asked.each("stranger", "GET", "/connectors")] == [401, 401]
    for method, path in (("PUT", "/pause"), ("DELETE", ""), ("GET", "/offsets"), ("PATCH", "/config")):
        body = {"a": "b"} if method == "PATCH" else None
        hidden = asked.each("payments", method, f"/connectors/orders-1{path}", body)
        assert [status for status, _ in hidden] == [404, 404], path
    assert [status for status, _ in asked.each("oncall", "PUT", "/connectors/payments-1/pause")] == [403, 403]
    for worker, word in enumerate(("pause", "resume")):
        assert asked.one(worker, "payments", "PUT", f"/connectors/payments-1/{word}")[0] == 202
    wait_for(
        lambda: asked.one(0, "payments", "GET", "/connectors/payments-1/status")[1]["connector"]["state"] == "RUNNING"
    )


@pytest.mark.usefixtures("asked")
def test_the_workers_key_is_one_that_connect_would_read(target: EmbeddedCluster, alias: str) -> None:
    admin = admin_of(target)
    records = [record for record in read_topic(admin, f"{alias}-configs") if record.key == b"session-key"]
    admin.close()
    assert len(records) == 1
    stored = json.loads(records[0].value or b"")
    assert list(stored) == ["key", "algorithm", "creation-timestamp"]
    assert (len(stored["key"]), stored["algorithm"]) == (44, "HmacSHA256")
