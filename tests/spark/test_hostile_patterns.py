"""Patterns and bodies that would keep an engine busy for hours, on a running worker: only their own connector fails."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Any, Self

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.spark.test_worker import fill, is_equal
from tests.support.clusters.clients import make_topic
from tests.support.connect.connect_worker import RunningWorker, connector, free_port, worker_file
from tests.support.runs.copying import wait_for

pytestmark = pytest.mark.spark

SLOW = "(?=a)(?:a|aa)+$x"
BODIES: list[dict[str, str]] = [
    {"x": "token" * 500},
    {"x": "token" * 200_000},
    {"a." * 490: "v"},
    {"x": "${" * 500_000},
    {"x": "=:" * 500_000},
    {"x": "http://" * 140_000},
    {"x": "-----BEGIN PRIVATE KEY-----" * 38_000},
    {"x": "bearer ${" * 110_000},
    {"x": '"\\' * 500_000},
    {"x": "${a} " * 200_000 + "!"},
    {"topics": "a" + " " * 1_000_000 + "b"},
    {"topics": "(" * 90_000, "groups": "((a{1000}){1000}){1000}"},
]
SLOWEST_ANSWER_S = 10.0  # an idle worker takes milliseconds; the frozen one took minutes


class Watch:
    """Asks for `/health` all the time, and keeps how long the slowest answer took."""

    def __init__(self, worker: RunningWorker) -> None:
        self.slowest_s, self.answers = 0.0, 0
        self._worker, self._over = worker, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            began = time.monotonic()
            try:
                is_well = self._worker.ask("GET", "/health")[0] == 200
            except OSError:
                is_well = False
            self.slowest_s = max(self.slowest_s, time.monotonic() - began if is_well else math.inf)
            self.answers += 1


def trace(worker: RunningWorker, name: str) -> Any:
    return worker.ask("GET", f"/connectors/{name}/status")[1]["connector"].get("trace", "")


def test_hostile_bodies_and_patterns_hold_up_nothing_but_their_own_connector(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    hostile = f"{topic}-" + "a" * 200
    for name in (topic, hostile, "a" * 249):
        make_topic(source, name)
    fill(source, topic)
    port = free_port()
    file = worker_file(tmp_path, target, f"{alias}-connect", port)
    own = {"heartbeats_replication_enabled": "false", "refresh_topics_interval_seconds": "1"}
    neighbour = connector("Source", source, target, alias, topics=topic, **own)
    linear = connector("Source", source, target, f"{alias}-l", topics="(a+)+b", **own)
    slow = connector("Source", source, target, f"{alias}-s", topics=SLOW, **own)
    groups = connector("Checkpoint", source, target, f"{alias}-g", groups="(a+)+b", topics=SLOW)
    with RunningWorker(file, port) as worker:
        worker.wait_until_ready()
        with Watch(worker) as watch:
            for body in BODIES:
                config = {"connector.class": "x", "name": "x", **body}
                began = time.monotonic()
                assert worker.ask("PUT", "/connector-plugins/x/config/validate", config)[0] in (200, 400, 413, 500)
                config["connector.class"] = "MirrorSourceConnector"
                path = "/connector-plugins/MirrorSourceConnector/config/validate"
                assert worker.ask("PUT", path, config)[0] in (200, 400, 413, 500)
                assert time.monotonic() - began < 60
            for name, config in {"n": neighbour, "linear": linear, "slow": slow, "groups": groups}.items():
                code, answer = worker.ask("POST", "/connectors", {"name": f"{alias}-{name}", "config": config})
                assert code == 201, answer
            worker.wait_for_state(f"{alias}-slow", "FAILED")
            sentence = f"topics: '{SLOW}' takes too long to match the name "
            assert trace(worker, f"{alias}-slow").startswith(sentence)
            worker.wait_for_state(f"{alias}-linear", "RUNNING")
            wait_for(lambda: is_equal(source, topic, target, f"{alias}.{topic}"))
        assert watch.answers > 0
        assert watch.slowest_s < SLOWEST_ANSWER_S
        assert worker.stop() == 0, worker.output()
    with RunningWorker(file, port) as worker:  # what is stored does not come back to freeze it
        worker.wait_until_ready()
        with Watch(worker) as watch:
            worker.wait_for_state(f"{alias}-slow", "FAILED")
            fill(source, topic, 100)
            wait_for(lambda: is_equal(source, topic, target, f"{alias}.{topic}"))
            assert worker.ask("DELETE", f"/connectors/{alias}-slow")[0] == 204
            wait_for(lambda: worker.ask("GET", f"/connectors/{alias}-slow/status")[0] == 404)
            worker.wait_for_state(f"{alias}-n", "RUNNING", "RUNNING")
        assert watch.slowest_s < SLOWEST_ANSWER_S
        assert worker.stop() == 0, worker.output()
