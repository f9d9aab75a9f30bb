"""Configs of remote topics on real brokers: they follow, only differences are written, one refusal harms no other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.config.resolve.settings import Settings
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.config_sync import ConfigSync
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.flow.topic_sync import TopicSync
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.admin.admin import alter_topic_configs
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.model import AlterConfigs, ConfigChange, Flow
from tests.support.clusters.clients import admin_of, make_topic

pytestmark = pytest.mark.broker

WEEK_MS = "604800000"


def settings_of(alias: str, topic: str, **more: str) -> Settings:
    base = {"source.cluster.alias": alias, "target.cluster.alias": "target", "topics": topic}
    return Settings(base | {key.replace("_", "."): value for key, value in more.items()})


def config_sync(settings: Settings, source: EmbeddedCluster, target: EmbeddedCluster) -> ConfigSync:
    return ConfigSync(TopicRules.of(settings), admin_of(source), admin_of(target))


def set_configs(cluster: EmbeddedCluster, topic: str, **values: str | None) -> None:
    """Set configs of a topic; None removes one."""
    changes = tuple(ConfigChange(name.replace("_", "."), None, value) for name, value in values.items())
    admin = admin_of(cluster)
    assert alter_topic_configs(admin, [AlterConfigs(topic, changes)]) == {}
    admin.close()
    for name, _old, new in changes:  # the controller answers before the broker's own view has the change
        wait_until(lambda name=name, new=new: is_set(configs_of(cluster, topic)[name], new))


def is_set(found: tuple[str | None, bool], wanted: str | None) -> bool:
    value, is_own = found
    return (value == wanted and is_own) if wanted is not None else not is_own


def configs_of(cluster: EmbeddedCluster, topic: str) -> dict[str, tuple[str | None, bool]]:
    """Values, and whether they were set on the topic itself."""
    admin = admin_of(cluster)
    found = {entry.name: (entry.value, entry.is_topic_config) for entry in admin.topic_configs([topic])[topic]}
    admin.close()
    return found


def wait_until(ask: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not ask():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_for_config(cluster: EmbeddedCluster, topic: str, name: str, wanted: tuple[str, bool]) -> None:
    wait_until(lambda: configs_of(cluster, topic)[name] == wanted)


def test_sync_topic_configs(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Integration test testSyncTopicConfigs: set, changed, back to the default; excluded ones stay the target's."""
    caplog.set_level(logging.INFO)
    remote = f"{alias}.{topic}"
    settings = settings_of(alias, topic, config_properties_exclude="delete\\.retention\\..*")
    make_topic(source, topic, 1, segment_bytes="2000000", delete_retention_ms="1000", retention_bytes="5")
    TopicSync(settings, TopicRules.of(settings), admin_of(source), admin_of(target)).sync()
    assert configs_of(target, remote)["retention.bytes"] == ("5", True)
    set_configs(target, remote, delete_retention_ms="2000", segment_ms="60000")
    set_configs(source, topic, retention_bytes="1000", segment_bytes=None)
    sync = config_sync(settings, source, target)
    caplog.clear()
    assert sync.sync() == ()
    wait_for_config(target, remote, "retention.bytes", ("1000", True))
    wait_for_config(target, remote, "segment.ms", (WEEK_MS, False))
    found = configs_of(target, remote)
    assert found["segment.bytes"] == ("1073741824", False)
    assert found["delete.retention.ms"] == ("2000", True), "excluded: the target's own value stays"
    assert len([m for m in caplog.messages if remote in m]) == 3
    caplog.clear()
    assert sync.sync() == ()
    assert caplog.messages == [], "the second round finds nothing to alter"


def test_replicate_source_default(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
    """Integration test testReplicateSourceDefault."""
    remote = f"{alias}.{topic}"
    make_topic(source, topic, 1)
    make_topic(target, remote, 1, segment_ms="60000", retention_bytes="7")
    settings = settings_of(alias, topic, use_defaults_from="source", config_properties_exclude="retention.bytes")
    assert config_sync(settings, source, target).sync() == ()
    wait_for_config(target, remote, "segment.ms", (WEEK_MS, True))
    assert configs_of(target, remote)["retention.bytes"] == ("7", True)


def test_replicate_target_default(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str) -> None:
    """Integration test testReplicateTargetDefault."""
    remote = f"{alias}.{topic}"
    make_topic(source, topic, 1, retention_bytes="1000")
    make_topic(target, remote, 1, segment_ms="60000")
    assert config_sync(settings_of(alias, topic), source, target).sync() == ()
    wait_for_config(target, remote, "segment.ms", (WEEK_MS, False))
    wait_for_config(target, remote, "retention.bytes", ("1000", True))


def test_a_refused_config_does_not_keep_the_others(target: EmbeddedCluster, topic: str, alias: str) -> None:
    make_topic(target, topic, 1)
    sync = ConfigSync(TopicRules.of(settings_of(alias, topic)), admin_of(target), admin_of(target))
    changes = (ConfigChange("retention.ms", None, "not a number"), ConfigChange("segment.ms", None, "60000"))
    (issue,) = sync._apply([AlterConfigs(topic, changes)])
    assert issue.startswith(f"The config retention.ms of {topic} cannot be altered on '{target.name}'")
    assert "INVALID_CONFIG" in issue
    wait_for_config(target, topic, "segment.ms", ("60000", True))


def test_fewer_brokers_than_the_replication_factor_is_a_sentence_in_the_status(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str
) -> None:
    make_topic(source, topic, 1)
    text = f"""
        clusters = {alias}, target
        {alias}.bootstrap.servers = {source.bootstrap}
        target.bootstrap.servers = {target.bootstrap}
        {alias}->target.enabled = true
        {alias}->target.topics = {topic}
        {alias}->target.replication.factor = 3
        heartbeats.replication.enabled = false
    """
    flow = SourceFlow(load(text, MachineLookup()), Flow(alias, "target"), engine=None, flow_count=1)  # type: ignore[arg-type]
    flow.start()
    wait_until(lambda: flow.status.state == "RUNNING" and flow.status.issue is not None)
    issue = "replication.factor is 3, but the cluster 'target' has 1 broker; lower replication.factor or add brokers"
    assert flow.status.issue == f"The topics {alias}.{topic} cannot be created on 'target': {issue}"
    flow.stop()
    assert flow.join(180)
    assert flow.status.state == "STOPPED"
