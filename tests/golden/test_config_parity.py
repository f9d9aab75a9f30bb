"""The table of keys against Kafka 4.3.1's own ConfigDefs and MM2's own reading of a file.

`make_java_configdefs.py` wrote both dumps from the real Java classes. Every difference that is meant is listed here
with its reason; any other one fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heliograph.config import keys
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.keys import client_keys
from heliograph.config.keys.table import Scope
from heliograph.config.validate.dedicated_file import load
from heliograph.model import Flow
from tests.support.config_files import FakeLookup
from tests.support.diagnostics import texts

FOLDER = Path(__file__).parent
DUMP: dict[str, dict[str, dict[str, Any]]] = json.loads((FOLDER / "java_configdefs.json").read_text())
OVERLAYS: dict[str, dict[str, str]] = json.loads((FOLDER / "java_overlays.json").read_text())
AB = Flow("A", "B")

# Defaults of our own, by key. docs/decisions/0005 gives the reasons at length; a test below keeps that page complete.
OWN_DEFAULTS = {
    "offset.flush.interval.ms": "the window of duplicates after a crash",
    "tasks.max": "slow by default otherwise",
    "refresh.topics.interval.seconds": "a new topic would wait ten minutes",
    "refresh.groups.interval.seconds": "a new group would wait ten minutes",
    "isolation.level": "aborted records must not become visible",
    "fetch.max.bytes": "answers stay in the processor's cache",
    "max.request.size": "a request carries one batch of each partition",
}

# A name stands once in our table; where Kafka gives it several defaults, this says whose the table has.
OTHER_DEFAULTS = {
    ("ConsumerConfig", "auto.offset.reset"): "MM2 sets earliest for its consumer",
    ("ConsumerConfig", "session.timeout.ms"): "the table has the worker's; both are ignored",
    ("AdminClientConfig", "connections.max.idle.ms"): "the table has the consumer's and producer's; ignored",
    ("AdminClientConfig", "enable.metrics.push"): "the table has the consumer's and producer's; ignored",
    ("DistributedConfig", "receive.buffer.bytes"): "the table has the consumer's; ignored",
    ("ProducerConfig", "receive.buffer.bytes"): "the table has the consumer's; ignored",
    ("DistributedConfig", "request.timeout.ms"): "the table has the clients'; the worker has no requests here",
    ("DistributedConfig", "header.converter"): "MM2 sets ByteArrayConverter for its worker; only that is accepted",
}
OTHER_IMPORTANCES = {
    ("AdminClientConfig", "retries"): "high for a producer",
    ("ConsumerConfig", "client.id"): "medium for a producer and an admin",
    ("DistributedConfig", "client.id"): "medium for a producer and an admin",
    ("DistributedConfig", "socket.connection.setup.timeout.ms"): "medium for clients",
    ("DistributedConfig", "socket.connection.setup.timeout.max.ms"): "medium for clients",
    ("DistributedConfig", "key.converter"): "low for a connector",
    ("DistributedConfig", "value.converter"): "low for a connector",
}
LEFT_OUT = {"internal.throw.on.fetch.stable.offset.unsupported": "Kafka Streams sets it for itself; not for users"}
ONLY_OURS = {
    "topics.blacklist": "removed in 4.0, still read",
    "groups.blacklist": "removed in 4.0, still read",
    "config.properties.blacklist": "removed in 4.0, still read",
    "use.incremental.alter.configs": "removed in 4.0, still known",
    "add.source.alias.to.metrics": "removed in 4.0, still known",
    "auto.include.jmx.reporter": "removed in 4.0, still known",
    "rest.port": "removed in 3.0, still read",
    "rest.host.name": "removed in 3.0, still read",
    "task.assigned.partitions": "a task's ConfigDef, not a connector's",
    "task.assigned.groups": "a task's ConfigDef, not a connector's",
    "task.index": "a task's ConfigDef, not a connector's",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": "a property of Kafka's JVM",
    "org.apache.kafka.sasl.oauthbearer.allowed.files": "a property of Kafka's JVM",
}


def plain(value: object) -> object:
    """Null, an empty text and an empty list all mean that nothing is set."""
    if value is None or value in ("", (), []):
        return None
    return list(value) if isinstance(value, tuple) else value


def differences(group: str, name: str, java: dict[str, Any]) -> Iterator[str]:
    row = keys.TABLE[name]
    if row.type.name != java["type"]:
        yield f"{name}: {row.type.name}, Java {java['type']}"
    if row.importance.value != java["importance"].lower() and (group, name) not in OTHER_IMPORTANCES:
        yield f"{name}: {row.importance.value}, Java {java['importance']}"
    ours = plain(row.mm2_default if name in OWN_DEFAULTS else row.default)
    is_the_same, may_differ = ours == plain(java["default"]), (group, name) in OTHER_DEFAULTS
    if is_the_same and may_differ:
        yield f"{name}: no longer a difference, take it off the list"
    if not is_the_same and not may_differ:
        yield f"{name}: default {ours}, Java {java['default']}"


@pytest.mark.parametrize("group", DUMP)
def test_the_keys_of_java_stand_in_the_table_with_their_types_defaults_and_importances(group: str) -> None:
    wanted = {name: java for name, java in DUMP[group].items() if name not in LEFT_OUT}
    assert wanted
    assert [difference for name, java in wanted.items() for difference in differences(group, name, java)] == []


def test_every_default_of_our_own_is_listed_and_told() -> None:
    assert {row.name for row in keys.TABLE.values() if row.mm2_default is not None} == set(OWN_DEFAULTS)
    page = (FOLDER.parents[1] / "docs" / "decisions" / "0005-defaults-that-differ.md").read_text()
    for name in OWN_DEFAULTS:
        row = keys.TABLE[name]
        assert row.ours
        assert row.mm2_default != row.default
        assert any(f"`{name}`" in line and str(row.mm2_default) in line for line in page.splitlines()), name


def test_what_only_the_table_has_is_listed_or_our_own() -> None:
    of_java = {name for rows in DUMP.values() for name in rows}
    extra = {name for name in keys.TABLE if name not in of_java and not name.startswith("heliograph.")}
    assert extra == set(ONLY_OURS)
    assert all(row.ours for name, row in keys.TABLE.items() if name.startswith("heliograph."))


def test_no_exception_is_stale() -> None:
    for group, name in (*OTHER_DEFAULTS, *OTHER_IMPORTANCES):
        assert name in DUMP[group]
    for group, name in OTHER_IMPORTANCES:
        assert keys.TABLE[name].importance.value != DUMP[group][name]["importance"].lower()


# --- which place wins -----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def config() -> MirrorMakerConfig:
    return load("\n".join(f"{name} = {value}" for name, value in OVERLAYS["file"].items()), FakeLookup())


@pytest.mark.parametrize("name", ["topics", "groups", "replication.policy.separator", "admin.timeout.ms"])
def test_a_connector_key_comes_from_where_java_takes_it(config: MirrorMakerConfig, name: str) -> None:
    assert config.settings(AB).values[name] == OVERLAYS["connector"][name]


@pytest.mark.parametrize("name", ["use.defaults.from", "exactly.once.support", "offset.flush.interval.ms"])
def test_a_key_that_java_drops_at_the_top_is_not_read_there(config: MirrorMakerConfig, name: str) -> None:
    assert name not in OVERLAYS["connector"]
    assert name not in config.settings(AB).values
    assert any(name in warning and "Java MM2 ignores" in warning for warning in texts(config.warnings))


@pytest.mark.parametrize("name", ["offset.storage.topic", "offset.storage.partitions", "offset.flush.timeout.ms"])
def test_a_worker_key_comes_from_where_java_takes_it(config: MirrorMakerConfig, name: str) -> None:
    assert config.settings(AB).values[name] == OVERLAYS["worker"][name]


def test_a_group_id_at_the_top_is_not_the_workers(config: MirrorMakerConfig) -> None:
    assert OVERLAYS["worker"]["group.id"] == "A-mm2"
    assert config.settings(AB)[keys.GROUP_ID] == ""  # from which `A-mm2` is made


# Java's client ids are Connect's, and its forced values are not settings of ours.
NOT_SETTINGS = {"client.id", "auto.offset.reset", "enable.auto.commit", "timeout.ms", "override.linger.ms"}


@pytest.mark.parametrize(
    ("alias", "role", "java"),
    [("A", "consumer", "source_consumer"), ("A", "admin", "source_admin"), ("B", "admin", "target_admin")],
)
def test_a_client_key_comes_from_where_java_takes_it(
    config: MirrorMakerConfig, alias: str, role: str, java: str
) -> None:
    expected = {name: value for name, value in OVERLAYS[java].items() if name not in NOT_SETTINGS}
    ours = config.client(alias, role, AB).values
    assert {name: ours.get(name) for name in expected} == expected


def test_the_producer_of_records_takes_the_connectors_override(config: MirrorMakerConfig) -> None:
    """In Java two producers share the name: MM2's own and Connect's, which writes the records and which this is."""
    ours = config.client("B", "producer", AB).values
    assert ours["linger.ms"] == OVERLAYS["connector"]["producer.override.linger.ms"]
    assert ours["security.protocol"] == OVERLAYS["worker"]["producer.security.protocol"]


def test_a_general_client_key_behind_an_alias_is_read_though_java_drops_it(config: MirrorMakerConfig) -> None:
    assert "request.timeout.ms" not in OVERLAYS["source_consumer"]
    assert config.client("A", "consumer", AB)[client_keys.REQUEST_TIMEOUT_MS] == 4


# --- where a key may stand ------------------------------------------------------------------------
SCOPES = {
    "MirrorMakerConfig": Scope.FILE,
    "MirrorSourceConfig": Scope.SOURCE,
    "MirrorCheckpointConfig": Scope.CHECKPOINT,
    "MirrorHeartbeatConfig": Scope.HEARTBEAT,
    "SourceConnectorConfig": Scope.SOURCE,
    "DefaultTopicFilter": Scope.SOURCE,
    "DefaultGroupFilter": Scope.CHECKPOINT,
    "DefaultConfigPropertyFilter": Scope.SOURCE,
    "MirrorClientConfig": Scope.CONNECTOR,
    "ClientConfigDef": Scope.CLIENT,
    "DistributedConfig": Scope.WORKER,
    "ConsumerConfig": Scope.CONSUMER,
    "ProducerConfig": Scope.PRODUCER,
    "AdminClientConfig": Scope.ADMIN,
}
OTHER_SCOPES = {
    ("DistributedConfig", "request.timeout.ms"): "the worker makes no requests of its own here",
    ("ConsumerConfig", "group.id"): "the worker's; reading needs no group",
    ("ConsumerConfig", "config.providers"): "read from the top of the file",
    ("ProducerConfig", "config.providers"): "read from the top of the file",
    ("AdminClientConfig", "config.providers"): "read from the top of the file",
}


@pytest.mark.parametrize("group", SCOPES)
def test_all_config_names(group: str) -> None:
    """Each of Java's keys may stand where Java has it (MirrorMakerConfigTest.testAllConfigNames)."""
    missing = {
        (group, name)
        for name in DUMP[group]
        if name not in LEFT_OUT and not keys.TABLE[name].scope & (SCOPES[group] | Scope.CLIENT)
    }
    assert missing == {place for place in OTHER_SCOPES if place[0] == group}
