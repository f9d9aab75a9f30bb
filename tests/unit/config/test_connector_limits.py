"""What a connector may reach: judged on resolved values, per client, when the client or the class is made."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.storage.config_store import ConfigChanges, ConfigState
from heliograph.driver.clusters.cluster_clients import TargetClients
from heliograph.driver.clusters.cluster_specs import not_allowed
from heliograph.errors import ConfigError, NotAllowedError
from heliograph.kafka.security import security_settings
from heliograph.kafka.security.security_settings import make_security
from heliograph.mirror.policy.filters import topic_filter
from heliograph.mirror.policy.replication_policy import make_policy
from heliograph.model import Flow
from heliograph.web.access.access_rules import taken_by
from heliograph.wire.records.connect_configs import ConnectorConfigRecord, decode_config, encode_config
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import guarded_worker, login_lines

FLOW = Flow("A", "B")
URL, MECHANISM, JAAS = "sasl.oauthbearer.token.endpoint.url", "sasl.mechanism", "sasl.jaas.config"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
IDP = "https://idp.example/token"
LOGIN = 'x required clientId="c" clientSecret="s";'
WORKER = {
    "bootstrap.servers": "w:1",
    "group.id": "g",
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
CONNECTOR = {
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}


class Machine:
    """One file of secrets, whose content a test may change, and one variable."""

    def __init__(self, opts: str | None = None) -> None:
        self.entries: dict[str, str] = {}
        self._opts = opts

    def variable(self, name: str) -> str | None:
        return self._opts if name == "KAFKA_OPTS" else None

    def read_text(self, path: str) -> str | None:
        lines = [f"{name}={value}" for name, value in self.entries.items()]
        return "\n".join(lines) if path == "/secrets/tenant" else None


def connector(
    config: Mapping[str, str],
    worker: Mapping[str, str] | None = None,
    machine: Machine | None = None,
    secrets: tuple[str, ...] | None = None,
) -> ConnectorConfig:
    raw = {**WORKER, **(worker or {})}
    return ConnectorConfig("c", {**CONNECTOR, **config}, raw, Resolver(machine or Machine(), raw), secrets)


def sasl(prefix: str, **more: str) -> dict[str, str]:
    given = {"security.protocol": "SASL_PLAINTEXT", **{key.replace("_", "."): value for key, value in more.items()}}
    return {prefix + key: value for key, value in given.items()}


def oauth(prefix: str, url: str) -> dict[str, str]:
    return {**sasl(prefix, sasl_mechanism="OAUTHBEARER", sasl_jaas_config=LOGIN), prefix + URL: url}


# --- URLs of OAuth --------------------------------------------------------------------------------
@pytest.mark.parametrize("url", ["file:///var/run/token", "http://169.254.169.254/latest", IDP])
@pytest.mark.parametrize("prefix", ["source.cluster.", "target.cluster.", "producer.override.", "source.consumer."])
def test_no_url_is_allowed_to_a_connector_by_default(prefix: str, url: str) -> None:
    (sentence,) = not_allowed(connector(oauth(prefix, url)))
    assert sentence.startswith(f"{prefix}{URL}: the worker allows connectors no such URL")
    assert ALLOWED in sentence
    assert url not in sentence


@pytest.mark.parametrize(
    ("listed", "is_allowed"),
    [
        (IDP, True),
        (f" https://other.example/ , {IDP} ", True),
        (f"{IDP}/", False),
        ("https://idp.example", False),
        (IDP.upper(), False),
        ("https://idp.example/.*", False),
    ],
)
def test_a_listed_url_is_compared_letter_by_letter(listed: str, is_allowed: bool) -> None:
    made = connector(oauth("source.cluster.", IDP), {ALLOWED: listed})
    assert (not_allowed(made) == []) is is_allowed
    if is_allowed:
        assert make_security(made.client("A", "admin", FLOW), "A").oauth is not None


def test_a_url_in_the_login_module_is_judged_too() -> None:
    jaas = 'x required clientId="c" clientSecret="s" oauth.token.endpoint.uri="file:///var/run/token";'
    config = sasl("source.cluster.", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=jaas)
    assert not_allowed(connector(config))[0].startswith("source.cluster.sasl.jaas.config: the worker allows")
    assert not_allowed(connector(config, {ALLOWED: "file:///var/run/token"})) == []


@pytest.mark.parametrize("name", ["file", "private.key.file", "template.file"])
def test_files_of_assertions_have_a_list_of_their_own(name: str) -> None:
    key = f"source.cluster.sasl.oauthbearer.assertion.{name}"
    config = {**oauth("source.cluster.", IDP), key: "/keys/k"}
    (sentence,) = not_allowed(connector(config, {ALLOWED: IDP}))
    assert sentence.startswith(f"{key}: the worker allows connectors no such file")
    files = {"org.apache.kafka.sasl.oauthbearer.allowed.files": "/keys/k"}
    assert not_allowed(connector(config, {ALLOWED: IDP, **files})) == []


def test_the_value_behind_a_placeholder_is_judged_each_time_a_client_is_made() -> None:
    machine = Machine()
    machine.entries["url"] = IDP
    made = connector(oauth("source.cluster.", "${file:/secrets/tenant:url}"), {ALLOWED: IDP}, machine)
    assert not_allowed(made) == []
    machine.entries["url"] = "file:///var/run/token"
    with pytest.raises(NotAllowedError, match="allows connectors no such URL"):
        make_security(made.client("A", "consumer", FLOW), "A")
    with pytest.raises(ConfigError, match="allows connectors no such URL"):
        TargetClients(connector(oauth("target.cluster.", "file:///t")), FLOW)


def test_the_workers_own_file_may_name_any_url() -> None:
    own = {f"producer.{key}": value for key, value in oauth("", "file:///var/run/token").items()}
    made = connector({}, own)
    assert not_allowed(made) == []
    assert make_security(made.records_client(FLOW), "B").oauth is not None


@pytest.mark.parametrize("form", ["-D{0}={1}", '-Xmx1g "-D{0}={1}" -Dx=y', "-D{0}='{1}'", '-Dx=y -D{0}="{1}"'])
def test_the_jvm_property_is_read_where_operators_of_connect_set_it(form: str) -> None:
    lines = {**WORKER, **{f"{store}.storage.topic": store for store in ("offset", "config", "status")}}
    text = "\n".join(f"{name}={value}" for name, value in lines.items())
    machine = Machine(form.format(ALLOWED, f"https://other.example/,{IDP}"))
    worker = load_worker(text, machine)
    assert not_allowed(worker.connector("c", CONNECTOR | oauth("source.cluster.", IDP))) == []
    refusing = load_worker(f"{text}\n{ALLOWED}=https://other.example/", machine)
    assert not_allowed(refusing.connector("c", CONNECTOR | oauth("source.cluster.", IDP))), "the file wins"


# --- rules ----------------------------------------------------------------------------------------
TENANT = ("/secrets/tenant", "/secrets/tenant/.*")
VIA_PLACEHOLDER = "${file:/secrets/tenant:value}"


@pytest.fixture
def kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the libraries of all mechanisms were installed."""
    monkeypatch.setattr(security_settings, "missing_library", lambda _mechanism: None)


@pytest.mark.usefixtures("kerberos")
@pytest.mark.parametrize(
    ("config", "value", "key"),
    [
        ({"source.cluster.sasl.jaas.config": VIA_PLACEHOLDER}, 'x required keyTab="/other/k";', JAAS),
        ({}, "", MECHANISM),
        (
            {"source.cluster.sasl.mechanism": "AWS_MSK_IAM", "source.cluster.security.protocol": "SASL_SSL"},
            "",
            MECHANISM,
        ),
        ({"source.cluster.sasl.mechanism": VIA_PLACEHOLDER}, "GSSAPI", MECHANISM),
        ({"target.cluster.sasl.jaas.config": 'x required keyTab="/secrets/tenant/k";'}, "", MECHANISM),
        ({"source.cluster.sasl.jaas.config": 'x required keyTab="${file:/secrets/tenant:value}";'}, "/other/k", JAAS),
        ({"source.cluster.sasl.jaas.config": 'x required keyTab="/secrets/tenant/../other/k";'}, "", JAAS),
        (
            {
                "source.cluster.security.protocol": "SSL",
                "source.cluster.ssl.keystore.location": VIA_PLACEHOLDER,
            },
            "/other/store",
            "ssl.keystore.location",
        ),
    ],
)
def test_a_client_takes_only_what_the_rules_of_its_connector_allow(
    config: dict[str, str], value: str, key: str
) -> None:
    machine = Machine()
    machine.entries["value"] = value
    service = {"source.cluster.sasl.kerberos.service.name": "kafka"}
    made = connector({**sasl("source.cluster."), **service, **config}, machine=machine, secrets=TENANT)
    sentences = not_allowed(made)
    assert any(
        each.startswith(f"source.cluster.{key}: the `secrets` in heliograph.rest.rules.file") for each in sentences
    )
    assert not value or value not in "".join(sentences)
    with pytest.raises(ConfigError, match="do not let the writer"):
        TargetClients(
            connector({**sasl("target.cluster."), **_as_target(service | config)}, None, machine, TENANT), FLOW
        )
    assert not_allowed(connector({**sasl("source.cluster."), **service, **config}, machine=machine)) == []


@pytest.mark.usefixtures("kerberos")
def test_a_refused_login_is_not_repeated_with_the_password_beside_its_placeholder() -> None:
    machine = Machine()
    machine.entries["value"] = "/other/k"
    jaas = 'x required password="pw1" keyTab="${file:/secrets/tenant:value}";'
    service = {"source.cluster.sasl.kerberos.service.name": "kafka", "source.cluster.sasl.jaas.config": jaas}
    (reported,) = not_allowed(connector({**sasl("source.cluster."), **service}, machine=machine, secrets=TENANT))
    assert reported.endswith("do not let the writer of this connector name [hidden].")


def _as_target(config: Mapping[str, str]) -> dict[str, str]:
    swapped = {"source.cluster.": "target.cluster.", "target.cluster.": "source.cluster."}
    return {swapped[key[:15]] + key[15:]: value for key, value in config.items()}


@pytest.mark.usefixtures("kerberos")
def test_what_the_rules_allow_is_taken() -> None:
    machine = Machine()
    machine.entries["jaas"] = 'x required keyTab="/secrets/tenant/k";'
    config = {
        **sasl("source.cluster.", sasl_kerberos_service_name="kafka"),
        "source.cluster.sasl.jaas.config": "${file:/secrets/tenant:jaas}",
    }
    made = connector(config, machine=machine, secrets=TENANT)
    assert not_allowed(made) == []
    assert make_security(made.client("A", "admin", FLOW), "A").kerberos_key_tab == "/secrets/tenant/k"


def test_the_workers_login_is_not_sent_to_brokers_of_a_connectors_choice() -> None:
    login = {f"producer.{key}": value for key, value in sasl("", sasl_mechanism="PLAIN").items()}
    login["producer.sasl.jaas.config"] = 'x required username="worker" password="of the worker";'
    elsewhere = {"producer.override.bootstrap.servers": "evil:1"}
    (sentence,) = not_allowed(connector(elsewhere, login, secrets=TENANT))
    assert sentence.startswith("producer.override.bootstrap.servers: ")
    assert "worker:login" in sentence
    own = {"producer.override.sasl.jaas.config": 'x required username="u" password="p";'}
    assert not_allowed(connector(elsewhere | own, login, secrets=TENANT)) == []
    assert not_allowed(connector({"producer.override.bootstrap.servers": "w:1"}, login, secrets=TENANT)) == []
    assert not_allowed(connector(elsewhere, login, secrets=(*TENANT, "worker:login"))) == []
    assert not_allowed(connector(elsewhere, login)) == [], "as in Connect where no rules hold"


@pytest.mark.parametrize(
    ("login", "emptied"),
    [
        ({"ssl.keystore.location": "/worker/k.p12"}, "ssl.keystore.key"),
        ({"ssl.keystore.key": "PEM", "ssl.keystore.certificate.chain": "PEM"}, "ssl.keystore.location"),
    ],
)
def test_an_empty_key_does_not_make_the_workers_certificate_the_connectors(login: dict[str, str], emptied: str) -> None:
    worker = {f"producer.{key}": value for key, value in {"security.protocol": "SSL", **login}.items()}
    config = {"producer.override.bootstrap.servers": "evil:1", f"producer.override.{emptied}": ""}
    (sentence,) = not_allowed(connector(config, worker, secrets=TENANT))
    assert sentence.startswith("producer.override.bootstrap.servers: ")
    assert "worker:login" in sentence


@pytest.mark.parametrize(
    "login",
    [
        {"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": 'x required awsProfileName="worker";'},
        {"sasl.mechanism": "AWS_MSK_IAM"},
        {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": 'x required keyTab="/worker.keytab";'},
        {"sasl.mechanism": "GSSAPI"},
    ],
)
def test_the_workers_identity_counts_as_its_login(login: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security_settings, "missing_library", lambda _mechanism: None)
    given = {"security.protocol": "SASL_SSL", "sasl.kerberos.service.name": "kafka", **login}
    worker = {f"producer.{key}": value for key, value in given.items()}
    (sentence,) = not_allowed(connector({"producer.override.bootstrap.servers": "evil:1"}, worker, secrets=TENANT))
    assert "worker:login" in sentence
    assert not_allowed(connector({}, worker, secrets=TENANT)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanism", "PLAIN"),
        ("ssl.truststore.certificates", "PEM"),
        ("ssl.endpoint.identification.algorithm", ""),
    ],
)
def test_a_connector_does_not_weaken_how_the_workers_login_travels(key: str, value: str) -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'x required username="worker" password="of the worker";',
    }
    worker = {f"producer.{name}": text for name, text in given.items()}
    (sentence,) = not_allowed(connector({f"producer.override.{key}": value}, worker, secrets=TENANT))
    assert sentence.startswith(f"producer.override.{key}: ")
    assert "worker:login" in sentence
    own = {f"producer.override.{key}": value, "producer.override.sasl.jaas.config": given["sasl.jaas.config"]}
    assert not_allowed(connector(own, worker, secrets=TENANT)) == []


@pytest.mark.parametrize(
    ("config", "source"),
    [
        (sasl("source.cluster."), "kerberos:default"),
        (
            {
                **sasl("source.cluster.", sasl_mechanism="GSSAPI"),
                "target.cluster.sasl.jaas.config": 'x required keyTab="/secrets/tenant/k";',
            },
            "kerberos:default",
        ),
        (
            {
                **sasl("source.cluster.", sasl_mechanism="AWS_MSK_IAM"),
                "source.consumer.sasl.jaas.config": 'x required awsProfileName="p";',
            },
            "aws:default",
        ),
    ],
)
def test_at_the_door_each_client_is_judged_by_itself_and_with_defaults(config: dict[str, str], source: str) -> None:
    taken = set(taken_by(CONNECTOR | config, Resolver(Machine(), WORKER)))
    assert ("source.cluster.sasl.mechanism", source) in taken


def test_the_rules_of_its_writer_are_kept_with_a_connector(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "- {users: ann, change: .*, secrets: [/a/.*, '/b']}\n- {users: bob, change: .*}\n"
    )
    lines = {**login_lines(tmp_path, "ann", "bob"), "heliograph.rest.rules.file": f"{tmp_path}/rules.yaml"}
    herder = FakeHerder()
    config = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"}
    with guarded_worker(lines, herder) as worker:
        assert worker.log_in("ann").ask("POST", "/connectors", {"name": "x", "config": config}).status == 201
        assert herder.secrets["x"] == ("/a/.*", "/b")
        assert worker.log_in("bob").ask("PATCH", "/connectors/x/config", {"a": "b"}).status == 200
        assert herder.secrets["x"] == ()
        assert worker.log_in("ann").ask("PUT", "/connectors/x/config", config).status == 200
        assert herder.secrets["x"] == ("/a/.*", "/b")


@pytest.mark.parametrize("secrets", [None, (), ("/a/.*", "env:X")])
def test_the_config_topic_keeps_the_rules_beside_the_config(secrets: tuple[str, ...] | None) -> None:
    record = ConnectorConfigRecord("x", {"a": "b"}, secrets)
    key, value = encode_config(record)
    assert decode_config(key, value) == record
    if secrets is None:
        assert value == b'{"properties":{"a":"b"}}', "Connect's bytes where no rules hold"
    state = ConfigState()
    state.take(record, ConfigChanges())
    assert state.connectors["x"].secrets == secrets
    state.take(ConnectorConfigRecord("x", {"a": "c"}), ConfigChanges())
    assert state.connectors["x"].secrets is None


def test_rules_that_cannot_be_read_allow_nothing() -> None:
    value = b'{"properties":{},"heliograph.rest.rules.secrets":"x"}'
    assert decode_config(b"connector-x", value) == ConnectorConfigRecord("x", {}, ())


# --- classes --------------------------------------------------------------------------------------
@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of the user's that leaves a mark when it is imported."""
    name = f"acme_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        "class Filter:\n    def should_replicate_topic(self, topic):\n        return True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_class_of_a_package_that_is_not_listed_is_not_imported(package: str) -> None:
    made = connector({"topic.filter.class": f"{package}:Filter"})
    with pytest.raises(ConfigError, match=r"topic\.filter\.class: .*heliograph\.plugin\.packages"):
        topic_filter(made.settings(FLOW))
    assert package not in sys.modules


@pytest.mark.parametrize("key", ["replication.policy.class", "topic.filter.class", "config.property.filter.class"])
def test_rest_answers_so_before_the_connector_is_kept(key: str, package: str) -> None:
    plugins = ConnectorPlugins(WORKER, Resolver(Machine(), WORKER))
    config = {**CONNECTOR, "name": "c", key: f"{package}:Filter"}
    (error,) = plugins.errors("MirrorSourceConnector", config)
    assert "heliograph.plugin.packages" in error
    answer = plugins.validate("MirrorSourceConnector", config)
    assert [each["value"]["name"] for each in answer["configs"] if each["value"]["errors"]] == [key]
    assert package not in sys.modules


@pytest.mark.parametrize("worker", ["heliograph.plugin.packages", "topic.filter.class"])
def test_a_package_that_the_workers_file_names_may_be_loaded(worker: str, package: str) -> None:
    listed = f"{package}:Other" if worker.endswith("class") else f"other, {package}"
    made = connector({"topic.filter.class": f"{package}:Filter"}, {worker: listed})
    assert topic_filter(made.settings(FLOW)).accepts("t")


@pytest.mark.parametrize("name", ["os:path", "heliograph.__main__:x", "heliograph.mirrorx:X", "acme2.x:X", ".acme:X"])
def test_a_package_is_known_by_its_whole_name(name: str) -> None:
    made = connector({"replication.policy.class": name}, {"heliograph.plugin.packages": "acme"})
    with pytest.raises(NotAllowedError):
        make_policy(made.settings(FLOW))


def test_our_own_classes_and_those_below_a_package_are_allowed() -> None:
    ours = connector({"replication.policy.class": "heliograph.mirror.policy:DefaultReplicationPolicy"})
    assert make_policy(ours.settings(FLOW)).format_remote_topic("A", "t") == "A.t"
    below = connector({"replication.policy.class": "acme.no.such:X"}, {"heliograph.plugin.packages": "acme"})
    with pytest.raises(ConfigError, match="cannot be imported"):
        make_policy(below.settings(FLOW))


def test_under_rules_the_resolved_class_must_be_named_in_them(package: str) -> None:
    machine = Machine()
    machine.entries["value"] = f"{package}:Filter"
    listed = {"heliograph.plugin.packages": package}
    config = {"topic.filter.class": VIA_PLACEHOLDER}
    with pytest.raises(ConfigError, match=r"name class:\$\{file:/secrets/tenant:value\}"):
        topic_filter(connector(config, listed, machine, TENANT).settings(FLOW))
    assert topic_filter(connector(config, listed, machine, (f"class:{package}:.*",)).settings(FLOW)).accepts("t")
