"""REST of `heliograph run` with actions: a flow of a file is stopped, moved, restarted and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import quote

import pytest

from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.file_herder import FileHerder
from heliograph.driver.loops.mirror_process import MirrorProcess
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import make_topic, read, write
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import RestWorker, rest_worker
from tests.support.runs.copying import wait_for
from tests.support.runs.flow_clusters import Clusters
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker


class Actions:
    """REST of a process that runs one flow of one topic with one partition."""

    def __init__(self, worker: RestWorker, clusters: Clusters, topic: str, process: MirrorProcess) -> None:
        self._worker, self._clusters, self._topic, self._process = worker, clusters, topic, process
        self.flow = quote(f"{clusters.alias}->target")
        self.connector = f"/connectors/{self.flow}.MirrorSourceConnector"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._worker.ask(method, path, body)
        assert reply.status < 300, reply
        return reply.body

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        reply = self._worker.ask(method, path, body)
        return reply.status, reply.body["message"]

    def state(self) -> tuple[str, int]:
        status = self.ask("GET", f"{self.connector}/status")
        return status["connector"]["state"], len(status["tasks"])

    def stop(self) -> None:
        self.ask("PUT", f"{self.connector}/stop")
        wait_for(lambda: self.state() == ("STOPPED", 0))

    def file_becomes(self, *lines: str) -> None:
        """Apply a file with these lines, and wait until the flow has started again."""
        (last_run,) = self._process.flows.values()
        self._process.apply(self._clusters.file(self._topic, *lines))

        def is_another() -> bool:
            self._process.look_after()
            (running,) = self._process.flows.values()
            return running is not last_run and running.life.is_running

        wait_for(is_another)

    def write(self, *values: bytes) -> None:
        write(self._clusters.source, self._topic, [{"value": value, "partition": 0} for value in values])

    def values(self) -> list[bytes | None]:
        return [
            seen.value for seen in read(self._clusters.target, f"{self._clusters.alias}.{self._topic}", 1).get(0, [])
        ]

    def alter(self, offset: dict[str, int] | None) -> None:
        partition = {"cluster": self._clusters.alias, "partition": 0, "topic": self._topic}
        self.change_offsets("PATCH", {"offsets": [{"partition": partition, "offset": offset}]})

    def change_offsets(self, method: str, body: Any = None) -> None:
        """Change offsets as soon as the task has ended: until then the connector is not stopped."""
        wait_for(lambda: self._worker.ask(method, f"{self.connector}/offsets", body).status == 200)


@contextmanager
def serving(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str) -> Iterator[Actions]:
    clusters = Clusters(source, target, alias)
    make_topic(source, topic, 1)
    process = MirrorProcess(clusters.file(topic, "tasks.max = 1"), thread_engine())
    herder = FileHerder(process, LogLevels(), lambda: "an id")
    for flow in process.flows.values():
        flow.start()
    try:
        wait_for(lambda: all(flow.life.is_running for flow in process.flows.values()))
        with rest_worker(cast("FakeHerder", herder), read_only=True, has_actions=True) as worker:
            yield Actions(worker, clusters, topic, process)
    finally:
        process.stop()
        assert process.is_over


def test_a_flow_that_is_stopped_stays_stopped_until_it_is_resumed(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    with serving(source, target, alias, topic) as actions:
        actions.write(b"a", b"b")
        wait_for(lambda: actions.values() == [b"a", b"b"])
        actions.stop()
        actions.write(b"c")
        actions.ask("POST", f"{actions.connector}/restart?includeTasks=true")
        assert actions.refused("POST", f"/heliograph/v1/flows/{actions.flow}/restart", {"topic": topic})[0] == 400
        assert actions.state() == ("STOPPED", 0)
        actions.ask("PUT", f"{actions.connector}/resume")
        wait_for(lambda: actions.values() == [b"a", b"b", b"c"])
        wait_for(lambda: actions.state() == ("RUNNING", 1))
        actions.ask("POST", f"{actions.connector}/tasks/0/restart")
        actions.write(b"d")
        wait_for(lambda: actions.values() == [b"a", b"b", b"c", b"d"])


def test_a_stopped_flow_stays_stopped_when_its_file_changes(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    with serving(source, target, alias, topic) as actions:
        actions.write(b"a", b"b")
        wait_for(lambda: actions.values() == [b"a", b"b"])
        actions.stop()
        actions.alter({"offset": 1})  # possible as soon as its task has ended
        actions.write(b"c")
        actions.file_becomes("tasks.max = 2")
        assert actions.state() == ("STOPPED", 0)
        actions.alter({"offset": 0})
        actions.ask("PUT", f"{actions.connector}/pause")
        wait_for(lambda: actions.state() == ("PAUSED", 1))
        actions.file_becomes("tasks.max = 3")
        assert actions.state() == ("PAUSED", 1)
        assert actions.values() == [b"a", b"b"]
        actions.ask("PUT", f"{actions.connector}/resume")
        wait_for(lambda: actions.values() == [b"a", b"b", b"b", b"c"])
        wait_for(lambda: actions.state() == ("RUNNING", 1))


def test_offsets_of_a_stopped_flow_are_altered_and_reset(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    with serving(source, target, alias, topic) as actions:
        actions.write(b"a", b"b", b"c")
        wait_for(lambda: actions.values() == [b"a", b"b", b"c"])
        assert "STOPPED state" in actions.refused("DELETE", f"{actions.connector}/offsets")[1]
        actions.stop()
        actions.alter({"offset": 0})
        assert [entry["offset"] for entry in actions.ask("GET", f"{actions.connector}/offsets")["offsets"]] == [
            {"offset": 0}
        ]
        actions.ask("PUT", f"{actions.connector}/resume")
        wait_for(lambda: actions.values() == [b"a", b"b", b"c", b"b", b"c"])
        actions.stop()
        actions.change_offsets("DELETE")
        actions.ask("PUT", f"{actions.connector}/resume")
        wait_for(lambda: actions.values() == [b"a", b"b", b"c", b"b", b"c", b"a", b"b", b"c"])


def test_what_the_file_defines_stays(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
    with serving(source, target, alias, topic) as actions:
        for method, path in (("DELETE", actions.connector), ("PUT", f"{actions.connector}/config")):
            status, message = actions.refused(method, path, {})
            assert (status, "change the file" in message) == (403, True)
        heartbeats = actions.connector.replace("Source", "Heartbeat")
        assert actions.refused("PUT", f"{heartbeats}/stop")[0] == 403
