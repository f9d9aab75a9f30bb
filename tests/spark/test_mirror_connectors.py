"""Kafka's integration tests of MirrorMaker 2, with ten partitions of ten records as there, in one process.

MirrorConnectorsIntegrationBaseTest and its subclasses with Identity policy and transactions, and
DedicatedMirrorIntegrationTest. Where Java's tests allow that records come again after a group has moved, ours do not.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heliograph.client.mirror_client import MirrorClient
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.model import Flow, TopicPartition
from tests.broker.test_failover import consume
from tests.broker.test_offset_syncs import write_transactions
from tests.broker.test_topic_configs import configs_of
from tests.support.clusters.clients import Seen, make_topic, read, read_with_offsets, write
from tests.support.runs.copying import wait_for
from tests.support.runs.mirrors import COMMITTED, PARTITIONS, PATIENCE_S, PER_PARTITION, Mirror, mirror

pytestmark = pytest.mark.spark

COUNT = PARTITIONS * PER_PARTITION
ALL_READ = dict.fromkeys(range(PARTITIONS), PER_PARTITION)

# Active-active, as in Java's base test.
PRIMARY, BACKUP = "primary", "backup"
OVER, HOME = Flow(PRIMARY, BACKUP), Flow(BACKUP, PRIMARY)
# Active-passive under the same names, with an offset sync for every record, held on the target.
ORIGINAL, COPY = "original", "copy"
SAME_NAMES = Flow(ORIGINAL, COPY)
IDENTITY = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "source.cluster.alias": ORIGINAL,
}
# Exactly-once into the cluster of Java's testMultiNodeCluster: most of its alias may not be in a topic's name.
HOSTILE = "B- ._~:/?#[]@!$&'()*+;=\"<>%{}|\\^`618"
EXACTLY_ONCE = Flow("A", HOSTILE)
# Without offset syncs, and only what is written from now on.
FROM_LATEST = Flow("loud", "quiet")


def flow_keys() -> dict[Flow, dict[str, str]]:
    both = {
        "topics": r"test-.*, primary\.test-.*, backup\.test-.*",
        "groups": "consumer-group-.*",
        "sync.group.offsets.enabled": "true",
        "emit.heartbeats.enabled": "true",
    }
    same_names = {
        "replication.policy.class": IDENTITY["replication.policy.class"],
        "topics": "same-name-.*",
        "groups": "identity-group-.*",
        "sync.group.offsets.enabled": "true",
        "emit.heartbeats.enabled": "true",
        "offset.lag.max": "0",
        "offset-syncs.topic.location": "target",
    }
    exactly_once = {
        "topics": "^exactly-.*",
        "groups": "exactly-group",
        "sync.group.offsets.enabled": "true",
        "heartbeats.replication.enabled": "false",
        "offset-syncs.topic.location": "target",
        "exactly.once.support": "required",
    }
    from_latest = {
        "topics": "from-latest",
        "heartbeats.replication.enabled": "false",
        "emit.offset-syncs.enabled": "false",
        "consumer.auto.offset.reset": "latest",
    }
    return {OVER: both, HOME: both, SAME_NAMES: same_names, EXACTLY_ONCE: exactly_once, FROM_LATEST: from_latest}


@pytest.fixture(scope="module")
def running(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mirror]:
    flows = flow_keys()
    clusters = {alias: cluster for flow in flows for alias, cluster in zip(flow, (source, target), strict=True)}
    clusters |= {PRIMARY: source, BACKUP: target}
    make_topic(source, "from-latest", PARTITIONS)
    write(source, "from-latest", ({"value": b"old", "partition": p} for p in range(PARTITIONS)))
    worker_keys = {HOSTILE: {"exactly.once.source.support": "enabled"}}
    with mirror(tmp_path_factory.mktemp("mirror"), clusters, flows, worker_keys) as shared:
        yield shared


def client_of(cluster: EmbeddedCluster) -> MirrorClient:
    return MirrorClient({"bootstrap.servers": cluster.bootstrap})


# --- MirrorConnectorsIntegrationBaseTest ------------------------------------------------------------------------------


def test_replication(running: Mirror, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
    """Data and configs both ways, heartbeats, hops, checkpoints, over and home again, and a topic that comes later."""
    topic, group = "test-replication", "consumer-group-replication"
    running.make_topic(PRIMARY, topic, delete_retention_ms="1000", segment_ms="600000")
    running.make_topic(BACKUP, topic)
    for alias in (PRIMARY, BACKUP):
        running.produce(alias, topic, alias)
    running.wait_until_equal(PRIMARY, topic, BACKUP, f"{PRIMARY}.{topic}")
    running.wait_until_equal(BACKUP, topic, PRIMARY, f"{BACKUP}.{topic}")
    configs = configs_of(target, f"{PRIMARY}.{topic}")
    assert (configs["delete.retention.ms"], configs["segment.ms"]) == (("1000", True), ("600000", True))
    assert {f"{BACKUP}.{PRIMARY}.{topic}", f"{BACKUP}.{BACKUP}.{topic}"} & running.topics(PRIMARY) == set()

    for cluster, other in ((source, BACKUP), (target, PRIMARY)):
        wait_for(lambda c=cluster, o=other: f"{o}.heartbeats" in client_of(c).heartbeat_topics())
        assert other in client_of(cluster).upstream_clusters()
        assert client_of(cluster).replication_hops(other) == 1
        wait_for(lambda c=cluster, o=other: f"{o}.checkpoints.internal" in client_of(c).checkpoint_topics())
        assert f"{other}.{topic}" in client_of(cluster).remote_topics(other)

    assert len(set(consume(source, group, topic, COUNT))) == COUNT
    wait_for(lambda: running.translated(OVER, group, f"{PRIMARY}.{topic}") == ALL_READ)
    consume(target, group, topic, COUNT)
    wait_for(lambda: running.translated(HOME, group, f"{BACKUP}.{topic}") == ALL_READ)

    later = "test-replication-later"
    running.make_topic(PRIMARY, later)
    running.produce(PRIMARY, later, "later")
    running.wait_until_equal(PRIMARY, later, BACKUP, f"{PRIMARY}.{later}")
    assert_monotonic(running, OVER, group)


def assert_monotonic(running: Mirror, flow: Flow, group: str) -> None:
    """Java's assertMonotonicCheckpoints."""
    highest: dict[TopicPartition, int] = {}
    for checkpoint in running.checkpoints(flow, group):
        assert checkpoint.downstream >= highest.get(checkpoint.tp, 0), checkpoint
        highest[checkpoint.tp] = checkpoint.downstream
    assert highest


def test_replication_with_empty_partition(running: Mirror) -> None:
    """A partition nobody wrote to has no place on the target; the others of the group have theirs."""
    topic, group, empty = "test-empty", "consumer-group-empty", PARTITIONS - 1
    running.make_topic(PRIMARY, topic)
    running.produce(PRIMARY, topic, "x", but=frozenset({empty}))
    running.commit(PRIMARY, group, topic, {**ALL_READ, empty: 0})
    remote = f"{PRIMARY}.{topic}"
    full = {p: offset for p, offset in ALL_READ.items() if p != empty}
    wait_for(lambda: running.committed(BACKUP, group, remote) == full, PATIENCE_S, pause_s=0.2)
    assert running.translated(OVER, group, remote) == full
    running.wait_until_equal(PRIMARY, topic, BACKUP, remote)


def test_one_way_replication_with_auto_offset_sync(
    running: Mirror, source: EmbeddedCluster, target: EmbeddedCluster
) -> None:
    """The group moves by itself and reads on the target what it has not read, no record twice."""
    topic, group = "test-auto-sync", "consumer-group-auto-sync"
    remote = f"{PRIMARY}.{topic}"
    running.make_topic(PRIMARY, topic)
    running.produce(PRIMARY, topic, "read")
    consume(source, group, topic, COUNT)
    wait_for(lambda: running.committed(BACKUP, group, remote) == ALL_READ, PATIENCE_S, pause_s=0.2)
    running.produce(PRIMARY, topic, "unread")
    unread = {f"unread-{n}".encode() for n in range(COUNT)}
    assert set(consume(target, group, remote, COUNT)) == unread


def test_offset_translation_behind_replication_flow(running: Mirror) -> None:
    """A group far behind the copy is translated exactly; its checkpoint goes on with it, and back with it."""
    topic, group = "test-behind", "consumer-group-behind"
    remote = f"{PRIMARY}.{topic}"
    running.make_topic(PRIMARY, topic)
    for number in range(20):
        running.produce(PRIMARY, topic, f"{number}")
    running.wait_until_equal(PRIMARY, topic, BACKUP, remote)
    for offset in (30, 120, 60):
        there = dict.fromkeys(range(PARTITIONS), offset)
        running.commit(PRIMARY, group, topic, there)
        wait_for(lambda wanted=there: running.translated(OVER, group, remote) == wanted)
    # The group on the target itself went forward only.
    wait_for(lambda: running.committed(BACKUP, group, remote) == dict.fromkeys(range(PARTITIONS), 120))


def test_replicate_from_latest(running: Mirror, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
    """What was there before the flow began stays behind; from its beginning on all arrives."""
    here, there = FROM_LATEST
    topic, remote = "from-latest", f"{here}.from-latest"

    def ends(cluster: EmbeddedCluster, name: str) -> dict[int, list[Seen]]:
        return {p: records[-5:] for p, records in read(cluster, name, PARTITIONS).items()}

    wait_for(lambda: remote in running.topics(there), PATIENCE_S, pause_s=0.2)
    # Nobody can tell from outside when the copy has begun.
    wait_for(lambda: running.produce(here, topic, "new") or len(ends(target, remote)) == PARTITIONS)
    running.produce(here, topic, "last")
    wait_for(lambda: ends(target, remote) == ends(source, topic), pause_s=0.3)
    copied, written = read(target, remote, PARTITIONS), read(source, topic, PARTITIONS)
    assert all(records == written[p][-len(records) :] for p, records in copied.items())
    assert b"old" not in {record.value for records in copied.values() for record in records}


def test_replication_without_offset_sync_will_not_create_offset_syncs_topic(running: Mirror) -> None:
    """Also testClusterWithEmitOffsetDisabled: no checkpoints either."""
    here, there = FROM_LATEST
    wait_for(lambda: f"{here}.from-latest" in running.topics(there), PATIENCE_S, pause_s=0.2)
    unwanted = {f"mm2-offset-syncs.{alias}.internal" for alias in FROM_LATEST} | {f"{here}.checkpoints.internal"}
    assert unwanted & (running.topics(here) | running.topics(there)) == set()


# --- with the Identity policy -----------------------------------------------------------------------------------------


def test_identity_replication(running: Mirror, target: EmbeddedCluster) -> None:
    topic = "same-name-replication"
    running.make_topic(ORIGINAL, topic, segment_ms="600000")
    running.produce(ORIGINAL, topic, "x")
    running.wait_until_equal(ORIGINAL, topic, COPY, topic)
    assert configs_of(target, topic)["segment.ms"] == ("600000", True)
    wait_for(lambda: f"{ORIGINAL}.heartbeats" in running.topics(COPY))
    client = MirrorClient({"bootstrap.servers": target.bootstrap, **IDENTITY})
    assert ORIGINAL in client.upstream_clusters()
    assert client.replication_hops(ORIGINAL) == 1
    assert topic in client.remote_topics()
    assert {name for name in running.topics(COPY) if topic in name} == {topic}


def test_one_way_replication_with_frequent_offset_syncs(
    running: Mirror, source: EmbeddedCluster, target: EmbeddedCluster
) -> None:
    topic, group = "same-name-frequent", "identity-group-frequent"
    running.make_topic(ORIGINAL, topic)
    running.produce(ORIGINAL, topic, "x")
    seen = consume(source, group, topic, 37)
    here = running.committed(ORIGINAL, group, topic)
    wait_for(lambda: running.committed(COPY, group, topic) == here, PATIENCE_S, pause_s=0.2)
    assert running.translated(SAME_NAMES, group, topic, **IDENTITY) == here
    rest = consume(target, group, topic, COUNT - len(seen))
    assert sorted([*seen, *rest]) == sorted(f"x-{n}".encode() for n in range(COUNT))


def test_offset_syncs_topics_on_target(running: Mirror) -> None:
    syncs = {f"mm2-offset-syncs.{alias}.internal" for alias in SAME_NAMES}
    wait_for(lambda: syncs & running.topics(COPY) == {f"mm2-offset-syncs.{ORIGINAL}.internal"}, PATIENCE_S, pause_s=0.2)
    assert syncs & running.topics(ORIGINAL) == set()


# --- MirrorConnectorsIntegrationTransactionsTest, ...ExactlyOnceTest, DedicatedMirrorIntegrationTest ------------------


def test_cluster_with_a_hostile_alias_and_transactions_on_both_sides(running: Mirror, source: EmbeddedCluster) -> None:
    """Exactly-once; markers and aborted records leave gaps, and a group goes on behind the last record it has read."""
    here, there = EXACTLY_ONCE
    topic, remote = "exactly-once", f"{here}.exactly-once"
    running.make_topic(here, topic)
    write_transactions(source, topic, "conformance", 5, seed=7)
    running.wait_until_equal(here, topic, there, remote)
    written = read_with_offsets(source, topic, PARTITIONS, **COMMITTED)
    copied = read_with_offsets(running.clusters[there], remote, PARTITIONS, **COMMITTED)
    assert set(written) == {0, 1}
    middle = {p: len(records) // 2 for p, records in written.items()}
    running.commit(here, "exactly-group", topic, {p: written[p][at][0] for p, at in middle.items()})
    wanted = {p: copied[p][at][0] for p, at in middle.items()}
    wait_for(lambda: running.committed(there, "exactly-group", remote) == wanted)


def test_restart_replication(running: Mirror, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
    """After a stop everything goes on: records, checkpoints, and the group on the target; exactly-once as well."""
    topic, group = "test-restart", "consumer-group-restart"
    here, there = EXACTLY_ONCE
    remote = f"{PRIMARY}.{topic}"
    running.make_topic(PRIMARY, topic)
    running.make_topic(here, "exactly-restart")
    for alias, name in ((PRIMARY, topic), (here, "exactly-restart")):
        running.produce(alias, name, "before")
    consume(source, group, topic, COUNT)
    wait_for(lambda: running.committed(BACKUP, group, remote) == ALL_READ, PATIENCE_S, pause_s=0.2)
    running.wait_until_equal(here, "exactly-restart", there, f"{here}.exactly-restart")
    running.restart(BACKUP, HOSTILE)
    for alias, name in ((PRIMARY, topic), (here, "exactly-restart")):
        running.produce(alias, name, "after")
    consume(source, group, topic, COUNT // 2)
    running.wait_until_equal(PRIMARY, topic, BACKUP, remote)
    running.wait_until_equal(here, "exactly-restart", there, f"{here}.exactly-restart")
    read_so_far = running.committed(PRIMARY, group, topic)
    wait_for(lambda: running.committed(BACKUP, group, remote) == read_so_far)
    rest = consume(target, group, remote, COUNT // 2)
    assert all(value.startswith(b"after") for value in rest)
    assert_monotonic(running, OVER, group)
