"""`heliograph convert`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from heliograph.cli.main import cli
from heliograph.config.keys import client_keys
from heliograph.config.validate.dedicated_file import load
from heliograph.config.validate.worker_file import load_worker
from heliograph.errors import ConfigError
from tests.support.config_files import GOOD, FakeLookup, minimal
from tests.support.diagnostics import texts

SOURCE_0 = {
    "source.cluster.alias": "source-0",
    "source.cluster.bootstrap.servers": "kafka-source-0:9092,kafka-source-1:9092",
    "target.cluster.alias": "target-0",
    "target.cluster.bootstrap.servers": "kafka-target-0:9092,kafka-target-1:9092",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
PACKAGE = "org.apache.kafka.connect.mirror"
IDENTITY = f"{PACKAGE}.IdentityReplicationPolicy"


def convert(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["convert", *map(str, arguments)])


@pytest.fixture
def document_001(tmp_path: Path) -> Path:
    """The folder of document 001, with its three files for one source."""
    folder = tmp_path / "mm2"
    folder.mkdir()
    own = {
        "cpc": {"connector.class": f"{PACKAGE}.MirrorCheckpointConnector"},
        "hbc": {"connector.class": f"{PACKAGE}.MirrorHeartbeatConnector"},
        "msc": {
            "connector.class": f"{PACKAGE}.MirrorSourceConnector",
            "topics": "test",
            "sync.topic.acls.enabled": False,
            "sync.topic.configs.enabled": False,
            "replication.factor": "1",
            "replication.policy.class": IDENTITY,
            "tasks.max": "2",
        },
    }
    for kind, config in own.items():
        name = f"mm2-{kind}-source-0"
        (folder / f"{name}.json").write_text(json.dumps({"name": name, **config, **SOURCE_0}))
    return folder


def test_document_001s_connectors_become_a_file(document_001: Path) -> None:
    result = convert(document_001, "--to", "properties")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for line in (
        "clusters = source-0, target-0",
        "source-0.bootstrap.servers = kafka-source-0:9092,kafka-source-1:9092",
        "source-0->target-0.enabled = true",
        "source-0->target-0.topics = test",
        "source-0->target-0.sync.topic.acls.enabled = false",
        f"source-0->target-0.replication.policy.class = {IDENTITY}",
        "source-0->target-0.emit.heartbeats.enabled = true",
    ):
        assert line in lines


def test_document_001s_connectors_become_a_resource(document_001: Path, tmp_path: Path) -> None:
    file = tmp_path / "out" / "mm2.yaml"
    assert convert(document_001, "--to", "strimzi", "--output", file).exit_code == 0
    spec = yaml.safe_load(file.read_text())["spec"]
    assert spec["connectCluster"] == "target-0"
    assert spec["mirrors"][0]["topicsPattern"] == "test"
    assert spec["mirrors"][0]["sourceConnector"]["tasksMax"] == 2
    assert spec["mirrors"][0]["checkpointConnector"]["config"]["replication.policy.class"] == IDENTITY
    assert CliRunner().invoke(cli, ["validate", str(file)]).exit_code == 0


def test_a_file_becomes_the_three_connectors_and_their_worker(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        minimal("A->B.topics=orders", "A.consumer.client.rack=r1", "B.producer.linger.ms=5", "B.group.id=g")
    )
    result = convert(file, "--to", "connectors", "--output", tmp_path / "mm2")
    assert result.exit_code == 0, result.output
    names = sorted(path.name for path in (tmp_path / "mm2").iterdir())
    assert names == ["connect-distributed.properties", "mm2-cpc-A.json", "mm2-hbc-A.json", "mm2-msc-A.json"]
    config = json.loads((tmp_path / "mm2" / "mm2-msc-A.json").read_text())
    assert config["name"] == "mm2-msc-A"
    assert config["connector.class"] == f"{PACKAGE}.MirrorSourceConnector"
    assert config["source.cluster.bootstrap.servers"] == "a:1"
    assert config["source.consumer.client.rack"] == "r1"
    assert config["producer.override.linger.ms"] == "5"
    assert config["topics"] == "orders"
    worker = (tmp_path / "mm2" / "connect-distributed.properties").read_text()
    assert "group.id = g\n" in worker
    assert "offset.storage.topic = mm2-offsets.A.internal\n" in worker
    assert "B->A does not replicate; the heartbeats" in result.stderr


def test_connectors_are_printed_as_one_list_that_can_be_read_again(tmp_path: Path) -> None:
    file = tmp_path / "mm2.yaml"
    file.write_text(GOOD)
    printed = convert(file, "--to", "connectors").stdout
    assert [each["name"] for each in json.loads(printed)] == ["mm2-msc-us", "mm2-cpc-us", "mm2-hbc-us"]
    (tmp_path / "all.json").write_text(printed)
    assert "us->eu.enabled = true" in convert(tmp_path / "all.json", "--to", "properties").stdout


def test_version_v1_has_a_target_and_sources(tmp_path: Path) -> None:
    file = tmp_path / "mm2.yaml"
    file.write_text(GOOD.replace("checkpointConnector: {}", "heartbeatConnector: {}"))
    result = convert(file, "--to", "strimzi", "--api-version", "kafka.strimzi.io/v1")
    spec = yaml.safe_load(result.stdout)["spec"]
    assert spec["target"]["alias"] == "eu"
    assert spec["target"]["offsetStorageTopic"] == "mirrormaker2-cluster-offsets"
    assert spec["mirrors"][0]["source"] == {"alias": "us", "bootstrapServers": "us:9092"}
    assert "us->eu: version v1 has no heartbeatConnector; no heartbeats are written." in result.stderr


def test_secrets_stay_references(tmp_path: Path) -> None:
    file = tmp_path / "mm2.yaml"
    login = "{type: plain, username: u, passwordSecret: {secretName: s, password: p}}"
    file.write_text(GOOD.replace("us:9092\n", f"us:9092\n      authentication: {login}\n"))
    result = convert(file, "--to", "properties")
    assert 'password="${dir:secrets/s:p}"' in result.stdout
    assert (
        "config.providers.dir.class = org.apache.kafka.common.config.provider.DirectoryConfigProvider" in result.stdout
    )
    assert "give another with --secrets DIR" in result.stderr
    (tmp_path / "mm2.properties").write_text(result.stdout)
    again = yaml.safe_load(convert(tmp_path / "mm2.properties", "--to", "strimzi").stdout)
    assert again["spec"]["clusters"][0]["authentication"] == yaml.safe_load(login)


def test_a_secret_in_plain_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f"A.sasl.jaas.config={module} required username=u password=hunter2;"
    file.write_text(minimal("A.security.protocol=SASL_PLAINTEXT", "A.sasl.mechanism=PLAIN", jaas))
    result = convert(file, "--to", "strimzi")
    assert "note: A.sasl.jaas.config: it holds a secret in plain text" in result.stderr
    assert "hunter2" not in result.stderr
    assert yaml.safe_load(result.stdout)["spec"]["clusters"][0]["authentication"]["type"] == "custom"


LITERAL = "A.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required password=hunter2;"


@pytest.mark.parametrize("form", ["properties", "connectors", "strimzi"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_secret_in_plain_text_is_written_for_its_owner_only(tmp_path: Path, form: str, is_there: bool) -> None:
    file, output = tmp_path / "mm2.properties", tmp_path / "out"
    file.write_text(minimal(LITERAL))
    if is_there:
        first = output / "mm2-msc-A.json" if form == "connectors" else output
        first.parent.mkdir(exist_ok=True)
        first.write_text("x" * 100_000)
        first.chmod(0o664)
    assert convert(file, "--to", form, "--output", output, "--force").exit_code == 0
    written = list(output.iterdir()) if output.is_dir() else [output]
    assert [oct(path.stat().st_mode & 0o777) for path in written] == ["0o600"] * len(written)
    assert "hunter2" in "".join(path.read_text() for path in written)
    assert "xxx" not in "".join(path.read_text() for path in written)


def test_what_holds_no_secret_is_written_as_any_file(tmp_path: Path) -> None:
    file, other = tmp_path / "mm2.properties", tmp_path / "other"
    file.write_text(minimal(LITERAL.replace("hunter2", "${env:PASSWORD}")))
    other.write_text("")
    assert convert(file, "--to", "properties", "--output", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").stat().st_mode == other.stat().st_mode


def test_what_has_no_effect_is_told_and_left_out(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(minimal("B->A.topics=x", "C.bootstrap.servers=c:1"))
    result = convert(file, "--to", "strimzi")
    assert "note: B->A.topics: it has no effect on a flow that is enabled; it is left out." in result.stderr
    assert "note: C.bootstrap.servers: it has no effect" in result.stderr


def test_a_name_of_progress_that_changes_is_told(tmp_path: Path, document_001: Path) -> None:
    file = tmp_path / "mm2.yaml"
    file.write_text(GOOD)
    reported = "note: us->eu: source offsets are kept by the connector's name, here 'us->eu.MirrorSourceConnector'"
    stderr = convert(file, "--to", "properties").stderr
    assert reported in stderr
    assert "Java then copies everything again; Heliograph compares the logs and resumes after" in stderr
    assert "name, here 'mm2-msc-source-0'" in convert(document_001, "--to", "properties").stderr
    properties = tmp_path / "mm2.properties"
    properties.write_text(minimal())
    assert "name, here 'MirrorSourceConnector'" in convert(properties, "--to", "strimzi").stderr


def test_a_paused_flow_stays_paused(tmp_path: Path) -> None:
    file = tmp_path / "mm2.yaml"
    file.write_text(GOOD.replace("sourceConnector: {}", "sourceConnector: {pause: true, config: {offset.lag.max: 3}}"))
    resource = yaml.safe_load(convert(file, "--to", "strimzi").stdout)
    assert resource["spec"]["mirrors"][0]["sourceConnector"]["state"] == "paused"
    result = convert(file, "--to", "properties")
    assert "us->eu.enabled = false" in result.stdout
    assert "us->eu is paused by line 14" in result.stderr


def test_an_existing_file_is_not_overwritten_unasked(tmp_path: Path) -> None:
    file = tmp_path / "mm2.yaml"
    file.write_text(GOOD)
    refused = convert(file, "--to", "properties", "--output", file)
    assert "exists; use --force to overwrite" in str(refused.exception)
    assert file.read_text() == GOOD
    assert convert(file, "--to", "properties", "--output", file, "--force").exit_code == 0
    assert "us->eu.enabled = true" in file.read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "mm2.json: this is not JSON"),
        ("7", "mm2.json: a connector is a JSON object."),
        ("{}", "there is no mirror connector"),
        ('{"connector.class": "FileStreamSource"}', "there is no mirror connector"),
        ('{"connector.class": "MirrorSourceConnector"}', "'mm2' has no source.cluster.alias."),
        (
            '{"connector.class": "MirrorSource", "source.cluster.alias": "A", "topics": ["a"]}',
            "mm2.json: topics: it must be text, a number, true or false.",
        ),
    ],
)
def test_a_connector_that_cannot_be_read_is_told(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "mm2.json"
    file.write_text(text)
    assert words in str(convert(file, "--to", "properties").exception)


def test_a_folder_without_connectors_is_told(tmp_path: Path) -> None:
    assert "there is no connector's .json file" in str(convert(tmp_path, "--to", "properties").exception)


def test_a_file_without_a_flow_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters=A,B\n")
    assert "nothing to convert" in str(convert(file, "--to", "strimzi").exception)


def test_the_workers_producer_reaches_the_target_as_the_file_did(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    secured = ("B.security.protocol=SSL", "B.ssl.truststore.type=PEM", "B.ssl.truststore.location=/ca.pem")
    file.write_text(minimal("A->B.topics=orders", *secured))
    assert convert(file, "--to", "connectors", "--output", tmp_path / "mm2").exit_code == 0
    worker = load_worker((tmp_path / "mm2" / "connect-distributed.properties").read_text(), FakeLookup())
    connector = worker.connector("m", json.loads((tmp_path / "mm2" / "mm2-msc-A.json").read_text()))
    written = load(file.read_text(), FakeLookup()).records_client(connector.flow)
    made = connector.records_client(connector.flow)
    for key in (client_keys.BOOTSTRAP_SERVERS, client_keys.SECURITY_PROTOCOL, client_keys.SSL_TRUSTSTORE_LOCATION):
        assert made[key] == written[key]


def test_variables_of_a_file_become_what_a_worker_looks_up(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=${BROKERS}\nA->B.enabled=true\nA->B.topics=t\n"
    )
    assert convert(file, "--to", "connectors", "--output", tmp_path / "mm2").exit_code == 0
    worker = load_worker(
        (tmp_path / "mm2" / "connect-distributed.properties").read_text(), FakeLookup({"BROKERS": "b:1"})
    )
    connector = worker.connector("m", json.loads((tmp_path / "mm2" / "mm2-msc-A.json").read_text()))
    assert connector.raw["target.cluster.bootstrap.servers"] == "${env:BROKERS}"
    assert connector.client("B", "admin", connector.flow)[client_keys.BOOTSTRAP_SERVERS] == ("b:1",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bootstrap.servers=b:1\nconfig.storage.topic=c\n", "a Connect worker, not usable; 3 errors"),
        ('{"name": "m", "connector.class": "MirrorSourceConnector"}', "a connector, not usable; 3 errors"),
    ],
)
def test_another_kind_of_file_is_called_by_its_name(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "file").write_text(text)
    result = CliRunner().invoke(cli, ["validate", str(tmp_path / "file")])
    assert (result.exit_code, words in result.output) == (2, True), result.output


def test_a_connector_is_no_file_of_flows(tmp_path: Path) -> None:
    file = tmp_path / "mirror.json"
    file.write_text('{"name": "m", "connector.class": "MirrorSourceConnector"}')
    assert "this is a connector; give it to a worker" in str(CliRunner().invoke(cli, ["plan", str(file)]).exception)


def test_a_resource_leaves_rest_and_plugins_to_the_operator(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    lines = ("B.listeners=http://0.0.0.0:8083", "B.rest.advertised.port=8083", "B.plugin.path=/p")
    kept = ("B.offset.flush.interval.ms=9", "B.ssl.protocol=TLSv1.2", "A.consumer.client.rack=r1")
    trust = ("A.security.protocol=SSL", "A.ssl.truststore.location=/ca.jks", "A.consumer.interceptor.classes=x.Y")
    file.write_text(minimal("A->B.topics=orders", *lines, *kept, *trust))
    for version in ("kafka.strimzi.io/v1beta2", "kafka.strimzi.io/v1"):
        result = convert(file, "--to", "strimzi", "--api-version", version)
        assert result.exit_code == 0, result.output
        spec = yaml.safe_load(result.stdout)["spec"]
        source, target = spec["clusters"] if "clusters" in spec else (spec["mirrors"][0]["source"], spec["target"])
        assert source["config"] == {"consumer.client.rack": "r1"}
        assert source["tls"] == {}
        assert target["config"].items() >= {"offset.flush.interval.ms": 9, "ssl.protocol": "TLSv1.2"}.items()
        assert not [key for key in target["config"] if key.startswith(("listeners", "rest.", "plugin."))]
        notes = [line for line in result.stderr.splitlines() if "it is left out, since the operator" in line]
        assert [note.removeprefix("note: ").partition(": ")[0] for note in notes] == [
            "A.ssl.truststore.location",
            "A.consumer.interceptor.classes",
            "B.listeners",
            "B.rest.advertised.port",
            "B.plugin.path",
        ]
        assert "name it in 'tls.trustedCertificates' of the cluster." in notes[0]
        assert all(f"# {note.removeprefix('note: ')}" in result.stdout for note in notes)


def several_targets(tmp_path: Path, worker: str, **targets: str) -> Result:
    for alias, servers in targets.items():
        config = {
            "name": f"msc-{alias}",
            "connector.class": "MirrorSourceConnector",
            "source.cluster.alias": "A",
            "source.cluster.bootstrap.servers": "a:1",
            "target.cluster.alias": alias,
            "target.cluster.bootstrap.servers": servers,
        }
        (tmp_path / f"{alias}.json").write_text(json.dumps(config))
    (tmp_path / "worker.properties").write_text(worker)
    return convert(tmp_path, "--to", "properties")


def test_a_workers_keys_are_kept_for_each_of_its_targets(tmp_path: Path) -> None:
    worker = (
        "bootstrap.servers=b:1\ngroup.id=g\noffset.flush.interval.ms=9\noffset.storage.topic=o\nproducer.linger.ms=5\n"
        "producer.security.protocol=SSL\nsecurity.protocol=SSL\nconsumer.max.poll.records=5\n"
        "value.converter=JsonConverter\n"
    )
    result = several_targets(tmp_path, worker, B="b:1", C="b:2,b:1", D="d:1")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    for alias in "BCD":
        for line in ("group.id = g", "offset.flush.interval.ms = 9", "producer.linger.ms = 5"):
            assert f"{alias}.{line}" in lines
    assert [alias for alias in "BCD" if f"{alias}.producer.security.protocol = SSL" in lines] == ["B", "C"]
    for words in (
        "warning: worker.properties: the worker's cluster (b:1) is not that of D: in a file the records, source",
        "warning: worker.properties: B and C are one cluster, where a file keeps the source offsets of A only once",
        "worker.properties: producer.security.protocol: it is about the worker's cluster; for D it is left out.",
        "worker.properties: security.protocol: it is about the worker's own connection",
        "worker.properties: consumer.max.poll.records: a key of the worker that no flow reads; it is left out.",
        "worker.properties: value.converter: a dedicated MM2 has no converters",
    ):
        assert words in result.stderr


def test_the_targets_of_other_workers_are_theirs(tmp_path: Path) -> None:
    (tmp_path / "other.properties").write_text("bootstrap.servers=d:1\ngroup.id=h\n")
    (tmp_path / "nobody.properties").write_text("bootstrap.servers=e:1\ngroup.id=i\n")
    result = several_targets(tmp_path, "bootstrap.servers=b:1\ngroup.id=g\n", B="b:1", D="d:1")
    assert {"B.group.id = g", "D.group.id = h"} <= set(result.stdout.splitlines())
    assert "nobody.properties: the worker's cluster (e:1) is the target of no connector here" in result.stderr
    assert "i" not in [line.rpartition(" = ")[2] for line in result.stdout.splitlines()]


def test_properties_begin_with_their_clusters(tmp_path: Path, document_001: Path) -> None:
    resource = tmp_path / "mm2.yaml"
    resource.write_text(GOOD)
    for file in (resource, document_001):
        lines = convert(file, "--to", "properties").stdout.splitlines()
        assert next(line for line in lines if not line.startswith("#")).startswith("clusters = ")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_note_is_read_once_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    """The text has the notes at its top: on a terminal that is enough, in a file nobody would see them there."""
    monkeypatch.setattr("heliograph.cli.commands.convert._shows_both", lambda: is_terminal)
    file = tmp_path / "mm2.properties"
    file.write_text(minimal())
    words = "source offsets are kept by the connector's name"
    printed = convert(file, "--to", "strimzi")
    assert printed.stdout.count(words) == 1
    assert printed.stderr.count(words) == (0 if is_terminal else 1)
    assert convert(file, "--to", "connectors").output.count(words) == 1
    assert convert(file, "--to", "strimzi", "--output", tmp_path / "out.yaml").output.count(words) == 1


def test_files_that_are_no_json_are_told_together(tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text("{")
    reported = convert(tmp_path, "--to", "properties").exception
    assert isinstance(reported, ConfigError)
    assert [text.partition(": this is not JSON")[0] for text in texts(reported.problems)] == [
        "one.json",
        "two.json",
    ]


def connector_in(folder: Path, source: str) -> Path:
    folder.mkdir()
    config = {
        "name": f"from-{source}",
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": source,
        "source.cluster.bootstrap.servers": f"{source}:1",
        "target.cluster.alias": "hub",
        "target.cluster.bootstrap.servers": "hub:1",
    }
    (folder / "source.json").write_text(json.dumps(config))
    return folder / "source.json"


@pytest.mark.parametrize("are_folders", [True, False])
def test_files_of_the_same_name_are_all_converted(tmp_path: Path, are_folders: bool) -> None:
    files = [connector_in(tmp_path / source, source) for source in ("us", "eu")]
    result = convert(*(file.parent if are_folders else file for file in files), "--to", "properties")
    assert result.exit_code == 0, result.output
    assert {"us->hub.enabled = true", "eu->hub.enabled = true"} <= set(result.stdout.splitlines())


def test_files_of_the_same_name_are_told_by_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = (connector_in(Path(folder), "us") for folder in ("one", "other"))
    reported = convert(one, other, "--to", "properties").exception
    words = "'from-us': 'from-us' of one/source.json is the same of us->hub; convert one of them."
    assert str(reported) == f"other/source.json: {words}"
    other.write_text("{")
    assert str(convert(one, other, "--to", "properties").exception).startswith("other/source.json: this is not JSON")


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    file = connector_in(tmp_path / "us", "us")
    assert convert(file, file.parent, file.parent / ".." / "us", "--to", "properties").exit_code == 0
