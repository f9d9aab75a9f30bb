"""Two clusters with an authorizer: ACLs follow, only differences are written, and each missing permission is named."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.main import cli
from heliograph.config.resolve.settings import Settings
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.clusters.internal_topic_creation import create_internal_topic, create_offsets_topic
from heliograph.driver.flow.acl_sync import AclSync
from heliograph.driver.flow.config_sync import ConfigSync
from heliograph.driver.flow.topic_sync import TopicSync
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import BrokerError, ClusterError
from heliograph.kafka.admin.acl_admin import add_acls, topic_acls
from heliograph.kafka.admin.admin import Admin, alter_topic_configs
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.kafka.security.connection_spec import Security
from heliograph.kafka.topics.topic_reader import read_topic
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.model import (
    AclBinding,
    AddPartitions,
    Address,
    AlterConfigs,
    Checkpoint,
    CommittedOffset,
    ConfigChange,
    CreateTopic,
    Flow,
    GroupType,
    TopicPartition,
)
from heliograph.wire.records.mirror_records import encode_checkpoint
from tests.support.clusters.clients import admin_of, make_topic, write
from tests.support.clusters.guarded import PASSWORD, Guarded, guarded_cluster
from tests.support.runs.running import write_file

pytestmark = pytest.mark.broker

NOWHERE = Admin("nowhere", (Address("127.0.0.1", 1),), Security(), "test", timeout_s=1)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_cluster("here", tmp_path_factory.mktemp("here"), ("mirror",)) as guarded:
        yield guarded


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_cluster("there", tmp_path_factory.mktemp("there"), ("mirror", "sharing")) as guarded:
        yield guarded


def settings_of(alias: str, topics: str, **more: str) -> Settings:
    base = {"source.cluster.alias": alias, "target.cluster.alias": "B", "topics": topics}
    return Settings(base | {key.replace("_", "."): value for key, value in more.items()})


def acl(topic: str, operation: str, permission: str = "ALLOW", user: str = "alice", **more: str) -> AclBinding:
    return AclBinding(topic, f"User:{user}", "*", operation, permission, **more)


def eventually(ask: Callable[[], bool]) -> None:
    """A controller's answer comes before every broker knows."""
    deadline = time.monotonic() + 120
    while not ask():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_acls_follow_their_topics_and_nothing_is_deleted(
    here: Guarded, there: Guarded, topic: str, alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    granted = (
        acl(topic, "ALL"),
        acl(topic, "WRITE", user="bob"),
        acl(topic, "WRITE", "DENY", user="carol"),
        acl("*", "READ", user="dave"),
        acl(topic, "READ", user="erin", pattern="PREFIXED"),
        acl("other", "READ"),
    )
    here.grant(*granted)
    kept = acl(f"{alias}.{topic}", "DESCRIBE", user="frank")
    there.grant(kept)
    wanted = {acl(f"{alias}.{topic}", "READ"), acl(f"{alias}.{topic}", "WRITE", "DENY", user="carol"), kept}
    sync = AclSync(TopicRules.of(settings_of(alias, topic)), here.admin(), there.admin())
    assert sync.sync() == ()
    eventually(lambda: {found for found in topic_acls(there.admin()) if topic in found.topic} == wanted)
    assert not any(found.topic == f"{alias}.*" for found in topic_acls(there.admin()))
    assert [m for m in caplog.messages if "is skipped: it is for every topic" in m]
    caplog.clear()
    assert sync.plan().plan.adds == ()
    assert sync.sync() == ()
    assert caplog.messages == [], "the second round writes nothing and says nothing"


def test_no_broker_acl_authorizer(source: EmbeddedCluster, alias: str, caplog: pytest.LogCaptureFixture) -> None:
    """MirrorSourceConnectorTest.testNoBrokerAclAuthorizer: told once, and the target is never asked."""
    caplog.set_level(logging.INFO)
    sync = AclSync(TopicRules.of(settings_of(alias, ".*")), admin_of(source), NOWHERE)
    for _round in range(3):
        assert sync.sync() == ()
    (reported,) = caplog.records
    assert reported.levelno == logging.INFO
    assert "has no authorizer; ACLs are not synced" in reported.message


def test_a_target_without_authorizer_is_told_once_too(
    here: Guarded, target: EmbeddedCluster, topic: str, alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    here.grant(acl(topic, "READ"))
    caplog.set_level(logging.INFO)
    sync = AclSync(TopicRules.of(settings_of(alias, topic)), here.admin(), admin_of(target))
    for _round in range(2):
        assert sync.sync() == ()
    assert len([m for m in caplog.messages if "no authorizer" in m]) == 1


def test_a_missing_permission_for_acls_is_named(here: Guarded, there: Guarded, topic: str, alias: str) -> None:
    here.grant(acl(topic, "READ"))
    blind = AclSync(TopicRules.of(settings_of(alias, topic)), here.admin_as("mirror", "A"), there.admin())
    with pytest.raises(
        BrokerError, match=r"'A' refused to list its ACLs.*needs DESCRIBE on the cluster.*sync.topic.acls"
    ):
        blind.sync()
    with pytest.raises(BrokerError, match=r"'B' refused to list its ACLs.*needs ALTER on the cluster, which includes"):
        AclSync(TopicRules.of(settings_of(alias, topic)), here.admin(), there.admin_as("mirror", "B")).sync()


def test_a_missing_permission_to_add_acls_is_named(there: Guarded, topic: str) -> None:
    refused = add_acls(there.admin_as("mirror"), [acl(topic, "READ")])
    assert "the principal needs ALTER on the cluster" in str(refused[acl(topic, "READ")])


def test_missing_permissions_for_topics_are_named(here: Guarded, there: Guarded, topic: str, alias: str) -> None:
    make_topic(here.cluster, topic, 2)
    sync = TopicSync(
        settings_of(alias, topic),
        TopicRules.of(settings_of(alias, topic)),
        here.admin("A"),
        there.admin_as("mirror", "B"),
    )
    (issue,) = sync.sync().issues
    assert issue.startswith(f"The topics {alias}.{topic} cannot be created on 'B': TOPIC_AUTHORIZATION_FAILED")
    assert issue.endswith("the principal needs CREATE on the topic or on the cluster")
    with pytest.raises(BrokerError, match=r"mm2-offsets.*cannot be created on 'B'.*needs CREATE on the topic"):
        create_offsets_topic(there.admin_as("mirror", "B"), settings_of(alias, topic))
    make_topic(there.cluster, f"{alias}.{topic}", 1)
    there.grant(acl(f"{alias}.{topic}", "DESCRIBE", user="mirror"))
    weak = there.admin_as("mirror", "B")
    eventually(lambda: f"{alias}.{topic}" in weak.view([f"{alias}.{topic}"]).partition_counts)
    refused = weak.add_partitions([AddPartitions(f"{alias}.{topic}", 2)])
    assert "the principal needs ALTER on the topic" in str(refused[f"{alias}.{topic}"])


def test_missing_describe_configs_acl(here: Guarded, there: Guarded, topic: str, alias: str) -> None:
    """MirrorSourceConnectorTest.testMissingDescribeConfigsAcl: the sentence names the operation and the cluster."""
    make_topic(here.cluster, topic, 1)
    here.grant(acl(topic, "DESCRIBE", user="mirror"))
    blind = here.admin_as("mirror", "A")
    eventually(lambda: topic in blind.view().partition_counts)
    replicated = TopicSync(
        settings_of(alias, topic), TopicRules.of(settings_of(alias, topic)), blind, there.admin()
    ).sync()
    assert replicated.partitions == ()
    (issue,) = replicated.issues
    assert issue.startswith(f"The configs of {topic} on 'A' cannot be read: TOPIC_AUTHORIZATION_FAILED")
    assert issue.endswith("needs DESCRIBE_CONFIGS on the topic")
    make_topic(there.cluster, f"{alias}.{topic}", 1)
    (issue,) = ConfigSync(TopicRules.of(settings_of(alias, topic)), blind, there.admin()).sync()
    assert "needs DESCRIBE_CONFIGS on the topic" in issue
    with pytest.raises(BrokerError, match=f"topic {topic}: .*needs DESCRIBE_CONFIGS"):
        blind.topic_configs([topic])


def test_read_checkpoints_topic_error(here: Guarded, there: Guarded, alias: str) -> None:
    """CheckpointStoreTest.testReadCheckpointsTopicError: Java goes on as if there were no checkpoints; we say so."""
    topic, flow = f"{alias}.checkpoints.internal", Flow(alias, "B")
    make_topic(there.cluster, topic, 1, cleanup_policy="compact")
    key, value = encode_checkpoint(Checkpoint("g", TopicPartition(f"{alias}.t", 0), 1, 1))
    write(there.cluster, topic, [{"key": key, "value": value, "partition": 0}])
    there.grant(acl(topic, "WRITE", user="mirror"))
    lines = [
        f"clusters={alias},B",
        f"{alias}.bootstrap.servers={here.cluster.bootstrap}",
        *there.client_lines("B", "mirror"),
        f"{flow}.enabled=true",
    ]
    with closing(CheckpointSync(load("\n".join(lines), MachineLookup()), flow)) as sync:
        with pytest.raises(ClusterError, match=rf"let us read {topic}-0 at 0: .*The principal needs READ on it"):
            sync.begin()
        there.grant(acl(topic, "READ", user="mirror"))
        eventually(lambda: _begins(sync))


def _begins(sync: CheckpointSync) -> bool:
    try:
        return sync.begin() == ()
    except ClusterError:
        return False


def test_a_missing_permission_to_alter_configs_is_named(there: Guarded, topic: str) -> None:
    make_topic(there.cluster, topic, 1)
    alter = AlterConfigs(topic, (ConfigChange("retention.ms", None, "1"),))
    refused = alter_topic_configs(there.admin_as("mirror"), [alter])
    assert "the principal needs ALTER_CONFIGS on the topic" in str(refused[topic])


def test_an_internal_topic_made_for_us_is_used(there: Guarded, topic: str) -> None:
    make_topic(there.cluster, topic, 3)
    there.grant(acl(topic, "DESCRIBE", user="mirror"))
    weak = there.admin_as("mirror")
    eventually(lambda: topic in weak.view([topic]).partition_counts)
    assert create_internal_topic(weak, CreateTopic(topic, 25, 1, ()), is_explicit_factor=False).partition_count == 3


def plan_of(file: Path, *options: str) -> tuple[int, str]:
    ended = CliRunner().invoke(cli, ["plan", str(file), *options])
    return ended.exit_code, ended.output


def test_a_plan_shows_acls_and_what_is_not_permitted(
    here: Guarded, there: Guarded, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(here.cluster, topic, 1)
    here.grant(acl(topic, "ALL"), acl(topic, "WRITE"))
    file = write_file(tmp_path, here.cluster, there.cluster, alias, topic)
    code, reported = plan_of(file, "--topic", topic)
    assert code == 0, reported
    assert f"  add ACL  ALLOW READ on {alias}.{topic} to User:alice from *\n" in reported
    left_out = f"The ACL ALLOW WRITE on {topic} to User:alice from * is skipped: only the replication writes"
    assert left_out in reported
    file.write_text(file.read_text() + "\n".join(here.client_lines(alias, "mirror")) + "\n")
    code, reported = plan_of(file, "--topic", topic)
    assert code == 1
    assert f"  skip     {topic}: '{alias}' does not show it; the principal needs DESCRIBE on the topic\n" in reported
    assert f"  issue    The cluster '{alias}' refused to list its ACLs" in reported
    assert PASSWORD not in reported


def test_missing_permissions_for_groups_are_named(there: Guarded, topic: str) -> None:
    make_topic(there.cluster, topic, 1)
    place = {TopicPartition(topic, 0): CommittedOffset(0)}
    assert GroupAdmin(there.admin()).commit(topic, place) == {}
    mirror = GroupAdmin(there.admin_as("mirror", "B"))
    assert topic not in mirror.list_groups()
    for look in (mirror.committed, mirror.states):
        with pytest.raises(BrokerError, match=f"'B' does not let us use the group '{topic}'.*needs DESCRIBE on it"):
            look([topic])
    with pytest.raises(BrokerError, match=f"'B' does not let us use the group '{topic}'; the principal needs READ on"):
        mirror.commit(topic, place)


def test_share_groups_need_the_permissions_of_consumer_groups(there: Guarded, topic: str) -> None:
    """DESCRIBE on the group and the topic to look, READ on both to move: `heliograph acls` prints no others."""
    make_topic(there.cluster, topic, 1)
    tp, user, share = TopicPartition(topic, 0), "sharing", {topic: GroupType.SHARE}
    owner = GroupAdmin(there.admin())  # whose coordinator may learn of the topic after its leaders are known
    eventually(lambda: owner.set_offsets(topic, GroupType.SHARE, {tp: CommittedOffset(0)}) == {})
    admin = there.admin_as(user, "B")
    mirror = GroupAdmin(admin)

    def grant(operation: str, *kinds: str) -> None:
        each = {"resource_name": topic, "operation": operation, "pattern_type": "LITERAL"}
        there.grant_printed(f"User:{user}", [{**each, "resource_type": kind} for kind in kinds])

    def set_to(offset: int) -> dict[TopicPartition, str]:
        return mirror.set_offsets(topic, GroupType.SHARE, {tp: CommittedOffset(offset)})

    with pytest.raises(BrokerError, match=f"'B' does not let us use the group '{topic}'.*needs DESCRIBE on it"):
        mirror.offsets_of([topic], share).of_all()
    grant("DESCRIBE", "GROUP", "TOPIC")
    eventually(lambda: mirror.offsets_of([topic], share).of == {topic: {tp: CommittedOffset(0)}})
    assert mirror.groups_answered().types == {topic: GroupType.SHARE}
    with pytest.raises(BrokerError, match=f"'B' does not let us use the group '{topic}'; the principal needs READ on"):
        set_to(1)
    grant("READ", "GROUP")
    refused = {tp: f"the principal needs READ on the topic {topic}"}
    eventually(lambda: _refused_or(set_to, 1) == refused)
    grant("READ", "TOPIC")
    eventually(lambda: set_to(1) == {})
    assert mirror.offsets_of([topic], share).of == {topic: {tp: CommittedOffset(1)}}
    admin.close()


def _refused_or(set_to: Callable[[int], dict[TopicPartition, str]], offset: int) -> object:
    try:
        return set_to(offset)
    except BrokerError as error:
        return str(error)


def test_a_topic_of_ours_that_is_hidden_does_not_look_missing(there: Guarded, topic: str) -> None:
    make_topic(there.cluster, topic, 1)
    with pytest.raises(BrokerError, match=f"'B' does not show us {topic}; the principal needs DESCRIBE and READ on it"):
        list(read_topic(there.admin_as("mirror", "B"), topic))
