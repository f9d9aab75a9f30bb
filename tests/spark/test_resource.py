"""A KafkaMirrorMaker2 resource, run as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.model import TopicPartition
from heliograph.wire.records.connect_offsets import encode_key, encode_value
from tests.support.clusters.clients import make_topic, read, write
from tests.support.runs.running import run

pytestmark = pytest.mark.spark

RESOURCE = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mm2
spec:
  replicas: 3
  connectCluster: target
  clusters:
    - alias: {alias}
      bootstrapServers: {source}
    - alias: target
      bootstrapServers: {target}
      config:
        offset.storage.topic: {alias}-offsets
        offset.storage.replication.factor: -1
  mirrors:
    - sourceCluster: {alias}
      targetCluster: target
      sourceConnector:
        tasksMax: 1
        config:
          replication.factor: -1
          offset-syncs.topic.replication.factor: -1
          heartbeats.replication.enabled: "false"
          replication.policy.separator: "-"
      checkpointConnector:
        config:
          checkpoints.topic.replication.factor: -1
      topicsPattern: {topic}
"""


def leave_progress(cluster: EmbeddedCluster, alias: str, topic: str, offset: int) -> None:
    """What the operator's Connect has written of partition 0."""
    name = f"{alias}->target.MirrorSourceConnector"
    key = encode_key(name, alias, TopicPartition(topic, 0))
    make_topic(cluster, f"{alias}-offsets", 1, cleanup_policy="compact")
    write(cluster, f"{alias}-offsets", [{"key": key, "value": encode_value(offset)}])


def test_a_resource_is_planned_and_goes_on_where_the_operator_was(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 2)
    write(source, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(100)))
    file = tmp_path / "mm2.yaml"
    file.write_text(RESOURCE.format(alias=alias, topic=topic, source=source.bootstrap, target=target.bootstrap))
    plan = run("plan", file)
    leave_progress(target, alias, topic, 29)
    assert plan.returncode == 0, plan.stdout + plan.stderr
    assert f"{topic} -> {alias}-{topic} (2 partitions)" in plan.stdout
    ended = run("run", file, "--once")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{alias}->target: done, 70 records" in ended.stdout
    there = read(source, topic, 2)
    assert read(target, f"{alias}-{topic}", 2) == {0: there[0][30:], 1: there[1]}
