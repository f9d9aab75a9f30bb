"""Nothing that is told about a configuration holds a secret: no literal one, nor what a placeholder stands for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from heliograph.cli.main import cli
from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.redaction import redact_text, shown_name, trace_of, unexpected
from heliograph.config.secrets.known_secrets import HIDDEN
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.config.validate.dedicated_file import load
from heliograph.config.validate.worker_file import examine_worker
from heliograph.operations.configuration_checks import examine_all
from tests.support.diagnostics import texts

CANARY = "c4nary-5f0e"
PEM_LINE = CANARY.replace("-", "x") + "M" * 53
FILE = """\
clusters=A, B
A.bootstrap.servers=a:1
B.bootstrap.servers=b:1
A->B.enabled=true
"""


class Machine:
    """Every variable is the canary."""

    def variable(self, _name: str) -> str | None:
        return CANARY

    def read_text(self, _path: str) -> str | None:
        return None


@pytest.mark.parametrize(
    "line",
    [
        "A.consumer.fetch.max.bytes=${PW}",
        "A.security.protocol=${PW}",
        "A->B.enabled=${PW}",
        "A->B.replication.factor=${PW}",
        "A->B.topics=(${PW}",
        "A->B.topic.filter.class=${PW}",
        "A->B.replication.policy.class=com.${PW}",
        "A->B.replication.policy.class=${PW}:X",
        "A->B.replication.policy.class=${PW}",
        "A->B.topic.filter.class=heliograph.mirror.policy.filters:${PW}",
        "A->B.replication.policy.class=RenameReplicationPolicy\nA->B.heliograph.rename.topics=a=(${PW}",
        "A->B.heliograph.on.recreated=a=${PW}",
        "A->B.heliograph.on.recreated=(${PW}=restart",
        "A.security.protocol=SSL\nA.ssl.protocol=${PW}",
        "A.security.protocol=SSL\nA.ssl.cipher.suites=${PW}",
        "A.security.protocol=SASL_SSL\nA.sasl.mechanism=${PW}",
        "emit.heartbeats.enabled=${PW}",
    ],
)
def test_a_wrong_value_is_told_as_it_was_written(line: str) -> None:
    report = examine_all(FILE + line, Machine())
    reported = "\n".join((*texts(report.problems), *texts(report.warnings), *texts(report.notes)))
    assert "${PW}" in "\n".join(texts(report.problems))
    assert CANARY not in reported


def test_a_wrong_address_is_told_as_it_was_written() -> None:
    (problem,) = texts(examine_all(FILE + "A.bootstrap.servers=${PW}", Machine()).problems)
    assert problem.endswith("A.bootstrap.servers: '${PW}' is not host:port.")


@pytest.mark.parametrize(
    "lines",
    [
        f'A.sasl.jaas.config=org.Plain required username="u"\n"{CANARY}";',
        f"A.ssl.keystore.key=-----BEGIN PRIVATE KEY-----\n{PEM_LINE}\n-----END PRIVATE KEY-----",
        f"A.ssl.key.password\\\n={CANARY}\nA.ssl.key.password={CANARY}",
    ],
)
def test_a_secret_that_a_line_break_has_made_a_name_of_is_not_told(lines: str, tmp_path: Path) -> None:
    report = examine_all(FILE + lines, Machine())
    reported = "\n".join((*texts(report.problems), *texts(report.warnings), *texts(report.notes)))
    assert reported
    file = tmp_path / "mm2.properties"
    file.write_text(FILE + lines)
    reported += CliRunner().invoke(cli, ["explain", str(file)]).output
    assert CANARY not in reported
    assert PEM_LINE not in reported


@pytest.mark.parametrize("name", ["A->B.topics", "us-west.sasl.jaas.config", "clusters", "sync.topic.configs.enabled"])
def test_names_are_told(name: str) -> None:
    assert shown_name(name) == name


def test_a_workers_wrong_value_is_told_as_it_was_written() -> None:
    text = "bootstrap.servers=b:1\ngroup.id=g\noffset.flush.interval.ms=${PW}\nproducer.linger.ms=${PW}\n"
    report = examine_worker(text, Machine())
    assert "offset.flush.interval.ms: '${PW}' is not a whole number" in "\n".join(texts(report.problems))
    assert CANARY not in repr(report)


PROVIDERS = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def test_validation_through_rest_answers_with_what_was_written() -> None:
    plugins = ConnectorPlugins(
        PROVIDERS | {"connector.client.config.override.policy": "None"}, Resolver(Machine(), PROVIDERS)
    )
    config = {
        "name": "c",
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "A",
        "tasks.max": "${env:PW}",
        "enabled": "${env:PW}",
        "exactly.once.support": "${env:PW}",
        "sasl.jaas.config": f"module required password={CANARY};",
        "ssl.key.password": "${env:PW}",
        "producer.override.sasl.jaas.config": f"module required password={CANARY};",
        "topics": "${vault:" + "a:b}",
    }
    answer = plugins.validate("MirrorSourceConnector", config)
    assert answer["error_count"] >= 4
    assert "Invalid value ${env:PW} for configuration tasks.max" in str(answer)
    assert CANARY not in str(answer)


def test_a_configuration_does_not_show_in_a_repr() -> None:
    config = load(FILE + f"A.ssl.key.password={CANARY}", Machine())
    connector = ConnectorConfig("c", {"p": CANARY}, {"q": CANARY}, Resolver(Machine(), {}))
    assert CANARY not in repr(config) + repr(connector)
    assert connector.raw["p"] == CANARY


def test_what_nobody_foresaw_is_told_without_secrets() -> None:
    with pytest.raises(KeyError) as raised:
        {}[f'cannot use password="{CANARY}" at https://u:{CANARY}@host']
    reported = unexpected(raised.value) + trace_of(raised.value)
    assert "unexpected KeyError" in reported
    assert "Traceback" in reported
    assert HIDDEN in reported
    assert CANARY not in reported


def test_text_without_secrets_stays_as_it_is() -> None:
    text = "the topic passwords was copied; see https://host:1/tokens"
    assert redact_text(text) == text
