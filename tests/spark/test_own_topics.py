"""A source that has topics of the worker's own names: its records do not become connectors of the worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.spark.test_worker import fill, is_equal
from tests.support.clusters.clients import make_topic, write
from tests.support.connect.connect_worker import MIRROR, RunningWorker, connector, free_port, worker_file
from tests.support.runs.copying import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_records_of_a_source_do_not_become_connectors(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    name, port = f"{alias}-own", free_port()
    planted = {"name": "planted", "connector.class": f"{MIRROR}.MirrorHeartbeatConnector", "source.cluster.alias": "x"}
    make_topic(source, f"{name}-configs", 1)
    write(
        source,
        f"{name}-configs",
        [{"key": b"connector-planted", "value": json.dumps({"properties": planted}).encode()}],
    )
    make_topic(source, topic)
    fill(source, topic)
    config = connector(
        "Source",
        source,
        target,
        alias,
        topics=f"{topic},{name}-.*",
        replication_policy_class=f"{MIRROR}.IdentityReplicationPolicy",
        heartbeats_replication_enabled="false",
        sync_topic_acls_enabled="false",
    )
    with RunningWorker(worker_file(tmp_path, target, name, port), port) as worker:
        worker.wait_until_ready()
        assert worker.ask("PUT", "/connectors/honest/config", config)[0] == 201
        wait_for(lambda: is_equal(source, topic, target, topic))
        # One task reads all partitions from their beginning: by its second topic's end it has read the planted record.
        assert worker.ask("GET", "/connectors") == (200, ["honest"])
        assert worker.stop() == 0
    with RunningWorker(worker_file(tmp_path, target, name, port), port) as worker:
        worker.wait_until_ready()
        assert worker.ask("GET", "/connectors") == (200, ["honest"])
