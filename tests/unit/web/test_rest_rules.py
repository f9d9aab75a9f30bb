"""Rules: which caller may see and change which connectors, on every endpoint; over real sockets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.resolve.placeholders import Resolver
from heliograph.errors import ConfigError
from heliograph.status.flow_snapshot import LoopIssue
from heliograph.web.access.access_rules import parse_rules, taken_by
from heliograph.web.access.callers import CallerIdentity, subject_written
from heliograph.web.access.guard import Access
from heliograph.web.endpoints.routes import ROUTES, Endpoint
from tests.interop.rest_story import ask
from tests.support.clusters.certificates import Authority, subject
from tests.support.config_files import FakeLookup
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.flow_snapshots import flow
from tests.support.connect.rest_worker import RestWorker, guarded_worker, login_lines

RULES = """
- users: [payments]
  change: payments-.*
  secrets: [/secrets/payments/.*, "env:PAYMENTS_.*"]
- users: [orders]
  change: [orders-.*, shared]
- users: [oncall]
  see: .*
  worker: see
- users: [platform]
  change: .*
  secrets: .*
  worker: change
- users: [probe]
"""
USERS = ("payments", "orders", "oncall", "platform", "probe", "nobody")
HEARTBEAT = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"}
VALIDATE = "/connector-plugins/MirrorHeartbeat/config/validate"
PAYMENTS, ORDERS = "payments-hb", "orders-hb"
ids = {"ids": lambda row: f"{row.method} {row.path}"}


@pytest.fixture(scope="module")
def shared_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestWorker]:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.yaml").write_text(RULES)
    providers = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    rules = {"heliograph.rest.rules.file": f"{folder}/rules.yaml"}
    lines = {**login_lines(folder, *USERS), **providers, **rules}
    with guarded_worker(lines) as running:
        yield running


@pytest.fixture
def worker(shared_worker: RestWorker) -> RestWorker:
    """Two lines of business have a connector each, with a password in its config."""
    shared_worker.herder.forget_all()
    for name in (PAYMENTS, ORDERS):
        config = {**HEARTBEAT, "name": name, "target.cluster.sasl.jaas.config": "x required password=hunter2;"}
        shared_worker.herder.create(name, config, None)
    shared_worker.herder.flow_snapshots = [flow(PAYMENTS), flow(ORDERS)]
    return shared_worker.log_in(None)


def test_issues_of_the_checkpoints_of_a_flow_are_those_of_their_connector(worker: RestWorker) -> None:
    issues = (LoopIssue(PAYMENTS, "the group payments-eu is not readable."), LoopIssue("shared", "no heartbeat."))
    worker.herder.flow_snapshots = [replace(flow(ORDERS), issues=("no topics.",), loop_issues=issues)]
    path = f"/heliograph/v1/flows/{ORDERS}"
    assert worker.log_in("orders").ask("GET", path).body["issues"] == ["no topics.", "no heartbeat."]
    assert len(worker.log_in("oncall").ask("GET", path).body["issues"]) == 3


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("user", "reasons"),
    [
        ("probe", [{"flow": None, "reason": "a flow is not ready"}]),
        ("orders", [{"flow": ORDERS, "reason": "no."}, {"flow": None, "reason": "a flow is not ready"}]),
        ("oncall", [{"flow": PAYMENTS, "reason": "no."}, {"flow": ORDERS, "reason": "no."}]),
    ],
)
def test_a_probe_learns_that_a_flow_is_not_ready_and_not_which(
    worker: RestWorker, user: str, reasons: list[object], method: str
) -> None:
    assert worker.log_in(user).ask(method, "/health/ready").status == 200
    worker.herder.flow_snapshots = [flow(PAYMENTS, unready=("no.",)), flow(ORDERS, unready=("no.",))]
    answer = worker.ask(method, "/health/ready")
    assert answer.status == 503
    assert answer.body == ({"status": "not ready", "reasons": reasons} if method == "GET" else "")
    assert worker.log_in(None).ask(method, "/health/ready").status == 401


def call(worker: RestWorker, row: Endpoint, connector: str) -> tuple[int, object]:
    """A call of the endpoint that would succeed for who may make it, about a connector."""
    path = row.path.replace("{connector}", connector).replace("{task}", "0").replace("{logger}", "root")
    path = path.replace("{plugin}", "MirrorHeartbeat").replace("{flow}", connector)
    payload: object = {**HEARTBEAT, "name": connector}
    if row.path == "/connectors":
        payload = {"name": connector, "config": payload}
    elif row.path.endswith("/flows/{flow}/restart"):
        payload = {}
    elif row.path.endswith("/offsets"):
        payload = {"offsets": [{"partition": {"x": "y"}, "offset": None}]}
    elif row.path.endswith("/{logger}"):
        payload = {"level": "INFO"}
    reply = worker.ask(row.method, path, None if row.method in ("GET", "DELETE") else payload)
    return reply.status, reply.body


# --- every endpoint -------------------------------------------------------------------------------
@pytest.mark.parametrize("row", ROUTES, **ids)
def test_an_endpoint_asks_for_what_its_path_and_method_mean(row: Endpoint) -> None:
    """A new endpoint that asks for too little fails here, and one that asks for nothing cannot be written down."""
    expected = (
        {Access.BE_KNOWN, Access.SEE_WORKER} if row.method == "GET" else {Access.WRITE_CONFIGS, Access.CHANGE_WORKER}
    )
    if row.path.startswith("/admin/"):
        expected = {Access.SEE_WORKER} if row.method == "GET" else {Access.CHANGE_WORKER}
    if "{flow}" in row.path:
        expected = {Access.SEE_FLOW}
    if "{connector}" in row.path:
        expected = {Access.SEE_CONNECTOR} if row.method == "GET" else {Access.CHANGE_CONNECTOR}
    if row.is_change and "{connector}" not in row.path:
        expected = {Access.CHANGE_FLOW} if "{flow}" in row.path else {Access.CREATE_CONNECTOR}
    if row.answers == "-":
        expected = {Access.NOTHING}
    assert row.access in expected


@pytest.mark.parametrize("row", ROUTES, **ids)
def test_a_caller_without_permissions_reaches_no_connector_through_any_endpoint(
    worker: RestWorker, row: Endpoint
) -> None:
    before = (dict(worker.herder.configs), dict(worker.herder.targets), worker.log_levels.get("root"))
    status, body = call(worker.log_in("probe"), row, PAYMENTS)
    expected = {
        Access.NOTHING: 400,
        Access.BE_KNOWN: 200,
        Access.SEE_CONNECTOR: 404,
        Access.SEE_FLOW: 404,
        Access.CHANGE_FLOW: 404,
        Access.CHANGE_CONNECTOR: 404,
        Access.CREATE_CONNECTOR: 403,
        Access.WRITE_CONFIGS: 403,
        Access.SEE_WORKER: 403,
        Access.CHANGE_WORKER: 403,
    }
    assert status == expected[row.access], body
    assert "hunter2" not in str(body)
    assert (worker.herder.configs, worker.herder.targets, worker.log_levels.get("root")) == before
    assert worker.herder.calls == []


@pytest.mark.parametrize(
    "row", [row for row in ROUTES if re.search("{connector}|{flow}", row.path) and row.answers != "-"], **ids
)
def test_a_hidden_connector_is_answered_as_one_that_is_not_there(worker: RestWorker, row: Endpoint) -> None:
    worker.log_in("payments")
    hidden, missing = call(worker, row, ORDERS), call(worker, row, "orders-missing")
    assert hidden[0] == 404
    assert str(hidden[1]).replace(ORDERS, "orders-missing") == str(missing[1])
    assert ORDERS in worker.herder.configs


@pytest.mark.parametrize("row", ROUTES, **ids)
def test_a_caller_with_all_permissions_is_refused_nothing(worker: RestWorker, row: Endpoint) -> None:
    status, body = call(worker.log_in("platform"), row, PAYMENTS)
    assert status not in (401, 403, 404), body


@pytest.mark.parametrize("row", [row for row in ROUTES if row.access is Access.CHANGE_CONNECTOR], **ids)
def test_a_caller_that_may_only_see_a_connector_is_refused_changes(worker: RestWorker, row: Endpoint) -> None:
    before = dict(worker.herder.configs)
    status, body = call(worker.log_in("oncall"), row, PAYMENTS)
    assert (status, body) == (
        403,
        {"error_code": 403, "message": f"The user oncall may not change the connector {PAYMENTS}."},
    )
    assert worker.herder.configs == before


@pytest.mark.parametrize("row", [row for row in ROUTES if row.access is not Access.NOTHING], **ids)
def test_a_caller_that_no_rule_names_is_refused_everywhere(worker: RestWorker, row: Endpoint) -> None:
    status, body = call(worker.log_in("nobody"), row, PAYMENTS)
    assert (status, body) == (403, {"error_code": 403, "message": "No rule of this worker names user nobody."})


# --- what is shown --------------------------------------------------------------------------------
def test_lists_show_what_may_be_seen(worker: RestWorker) -> None:
    assert worker.log_in("payments").ask("GET", "/connectors").body == [PAYMENTS]
    assert list(worker.ask("GET", "/connectors?expand=info&expand=status").body) == [PAYMENTS]
    assert worker.log_in("orders").ask("GET", "/connectors").body == [ORDERS]
    assert worker.log_in("oncall").ask("GET", "/connectors").body == [ORDERS, PAYMENTS]
    assert worker.log_in("probe").ask("GET", "/connectors?expand=info").body == {}
    assert int(worker.log_in("probe").ask("HEAD", "/connectors").headers["content-length"]) == len("[]")


@pytest.mark.parametrize("path", ["", "/config", "/tasks", "?expand=info"])
def test_secrets_are_shown_only_to_callers_that_may_change_them(worker: RestWorker, path: str) -> None:
    where = f"/connectors{path}" if path.startswith("?") else f"/connectors/{PAYMENTS}{path}"
    assert "hunter2" in str(worker.log_in("payments").ask("GET", where).body)
    seen = str(worker.log_in("oncall").ask("GET", where).body)
    assert "hunter2" not in seen
    assert "[hidden]" in seen


# --- what is changed ------------------------------------------------------------------------------
def test_a_line_of_business_has_connectors_of_its_own_names_only(worker: RestWorker) -> None:
    worker.log_in("payments")
    assert worker.ask("POST", "/connectors", {"name": "payments-2", "config": HEARTBEAT}).status == 201
    assert worker.ask("PUT", "/connectors/payments-3/config", HEARTBEAT).status == 201
    refused = worker.ask("POST", "/connectors", {"name": "orders-2", "config": HEARTBEAT})
    assert (refused.status, refused.body["message"]) == (
        403,
        "The user payments may not change the connector orders-2.",
    )
    taken = worker.ask("POST", "/connectors", {"name": ORDERS, "config": HEARTBEAT})
    assert taken.status == 403, "whether the name is taken is not disclosed"
    assert worker.ask("PUT", "/connectors/orders-3/config", HEARTBEAT).status == 404
    assert worker.ask("PUT", "/connectors/payments-4%2F..%2Forders-4/config", HEARTBEAT).status == 404
    assert sorted(worker.herder.configs) == [ORDERS, "payments-2", "payments-3", PAYMENTS]


def test_the_log_has_each_change_with_its_caller(worker: RestWorker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "heliograph.web"):
        worker.log_in("payments").ask("PUT", f"/connectors/{PAYMENTS}/pause")
        worker.ask("PUT", f"/connectors/{ORDERS}/pause")
        worker.ask("GET", f"/connectors/{PAYMENTS}")
    reported = [record.getMessage() for record in caplog.records if record.name.startswith("heliograph.")]
    assert reported == [f"REST, user payments: PUT /connectors/{PAYMENTS}/pause"]


def test_a_name_in_the_config_does_not_lead_elsewhere(worker: RestWorker) -> None:
    reply = worker.log_in("payments").ask("PUT", "/connectors/payments-5/config", {**HEARTBEAT, "name": ORDERS})
    assert reply.status == 400
    patched = worker.ask("PATCH", f"/connectors/{PAYMENTS}/config", {"name": ORDERS})
    assert patched.body.get("name", PAYMENTS) == PAYMENTS
    assert "target.cluster.sasl.jaas.config" in worker.herder.configs[ORDERS]


JAAS, ENDPOINT = "source.cluster.sasl.jaas.config", "source.cluster.sasl.oauthbearer.token.endpoint.url"
OWN = "${file:/secrets/payments/p.properties:key}"
FOREIGN = [
    ("source.cluster.sasl.jaas.config", "${file:/secrets/orders/p.properties:key}", "/secrets/orders/p.properties"),
    ("source.cluster.alias", "${env:ORDERS_PASSWORD}", "env:ORDERS_PASSWORD"),
    ("source.cluster.alias", "${ORDERS_PASSWORD}", "env:ORDERS_PASSWORD"),
    ("source.cluster.alias", "${env:/secrets/payments/x:ORDERS}", "env:ORDERS"),
    ("source.cluster.alias", "${dir:/secrets/payments:../orders/p}", "/secrets/payments/../orders/p"),
    ("source.cluster.ssl.keystore.location", "/secrets/orders/k.p12", "/secrets/orders/k.p12"),
    ("source.cluster.ssl.keystore.location", "k.p12", "k.p12"),
    ("source.cluster.ssl.keystore.location", OWN, OWN),
    ("source.cluster.sasl.jaas.config", 'x required keyTab="/etc/k.keytab";', "/etc/k.keytab"),
    (ENDPOINT, "file:///etc/token", "/etc/token"),
    (ENDPOINT, "FILE:///etc/token", "/etc/token"),
    (ENDPOINT, "file://host/etc/token", "//host/etc/token"),
    (ENDPOINT, "file:../etc/token", "../etc/token"),
    (ENDPOINT, "file:%2Fetc%2Ftoken", "/etc/token"),
    (JAAS, 'x required keyTab="../k.keytab";', "../k.keytab"),
    (JAAS, 'x required keyTab="\\057etc/k.keytab";', "/etc/k.keytab"),
    (JAAS, 'x required keyTab="//etc/k.keytab";', "//etc/k.keytab"),
    (JAAS, 'x required oauth.token.endpoint.uri="file://host/etc/token";', "//host/etc/token"),
    (JAAS, 'x required awsProfileName="orders";', "aws:orders"),
    (JAAS, 'x required keyTab="', "jaas:unreadable"),
    ("source.cluster.sasl.mechanism", "AWS_MSK_IAM", "aws:default"),
    ("source.cluster.sasl.mechanism", "GSSAPI", "kerberos:default"),
    ("replication.policy.class", "orders.policies:Policy", "class:orders.policies:Policy"),
]


@pytest.mark.parametrize(("key", "value", "source"), FOREIGN)
def test_a_config_takes_from_the_machine_only_what_a_rule_names(
    worker: RestWorker, key: str, value: str, source: str
) -> None:
    worker.log_in("payments")
    config = {**HEARTBEAT, key: value}
    replies = [
        worker.ask("POST", "/connectors", {"name": "payments-6", "config": config}),
        worker.ask("PUT", "/connectors/payments-6/config", config),
        worker.ask("PATCH", f"/connectors/{PAYMENTS}/config", {key: value}),
        worker.ask("PUT", VALIDATE, config),
    ]
    reported = f"The user payments may not name {source} in {key}."
    assert [(reply.status, reply.body["message"]) for reply in replies] == [(403, reported)] * 4
    assert "payments-6" not in worker.herder.configs


def test_a_config_may_take_what_a_rule_names(worker: RestWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAYMENTS_ALIAS", "A")
    config = {
        **HEARTBEAT,
        "x": "${env:PAYMENTS_ALIAS}",
        "source.cluster.ssl.truststore.location": "/secrets/payments/t",
    }
    assert worker.log_in("payments").ask("PUT", VALIDATE, HEARTBEAT).status == 200
    patched = worker.ask("PATCH", f"/connectors/{PAYMENTS}/config", config)
    assert patched.status == 200, patched.body
    assert (
        worker.ask("PATCH", f"/connectors/{PAYMENTS}/config", {"url": "https://${env:PAYMENTS_ALIAS}/a/b"}).status
        == 200
    )


@given(st.text("ab/:.${}envfild", max_size=40))
def test_what_is_taken_is_never_less_than_what_is_resolved(value: str) -> None:
    """Whatever a resolver would look up is among what a config is said to take."""
    asked: list[str] = []

    class Spy(FakeLookup):
        def variable(self, name: str) -> str | None:
            asked.append(f"env:{name}")
            return "x"

        def read_text(self, path: str) -> str | None:
            asked.append(path)
            return "a=b\nb=c\n"

    resolver = Resolver(Spy(), {})
    with suppress(ConfigError):
        resolver.resolve("k", value)
    taken = {source for _key, source in taken_by({"k": value}, resolver)}
    assert set(asked) <= taken


# --- certificates ---------------------------------------------------------------------------------
def test_the_subject_of_a_certificate_is_a_caller(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue("client", "payments")
    written = subject(certificate).replace(",", ", ")
    (tmp_path / "rules.yaml").write_text(f"- certificates: ['{written}']\n  change: payments-.*\n")
    lines = {**authority.lines("requested"), "heliograph.rest.rules.file": f"{tmp_path}/rules.yaml"}
    herder = FakeHerder()
    for name in (PAYMENTS, ORDERS):
        herder.create(name, {**HEARTBEAT, "name": name}, None)
    with guarded_worker({**lines, "listeners": "https://127.0.0.1:0, http://127.0.0.1:0"}, herder) as running:
        running.tls = authority.client(certificate)
        assert running.ask("GET", "/connectors").body == [PAYMENTS]
        assert running.ask("DELETE", f"/connectors/{ORDERS}").status == 404
        running.tls = authority.client(authority.issue("stranger", "someone"))
        assert running.ask("GET", "/connectors").status == 403
        running.tls = authority.client()
        unnamed = running.ask("GET", "/connectors")
        assert (unnamed.status, "www-authenticate" in unnamed.headers) == (401, False)
        assert ask(running.server.listeners[1].url, "GET", "/connectors")[0] == 401, "plain callers have no name"


def test_where_a_login_is_asked_for_a_certificate_does_not_replace_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    lines = {**login_lines(tmp_path, "ann"), **authority.lines("required")}
    with guarded_worker(lines) as running:
        running.tls = authority.client(authority.issue("client"))
        assert running.ask("GET", "/connectors").status == 401
        assert running.log_in("ann").ask("GET", "/connectors").status == 200


# --- the file -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it must be a list of rules"),
        ("users: x", "it must be a list of rules"),
        ("- users: [a", "line .*cannot be read"),
        ("- see: .*", "line 1: the rule is for nobody"),
        ("- users: a\n  sees: x", "line 1: 'sees' is no part of a rule"),
        ("- a", "line 1: this is no part of a rule"),
        ("- users: a\n  see: '('", r"line 2: see: '\(' is not a pattern"),
        ("- users: a\n  see: [{x: y}]", "line 2: see: it must be a text or a list of texts"),
        ("- users: a\n  worker: all", "line 2: worker: it must be see or change"),
        ("- certificates: payments", "line 1: 'payments' is not the subject of a certificate"),
    ],
)
def test_an_invalid_file_of_rules_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"rules.yaml: {words}"):
        parse_rules(text, "rules.yaml")


@pytest.mark.parametrize("text", ["CN=a,O=b c", " CN=a , O=b c", "CN=a,  O=b c "])
def test_a_subject_may_be_written_with_blanks(text: str) -> None:
    assert subject_written(text) == ("certificate", "CN=a,O=b c")


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules("- see: x\n- users: a\n  see: '['\n", "r")
    assert len(caught.value.problems) == 2


def test_rules_of_one_caller_add_up_and_a_user_is_not_a_certificate() -> None:
    rules = parse_rules("- {users: [a, CN=b], see: x}\n- {users: a, change: y, worker: see}\n", "r")
    both = rules.permissions(CallerIdentity("user", "a"))
    assert both is not None
    assert [both.may_see(name) for name in "xyz"] == [True, True, False]
    assert [both.may_change(name) for name in "xyz"] == [False, True, False]
    assert (both.sees_worker, both.changes_worker) == (True, False)
    assert rules.permissions(subject_written("CN=b")) is None
    assert rules.permissions(CallerIdentity("user", "CN=b")) is not None


def test_a_pattern_is_of_the_whole_name() -> None:
    permissions = parse_rules("- {users: a, see: pay}", "r").permissions(CallerIdentity("user", "a"))
    assert permissions is not None
    assert [permissions.may_see(name) for name in ("pay", "payments", "xpay", "pay\n")] == [True, False, False, False]


def test_rules_without_callers_that_have_names_are_refused(tmp_path: Path) -> None:
    lines = {"listeners": "http://127.0.0.1:0", "heliograph.rest.rules.file": str(tmp_path)}
    with pytest.raises(ConfigError, match="rules need callers with names"), guarded_worker(lines):
        pass


def test_changed_rules_count_at_once(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("- {users: ann, see: x}")
    herder = FakeHerder()
    herder.create("x", {**HEARTBEAT, "name": "x"}, None)
    with guarded_worker({**login_lines(tmp_path, "ann"), "heliograph.rest.rules.file": str(file)}, herder) as running:
        assert running.log_in("ann").ask("GET", "/connectors").body == ["x"]
        file.write_text("- {users: ann, see: yy}")
        assert running.ask("GET", "/connectors").body == []


def test_connectors_of_a_file_are_held_to_the_rules_too(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("- {users: ann, change: A->B.*}")
    herder = FakeHerder()
    for name in ("A->B.MirrorSourceConnector", "B->A.MirrorSourceConnector"):
        herder.create(name, {**HEARTBEAT, "name": name}, None)
    lines = {**login_lines(tmp_path, "ann"), "heliograph.rest.rules.file": str(file)}
    with guarded_worker(lines, herder, read_only=True) as running:
        assert running.ask("GET", "/connectors").status == 401
        assert running.log_in("ann").ask("GET", "/connectors").body == ["A->B.MirrorSourceConnector"]
        assert running.ask("GET", "/connectors/B-%3EA.MirrorSourceConnector/status").status == 404
        assert running.ask("DELETE", "/connectors/A-%3EB.MirrorSourceConnector").status == 403


def test_a_patch_cannot_send_elsewhere_what_its_caller_may_not_name(worker: RestWorker) -> None:
    worker.herder.configs[PAYMENTS] = {**HEARTBEAT, JAAS: "x required password=${file:/secrets/platform/p:key};"}
    patch = {"source.cluster.bootstrap.servers": "elsewhere:9092"}
    refused = worker.log_in("payments").ask("PATCH", f"/connectors/{PAYMENTS}/config", patch)
    assert (refused.status, "/secrets/platform/p" in refused.body["message"]) == (403, True)
    assert "source.cluster.bootstrap.servers" not in worker.herder.configs[PAYMENTS]
