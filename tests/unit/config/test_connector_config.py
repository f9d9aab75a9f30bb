"""A connector of a Connect worker: which place wins, and where it reads and writes."""

from __future__ import annotations

import pytest

from heliograph.config import keys
from heliograph.config.effective.connect_config import ConnectorConfig, kind_of
from heliograph.config.keys import client_keys
from heliograph.config.resolve.placeholders import Resolver
from heliograph.driver.clusters.cluster_specs import cluster_spec
from heliograph.errors import ConfigError
from heliograph.mirror.topics.internal_topics import offsets_topic, transactional_prefix
from heliograph.model import Flow

WORKER = {
    "bootstrap.servers": "broker:29092",
    "group.id": "quickstart",
    "offset.storage.topic": "quickstart_offsets",
    "offset.flush.interval.ms": "10000",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
}
DOCUMENT_004 = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "name": "test_mirror",
    "source.cluster.alias": "source",
    "topics": "to_replicate",
    "source.cluster.bootstrap.servers": "broker:29092",
    "target.cluster.bootstrap.servers": "broker2:29093",
    "producer.override.bootstrap.servers": "broker2:29093",
    "offset-syncs.topic.replication.factor": "1",
}
FLOW = Flow("source", "target")
SERVERS = client_keys.BOOTSTRAP_SERVERS


class NoLookup:
    def variable(self, name: str) -> str | None:
        return {"SECRET": "from the environment"}.get(name)

    def read_text(self, path: str) -> str | None:
        raise AssertionError(path)


def connector(worker: dict[str, str] | None = None, **changes: str | None) -> ConnectorConfig:
    """Document 004's connector, with changes; `__` stands for a dot, None takes a key away."""
    raw = dict(DOCUMENT_004)
    for name, value in changes.items():
        key = name.replace("__", ".")
        if value is None:
            raw.pop(key)
        else:
            raw[key] = value
    settings = WORKER | (worker or {})
    return ConnectorConfig(raw["name"], raw, settings, Resolver(NoLookup(), settings))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("org.apache.kafka.connect.mirror.MirrorSourceConnector", "source"),
        ("MirrorSourceConnector", "source"),
        ("MirrorSource", "source"),
        ("MirrorCheckpointConnector", "checkpoint"),
        ("MirrorHeartbeat", "heartbeat"),
        ("org.apache.kafka.connect.file.FileStreamSourceConnector", None),
        ("Source", None),
        ("", None),
        (None, None),
    ],
)
def test_a_class_is_known_by_its_full_name_and_by_connects_aliases(name: str | None, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_another_class_has_no_kind() -> None:
    with pytest.raises(ConfigError, match="is not a connector of MirrorMaker 2"):
        _ = connector(connector__class="FileStreamSource").kind


def test_document_004_reads_from_the_source_and_writes_to_the_target() -> None:
    config = connector()
    assert config.flows == (FLOW,)
    assert config.client("source", "consumer", FLOW)[SERVERS] == ("broker:29092",)
    assert config.client("target", "admin", FLOW)[SERVERS] == ("broker2:29093",)
    assert config.records_client(FLOW)[SERVERS] == ("broker2:29093",)


def test_without_the_override_records_go_to_the_workers_cluster_as_in_connect() -> None:
    config = connector(producer__override__bootstrap__servers=None)
    assert config.records_client(FLOW)[SERVERS] == ("broker:29092",)
    assert config.offsets_client(FLOW) is None


def test_progress_stays_in_the_workers_cluster() -> None:
    config = connector()
    source_offsets = config.offsets_client(FLOW)
    assert source_offsets is not None
    assert source_offsets[SERVERS] == ("broker:29092",)
    assert offsets_topic(config.settings(FLOW)).name == "quickstart_offsets"


def test_exactly_once_keeps_progress_with_the_records() -> None:
    assert connector({"exactly.once.source.support": "enabled"}).offsets_client(FLOW) is None


def test_progress_goes_with_the_records_where_the_worker_lists_the_same_brokers_in_another_order() -> None:
    config = connector({"bootstrap.servers": "b:1, a:1"}, producer__override__bootstrap__servers="a:1,b:1")
    assert config.offsets_client(FLOW) is None


def test_the_workers_own_security_does_not_reach_the_producer_of_records() -> None:
    config = connector({"security.protocol": "SSL", "producer.max.request.size": "7"})
    records, source_offsets = config.records_client(FLOW), config.offsets_client(FLOW)
    assert source_offsets is not None
    assert (records[client_keys.SECURITY_PROTOCOL], records[client_keys.MAX_REQUEST_SIZE]) == ("PLAINTEXT", 7)
    assert source_offsets[client_keys.SECURITY_PROTOCOL] == "SSL"


def test_settings_are_the_connectors_over_the_workers() -> None:
    settings = connector().settings(FLOW)
    assert settings[keys.OFFSET_FLUSH_INTERVAL_MS] == 10_000
    assert settings[keys.TOPICS] == ("to_replicate",)
    assert settings[keys.TASKS_MAX] == 1
    assert settings[keys.ENABLED] is True
    assert "key.converter" not in settings.values
    assert connector(tasks__max="4").settings(FLOW)[keys.TASKS_MAX] == 4


def test_a_connector_cannot_set_what_is_the_workers_alone() -> None:
    config = connector(group__id="mine", offset__storage__topic="mine")
    assert config.settings(FLOW)[keys.GROUP_ID] == "quickstart"
    assert offsets_topic(config.settings(FLOW)).name == "quickstart_offsets"


def test_old_names_are_read() -> None:
    assert connector(topics__blacklist="a,b").settings(FLOW)[keys.TOPICS_EXCLUDE] == ("a", "b")


def test_client_keys_win_by_how_close_they_stand() -> None:
    """MirrorConnectorConfigTest: source.cluster (connection keys only), then consumer, then source.consumer."""
    config = connector(
        source__cluster__security__protocol="SASL_SSL",
        source__cluster__max__partition__fetch__bytes="1",
        consumer__max__partition__fetch__bytes="2",
        target__consumer__max__partition__fetch__bytes="4",
    )
    assert config.client("source", "consumer", FLOW)[client_keys.MAX_PARTITION_FETCH_BYTES] == 2
    assert config.client("source", "consumer", FLOW)[client_keys.SECURITY_PROTOCOL] == "SASL_SSL"
    closer = connector(consumer__max__partition__fetch__bytes="2", source__consumer__max__partition__fetch__bytes="3")
    assert closer.client("source", "consumer", FLOW)[client_keys.MAX_PARTITION_FETCH_BYTES] == 3
    assert client_keys.MAX_PARTITION_FETCH_BYTES not in closer.client("source", "admin", FLOW)


def test_offset_syncs_on_the_target_are_not_written_by_the_workers_producer() -> None:
    config = connector(producer__override__bootstrap__servers="elsewhere:1", target__producer__max__request__size="9")
    client = config.client("target", "producer", FLOW)
    assert (client[SERVERS], client[client_keys.MAX_REQUEST_SIZE]) == (("broker2:29093",), 9)


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        ("All", []),
        ("org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy", []),
        ("Principal", ["producer.override.bootstrap.servers"]),
        ("None", ["consumer.override.sasl.jaas.config", "producer.override.bootstrap.servers"]),
    ],
)
def test_the_workers_policy_decides_what_may_be_overridden(policy: str, refused: list[str]) -> None:
    config = connector({"connector.client.config.override.policy": policy}, consumer__override__sasl__jaas__config="x")
    assert sorted(each.key for each in config.refused_overrides()) == refused
    assert config.records_client(FLOW)[SERVERS] == (("broker:29092",) if refused else ("broker2:29093",))


def test_a_refused_override_is_told_in_connects_words() -> None:
    config = connector({"connector.client.config.override.policy": "None"})
    assert [(each.key, each.message) for each in config.refused_overrides()] == [
        (
            "producer.override.bootstrap.servers",
            "The 'None' policy does not allow 'bootstrap.servers' to be overridden in the connector configuration.",
        )
    ]


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(ConfigError, match="'Some' is not a policy; there are All, None and Principal"):
        connector({"connector.client.config.override.policy": "Some"}).records_client(FLOW)


def test_secrets_are_resolved_when_they_are_needed() -> None:
    provider = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    config = connector(provider, source__cluster__sasl__jaas__config="${env:SECRET}")
    assert config.raw["source.cluster.sasl.jaas.config"] == "${env:SECRET}"
    assert config.client("source", "consumer", FLOW)[client_keys.SASL_JAAS_CONFIG] == "from the environment"


def test_a_connector_cannot_reach_for_what_its_worker_does_not_declare() -> None:
    config = connector(
        {"producer.sasl.jaas.config": "${env:SECRET}"}, source__cluster__sasl__jaas__config="${env:SECRET}"
    )
    with pytest.raises(ConfigError, match=r"source.cluster.sasl.jaas.config: .*add 'config.providers = env'"):
        config.client("source", "consumer", FLOW)
    assert config.records_client(FLOW)[client_keys.SASL_JAAS_CONFIG] == "from the environment"


def test_names_in_kafka_are_the_connectors_own() -> None:
    config = connector()
    assert config.source_connector(FLOW) == config.label(FLOW) == "test_mirror"
    assert transactional_prefix(config.settings(FLOW), config.source_connector(FLOW)) == "quickstart-test_mirror-"


def test_a_connector_without_a_source_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"^source\.cluster\.alias: the connector does not name its source"):
        _ = connector(source__cluster__alias=None).flow


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_cluster_without_an_address_is_named_by_its_key(side: str) -> None:
    config = connector(**{f"{side}__cluster__bootstrap__servers": None})
    with pytest.raises(ConfigError, match=rf"^{side}\.cluster\.bootstrap\.servers: the cluster '{side}' has no"):
        cluster_spec(config, side, "admin", FLOW)


def test_only_a_heartbeat_connector_beats() -> None:
    assert connector().heartbeat_flows == ()
    beating = connector(connector__class="MirrorHeartbeat")
    assert beating.heartbeat_flows == (FLOW,)
    silent = connector(connector__class="MirrorHeartbeat", emit__heartbeats__enabled="false")
    assert silent.heartbeat_flows == ()
    assert connector(enabled="false").enabled_flows == ()
