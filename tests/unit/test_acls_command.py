"""`heliograph acls` as a user calls it: commands, KafkaUsers, JSON; files and connectors; no secret, no cluster."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

from heliograph.cli.main import cli

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
        lines[at - 1]
        == "#   READ: its records are copied; its partitions are seen; what groups have committed on it is seen"
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


def test_a_certificate_is_known_by_its_common_name(tmp_path: Path) -> None:
    text = FILE.replace("A.security.protocol = SASL_SSL", "A.security.protocol = SSL")
    refused = CliRunner().invoke(cli, ["acls", str(_written(tmp_path, text))])
    assert refused.exit_code != 0
    assert "say it with --principal A=User:name" in str(refused.exception)
    result = acls(tmp_path, "--format", "strimzi", "--principal", "A=User:CN=mirror,O=example", text=text)
    assert next(yaml.safe_load_all(result.stdout))["metadata"]["name"] == "mirror"


def test_json_in_kafkas_words(tmp_path: Path) -> None:
    source, target = json.loads(acls(tmp_path, "--format", "json").stdout)
    assert (source["cluster"], source["principal"]) == ("A", "User:mirror")
    assert {
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "reasons": ["its records are copied", "its partitions are seen", "what groups have committed on it is seen"],
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


def _written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "other.properties"
    file.write_text(text)
    return file
