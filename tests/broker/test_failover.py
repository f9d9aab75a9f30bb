"""Groups move to the target and home again, by the commands an operator types; no record is lost or read twice."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from kafka.admin import KafkaAdminClient

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.main import cli
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.executor.contract.task_spec import SyncsSpec
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import ChangeActions, CommittedOffset, Flow, TopicPartition
from tests.broker.test_groups import member
from tests.broker.test_lost_records import delete_topic
from tests.broker.test_offset_syncs import write_transactions
from tests.support.clusters.clients import admin_of, make_topic, read, write
from tests.support.clusters.guarded import Guarded
from tests.support.runs.copying import Copy, cluster_spec, wait_for

pytestmark = pytest.mark.broker

GONE = "127.0.0.1:1"


class Site:
    """Two clusters and a flow between them, moved by hand; the commands read its file."""

    def __init__(self, folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
        self.source, self.target, self.topic, self.folder = source, target, topic, folder
        self.flow = Flow(alias, f"{alias}-backup")
        self.lines = [f"topics = {topic}.*"]
        make_topic(source, topic)
        self.copy = Copy(source, target, alias, topic)

    def file(self, *, source: str = "", target: str = "") -> Path:
        lines = [
            f"clusters = {self.flow.source}, {self.flow.target}",
            f"{self.flow.source}.bootstrap.servers = {source or self.source.bootstrap}",
            f"{self.flow.target}.bootstrap.servers = {target or self.target.bootstrap}",
            f"{self.flow}.enabled = true",
            *self.lines,
        ]
        path = self.folder / "mm2.properties"
        path.write_text("\n".join(lines))
        return path

    @property
    def syncs(self) -> SyncsSpec:
        return SyncsSpec(cluster_spec(self.flow.source, self.source), f"mm2-offset-syncs.{self.flow.target}.internal")

    def replicate(self) -> None:
        self.copy.once(syncs=self.syncs)

    def checkpoint(self) -> None:
        """What a running flow does every few seconds."""
        with closing(CheckpointSync(load(self.file().read_text(), MachineLookup()), self.flow)) as sync:
            assert [*sync.begin(), *sync.refresh_groups(), *sync.emit()] == []


@pytest.fixture
def site(tmp_path: Path, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> Site:
    site = Site(tmp_path, source, target, topic, alias)
    make_topic(source, f"mm2-offset-syncs.{site.flow.target}.internal", 1, cleanup_policy="compact")
    return site


def heliograph(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def groups_json(*arguments: object, code: int = 0) -> list[dict[str, Any]]:
    data = json.loads(heliograph(*arguments, "--json", code=code))
    groups: list[dict[str, Any]] = data["flows"][0]["groups"] if "flows" in data else data["groups"]
    return groups


def consume(cluster: EmbeddedCluster, group: str, topic: str, count: int) -> list[bytes]:
    """Read so many records as a member of the group, commit, leave."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    values: list[bytes] = []
    next_offsets: dict[int, int] = {}

    def has_read_enough() -> bool:
        message = consumer.poll(0.1) if len(values) < count else None
        if message is not None and message.error() is None:
            values.append(message.value())
            next_offsets[message.partition()] = message.offset() + 1
        return len(values) == count

    wait_for(has_read_enough)
    consumer.commit(offsets=[Place(topic, p, offset) for p, offset in next_offsets.items()], asynchronous=False)
    consumer.close()
    return values


def delete_group(cluster: EmbeddedCluster, group: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    client.delete_groups([group])
    client.close()


def offsets_on(cluster: EmbeddedCluster, group: str) -> dict[TopicPartition, int]:
    admin = admin_of(cluster)
    committed = GroupAdmin(admin).committed([group])[group]
    admin.close()
    return {tp: offset.offset for tp, offset in committed.items()}


def test_a_group_moves_over_and_home_without_loss_or_repetition(site: Site) -> None:
    write_transactions(site.source, site.topic, site.flow.source, 30, seed=21)
    site.replicate()
    everything = sorted(seen.value or b"" for records in read(site.source, site.topic, 2).values() for seen in records)
    third = len(everything) // 3
    seen = consume(site.source, site.topic, site.topic, third)
    flow = ("--flow", site.flow, "--group", site.topic)

    (plan,) = groups_json("failover", site.file(), *flow, "--dry-run")
    assert (plan["moved"], plan["records_again"]) == (True, 0)
    assert offsets_on(site.target, site.topic) == {}
    (moved,) = groups_json("failover", site.file(), *flow)
    assert (moved["moved"], moved["records_again"], moved["not_replicated"]) == (True, 0, 0)
    assert all(row["in_sync"] for row in groups_json("groups", site.file(), "--group", site.topic))
    seen += consume(site.target, site.topic, site.copy.remote, third)

    text = heliograph("failback", site.file(), *flow)
    assert "records read again: 0" in text
    seen += consume(site.source, site.topic, site.topic, len(everything) - 2 * third)
    assert sorted(seen) == everything


def test_a_group_moves_when_its_source_is_gone(site: Site) -> None:
    write(site.source, site.topic, ({"value": b"%03d" % n, "partition": n % 2} for n in range(100)))
    site.replicate()
    seen = consume(site.source, site.topic, site.topic, 20)
    site.checkpoint()
    dark = site.file(source=GONE)

    text = heliograph("groups", dark)
    assert "is unavailable, so checkpoints are used" in text
    assert "`heliograph failover` sets the offset" in text
    (moved,) = groups_json("failover", dark, "--all")
    assert (moved["group"], moved["moved"], moved["records_again"], moved["not_replicated"]) == (
        *(site.topic, True, 0),
        None,
    )
    seen += consume(site.target, site.topic, site.copy.remote, 80)
    assert sorted(seen) == [b"%03d" % n for n in range(100)]
    assert "cannot move back" in str(CliRunner().invoke(cli, ["failback", str(dark), "--all"]).exception)


def test_no_group_moves_by_a_checkpoint_of_a_topic_that_was_deleted(site: Site) -> None:
    """Source and remote topic are created again with more records, and the source no longer knows the group."""
    old, new = [{"value": b"%d" % n, "partition": 0} for n in range(30)], [{"value": b"new", "partition": 0}] * 40
    write(site.source, site.topic, old)
    site.replicate()
    consume(site.source, site.topic, site.topic, 30)
    site.checkpoint()
    flow = ("--flow", site.flow, "--group", site.topic)
    (plan,) = groups_json("failover", site.file(source=GONE), *flow, "--dry-run")
    assert [row["offset"] for row in plan["partitions"]] == [30]

    delete_group(site.source, site.topic)
    for cluster, topic in ((site.source, site.topic), (site.target, site.copy.remote)):
        delete_topic(cluster, topic)
        make_topic(cluster, topic)
    write(site.source, site.topic, new)
    site.copy.once(ChangeActions(recreated="restart"), syncs=site.syncs)
    assert [seen.value for seen in read(site.target, site.copy.remote, 2)[0]] == [b"new"] * 40

    (refused,) = groups_json("failover", site.file(), *flow, code=1)
    (row,) = refused["partitions"]
    assert (refused["moved"], row["outcome"], row["offset"]) == (False, "impossible", None)
    assert row["why"] == "its checkpoint is of an earlier topic of this name, which was deleted"
    assert offsets_on(site.target, site.topic) == {}


def test_a_group_with_members_is_refused_and_the_others_move(site: Site) -> None:
    write(site.source, site.topic, ({"value": b"v", "partition": n % 2} for n in range(10)))
    site.replicate()
    active, idle = f"{site.topic}-active", f"{site.topic}-idle"
    for group in (active, idle):
        consume(site.source, group, site.topic, 10)
    with member(site.target, active, site.copy.remote):
        text = heliograph("failover", site.file(), "--group", active, idle, code=1)
        assert "active on the target (Stable)" in heliograph("groups", site.file(), "--group", active)
    assert f"{active}: REFUSED on '{site.flow.target}': it has active members there (Stable); stop them first" in text
    assert f"{idle}: continues on '{site.flow.target}', 2 offsets set; records read again: 0" in text
    assert offsets_on(site.target, idle) == {TopicPartition(site.copy.remote, p): 5 for p in range(2)}
    assert offsets_on(site.target, active) == {}
    with member(site.source, active, site.topic):
        assert f"it still has members on '{site.flow.source}'" in heliograph(
            "failover", site.file(), "--group", active, "--dry-run"
        )


def test_groups_of_connectors_move_by_the_file_that_convert_writes(site: Site) -> None:
    """As docs/guides/failover.md says; the flow's progress is under a connector's name, which the file cannot say."""
    write(site.source, site.topic, ({"value": b"v", "partition": n % 2} for n in range(10)))
    site.replicate()
    consume(site.source, site.topic, site.topic, 10)
    site.checkpoint()
    folder = site.folder / "mm2"
    folder.mkdir()
    (folder / "worker.properties").write_text(
        f"bootstrap.servers={site.target.bootstrap}\ngroup.id=g\nconfig.storage.topic={site.topic}-configs\n"
        f"offset.storage.topic={site.topic}-offsets\nstatus.storage.topic={site.topic}-status\n"
    )
    common = {"topics": site.topic}
    for side, alias, cluster in zip(("source", "target"), site.flow, (site.source, site.target), strict=True):
        common |= {f"{side}.cluster.alias": alias, f"{side}.cluster.bootstrap.servers": cluster.bootstrap}
    for kind in ("Source", "Checkpoint"):
        config = {"connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector", **common}
        (folder / f"mm2-{kind}.json").write_text(json.dumps(config))
    file = site.folder / "converted.properties"
    heliograph("convert", folder, "--to", "properties", "--output", file)
    rows = groups_json("groups", file, "--group", site.topic)
    assert [(row["source_offset"], row["translated_offset"]) for row in rows] == [(5, 5), (5, 5)]
    (moved,) = groups_json("failover", file, "--group", site.topic)
    assert (moved["moved"], moved["records_again"], moved["not_replicated"]) == (True, 0, None)


def test_groups_says_why_a_group_is_not_in_sync(site: Site) -> None:
    write(site.source, site.topic, ({"value": b"v", "partition": n % 2} for n in range(10)))
    site.replicate()
    write(site.source, site.topic, ({"value": b"v", "partition": 0} for n in range(5)))
    other = f"not-{site.topic}"
    make_topic(site.source, other, 1)
    admin = admin_of(site.source)
    offsets = {TopicPartition(site.topic, 0): 8, TopicPartition(site.topic, 1): 5, TopicPartition(other, 0): 0}
    GroupAdmin(admin).commit(site.topic, {tp: CommittedOffset(offset) for tp, offset in offsets.items()})
    admin.close()
    rows = {(row["topic"], row["partition"]): row for row in groups_json("groups", site.file(), "--group", site.topic)}
    behind, unchecked, excluded = rows[site.topic, 0], rows[site.topic, 1], rows[other, 0]
    assert behind["why_not"] == "replication is 3 offsets behind the group"
    assert (behind["source_offset"], behind["source_lag"], behind["translated_offset"]) == (8, 2, 5)
    assert unchecked["why_not"] == "no checkpoint yet"
    assert excluded["why_not"] == "the topic is not replicated: no pattern in topics matches it"
    moved = heliograph("failover", site.file(), "--group", site.topic)
    assert f"left behind: {other}-0, which no flow copies" in moved
    assert "not replicated yet: 5" in moved
    site.lines.append("groups.exclude = topic.*")
    assert "groups.exclude matches it" in heliograph("groups", site.file(), "--group", site.topic)


def test_what_was_first_written_on_the_target_comes_home_by_the_flow_the_other_way(site: Site) -> None:
    own, reverse = f"{site.topic}-own", Flow(site.flow.target, site.flow.source)
    site.lines.append(f"{reverse}.enabled = true")
    make_topic(site.target, own)
    make_topic(site.target, f"mm2-offset-syncs.{reverse.target}.internal", 1, cleanup_policy="compact")
    write(site.target, own, ({"value": b"v", "partition": n % 2} for n in range(10)))
    back = Copy(site.target, site.source, reverse.source, own)
    spec = SyncsSpec(cluster_spec(reverse.source, site.target), f"mm2-offset-syncs.{reverse.target}.internal")
    back.once(syncs=spec)
    write(site.source, site.topic, ({"value": b"v", "partition": n % 2} for n in range(6)))
    site.replicate()
    group = site.topic
    admin = admin_of(site.target)
    places = {TopicPartition(own, 0): CommittedOffset(4), TopicPartition(site.copy.remote, 1): CommittedOffset(2)}
    GroupAdmin(admin).commit(group, places)
    admin.close()
    (moved,) = groups_json("failback", site.file(), "--flow", site.flow, "--group", group)
    assert (moved["moved"], moved["records_again"], moved["not_replicated"]) == (True, 0, 0)
    assert offsets_on(site.source, group) == {TopicPartition(back.remote, 0): 4, TopicPartition(site.topic, 1): 2}


def test_a_forbidden_group_is_named_and_the_others_move(
    here: Guarded, there: Guarded, tmp_path: Path, topic: str, alias: str
) -> None:
    """On the target a user may use one group of two."""
    site = Site(tmp_path, here.cluster, there.cluster, topic, alias)
    make_topic(site.source, f"mm2-offset-syncs.{site.flow.target}.internal", 1, cleanup_policy="compact")
    write(site.source, topic, ({"value": b"v", "partition": n % 2} for n in range(10)))
    site.replicate()
    ours, others = f"{topic}-ours", f"{topic}-others"
    admin = admin_of(site.source)
    for group in (ours, others):
        assert GroupAdmin(admin).commit(group, {TopicPartition(topic, 0): CommittedOffset(3)}) == {}
    admin.close()
    user = "reader-of-one-group"
    site.lines += [f"groups = {topic}-.*", *there.client_lines(site.flow.target, user)]
    may_read = {"operation": "READ", "pattern_type": "LITERAL"}
    topics = {"resource_type": "TOPIC", "resource_name": f"{alias}.", "operation": "READ", "pattern_type": "PREFIXED"}
    source_offsets = {**may_read, "resource_type": "TOPIC", "resource_name": f"mm2-offsets.{alias}.internal"}
    group_acl = {**may_read, "resource_type": "GROUP", "resource_name": ours}
    there.grant_printed(f"User:{user}", [topics, source_offsets, group_acl])

    why = f"'{site.flow.target}' does not let us use the group '{others}'; the principal needs"
    shown = heliograph("groups", site.file(), code=1)
    assert f"forbidden: {others}: {why} DESCRIBE on it." in shown
    assert f"  {ours} " in shown
    moved = heliograph("failover", site.file(), "--all", code=1)
    assert f"{others}: REFUSED on '{site.flow.target}': {why} READ on it." in moved
    assert f"{ours}: continues on '{site.flow.target}', 1 offset set" in moved
    assert offsets_on(there.cluster, ours) == {TopicPartition(site.copy.remote, 0): 3}
    assert offsets_on(there.cluster, others) == {}


def test_translate_needs_the_target_only(site: Site) -> None:
    write(site.source, site.topic, ({"value": b"v", "partition": n % 2} for n in range(10)))
    site.replicate()
    consume(site.source, site.topic, site.topic, 10)
    site.checkpoint()
    asked = ("translate", "--bootstrap", site.target.bootstrap, "--source", site.flow.source, "--group")
    (group,) = groups_json(*asked, site.topic)
    assert [(row["topic"], row["partition"], row["offset"]) for row in group["offsets"]] == [
        (site.copy.remote, 0, 5),
        (site.copy.remote, 1, 5),
    ]
    assert f"the group 'nobody' has no checkpoint from '{site.flow.source}'" in heliograph(*asked, "nobody", code=1)
    elsewhere = ("translate", "--bootstrap", site.target.bootstrap, "--source", "elsewhere", "--all")
    assert "there is no topic elsewhere.checkpoints.internal" in heliograph(*elsewhere, code=1)
