"""A few seconds of `make fuzz-rest`, and what a web page can send, against a running worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.fuzz.requests import Clusters
from tests.fuzz.run import fuzzed_worker
from tests.fuzz.worker_fuzz import WorkerFuzz
from tests.interop.rest_story import ask
from tests.support.connect.connect_worker import connector

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_a_running_worker_stays_well_under_hostile_requests(
    source: EmbeddedCluster, target: EmbeddedCluster, alias: str, tmp_path: Path
) -> None:
    with fuzzed_worker(source, target, tmp_path, f"{alias}-fuzz") as (worker, ports):
        check_web_pages_are_refused(worker.url, connector("Heartbeat", source, target, alias))
        # Limits that only a worker that hangs or leaks without end exceeds: the machine may be busy.
        fuzz = WorkerFuzz(worker, ports, Clusters(source.bootstrap, target.bootstrap), 1, health_limit_s=30.0)
        fuzz.play(6.0, memory_margin_bytes=600 << 20, memory_patience_s=60.0)
        assert not fuzz.violations, fuzz.report()
        assert fuzz.health_calls > 0
        assert sum(fuzz.counts.values()) > 20


def check_web_pages_are_refused(url: str, config: dict[str, str]) -> None:
    """DNS rebinding and calls across sites, on a worker that answers its own names."""
    body = json.dumps({"name": "page", "config": {**config, "name": "page"}}).encode()
    sent = {"Content-Type": "application/json"}
    rebound = {"Host": "evil.example:8083", "Origin": "http://evil.example:8083"}
    for headers in (rebound, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        status, answered, text = ask(url, "POST", "/connectors", body, {**sent, **headers})
        assert (status, b"evil" in text, answered.get("Location")) == (403, False, None), headers
    assert ask(url, "GET", "/connectors", None, {"Host": "evil.example"})[0] == 403
    assert ask(url, "GET", "/connectors", None, {"Host": "localhost:18083"})[2] == b"[]"
    status, answered, _text = ask(url, "POST", "/connectors", body, {**sent, "Host": "localhost:18083"})
    assert (status, answered["Location"]) == (201, "http://localhost:18083/connectors/page")
    assert ask(url, "POST", "/connectors/page/restart", None, {"Origin": "http://evil.example"})[0] == 403
    assert ask(url, "DELETE", "/connectors/page")[0] == 204
