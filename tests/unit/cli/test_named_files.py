"""`heliograph validate` and the files that a configuration names: each that is missing or cannot be used is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from heliograph.cli.main import cli
from tests.support.clusters.stores import STORE_PASSWORD, Authority
from tests.support.config_files import DOCUMENT_001, GOOD, minimal

OAUTH = (
    "A.security.protocol=SASL_PLAINTEXT",
    "A.sasl.mechanism=OAUTHBEARER",
    "A.sasl.jaas.config=OAuthBearerLoginModule required;",
)
BASIC_AUTH = "rest.extension.classes=org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


def validate(tmp_path: Path, text: str, name: str = "mm2.properties") -> list[str]:
    """The lines about the file, the verdict last."""
    file = tmp_path / name
    file.write_text(text)
    return CliRunner().invoke(cli, ["validate", str(file)]).output.splitlines()


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    """A folder with a keystore and a file that is none."""
    Authority().issue("localhost").pkcs12_file(tmp_path / "own.p12")
    (tmp_path / "text.jks").write_text("canary")
    return tmp_path


@pytest.mark.parametrize(
    "lines",
    [
        ("A.security.protocol=SSL", "A.ssl.truststore.location=/nowhere/file"),
        ("A.security.protocol=SSL", "A.ssl.keystore.location=/nowhere/file"),
        ("A.security.protocol=SSL", "A.consumer.ssl.keystore.location=/nowhere/file"),
        (*OAUTH, "A.sasl.oauthbearer.token.endpoint.url=file:///nowhere/file"),
        (
            "A.security.protocol=SASL_PLAINTEXT",
            "A.sasl.mechanism=SCRAM-SHA-256",
            "A.sasl.jaas.config=Krb5LoginModule required username=u password=canary keyTab=/nowhere/file;",
        ),
    ],
)
def test_a_missing_file_is_told_with_key_path_and_line(tmp_path: Path, lines: tuple[str, ...]) -> None:
    error, verdict = validate(tmp_path, minimal(*lines))
    key = lines[-1].partition("=")[0]
    assert (
        error
        == f"error: line {4 + len(lines)}: {key}: the file /nowhere/file cannot be read: No such file or directory."
    )
    assert verdict.endswith("not usable; 1 error.")


def test_a_missing_file_of_a_placeholder_is_told(tmp_path: Path) -> None:
    lines = validate(tmp_path, minimal("A.client.id=${file:/nowhere/f:k}", "B.client.id=${dir:/nowhere:k}"))
    assert lines[0] == "error: line 5: A.client.id: the file /nowhere/f cannot be read."
    assert lines[1] == "error: line 6: B.client.id: there is no readable file 'k' in the folder /nowhere."


def test_a_file_that_nobody_opens_is_not_asked_for(tmp_path: Path) -> None:
    assert validate(tmp_path, minimal("A.ssl.truststore.location=/nowhere/file"))[-1].endswith("no errors.")


def test_stores_are_opened_with_their_passwords(stores: Path) -> None:
    tls = ("A.security.protocol=SSL", f"A.ssl.keystore.location={stores}/own.p12")
    assert validate(stores, minimal(*tls, f"A.ssl.keystore.password={STORE_PASSWORD}"))[-1].endswith("no errors.")
    error, _ = validate(stores, minimal(*tls, "A.ssl.keystore.password=canary"))
    assert error.startswith(f"error: line 6: A.ssl.keystore.location: {stores}/own.p12: A.ssl.keystore.password is not")
    assert "canary" not in error
    unset = validate(stores, minimal(*tls, "A.ssl.keystore.password=${NOT_SET}"))
    assert unset[0].endswith("A.ssl.keystore.password: the environment variable NOT_SET is not set.")
    assert unset[1].endswith("not usable; 1 error.")


def test_nothing_of_a_file_or_a_placeholder_is_shown(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDER", str(stores / "canary"))
    lines = (
        "A.security.protocol=SSL",
        "A.ssl.truststore.location=${FOLDER}/t",
        f"A.ssl.keystore.location={stores}/text.jks",
    )
    truststore, keystore, verdict = validate(stores, minimal(*lines))
    assert "the file ${FOLDER}/t cannot be read" in truststore
    assert keystore.endswith("text.jks: the file is neither JKS nor PKCS12 nor PEM.")
    assert "canary" not in "\n".join((truststore, keystore.replace(str(stores), ""), verdict))


def test_a_file_that_a_resource_names_is_asked_for(tmp_path: Path) -> None:
    config = "config: {security.protocol: SSL, ssl.truststore.location: /nowhere/file}"
    lines = validate(tmp_path, GOOD.replace("us:9092\n", f"us:9092\n      {config}\n"), "mm2.yaml")
    assert "error: line 9: spec.clusters[0].config.ssl.truststore.location: the file /nowhere/file cannot" in lines[0]


@pytest.mark.parametrize(
    ("lines", "reported"),
    [
        (("ssl.truststore.location=/nowhere/f", "security.protocol=SSL"), "line 20: ssl.truststore.location: the file"),
        (
            (BASIC_AUTH, "heliograph.rest.jaas.config.file=/nowhere/f"),
            "line 21: heliograph.rest.jaas.config.file: /nowh",
        ),
        (
            (BASIC_AUTH, "heliograph.rest.jaas.config.file=jaas", "heliograph.rest.rules.file=/nowhere/f"),
            "line 22: heliograph.rest.rules.file: /nowhere/f: REST's rules need this file",
        ),
        (
            ("listeners=https://:0", "listeners.https.ssl.keystore.location=/nowhere/f"),
            "line 21: listeners.https.ssl.keystore.location: the file /nowhere/f cannot be read",
        ),
    ],
)
def test_files_of_a_worker_and_its_rest_are_asked_for(tmp_path: Path, lines: tuple[str, ...], reported: str) -> None:
    (tmp_path / "users").write_text("ann=canary")
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    (tmp_path / "jaas").write_text(f'KafkaConnect {{ {module} required file="{tmp_path}/users"; }};')
    text = DOCUMENT_001 + "\n".join(line.replace("=jaas", f"={tmp_path}/jaas") for line in lines)
    errors = [line for line in validate(tmp_path, text) if line.startswith("error: ")]
    assert len(errors) == 1
    assert reported in errors[0]


def test_a_worker_that_can_start_is_usable(tmp_path: Path) -> None:
    assert validate(tmp_path, DOCUMENT_001)[-1].endswith(": a Connect worker, usable; no errors, 6 notes.")


def test_mistakes_of_a_worker_do_not_hide_each_other(tmp_path: Path) -> None:
    wrong = (
        "security.protocol=SASL_SSL",
        "sasl.mechanism=PLIN",
        "ssl.truststore.location=/nowhere/file",
        "listeners=ftp://x",
        "rest.extension.classes=com.acme.Guard",
        "config.providers=v",
        "config.providers.v.class=com.acme.Vault",
        "offset.flush.timeout.ms=soon",
        "client.id=${NOT_SET}",
        "a=\\u12",
    )
    lines = validate(tmp_path, DOCUMENT_001.replace("kafka-target-0:9092,", "nowhere,") + "\n".join(wrong))
    reported = [int(line.split()[2].rstrip(":")) for line in lines if line.startswith("error: ")]
    assert reported == [1, 21, 22, 23, 24, 26, 27, 28, 29]


def test_rest_that_could_not_be_served_beside_flows_is_a_warning(tmp_path: Path) -> None:
    lines = validate(
        tmp_path, minimal("listeners=http://:0", BASIC_AUTH, "heliograph.rest.jaas.config.file=/nowhere/f")
    )
    assert lines[0].startswith("warning: line 7: heliograph.rest.jaas.config.file: /nowhere/f: REST's login needs this")
    assert lines[0].endswith("No such file or directory; REST is not served.")
    assert lines[1].endswith("usable; A->B; no errors, 1 warning.")
