"""A Connect cluster changes hands by its three topics: from Java's worker to ours, and back to Java's."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.wire.records.connect_configs import ConnectorConfigRecord, encode_config
from tests.interop.java_connect import JavaConnect, worker_lines
from tests.support.clusters.clients import make_topic, read, write
from tests.support.connect.connect_worker import RunningWorker, free_port
from tests.support.runs.copying import wait_for
from tests.support.runs.running import run

pytestmark = pytest.mark.spark

MIRROR = "org.apache.kafka.connect.mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def connector(kind: str, source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str) -> dict[str, str]:
    return {
        "connector.class": f"{MIRROR}.Mirror{kind}Connector",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "source.cluster.alias": alias,
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
    }


def worker_file(file: Path, cluster: EmbeddedCluster, port: int, group: str) -> Path:
    file.write_text("\n".join(worker_lines(cluster, port, group)) + "\n")
    return file


def create(url: str, name: str, config: dict[str, str], state: str) -> None:
    body = json.dumps({"name": name, "config": config, "initial_state": state}).encode()
    request = urllib.request.Request(f"{url}/connectors", body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  (the test's own worker)
        assert answer.status == 201


def states(url: str) -> dict[str, str]:
    """Of each connector and its tasks."""
    with urllib.request.urlopen(f"{url}/connectors?expand=status", timeout=60) as answer:  # noqa: S310
        listed = json.load(answer)
    reported = {name: each["status"] for name, each in listed.items() if "status" in each}
    return {
        name: "/".join((status["connector"]["state"], *(task["state"] for task in status["tasks"])))
        for name, status in reported.items()
    }


@pytest.mark.slow
def test_connectors_states_and_progress_go_from_javas_worker_to_ours_and_back(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    group, port = f"{alias}-connect", free_port()
    file = worker_file(tmp_path / "connect-distributed.properties", target, port, group)
    make_topic(source, topic)

    def fill(count: int) -> None:
        write(source, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(count)))

    def wait_until_equal() -> None:
        wait_for(lambda: read(target, f"{alias}.{topic}", 2) == read(source, topic, 2), pause_s=0.5)

    fill(1000)
    with JavaConnect(file, port) as java:
        url = java.wait_until_ready().url
        for kind, state in (("Source", "RUNNING"), ("Heartbeat", "PAUSED")):
            create(url, kind, connector(kind, source, target, alias, topic), state)
        wait_for(lambda: states(url).get("Source") == "RUNNING/RUNNING", pause_s=0.5)
        wait_until_equal()
        refused = run("worker", worker_file(tmp_path / "ours.properties", target, free_port(), group))
        assert refused.returncode == 3
        assert f"The group '{group}' on 'worker' has members that are not Heliograph's workers" in refused.stderr
        java.stop()

    fill(100)
    key, value = encode_config(ConnectorConfigRecord("files", {"connector.class": "FileStreamSource"}))
    write(target, f"{group}-configs", [{"key": key, "value": value, "partition": 0}])
    with RunningWorker(file, port) as ours:
        ours.wait_until_ready()
        wait_for(lambda: states(url).get("Source") == "RUNNING/RUNNING", pause_s=0.5)
        wait_until_equal()
        wait_for(lambda: states(url) == {"Source": "RUNNING/RUNNING", "Heartbeat": "PAUSED", "files": "UNASSIGNED"})
        trace = ours.ask("GET", "/connectors/files/status")[1]["connector"]["trace"]
        assert trace == "FileStreamSource is not one of MirrorMaker 2's connectors; it is left alone"
        assert ours.stop() == 0, ours.output()

    fill(100)
    with JavaConnect(file, port) as java:
        java.wait_until_ready()
        wait_for(lambda: states(url).get("Source") == "RUNNING/RUNNING", pause_s=0.5)
        wait_until_equal()
        assert states(url)["Heartbeat"].startswith("PAUSED")
        java.stop()
