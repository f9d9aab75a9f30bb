"""More than one flow in a file: chains, fan-in, only some targets; many topics and groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.proxy import running_proxy

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.embedded.process import free_ports
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.model import CommittedOffset, TopicPartition
from heliograph.wire.records.mirror_records import decode_checkpoint, decode_heartbeat
from tests.conftest import running_cluster
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.runs.copying import wait_for
from tests.support.runs.running import Running

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    yield from running_cluster("third", tmp_path_factory.mktemp("third"))


QUICKLY = (
    "refresh.topics.interval.seconds = 1",
    "refresh.groups.interval.seconds = 1",
    "emit.checkpoints.interval.seconds = 1",
    "sync.group.offsets.enabled = true",
    "sync.group.offsets.interval.seconds = 1",
)


def file_of(folder: Path, clusters: dict[str, EmbeddedCluster], flows: list[str], *lines: str) -> Path:
    file = folder / "mm2.properties"
    text = [
        f"clusters = {', '.join(clusters)}",
        *(f"{alias}.bootstrap.servers = {cluster.bootstrap}" for alias, cluster in clusters.items()),
        *(f"{flow}.enabled = true" for flow in flows),
        *QUICKLY,
        *lines,
    ]
    file.write_text("\n".join(text) + "\n")
    return file


def topics_of(cluster: EmbeddedCluster) -> set[str]:
    admin = admin_of(cluster)
    names = set(admin.view().partition_counts)
    admin.close()
    return names


def fill(cluster: EmbeddedCluster, topic: str, who: str, partitions: int = 2) -> None:
    make_topic(cluster, topic, partitions)
    write(cluster, topic, ({"value": f"{who}-{n}".encode(), "partition": n % partitions} for n in range(1000)))


def is_equal(one: EmbeddedCluster, topic: str, other: EmbeddedCluster, remote: str) -> bool:
    return remote in topics_of(other) and read(one, topic, 2) == read(other, remote, 2)


def test_a_chain_and_a_fan_in_bring_each_record_by_every_way_once(
    source: EmbeddedCluster, target: EmbeddedCluster, third: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    """A->B->C and A->C: what A writes arrives on C as A.t and, by way of B, as B.A.t."""
    a, b, c = (f"{alias}{letter}" for letter in "abc")
    clusters = {a: source, b: target, c: third}
    fill(source, topic, "a")
    fill(target, topic, "b")
    file = file_of(tmp_path, clusters, [f"{a}->{b}", f"{b}->{c}", f"{a}->{c}"], f"topics = .*{topic}")
    with Running(file) as running:
        wait_for(lambda: is_equal(source, topic, third, f"{b}.{a}.{topic}"))
        wait_for(lambda: is_equal(source, topic, third, f"{a}.{topic}"))
        wait_for(lambda: is_equal(target, topic, third, f"{b}.{topic}"))
        wait_for(lambda: f"{b}.{a}.heartbeats" in topics_of(third))
        assert running.stop() == 0, running.output()
    mine = {name for name in topics_of(third) if name.endswith(topic)}
    assert mine == {f"{a}.{topic}", f"{b}.{topic}", f"{b}.{a}.{topic}"}
    assert {name for name in topics_of(source) if name.endswith(topic)} == {topic}


def test_a_cluster_that_is_away_holds_up_only_its_own_flows(
    source: EmbeddedCluster, target: EmbeddedCluster, third: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    a, z, c = (f"{alias}{letter}" for letter in "azc")
    fill(source, topic, "a")
    fill(target, topic, "z")
    (port,) = free_ports(1)
    lines = (f"topics = {topic}", f"{z}.bootstrap.servers = 127.0.0.1:{port}", "heliograph.connect.timeout.ms = 5000")
    file = file_of(tmp_path, {a: source, z: target, c: third}, [f"{a}->{c}", f"{z}->{c}"], *lines)
    with Running(file) as running:
        wait_for(lambda: is_equal(source, topic, third, f"{a}.{topic}"))
        wait_for(lambda: f"{z}->{c}: cannot begin: The cluster '{z}' did not answer" in running.output())
        with running_proxy(port, int(target.bootstrap.rpartition(":")[2]), 0):
            wait_for(lambda: is_equal(target, topic, third, f"{z}.{topic}"))
            assert running.stop() == 0, running.output()


def test_only_the_flows_into_the_clusters_asked_for_run(
    source: EmbeddedCluster, target: EmbeddedCluster, third: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    a, b, c = (f"{alias}{letter}" for letter in "abc")
    fill(source, topic, "a")
    file = file_of(tmp_path, {a: source, b: target, c: third}, [f"{a}->{b}", f"{a}->{c}"], f"topics = {topic}")
    with Running(file, "--clusters", c) as running:
        wait_for(lambda: is_equal(source, topic, third, f"{a}.{topic}"))
        # As Java MM2: a heartbeat for every pair into the cluster, also from clusters that send nothing.
        wait_for(lambda: beats_into(third, c) == {(a, c), (b, c)})
        assert running.stop() == 0, running.output()
    assert f"{a}.{topic}" not in topics_of(target)


def beats_into(cluster: EmbeddedCluster, alias: str) -> set[tuple[str, str]]:
    if "heartbeats" not in topics_of(cluster):
        return set()
    admin = admin_of(cluster)
    beats = [decode_heartbeat(record.key, record.value) for record in read_topic(admin, "heartbeats")]
    admin.close()
    return {(beat.source, beat.target) for beat in beats if beat and beat.target == alias}


def test_hundreds_of_topics_and_groups_are_followed(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    names = [f"{topic}-{n:03d}" for n in range(150)]
    for name in names:
        make_topic(source, name, 1)
    for name in names:
        write(source, name, ({"value": b"%d" % n, "partition": 0} for n in range(10)))
    groups = [f"{alias}-group-{n:03d}" for n in range(300)]
    admin = admin_of(source)
    asking = GroupAdmin(admin)
    for n, group in enumerate(groups):
        places = {TopicPartition(names[n % len(names)], 0): CommittedOffset(n % 10)}
        assert asking.commit(group, places) == {}
    admin.close()
    lines = (f"topics = {topic}-.*", f"groups = {alias}-.*")
    file = file_of(tmp_path, {alias: source, "target": target}, [f"{alias}->target"], *lines)
    with Running(file) as running:
        wait_for(lambda: len(checkpointed(target, alias)) == len(groups))
        wanted = {group: n % 10 for n, group in enumerate(groups)}
        wait_for(lambda: moved(target, groups) == {group: [offset] for group, offset in wanted.items()}, pause_s=0.5)
        assert running.stop() == 0, running.output()
    assert checkpointed(target, alias) == wanted


def moved(cluster: EmbeddedCluster, groups: list[str]) -> dict[str, list[int]]:
    admin = admin_of(cluster)
    found = GroupAdmin(admin).committed(groups)
    admin.close()
    return {group: [place.offset for place in places.values()] for group, places in found.items()}


def checkpointed(cluster: EmbeddedCluster, alias: str) -> dict[str, int]:
    topic = f"{alias}.checkpoints.internal"
    if topic not in topics_of(cluster):
        return {}
    admin = admin_of(cluster)
    found = [decode_checkpoint(record.key, record.value) for record in read_topic(admin, topic)]
    admin.close()
    return {checkpoint.group: checkpoint.downstream for checkpoint in found if checkpoint is not None}
