"""Kafka's MirrorMakerConfigTest, case by case, as tests of ours."""

from __future__ import annotations

import pytest

from heliograph.config import keys
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.keys import client_keys
from heliograph.config.validate.dedicated_file import load
from heliograph.errors import ConfigError
from heliograph.mirror.policy.replication_policy import make_policy
from heliograph.mirror.topics.internal_topics import transactional_prefix
from heliograph.model import Flow
from tests.support.config_files import FakeLookup
from tests.support.diagnostics import texts

AB, BA = Flow("a", "b"), Flow("b", "a")


def config_of(clusters: str, *lines: str, targets: tuple[str, ...] = ()) -> MirrorMakerConfig:
    servers = [f"{alias}.bootstrap.servers = servers-{alias}:9092" for alias in clusters.split(", ")]
    files = {"/secret": "password = secret2"}
    return load("\n".join((f"clusters = {clusters}", *servers, *lines)), FakeLookup(files=files), targets)


def two(*lines: str) -> MirrorMakerConfig:
    return config_of("a, b", "a->b.enabled = true", "b->a.enabled = true", *lines)


def test_cluster_config_properties() -> None:
    config = two("security.protocol = SASL_SSL", "replication.factor = 4")
    assert config.client("a", "consumer", AB)[client_keys.BOOTSTRAP_SERVERS] == ("servers-a:9092",)
    assert config.client("b", "producer", AB)[client_keys.BOOTSTRAP_SERVERS] == ("servers-b:9092",)
    assert config.client("a", "consumer", AB)[client_keys.SECURITY_PROTOCOL] == "SASL_SSL"
    assert config.settings(AB)[keys.REPLICATION_FACTOR] == 4


def test_replication_config_properties() -> None:
    config = two("a->b.tasks.max = 123")
    assert config.settings(AB)[keys.TASKS_MAX] == 123
    assert keys.TASKS_MAX not in config.settings(BA)


def test_client_config_properties() -> None:
    config = two(
        "replication.policy.separator = __",
        "ssl.truststore.password = secret1",
        "ssl.key.password = ${file:/secret:password}",
        "security.protocol = SSL",
        "a.security.protocol = PLAINTEXT",
        "a.producer.security.protocol = SASL_SSL",
        "a.xxx = yyy",
        "xxx = zzz",
    )
    assert make_policy(config.settings(BA)).format_remote_topic("b", "topic1") == "b__topic1"
    assert config.client("a", "admin")[client_keys.SECURITY_PROTOCOL] == "PLAINTEXT"
    assert config.client("a", "producer")[client_keys.SECURITY_PROTOCOL] == "SASL_SSL"
    assert config.client("b", "admin")[client_keys.SECURITY_PROTOCOL] == "SSL"
    assert config.client("a", "admin").values["ssl.truststore.password"] == "secret1"
    assert config.client("a", "admin")[client_keys.SSL_KEY_PASSWORD] == "secret2"
    assert "xxx" not in config.client("a", "admin").values


def test_includes_connector_config_properties() -> None:
    settings = two(
        "tasks.max = 100",
        "topics = topic-1",
        "groups = group-2",
        "replication.policy.separator = __",
        "config.properties.exclude = property-3",
        "metric.reporters = FakeMetricsReporter",
        "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "xxx = yyy",
    ).settings(AB)
    assert settings[keys.TASKS_MAX] == 100
    assert settings[keys.TOPICS] == ("topic-1",)
    assert settings[keys.GROUPS] == ("group-2",)
    assert settings[keys.CONFIG_PROPERTIES_EXCLUDE] == ("property-3",)
    assert settings[keys.TABLE["metric.reporters"]] == ("FakeMetricsReporter",)
    assert settings[keys.TOPIC_FILTER_CLASS].endswith("DefaultTopicFilter")
    assert settings[keys.POLICY_SEPARATOR] == "__"
    assert "xxx" not in settings.values


@pytest.mark.parametrize("prefix", ["", "a->b."])
def test_config_backwards_compatibility(prefix: str) -> None:
    names = ("groups.blacklist = g", "topics.blacklist = t", "config.properties.blacklist = p")
    settings = two(*(f"{prefix}{name}" for name in names)).settings(AB)
    assert settings[keys.GROUPS_EXCLUDE] == ("g",)
    assert settings[keys.TOPICS_EXCLUDE] == ("t",)
    assert settings[keys.CONFIG_PROPERTIES_EXCLUDE] == ("p",)


def test_includes_topic_filter_properties() -> None:
    settings = two("a->b.topics = topic1, topic2", "a->b.topics.exclude = topic3").settings(AB)
    assert settings[keys.TOPICS] == ("topic1", "topic2")
    assert settings[keys.TOPICS_EXCLUDE] == ("topic3",)


def test_worker_configs() -> None:
    config = two(
        "offset.storage.replication.factor = 123",
        "b.status.storage.replication.factor = 456",
        "b.producer.max.request.size = 77",
        "b.security.protocol = PLAINTEXT",
        "b.producer.security.protocol = SASL_SSL",
        "ssl.key.password = ${file:/secret:password}",
        "b.xxx = yyy",
    )
    assert config.settings(BA)[keys.OFFSET_STORAGE_REPLICATION_FACTOR] == 123
    assert config.settings(AB)[keys.TABLE["status.storage.replication.factor"]] == 456
    assert "status.storage.replication.factor" not in config.settings(BA).values
    assert config.source_connector(AB) == config.source_connector(BA) == "MirrorSourceConnector"
    assert transactional_prefix(config.settings(AB), config.source_connector(AB)) == "a-mm2-MirrorSourceConnector-"
    producer = config.client("b", "producer", AB)
    assert producer[client_keys.MAX_REQUEST_SIZE] == 77
    assert producer[client_keys.SECURITY_PROTOCOL] == "SASL_SSL"
    assert producer[client_keys.SSL_KEY_PASSWORD] == "secret2"
    assert config.client("b", "consumer", AB)[client_keys.SECURITY_PROTOCOL] == "PLAINTEXT"


# --- pairs: Java's cases have no enabled flow; one is enabled here where a file would be refused without ------------
def test_cluster_pairs_with_default_settings() -> None:
    config = config_of("a, b, c", "a->b.enabled = true")
    assert len(config.heartbeat_flows) == 6
    assert set(config.cluster_pairs) == set(config.heartbeat_flows)


def test_empty_cluster_pairs_with_globally_disabled_heartbeats() -> None:
    with pytest.raises(ConfigError, match="No source->target replication flow is enabled"):
        config_of("a, b, c", "emit.heartbeats.enabled = false")


def test_cluster_pairs_with_two_disabled_heartbeats() -> None:
    config = config_of(
        "a, b, c",
        "b->a.enabled = true",
        "a->b.emit.heartbeats.enabled = false",
        "a->c.emit.heartbeats.enabled = false",
    )
    assert len(config.cluster_pairs) == 4
    assert AB not in config.cluster_pairs


def test_cluster_pairs_with_globally_disabled_heartbeats() -> None:
    flows = ("a->b.enabled = true", "a->c.enabled = true", "a->d.enabled = true", "a->e.enabled = false")
    config = config_of("a, b, c, d, e, f", "emit.heartbeats.enabled = false", *flows)
    assert config.cluster_pairs == (AB, Flow("a", "c"), Flow("a", "d"))
    assert config.heartbeat_flows == ()


def test_cluster_pairs_with_globally_disabled_heartbeats_central_local() -> None:
    clusters = "central, local_one, local_two, beats_emitter"
    config = config_of(
        clusters,
        "emit.heartbeats.enabled = false",
        "central->local_one.enabled = true",
        "central->local_two.enabled = true",
        "beats_emitter->central.emit.heartbeats.enabled = true",
    )
    assert len(config.cluster_pairs) == 3
    assert config.heartbeat_flows == (Flow("beats_emitter", "central"),)


def test_heartbeats_of_an_enabled_flow_can_be_off() -> None:
    config = two("a->b.emit.heartbeats.enabled = false")
    assert config.heartbeat_flows == (BA,)
    assert config.cluster_pairs == (AB, BA)


def test_only_pairs_into_the_asked_targets_run() -> None:
    config = config_of("a, b, c", "a->b.enabled = true", targets=("b",))
    assert config.heartbeat_flows == (AB, Flow("c", "b"))


def test_invalid_security_protocol() -> None:
    with pytest.raises(ConfigError, match=r"security\.protocol: 'abc' must be one of PLAINTEXT, SSL"):
        two("security.protocol = abc")


@pytest.mark.parametrize("protocol", ["plaintext", "SaSl_SsL", "ssl"])
def test_case_insensitive_security_protocol(protocol: str) -> None:
    config = two(f"security.protocol = {protocol}")
    assert config.client("a", "admin")[client_keys.SECURITY_PROTOCOL] == protocol


def test_lazy_config_resolution() -> None:
    config = two("a->b.replication.policy.separator = ${file:/secret:password}")
    assert config.raw["a->b.replication.policy.separator"] == "${file:/secret:password}"
    assert config.settings(AB)[keys.POLICY_SEPARATOR] == "secret2"


def test_a_hostile_alias() -> None:
    """The alias of DedicatedMirrorIntegrationTest, escaped as a properties file wants it."""
    alias = "B-_~:?#[]@!$&'()*+=\"<>{}|^`618"
    escaped = alias.replace(":", "\\:").replace("=", "\\=")
    text = (
        f"clusters = A, {alias}\nA.bootstrap.servers = a:1\n{escaped}.bootstrap.servers = b:1\n"
        f"A->{escaped}.enabled = true\n{escaped}->A.emit.heartbeats.enabled = false\n"
        f"{escaped}.exactly.once.source.support = enabled\nA->{escaped}.offset-syncs.topic.location = target"
    )
    config = load(text, FakeLookup())
    flow = Flow("A", alias)
    assert (config.flows, config.heartbeat_flows, texts(config.warnings)) == ((flow,), (flow,), ())
    assert config.settings(flow)[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"
    assert config.settings(flow)[keys.OFFSET_SYNCS_LOCATION] == "target"
