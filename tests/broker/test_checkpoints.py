"""Groups are followed, checkpoints written and groups on the target moved, between real clusters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_spec import SyncsSpec
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.groups.group_view import report_groups
from heliograph.model import Checkpoint, CommittedOffset, Flow, TopicPartition
from heliograph.operations.flow_groups import FlowGroups
from heliograph.wire.records.mirror_records import decode_checkpoint
from tests.broker.test_copy import delete_before
from tests.broker.test_groups import member
from tests.broker.test_offset_syncs import write_transactions
from tests.support.clusters.clients import admin_of, make_topic, read_with_offsets, write
from tests.support.runs.copying import Copy, cluster_spec, wait_for

pytestmark = pytest.mark.broker


class Lab:
    """A flow whose parts a test moves by hand: copy a bit, commit a bit, emit a bit."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
        self.source, self.target, self.topic, self.alias = source, target, topic, alias
        self.flow = Flow(alias, f"{alias}-target")
        self.remote = f"{alias}.{topic}"
        self.lines = ["groups = .*", f"topics = {topic}"]
        make_topic(source, topic)
        self.copy = Copy(source, target, alias, topic)

    @property
    def syncs_topic(self) -> str:
        return f"mm2-offset-syncs.{self.flow.target}.internal"

    def config_text(self) -> str:
        return "\n".join(
            [
                f"clusters = {self.alias}, {self.flow.target}",
                f"{self.alias}.bootstrap.servers = {self.source.bootstrap}",
                f"{self.flow.target}.bootstrap.servers = {self.target.bootstrap}",
                f"{self.flow}.enabled = true",
                *self.lines,
            ]
        )

    def checkpoint_sync(self) -> CheckpointSync:
        sync = CheckpointSync(load(self.config_text(), MachineLookup()), self.flow)
        assert list(sync.begin()) == []
        return sync

    def replicate(self) -> None:
        self.copy.once(syncs=SyncsSpec(cluster_spec(self.alias, self.source), self.syncs_topic))

    def replicate_anew(self, source_start: int) -> None:
        """The remote topic is deleted, and so is its progress; meanwhile the source has lost its first records."""
        from kafka.admin import KafkaAdminClient

        delete_before(self.source, self.topic, source_start)
        client = KafkaAdminClient(bootstrap_servers=self.target.bootstrap)
        client.delete_topics([self.remote])
        client.close()
        wait_for(lambda: self.remote not in admin_of(self.target).view().partition_counts)
        make_topic(self.target, self.remote)
        forgotten = tuple(replace(part, source_offsets=None, is_reset=True) for part in self.copy.spec().partitions)
        self.copy.once(syncs=SyncsSpec(cluster_spec(self.alias, self.source), self.syncs_topic), partitions=forgotten)

    def commit(self, group: str, offsets: Mapping[int, int], *, on_target: bool = False) -> None:
        admin = admin_of(self.target if on_target else self.source)
        topic = self.remote if on_target else self.topic
        places = {TopicPartition(topic, p): CommittedOffset(offset, "note") for p, offset in offsets.items()}
        assert GroupAdmin(admin).commit(group, places) == {}
        admin.close()

    def on_target(self, group: str) -> dict[int, int]:
        admin = admin_of(self.target)
        committed = GroupAdmin(admin).committed([group])[group]
        admin.close()
        return {tp.partition: place.offset for tp, place in committed.items() if tp.topic == self.remote}

    def checkpoints(self) -> list[Checkpoint]:
        admin = admin_of(self.target)
        found = [decode_checkpoint(r.key, r.value) for r in read_topic(admin, f"{self.alias}.checkpoints.internal")]
        admin.close()
        assert None not in found
        return [checkpoint for checkpoint in found if checkpoint is not None]

    def write(self, count: int) -> None:
        write(self.source, self.topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(count)))


@pytest.fixture
def lab(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> Lab:
    return Lab(source, target, topic, alias)


@pytest.fixture
def begun(lab: Lab) -> Iterator[Callable[[], CheckpointSync]]:
    """Begins the checkpoint work of the lab, as often as a test wants."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(lab.checkpoint_sync()))


def round_of(sync: CheckpointSync) -> None:
    assert list(sync.refresh_groups()) == []
    assert list(sync.emit()) == []


def test_a_group_is_translated_exactly_over_transactions(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    write_transactions(lab.source, lab.topic, lab.alias, 30, seed=11)
    sync = begun()
    lab.replicate()
    committed = {"isolation.level": "read_committed"}
    written = read_with_offsets(lab.source, lab.topic, 2, **committed)
    copied = read_with_offsets(lab.target, lab.remote, 2, **committed)
    middle = {p: len(records) // 2 for p, records in written.items()}
    lab.commit("readers", {p: written[p][at][0] for p, at in middle.items()})
    round_of(sync)
    assert sorted(lab.checkpoints()) == [
        Checkpoint("readers", TopicPartition(lab.remote, p), written[p][at][0], copied[p][at][0], "note")
        for p, at in sorted(middle.items())
    ]


def test_checkpoints_are_written_only_where_they_go_on_or_the_group_goes_back(
    lab: Lab, begun: Callable[[], CheckpointSync]
) -> None:
    lab.write(200)
    sync = begun()
    lab.replicate()
    for offset, written in ((40, 1), (40, 1), (60, 2), (30, 3), (100, 4)):
        lab.commit("readers", {0: offset})
        round_of(sync)
        assert [c.downstream for c in lab.checkpoints()][-1] == offset
        assert len(lab.checkpoints()) == written


def test_a_group_ahead_of_replication_is_moved_as_far_as_there_are_records(
    lab: Lab, begun: Callable[[], CheckpointSync]
) -> None:
    lab.write(100)
    sync = begun()
    lab.replicate()
    lab.write(100)
    lab.commit("readers", {0: 80})
    round_of(sync)
    assert [(c.upstream, c.downstream) for c in lab.checkpoints()] == [(80, 50)]
    lab.replicate()
    round_of(sync)
    assert [(c.upstream, c.downstream) for c in lab.checkpoints()] == [(80, 50), (80, 80)]


def test_a_restart_goes_on_from_the_checkpoints_that_are_there(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    lab.write(200)
    first = begun()
    lab.replicate()
    lab.commit("readers", {0: 70, 1: 70})
    round_of(first)
    second = begun()
    round_of(second)
    assert len(lab.checkpoints()) == 2
    lab.commit("readers", {0: 71})
    round_of(second)
    assert [(c.tp.partition, c.downstream) for c in lab.checkpoints()][2:] == [(0, 71)]


def test_checkpoints_follow_a_remote_topic_that_is_replicated_again(
    lab: Lab, begun: Callable[[], CheckpointSync]
) -> None:
    """Of the old copy they would lead past unread records of the new one, also for whoever starts only then."""
    lab.write(200)
    first = begun()
    lab.replicate()
    lab.commit("readers", {0: 90, 1: 30})
    round_of(first)
    lab.replicate_anew(50)
    second = begun()
    for sync in (first, second):
        lab.commit("readers", {0: 95, 1: 30})
        round_of(sync)
        last = {c.tp.partition: (c.upstream, c.downstream) for c in lab.checkpoints()}
        assert last == {0: (95, 45), 1: (30, 0)}


def test_no_checkpoints_if_no_records_are_mirrored(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    lab.write(100)
    sync = begun()
    lab.commit("readers", {0: 10})
    round_of(sync)
    assert lab.checkpoints() == []


def test_only_groups_that_the_filters_take_are_followed(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    lab.lines = [f"topics = {lab.topic}", f"groups = {lab.alias}-.*", "groups.exclude = .*-left-out"]
    make_topic(lab.source, f"other-{lab.topic}")
    other = TopicPartition(f"other-{lab.topic}", 0)
    for name in ("in", "left-out"):
        lab.commit(f"{lab.alias}-{name}", {0: 1})
    lab.commit("stranger", {0: 1})
    admin = admin_of(lab.source)
    assert GroupAdmin(admin).commit(f"{lab.alias}-elsewhere", {other: CommittedOffset(1)}) == {}
    admin.close()
    sync = begun()
    sync.refresh_groups()
    assert sync.groups == (f"{lab.alias}-in",)


def test_offset_syncs_topic_on_the_target(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    lab.lines.append("offset-syncs.topic.location = target")
    lab.write(100)
    sync = begun()
    lab.copy.once(syncs=SyncsSpec(cluster_spec("t", lab.target), f"mm2-offset-syncs.{lab.alias}.internal"))
    lab.commit("readers", {0: 20})
    round_of(sync)
    assert [(c.upstream, c.downstream) for c in lab.checkpoints()] == [(20, 20)]


def test_a_group_on_the_target_is_left_to_its_consumers_once_they_commit(
    lab: Lab, begun: Callable[[], CheckpointSync]
) -> None:
    lab.write(200)
    sync = begun()
    lab.replicate()
    group = f"{lab.alias}-group"
    lab.commit(group, {0: 40, 1: 50})
    round_of(sync)
    assert list(sync.sync_groups()) == []
    assert lab.on_target(group) == {0: 40, 1: 50}
    lab.commit(group, {0: 90}, on_target=True)  # somebody worked there
    lab.commit(group, {0: 60, 1: 60})
    round_of(sync)
    assert list(sync.sync_groups()) == []
    assert lab.on_target(group) == {0: 90, 1: 50}


def test_a_group_in_use_on_the_target_is_left_alone(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    lab.write(200)
    sync = begun()
    lab.replicate()
    group = f"{lab.alias}-group"
    lab.commit(group, {0: 40})
    round_of(sync)
    with member(lab.target, group, lab.remote):
        assert list(sync.sync_groups()) == []
        assert lab.on_target(group) == {}
    assert list(sync.sync_groups()) == []
    assert lab.on_target(group) == {0: 40}


def test_a_group_deleted_at_the_source_does_not_haunt_the_target(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    from kafka.admin import KafkaAdminClient

    lab.write(100)
    sync = begun()
    lab.replicate()
    group = f"{lab.alias}-group"
    lab.commit(group, {0: 40})
    round_of(sync)
    client = KafkaAdminClient(bootstrap_servers=lab.source.bootstrap)
    client.delete_groups([group])
    client.close()
    round_of(sync)
    assert list(sync.sync_groups()) == []
    assert sync.groups == ()
    assert lab.on_target(group) == {}


def test_metrics_of_groups_are_what_the_report_of_groups_says(lab: Lab, begun: Callable[[], CheckpointSync]) -> None:
    """`heliograph groups` reads the clusters anew; the connector publishes what its step has read and written."""
    lab.write(200)
    sync = begun()
    lab.replicate()
    lab.write(60)  # not copied yet
    lab.commit("behind", {0: 40, 1: 100})
    lab.commit("ahead", {0: 125})
    before = time.time()
    round_of(sync)
    found = sync.status.snapshot("name", "connector")
    assert [(each.group, each.read_again) for each in found.groups] == [("ahead", 25), ("behind", 0)]
    with FlowGroups(load(lab.config_text(), MachineLookup()), lab.flow) as clusters:
        rows = report_groups(clusters.view(["ahead", "behind"]), follows_groups=False)
    reported = {(row.group, row.tp): (row.source_offset, row.checkpoint_offset, row.again) for row in rows}
    assert reported == {
        (each.group, partition.tp): (partition.committed, partition.translated, partition.read_again)
        for each in found.groups
        for partition in each.partitions
    }
    assert found.written == 3
    assert found.passed_at is not None
    assert found.written_at is not None
    assert before <= found.written_at <= found.passed_at <= time.time()
    latencies = [partition.latency_ms for each in found.groups for partition in each.partitions]
    assert all(latency is not None and 0 < latency.last < 60_000 for latency in latencies)
    lab.replicate()
    round_of(sync)
    assert [each.read_again for each in sync.status.snapshot("name", "connector").groups] == [0, 0]
    assert [each.lag_seconds for each in sync.status.snapshot("name", "connector").groups] == [0, 0]
