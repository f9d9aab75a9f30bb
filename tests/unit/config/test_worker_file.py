"""A Connect worker's file and variables: documents 001 and 004 as they are, and every mistake at once."""

from __future__ import annotations

import pytest

from heliograph.config import keys
from heliograph.config.keys import client_keys, worker_keys
from heliograph.config.validate.worker_file import (
    environment_properties,
    examine_environment,
    examine_worker,
    load_worker,
    usable_worker,
)
from heliograph.errors import ConfigError
from heliograph.model import Flow
from tests.support.config_files import DOCUMENT_001
from tests.support.diagnostics import texts

DOCUMENT_004_FILE = """\
group.id="quickstart"
status.storage.replication.factor=1
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
config.storage.topic=quickstart_config
offset.storage.replication.factor=1
plugin.path=/usr/share/java/,/usr/share/confluent-hub-components/
offset.storage.topic=quickstart_offsets
bootstrap.servers=broker:29092
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
rest.advertised.host.name="localhost"
rest.port=28082
status.storage.topic=quickstart_status
connector.client.config.override.policy=All
config.storage.replication.factor=1
"""
DOCUMENT_004_VARIABLES = {
    "CONNECT_BOOTSTRAP_SERVERS": "broker:29092",
    "CONNECT_REST_PORT": "28082",
    "CONNECT_GROUP_ID": '"quickstart"',
    "CONNECT_CONFIG_STORAGE_TOPIC": "quickstart_config",
    "CONNECT_CONFIG_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_OFFSET_STORAGE_TOPIC": "quickstart_offsets",
    "CONNECT_OFFSET_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_STATUS_STORAGE_TOPIC": "quickstart_status",
    "CONNECT_STATUS_STORAGE_REPLICATION_FACTOR": "1",
    "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "CONNECT_REST_ADVERTISED_HOST_NAME": '"localhost"',
    "CONNECT_CONNECTOR_CLIENT_CONFIG_OVERRIDE_POLICY": "All",
}
WRONG = """\
bootstrap.servers=h:1
offset.storage.topic=same
config.storage.topic=same
offset.flush.interval.ms=soon
status.storage.partitions=0
producer.max.request.size=x
connector.client.config.override.policy=Some
sasl.jaas.config=${file:/missing:password}
"""


class Machine:
    def variable(self, name: str) -> str | None:
        return {"PASSWORD": "s3cret"}.get(name)

    def read_text(self, path: str) -> str | None:
        return None if "missing" in path else "password=from a file"


def test_document_001_is_understood() -> None:
    report = examine_worker(DOCUMENT_001, Machine())
    assert (texts(report.problems), texts(report.warnings)) == ((), ())
    worker = usable_worker(report)
    assert worker.group_id == "connect-cluster"
    assert worker.client[client_keys.BOOTSTRAP_SERVERS] == ("kafka-target-0:9092", "kafka-target-1:9092")
    settings = worker.settings
    assert settings[keys.OFFSET_FLUSH_INTERVAL_MS] == 10_000
    assert settings[worker_keys.CONFIG_STORAGE_TOPIC] == "connect-configs"
    assert settings[worker_keys.STATUS_STORAGE_REPLICATION_FACTOR] == 1
    assert worker.raw["rest.port"] == "8083"


def test_document_001s_converters_are_noted_once_each() -> None:
    notes = texts(examine_worker(DOCUMENT_001, Machine()).notes)
    assert notes[0] == (
        "line 3: key.converter: this key has no effect; records are copied byte by byte, whatever the converter."
    )
    assert [note.split(": ")[1] for note in notes] == [
        "key.converter",
        "value.converter",
        "internal.key.converter",
        "internal.value.converter",
        "internal.key.converter.schemas.enable",
        "internal.value.converter.schemas.enable",
    ]


def test_document_004_is_the_same_as_a_file_and_as_variables() -> None:
    report = examine_worker(DOCUMENT_004_FILE, Machine())
    assert (texts(report.problems), texts(report.warnings)) == ((), ())
    assert [note.split(": ")[1] for note in texts(report.notes)] == ["plugin.path"]
    container = examine_environment(DOCUMENT_004_VARIABLES | {"PATH": "/bin", "KAFKA_X": "y"}, Machine())
    without_plugins = {name: value for name, value in usable_worker(report).raw.items() if name != "plugin.path"}
    assert usable_worker(container).raw == without_plugins
    assert (texts(container.warnings), texts(container.notes)) == ((), ())


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("CONNECT_BOOTSTRAP_SERVERS", "bootstrap.servers"),
        ("CONNECT_PRODUCER_MAX_REQUEST_SIZE", "producer.max.request.size"),
        ("CONNECT_A__B_C", "a_b.c"),
        ("CONNECT_OFFSET___SYNCS_TOPIC_LOCATION", "offset-syncs.topic.location"),
    ],
)
def test_a_variable_is_a_key(variable: str, name: str) -> None:
    assert environment_properties({variable: "x"}) == {name: "x"}


def test_a_containers_own_variables_are_no_keys() -> None:
    assert environment_properties({"CONNECT_LOG4J_ROOT_LOGLEVEL": "INFO", "CONNECT_": "", "HOME": "/"}) == {}


def test_without_any_variable_there_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="neither a file nor a variable that begins with CONNECT_"):
        usable_worker(examine_environment({"PATH": "/bin"}, Machine()))


def test_every_problem_is_told_at_once_with_its_line() -> None:
    with pytest.raises(ConfigError) as caught:
        load_worker(WRONG, Machine())
    assert list(texts(caught.value.problems)) == [
        "group.id: the worker needs it; add a line such as 'group.id = connect-cluster'.",
        "status.storage.topic: the worker needs it; add a line such as 'status.storage.topic = connect-status'.",
        "config.storage.topic, offset.storage.topic and status.storage.topic must be three different topics.",
        "line 4: offset.flush.interval.ms: 'soon' is not a whole number of at most 64 bits.",
        "line 5: status.storage.partitions: '0' must be at least 1.",
        "line 6: producer.max.request.size: 'x' is not a whole number of at most 32 bits.",
        "line 7: connector.client.config.override.policy: 'Some' is not a policy; there are All, None and Principal.",
        "line 8: sasl.jaas.config: the file /missing cannot be read.",
    ]


def test_a_text_that_is_no_properties_file_is_a_problem() -> None:
    *missing, wrong = texts(examine_worker("a=\\u12", Machine()).problems)
    assert wrong == "line 1: \\u must be followed by four hexadecimal digits."
    assert len(missing) == 5


def test_a_file_of_flows_is_told_to_be_one() -> None:
    text = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"
    (problem,) = texts(examine_worker(text, Machine()).problems)
    assert problem == "clusters: this is an MM2 file, of clusters and flows; run it with 'heliograph run FILE'."


def test_a_mistyped_key_is_told_with_the_nearest_name() -> None:
    report = examine_worker(
        DOCUMENT_001 + "offset.flush.intervall.ms=5\nconfig.storage.min.insync.replicas=2\n", Machine()
    )
    (warning,) = texts(report.warnings)
    assert warning == (
        "line 20: offset.flush.intervall.ms: unknown key; it has no effect. Did you mean 'offset.flush.interval.ms'?"
    )
    assert "line 21: config.storage.min.insync.replicas: this key has no effect" in texts(report.notes)[-1]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("status.storage.topics", "status.storage.topic"),
        ("offset.storage.partition", "offset.storage.partitions"),
        ("config.storage.replication.factors", "config.storage.replication.factor"),
    ],
)
def test_a_mistyped_key_of_a_store_is_told_with_the_nearest_name(name: str, meant: str) -> None:
    report = examine_worker(f"{DOCUMENT_001}{name}=2\n", Machine())
    (warning,) = texts(report.warnings)
    assert warning.endswith(f"{name}: unknown key; it has no effect. Did you mean '{meant}'?")
    assert not any(name in note for note in texts(report.notes))


@pytest.mark.parametrize(
    "name", ["config.storage.partitions", "status.storage.retention.ms", "offset.storage.file.filename"]
)
def test_another_setting_of_a_stores_topic_is_only_noted(name: str) -> None:
    report = examine_worker(f"{DOCUMENT_001}{name}=2\n", Machine())
    assert texts(report.warnings) == ()
    assert "the worker's topics are made with the settings they need" in texts(report.notes)[-1]


def test_keys_of_clients_and_of_groups_are_the_workers() -> None:
    text = (
        DOCUMENT_001 + "producer.acks=all\nsession.timeout.ms=6000\nsecurity.protocol=PLAINTEXT\nrequest.timeout.ms=7\n"
    )
    report = examine_worker(text, Machine())
    assert (texts(report.problems), texts(report.warnings)) == ((), ())
    assert not [note for note in texts(report.notes) if "session.timeout" in note]
    assert usable_worker(report).client[client_keys.REQUEST_TIMEOUT_MS] == 7


def test_secrets_are_resolved_late_and_told_to_nobody() -> None:
    text = DOCUMENT_001 + "sasl.jaas.config=${env:PASSWORD}\n"
    worker = load_worker(text, Machine())
    assert worker.raw["sasl.jaas.config"] == "${env:PASSWORD}"
    assert worker.client[client_keys.SASL_JAAS_CONFIG] == "s3cret"


def test_a_connector_of_the_worker_has_its_settings() -> None:
    worker = load_worker(DOCUMENT_001 + "heliograph.throttle.bytes.per.second=5\n", Machine())
    config = worker.connector("c", {"connector.class": "MirrorSource", "source.cluster.alias": "A"})
    settings = config.settings(Flow("A", "target"))
    assert settings[keys.GROUP_ID] == "connect-cluster"
    assert settings[keys.THROTTLE_BYTES_PER_SECOND] == 5
