"""Kafka's MirrorConnectorConfigTest, case by case: which prefix wins for which client, by a file's names."""

from __future__ import annotations

import pytest

from heliograph.config import keys
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate.dedicated_file import load
from heliograph.mirror.policy.replication_policy import make_policy
from heliograph.model import Flow
from tests.support.config_files import FakeLookup, minimal
from tests.support.diagnostics import texts

AB = Flow("A", "B")
ALIASES = {"source": "A", "target": "B"}


def read(*lines: str) -> MirrorMakerConfig:
    return load(minimal(*lines), FakeLookup())


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("role", ["consumer", "producer", "admin"])
class TestPrefixes:
    """testSourceConsumerConfig, ...WithSourcePrefix, testTargetAdminConfigWithTargetPrefix and their siblings."""

    def test_a_role_of_the_flow_reaches_both_sides(self, side: str, role: str) -> None:
        config = read(f"A->B.{role}.connections.max.idle.ms=1")
        assert config.client(ALIASES[side], role, AB).values["connections.max.idle.ms"] == "1"

    def test_a_role_of_one_side_wins_and_reaches_only_that_side(self, side: str, role: str) -> None:
        config = read(f"A->B.{role}.connections.max.idle.ms=1", f"A->B.{side}.{role}.connections.max.idle.ms=2")
        other = "B" if side == "source" else "A"
        assert config.client(ALIASES[side], role, AB).values["connections.max.idle.ms"] == "2"
        assert config.client(other, role, AB).values["connections.max.idle.ms"] == "1"

    def test_a_role_reaches_no_other_role(self, side: str, role: str) -> None:
        config = read(f"A->B.{side}.{role}.connections.max.idle.ms=2")
        for other in {"consumer", "producer", "admin"} - {role}:
            assert "connections.max.idle.ms" not in config.client(ALIASES[side], other, AB).values

    def test_a_cluster_of_one_side_gives_security_only(self, side: str, role: str) -> None:
        config = read(f"A->B.{side}.cluster.ssl.key.password=p", f"A->B.{side}.cluster.connections.max.idle.ms=2")
        values = config.client(ALIASES[side], role, AB).values
        assert values["ssl.key.password"] == "p"
        assert "connections.max.idle.ms" not in values

    def test_another_flow_is_not_touched(self, side: str, role: str) -> None:
        config = read("B->A.enabled=true", f"A->B.{side}.{role}.connections.max.idle.ms=2")
        for alias in ("A", "B"):
            assert "connections.max.idle.ms" not in config.client(alias, role, Flow("B", "A")).values


def test_a_connector_key_that_looks_like_a_clients_is_none() -> None:
    config = read("A->B.consumer.poll.timeout.ms=5", "A->B.source.cluster.alias=X")
    assert "poll.timeout.ms" not in config.client("A", "consumer", AB).values
    assert "alias" not in config.client("A", "consumer", AB).values
    assert config.settings(AB)[keys.SOURCE_ALIAS] == "A"


def test_metrics_reporters() -> None:
    """testMetricsReporters, testExplicitlyEnableJmxReporter: read as a list; said to have no effect."""
    row = keys.TABLE["metric.reporters"]
    assert read().settings(AB)[row] == ("org.apache.kafka.common.metrics.JmxReporter",)
    config = read("metric.reporters=a.B, c.D")
    assert config.settings(AB)[row] == ("a.B", "c.D")
    assert "metric.reporters" in texts(config.notes)[0]


def test_replication_policy() -> None:
    config = read("replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
    assert make_policy(config.settings(AB)).format_remote_topic("A", "t") == "t"
