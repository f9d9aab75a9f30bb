"""`heliograph acls` as a user calls it: commands, KafkaUsers, JSON; files and connectors; no secret, no cluster."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from heliograph.cli.main import cli, main
from tests.support.clusters.certificates import Authority, subject
from tests.support.config_files import GOOD

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
FILE = f"""
clusters = A, B
A.bootstrap.servers = a1:9092, a2:9092
A.security.protocol = SASL_SSL
A.sasl.mechanism = SCRAM-SHA-512
A.sasl.jaas.config = {SCRAM} username="mirror" password="pw-canary";
B.bootstrap.servers = b:9092
B.security.protocol = SASL_PLAINTEXT
B.sasl.mechanism = PLAIN
B.sasl.jaas.config = {PLAIN} username="mm2" password="pw-canary";
A->B.enabled = true
A->B.topics = orders, bills-.*
A->B.groups = billing
emit.heartbeats.enabled = false
heartbeats.replication.enabled = false
"""


def acls(tmp_path: Path, *options: str, text: str = FILE) -> Result:
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    return CliRunner().invoke(cli, ["acls", str(file), *options])


def test_commands_for_a_shell_with_their_reasons(tmp_path: Path) -> None:
    result = acls(tmp_path)
    assert result.exit_code == 0, result.output
    assert "pw-canary" not in result.output
    lines = result.stdout.splitlines()
    assert "# User:mirror on the cluster 'A'" in lines
    commands = [shlex.split(line) for line in lines if line.startswith("kafka-acls ")]
    bills = next(words for words in commands if "bills-" in words)
    assert bills[1:7] == [
        "--bootstrap-server",
        "a1:9092,a2:9092",
        "--add",
        "--allow-principal",
        "User:mirror",
        "--operation",
    ]
    assert bills[-4:] == ["--topic", "bills-", "--resource-pattern-type", "prefixed"]
    at = lines.index(next(line for line in lines if "--topic bills- " in line))
    assert (
        lines[at - 1] == "#   READ: its records are copied; its partitions are listed; committed offsets on it are read"
    )
    cluster = next(words for words in commands if "--cluster" in words and "User:mm2" in words)
    assert cluster[-3:] == ["--operation", "Alter", "--cluster"]
    assert next(words for words in commands if "--group" in words)[-2:] == ["--group", "billing"]


def test_what_is_dangerous_is_told_beside(tmp_path: Path) -> None:
    words = "note: ALTER on the cluster 'B' lets User:mm2 give any ACL to anyone"
    assert words in acls(tmp_path).stderr
    assert acls(tmp_path, text=FILE + "sync.topic.acls.enabled = false\n").stderr == ""


def test_kafka_users_as_strimzi_reads_them(tmp_path: Path) -> None:
    text = FILE + "B.exactly.once.source.support = enabled\n"
    users = list(yaml.safe_load_all(acls(tmp_path, "--format", "strimzi", text=text).stdout))
    assert [(user["kind"], user["metadata"]["name"]) for user in users] == [
        ("KafkaUser", "mirror"),
        ("KafkaUser", "mm2"),
    ]
    assert users[0]["metadata"]["labels"] == {"strimzi.io/cluster": "A"}
    assert users[0]["spec"]["authorization"]["type"] == "simple"
    rules = users[0]["spec"]["authorization"]["acls"]
    bills = {"type": "topic", "name": "bills-", "patternType": "prefix"}
    assert {"resource": bills, "operations": ["DescribeConfigs", "Read"]} in rules
    assert {"resource": {"type": "cluster"}, "operations": ["Describe"]} in rules
    transactional = {"type": "transactionalId", "name": "A-mm2-MirrorSourceConnector-", "patternType": "prefix"}
    assert {"resource": transactional, "operations": ["Write"]} in users[1]["spec"]["authorization"]["acls"]


def test_a_certificate_is_known_by_its_subject(tmp_path: Path) -> None:
    pem = Authority(tmp_path).issue("mirror", "mirror")
    lines = f"A.ssl.keystore.location = {pem}\nA.ssl.keystore.password = ${{env:NO_SUCH_VARIABLE}}\n"
    text = FILE.replace("A.security.protocol = SASL_SSL", "A.security.protocol = SSL")
    unknown = acls(tmp_path, text=text + lines)
    assert "# User:<the user of A.ssl.keystore.location> on the cluster 'A'" in unknown.stdout
    assert (
        "warning: A.ssl.keystore.password: the environment variable NO_SUCH_VARIABLE is not set; so" in unknown.stderr
    )
    known = acls(tmp_path, text=text + lines.splitlines()[0] + "\n")
    assert f"# User:{subject(pem)} on the cluster 'A'" in known.stdout
    assert f"note: A.ssl.keystore.location: User:{subject(pem)} is the subject of the certificate" in known.stderr
    chain = (
        f"A.ssl.keystore.certificate.chain = ${{file:{tmp_path / 'chain'}:chain}}\nA.ssl.keystore.key = ${{env:K}}\n"
    )
    (tmp_path / "chain").write_text("chain=" + pem.read_text().replace("\n", "\\n"))
    assert f"# User:{subject(pem)} on the cluster 'A'" in acls(tmp_path, text=text + chain).stdout
    assert "# User:ANONYMOUS on the cluster 'A'" in acls(tmp_path, text=text).stdout, "no certificate, no name"


HIDDEN = FILE.replace('password="pw-canary"', 'password="${file:/no/such/file:pw}"')


def test_secrets_need_not_be_there(tmp_path: Path) -> None:
    hidden = "B.ssl.truststore.location = ${env:NOT_SET}\nB.request.timeout.ms = ${NOT_SET}\n"
    result = acls(tmp_path, text=HIDDEN + hidden + "A.ssl.truststore.password = ${dir:/no/such:pw}\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == acls(tmp_path).stdout
    assert "warning" not in result.stderr


def test_a_user_who_is_hidden_is_named_by_the_key(tmp_path: Path) -> None:
    text = HIDDEN.replace('username="mirror"', 'username="${env:NOT_SET}"')
    whole = text.replace(f'{PLAIN} username="mm2" password="${{file:/no/such/file:pw}}";', "${file:/no/such/file:jaas}")
    result = acls(tmp_path, text=whole)
    assert result.exit_code == 0, result.output
    assert "# User:<the user of A.sasl.jaas.config> on the cluster 'A'" in result.stdout
    assert "# User:<the user of B.sasl.jaas.config> on the cluster 'B'" in result.stdout
    hidden = {"A": "the environment variable NOT_SET is not set", "B": "the file /no/such/file cannot be read"}
    assert [line for line in result.stderr.splitlines() if line.startswith("warning: ")] == [
        f"warning: {alias}.sasl.jaas.config: {why}; so the principal is not known."
        f" Say it with --principal {alias}=User:name."
        for alias, why in hidden.items()
    ]
    said = acls(tmp_path, "--principal", "A=User:a", "--principal", "B=b", text=whole)
    assert ("# User:a on" in said.stdout, "warning" in said.stderr) == (True, False)
    found = json.loads(acls(tmp_path, "--format", "json", text=whole).stdout)
    assert [each["is_known"] for each in found] == [False, False]


def test_what_decides_about_acls_must_be_there(tmp_path: Path) -> None:
    result = acls(tmp_path, text=FILE.replace("orders, bills-.*", "${env:NOT_SET}"))
    assert "A->B.topics: the environment variable NOT_SET is not set." in str(result.exception)
    result = acls(tmp_path, text=FILE.replace("b:9092", "${env:NOT_SET}"))
    assert "--bootstrap-server '${env:NOT_SET}'" in result.stdout, "only written into a command"


def test_a_resource_without_its_secrets(tmp_path: Path) -> None:
    login = "{type: scram-sha-512, username: mirror, passwordSecret: {secretName: s, password: p}}"
    trust = "{trustedCertificates: [{secretName: ca, pattern: '*.crt'}]}"
    file = tmp_path / "mm2.yaml"
    file.write_text(GOOD.replace("us:9092\n", f"us:9092\n      tls: {trust}\n      authentication: {login}\n"))
    result = CliRunner().invoke(cli, ["acls", str(file)])
    assert result.exit_code == 0, result.output
    assert "# User:mirror on the cluster 'us'" in result.stdout


def test_warnings_are_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    typo = "A->B.topcs = x\n"
    assert "warning: line 16: A->B.topcs: unknown key" in acls(tmp_path, text=FILE + typo).stderr
    worker = "bootstrap.servers=b:1\noffset.flush.interval=1\n"
    for command, text in (("acls", FILE.replace(" = true", " = perhaps") + typo), ("worker", worker)):
        monkeypatch.setattr("sys.argv", ["heliograph", command, str(_written(tmp_path, text))])
        with pytest.raises(SystemExit) as ended:
            main()
        lines = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2
        assert [line for line in lines if "Did you mean" in line and line.startswith("warning: ")], lines
        assert not [line for line in lines if "Did you mean" in line and line.startswith("error: ")], lines
        assert [line for line in lines if line.startswith("error: ")], lines


def test_json_in_kafkas_words(tmp_path: Path) -> None:
    source, target = json.loads(acls(tmp_path, "--format", "json").stdout)
    assert (source["cluster"], source["principal"]) == ("A", "User:mirror")
    assert {
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "reasons": ["its records are copied", "its partitions are listed", "committed offsets on it are read"],
    } in source["acls"]
    assert target["bootstrap_servers"] == "b:9092"


def test_connectors_of_a_worker(tmp_path: Path) -> None:
    worker = tmp_path / "worker.properties"
    worker.write_text(
        "bootstrap.servers=b:9092\ngroup.id=connect\nconfig.storage.topic=c\noffset.storage.topic=o\nstatus.storage.topic=s\n"
    )
    connector = {
        "connector.class": "MirrorHeartbeatConnector",
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.alias": "B",
        "target.cluster.bootstrap.servers": "b:9092",
    }
    file = tmp_path / "beat.json"
    file.write_text(json.dumps({"name": "beat", "config": connector}))
    options = ["acls", str(file), "--worker", str(worker), "--format", "json", "--principal", "worker=User:connect"]
    result = CliRunner().invoke(cli, options)
    assert result.exit_code == 0, result.output
    beat, own = json.loads(result.stdout)
    assert {(acl["operation"], acl["resource_name"]) for acl in beat["acls"]} >= {("WRITE", "heartbeats")}
    assert own["principal"] == "User:connect"
    assert ("READ", "GROUP", "connect") in {
        (acl["operation"], acl["resource_type"], acl["resource_name"]) for acl in own["acls"]
    }
    file.write_text("{")
    broken = CliRunner().invoke(cli, options)
    assert "beat.json, line 1: this is not JSON" in str(broken.exception)


WORKER = f"""
bootstrap.servers = b:9092
group.id = connect
config.storage.topic = c
offset.storage.topic = o
status.storage.topic = s
security.protocol = SASL_PLAINTEXT
sasl.mechanism = PLAIN
sasl.jaas.config = {PLAIN} username="mm2" password="${{file:/no/such/file:pw}}";
producer.security.protocol = SASL_PLAINTEXT
producer.sasl.mechanism = PLAIN
producer.sasl.jaas.config = {PLAIN} username="mm2" password="${{file:/no/such/file:pw}}";
listeners = https://0.0.0.0:8443
listeners.https.ssl.keystore.location = ${{env:NOT_SET}}
"""


def connectors(tmp_path: Path, *options: str, worker: str = WORKER, user: str = "mm2") -> Result:
    """Two source connectors of one worker, both with the worker's login, which call its cluster differently."""
    (tmp_path / "worker.properties").write_text(worker)
    files = []
    for line, servers in (("B", "b:9092"), ("C", "c:9092,b:9092")):
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        login["sasl.jaas.config"] = f'{PLAIN} username="{user}" password="${{file:/no/such/file:pw}}";'
        config = {
            "connector.class": "MirrorSourceConnector",
            "source.cluster.alias": "A",
            "source.cluster.bootstrap.servers": "a:9092",
            "target.cluster.alias": line,
            "target.cluster.bootstrap.servers": servers,
            "topics": f"orders, {line}-.*",
            **{f"target.cluster.{key}": value for key, value in login.items()},
        }
        files.append(tmp_path / f"{line}.json")
        files[-1].write_text(json.dumps({"name": line, "config": config}))
    arguments = ["acls", "--worker", str(tmp_path / "worker.properties"), *map(str, files), *options]
    return CliRunner().invoke(cli, arguments)


def test_each_acl_once_per_cluster_and_principal(tmp_path: Path) -> None:
    result = connectors(tmp_path, "--format", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(each["cluster"], each["principal"], each["other_aliases"]) for each in found] == [
        ("A", "User:ANONYMOUS", []),
        ("B", "User:mm2", ["C", "worker"]),
    ]
    for each in found:
        rules = [(acl["operation"], acl["resource_type"], acl["resource_name"]) for acl in each["acls"]]
        assert len(rules) == len(set(rules))
    (offsets,) = [acl for acl in found[1]["acls"] if (acl["operation"], acl["resource_name"]) == ("WRITE", "o")]
    assert offsets["reasons"] == ["source offsets are stored", "it is the worker's offset.storage.topic"]
    commands = connectors(tmp_path).stdout.splitlines()
    assert "# User:mm2 on the cluster 'B' (also called 'C' and 'worker')" in commands
    assert len([line for line in commands if "--topic o" in line.split(" --resource")[0][-10:]]) == 1


def test_a_hidden_user_of_connectors_and_their_worker_is_one(tmp_path: Path) -> None:
    hidden = WORKER.replace('username="mm2"', 'username="${file:/no/such/file:user}"')
    result = connectors(tmp_path, "--format", "json", worker=hidden, user="${file:/no/such/file:user}")
    assert result.exit_code == 0, result.output
    assert [(each["principal"], each["is_known"]) for each in json.loads(result.stdout)] == [
        ("User:ANONYMOUS", True),
        ("User:<the user of target.cluster.sasl.jaas.config>", False),
    ]
    assert len([line for line in result.stderr.splitlines() if line.startswith("warning: ")]) == 1
    other = connectors(tmp_path, "--format", "json", worker=WORKER, user="${file:/no/such/file:user}")
    assert {each["principal"] for each in json.loads(other.stdout)} == {
        "User:ANONYMOUS",
        "User:<the user of target.cluster.sasl.jaas.config>",
        "User:mm2",
    }


def test_different_hidden_users_at_one_key_are_told_apart(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        files.append(tmp_path / f"{name}.properties")
        files[-1].write_text(HIDDEN.replace('username="mirror"', f'username="${{env:NOT_SET_{name}}}"'))
    found = json.loads(CliRunner().invoke(cli, ["acls", *map(str, files), "--format", "json"]).stdout)
    assert [each["principal"] for each in found] == [
        "User:<the user of A.sasl.jaas.config, number 2>",
        "User:<the user of A.sasl.jaas.config>",
        "User:mm2",
    ]


def _written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "other.properties"
    file.write_text(text)
    return file
