"""Where a connector's records and progress go on real brokers, the worker's cluster being the source (document 004)."""

from __future__ import annotations

import os
from typing import Any

import pytest

from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.resolve.placeholders import Resolver
from heliograph.connect.runtime.connector_offsets import ConnectorOffsets
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.source_offsets import read_offsets
from heliograph.model import Flow, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint, decode_heartbeat
from tests.support.clusters.clients import admin_of, make_topic, read, wait_for_markers, write
from tests.support.runs.copying import Copy, cluster_spec
from tests.support.runs.thread_engine import thread_engine

pytestmark = pytest.mark.broker


class Machine:
    def variable(self, name: str) -> str | None:
        return os.environ.get(name)

    def read_text(self, path: str) -> str | None:
        raise AssertionError(path)


def connector(
    source: EmbeddedCluster, target: EmbeddedCluster, alias: str, *, kind: str = "Source", **changes: str
) -> ConnectorConfig:
    """Document 004's connector and worker: the worker lives in the source's cluster."""
    worker = {
        "bootstrap.servers": source.bootstrap,
        "group.id": f"quickstart-{alias}",
        "offset.storage.topic": f"{alias}_offsets",
        "offset.storage.replication.factor": "1",
        "offset.storage.partitions": "5",
    }
    raw = {
        "name": f"{alias}_mirror",
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
        "source.cluster.alias": alias,
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",  # of other tests
        **{name.replace("__", "."): value for name, value in changes.items()},
    }
    worker |= {name: raw.pop(name) for name in list(raw) if name == "exactly.once.source.support"}
    return ConnectorConfig(raw["name"], raw, worker, Resolver(Machine(), worker))


def copy_once(config: ConnectorConfig) -> None:
    flow = SourceFlow(config, config.flow, thread_engine(), flow_count=1, once=True)
    flow.start()
    assert flow.join(180)
    assert flow.error is None
    assert flow.status.state == "DONE"


def values(cluster: EmbeddedCluster, topic: str) -> list[bytes | None]:
    return [record.value for records in read(cluster, topic, 2).values() for record in records]


def source_offsets(cluster: EmbeddedCluster, config: ConnectorConfig) -> dict[TopicPartition, int]:
    admin = admin_of(cluster)
    found = read_offsets(admin, config.worker["offset.storage.topic"], config.name, config.flow.source)
    admin.close()
    return {tp: offset.offset for tp, offset in found.items()}


def numbers(*wanted: int) -> list[dict[str, Any]]:
    return [{"value": str(n).encode(), "partition": n % 2} for n in wanted]


def test_records_go_to_the_overridden_producer_and_progress_to_the_worker(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    config = connector(source, target, alias, topics=topic, producer__override__bootstrap__servers=target.bootstrap)
    for batch in (range(10), range(10, 20)):
        write(source, topic, numbers(*batch))
        copy_once(config)
    assert sorted(values(target, f"{alias}.{topic}")) == sorted(str(n).encode() for n in range(20))
    assert source_offsets(source, config) == {TopicPartition(topic, 0): 9, TopicPartition(topic, 1): 9}
    assert source_offsets(target, config) == {}
    admin = admin_of(source)
    assert f"{alias}.{topic}" not in admin.view().partition_counts
    admin.close()


def test_without_an_override_records_go_back_into_the_workers_cluster(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    """As document 004 warns; the target has the remote topic, empty, as with Java."""
    make_topic(source, topic)
    write(source, topic, numbers(*range(6)))
    config = connector(source, target, alias, topics=topic)
    copy_once(config)
    assert len(values(source, f"{alias}.{topic}")) == 6
    assert values(target, f"{alias}.{topic}") == []
    assert set(source_offsets(source, config).values()) == {2}


def test_exactly_once_keeps_progress_in_the_transaction_of_the_records(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    changes = {
        "topics": topic,
        "exactly.once.source.support": "enabled",
        "producer.override.bootstrap.servers": target.bootstrap,
    }
    config = connector(source, target, alias, **changes)
    for batch in (range(4), range(4, 8)):
        write(source, topic, numbers(*batch))
        copy_once(config)
    wait_for_markers(target, f"{alias}.{topic}", 2)
    assert len(values(target, f"{alias}.{topic}")) == 8
    assert source_offsets(target, config) == {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 3}
    assert source_offsets(source, config) == {}


def test_heartbeats_are_written_by_the_workers_producer(
    source: EmbeddedCluster, target: EmbeddedCluster, alias: str
) -> None:
    for changes, holder in (({}, source), ({"producer.override.bootstrap.servers": target.bootstrap}, target)):
        config = connector(source, target, alias, kind="Heartbeat", **changes)
        work = HeartbeatSource(config, config.flow)
        assert (tuple(work.begin()), tuple(work.beat())) == ((), ())
        work.close()
        beats = [decode_heartbeat(record.key, record.value) for record in read(holder, "heartbeats", 1)[0]]
        assert Flow(alias, "target") in {(beat.source, beat.target) for beat in beats if beat is not None}
        with ConnectorOffsets.of(config) as offsets:
            assert offsets.read() == [({"sourceClusterAlias": alias, "targetClusterAlias": "target"}, {"offset": 0})]


def test_checkpoints_are_written_by_the_workers_producer(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic)
    write(source, topic, numbers(*range(10)))
    changes = {"producer.override.bootstrap.servers": target.bootstrap, "topics": topic, "groups": f"g-{alias}"}
    copy_once(connector(source, target, alias, **changes))
    commit(source, f"g-{alias}", topic, 3)
    config = connector(source, target, alias, kind="Checkpoint", **changes)
    work = CheckpointSync(config, config.flow)
    for step in (work.begin, work.refresh_groups, work.emit):
        assert tuple(step()) == ()
    work.close()
    with ConnectorOffsets.of(config) as offsets:
        noted = {"partition": 0, "topic": f"{alias}.{topic}", "group": f"g-{alias}"}
        assert (noted, {"offset": 0}) in offsets.read()
    written = [
        decode_checkpoint(record.key, record.value) for record in read(target, f"{alias}.checkpoints.internal", 1)[0]
    ]
    assert [(c.group, c.tp, c.upstream, c.downstream) for c in written if c is not None] == [
        (f"g-{alias}", TopicPartition(f"{alias}.{topic}", 0), 3, 3)
    ]


def commit(cluster: EmbeddedCluster, group: str, topic: str, offset: int) -> None:
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as Committed

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    consumer.commit(offsets=[Committed(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_the_loop_writes_progress_to_a_third_cluster_under_load(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    """The copy itself, without a connector: a stop commits everything where progress is kept."""
    make_topic(source, topic)
    write(source, topic, numbers(*range(2000)))
    copy = Copy(source, target, alias, topic)
    elsewhere = Copy(target, source, alias, f"{topic}-p")  # makes the topic of progress on the source's cluster
    report = copy.once(source_offsets=cluster_spec("worker", source))
    assert sum(row.records for row in report.partitions) == 2000
    assert copy.committed() == {}
    assert set(elsewhere.committed().values()) == {999}
