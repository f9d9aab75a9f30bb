"""`heliograph worker`: connectors through Connect's REST API, on real clusters and real Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.connect.connect_worker import RunningWorker, connector, free_port, worker_file
from tests.support.runs.copying import wait_for
from tests.support.runs.running import python_workers

pytestmark = pytest.mark.spark


def is_equal(source: EmbeddedCluster, topic: str, target: EmbeddedCluster, remote: str) -> bool:
    admin = admin_of(target)
    is_there = remote in admin.view([remote]).partition_counts
    admin.close()
    return is_there and read(source, topic, 2) == read(target, remote, 2)


def fill(cluster: EmbeddedCluster, topic: str, count: int = 1000) -> None:
    write(cluster, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(count)))


def check_changes_touch_no_task(
    worker: RunningWorker, path: str, config: dict[str, str], source: EmbeddedCluster, target: EmbeddedCluster
) -> None:
    """A topic more, and back; the task that copies goes on: Spark begins no other."""
    alias, topic = config["source.cluster.alias"], config["topics"]
    copying = python_workers(worker.process.pid)
    make_topic(source, f"{topic}-more")
    fill(source, f"{topic}-more", 10)
    assert worker.ask("PUT", f"{path}/config", config)[0] == 200
    assert worker.ask("PATCH", f"{path}/config", {"topics": f"{topic},{topic}-more"})[0] == 200
    wait_for(lambda: is_equal(source, f"{topic}-more", target, f"{alias}.{topic}-more"))
    assert worker.ask("PUT", f"{path}/config", config)[0] == 200
    wait_for(lambda: f"{topic}-more" not in str(worker.ask("GET", f"{path}/tasks")[1]))
    wait_for(lambda: worker.output().count("no task is restarted") == 2)
    assert python_workers(worker.process.pid) == copying


def test_a_connector_lives_through_rest_and_a_restart_of_its_worker(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic)
    fill(source, topic)
    remote, name = f"{alias}.{topic}", f"mirror {alias}"
    path = f"/connectors/{name.replace(' ', '%20')}"
    port = free_port()
    file = worker_file(tmp_path, target, f"{alias}-connect", port)
    config = connector("Source", source, target, alias, topics=topic, heartbeats_replication_enabled="false")
    with RunningWorker(file, port) as worker:
        worker.wait_until_ready()
        code, info = worker.ask("POST", "/connectors", {"name": name, "config": config})
        assert (code, info["name"], info["type"]) == (201, name, "source")
        assert info["config"] == {**config, "name": name}
        assert worker.ask("POST", "/connectors", {"name": name, "config": config})[0] == 409
        wait_for(lambda: is_equal(source, topic, target, remote))
        worker.wait_for_state(name.replace(" ", "%20"), "RUNNING", "RUNNING")
        assert worker.ask("GET", "/connectors") == (200, [name])
        wait_for(lambda: worker.ask("GET", f"{path}/topics") == (200, {name: {"topics": [remote]}}))
        tasks = worker.ask("GET", f"{path}/tasks")[1]
        assert tasks[0]["config"]["task.assigned.partitions"] == f"{topic}-0,{topic}-1"
        check_changes_touch_no_task(worker, path, config, source, target)
        code, answer = worker.ask("DELETE", f"{path}/offsets")
        assert (code, "STOPPED state" in answer["message"]) == (400, True)
        assert worker.ask("PUT", f"{path}/pause")[0] == 202
        worker.wait_for_state(name.replace(" ", "%20"), "PAUSED", "PAUSED")
        fill(source, topic, 100)
        assert worker.stop() == 0, worker.output()
    with RunningWorker(file, port) as worker:
        worker.wait_until_ready()
        worker.wait_for_state(name.replace(" ", "%20"), "PAUSED", "PAUSED")
        assert not is_equal(source, topic, target, remote)
        assert worker.ask("PUT", f"{path}/resume")[0] == 202
        wait_for(lambda: is_equal(source, topic, target, remote))
        assert worker.ask("PUT", f"{path}/stop")[0] == 204
        worker.wait_for_state(name.replace(" ", "%20"), "STOPPED")
        offsets = worker.ask("GET", f"{path}/offsets")[1]["offsets"]
        assert [entry["offset"]["offset"] for entry in offsets if entry["partition"]["topic"] == topic] == [549, 549]
        wait_for(lambda: worker.ask("DELETE", f"{path}/offsets")[0] == 200)
        assert worker.ask("GET", f"{path}/offsets")[1] == {"offsets": []}
        assert worker.ask("DELETE", path)[0] == 204
        wait_for(lambda: worker.ask("GET", f"{path}/status")[0] == 404)
        assert worker.stop() == 0, worker.output()
