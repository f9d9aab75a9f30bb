"""Every way into a cluster, on real brokers, data through each; what is wrong is one sentence, and mends itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.spark.spark_engine import SparkEngine
from heliograph.errors import AuthenticationError, UnreachableError
from heliograph.executor.copy.copy_loop import CopyLoop
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security import sasl as login_module
from tests.support.clusters.clients import make_topic, read, write
from tests.support.clusters.doors import PASSWORD, PLAIN, SCRAM, Doors, World, doors, world
from tests.support.clusters.stores import Authority
from tests.support.runs.copying import Copy, HandLease, run_in_background, wait_for
from tests.support.runs.day import day
from tests.support.runs.thread_engine import ThreadEngine

pytestmark = pytest.mark.broker

Way = tuple[str, str, str, str]  # door, mechanism, truststore, keystore


class Lab:
    """Two clusters with the same doors."""

    def __init__(self, made: World, north: Doors, south: Doors) -> None:
        self.world, self.north, self.south = made, north, south

    def parts(self, way: Way) -> list[dict[str, str]]:
        made, (_door, login, trusted, own) = self.world, way
        parts = [made.trusted(trusted)] if trusted else []
        parts += [made.own(own)] if own else []
        return parts + ([made.login(login)] if login else [])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with (
        world(tmp_path_factory.mktemp("doors")) as made,
        doors("north", made) as north,
        doors("south", made) as south,
    ):
        yield Lab(made, north, south)


CELLS: list[tuple[Way, Way]] = [
    (("PLAINTEXT", "", "", ""), ("SSL", "", "JKS", "")),
    (("SSL", "", "PKCS12", ""), ("PLAINTEXT", "", "", "")),
    (("SSL", "", "INLINE", ""), ("MTLS", "", "JKS", "JKS")),
    (("MTLS", "", "PKCS12", "PKCS12"), ("SASL_SSL", "PLAIN", "PEM", "")),
    (("MTLS", "", "PEM", "PEM"), ("SASL_SSL", "SCRAM-SHA-256", "JKS", "")),
    (("MTLS", "", "JKS", "INLINE"), ("SASL_SSL", "SCRAM-SHA-512", "PKCS12", "")),
    (("SASL_SSL", "PLAIN", "JKS", ""), ("SASL_SSL", "OAUTHBEARER", "PEM", "")),
    (("SASL_SSL", "SCRAM-SHA-256", "PEM", ""), ("MTLS", "", "INLINE", "INLINE")),
    (("SASL_SSL", "SCRAM-SHA-512", "INLINE", ""), ("SASL_PLAINTEXT", "PLAIN", "", "")),
    (("SASL_SSL", "OAUTHBEARER", "PKCS12", ""), ("SASL_SSL", "SCRAM-SHA-512", "PEM", "")),
    (("SASL_PLAINTEXT", "SCRAM-SHA-256", "", ""), ("SSL", "", "PEM", "")),
]


@pytest.mark.parametrize(("here", "there"), CELLS, ids=lambda way: "+".join(filter(None, way)))
def test_records_cross_every_border(lab: Lab, here: Way, there: Way, alias: str, topic: str) -> None:
    make_topic(lab.north.cluster, topic)
    write(lab.north.cluster, topic, ({"value": b"%d" % n, "partition": n % 2} for n in range(200)))
    copy = Copy(lab.north.cluster, lab.south.cluster, alias, topic)
    source = lab.north.spec(alias, here[0], *lab.parts(here))
    target = lab.south.spec("target", there[0], *lab.parts(there))
    copy.once(source=source, target=target)
    assert read(lab.south.cluster, copy.remote, 2) == read(lab.north.cluster, topic, 2)


@pytest.mark.parametrize(
    "keys",
    [
        {"ssl.protocol": "TLSv1.2"},
        {"ssl.enabled.protocols": "TLSv1.3"},
        {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
        {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256"},
    ],
    ids=lambda keys: "=".join(next(iter(keys.items()))),
)
def test_a_broker_is_met_by_the_versions_and_ciphers_that_are_allowed(lab: Lab, keys: dict[str, str]) -> None:
    spec = lab.north.spec("A", "SSL", lab.world.trusted(), keys)
    admin = Admin("A", spec.bootstrap, spec.security, "test", timeout_s=60)
    assert admin.view([]).brokers
    admin.close()


# --- what is wrong ----------------------------------------------------------------------------------------------------


def refused(lab: Lab, door: str, *parts: dict[str, str]) -> str:
    spec = lab.north.spec("A", door, *parts)
    admin = Admin("A", spec.bootstrap, spec.security, "test", timeout_s=60)
    with pytest.raises(AuthenticationError) as caught:
        admin.view([])
    sentence = str(caught.value)
    assert sentence.startswith("The cluster 'A' cannot be used: ")
    assert "canary" not in sentence
    return sentence


@pytest.mark.parametrize(("mechanism", "why"), [("PLAIN", "Invalid username or password"), ("SCRAM-SHA-256", "SCRAM")])
def test_a_wrong_password_is_named_by_user_and_key(lab: Lab, mechanism: str, why: str) -> None:
    login = lab.world.login(mechanism)
    login["sasl.jaas.config"] = login["sasl.jaas.config"].replace(PASSWORD, "wrong-canary")
    sentence = refused(lab, "SASL_SSL", lab.world.trusted(), login)
    assert "refused the user 'mirror' of A.sasl.jaas.config: " in sentence
    assert why in sentence


def test_a_token_for_others_is_refused_by_the_broker(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("bm9ib2R5.bm9ib2R5.bm9ib2R5")
    login = lab.world.login("OAUTHBEARER") | {"sasl.oauthbearer.token.endpoint.url": f"file://{file}"}
    sentence = refused(lab, "SASL_SSL", lab.world.trusted(), login)
    assert "refused the token of A.sasl.oauthbearer.token.endpoint.url" in sentence


def test_a_wrong_client_secret_is_refused_by_the_token_endpoint(lab: Lab) -> None:
    keys = {"sasl.oauthbearer.client.credentials.client.secret": "wrong-canary"}
    sentence = refused(lab, "SASL_SSL", lab.world.trusted(), lab.world.login("OAUTHBEARER"), keys)
    assert "refused the client 'mirror' (HTTP 401: invalid_client)" in sentence
    assert "check A.sasl.oauthbearer.client.credentials.client.secret" in sentence


def test_a_mechanism_the_broker_has_not_is_named_with_those_it_has(lab: Lab) -> None:
    spec = lab.north.spec("A", "SASL_SSL", lab.world.trusted(), lab.world.login("PLAIN"))
    admin = Admin("A", spec.bootstrap, replace(spec.security, mechanism="SCRAM-SHA-1"), "test", timeout_s=60)
    with pytest.raises(AuthenticationError, match=r"does not take A\.sasl\.mechanism=SCRAM-SHA-1; it takes .*PLAIN"):
        admin.view([])


def test_an_unknown_authority_an_expired_certificate_and_another_host_are_told_apart(lab: Lab, tmp_path: Path) -> None:
    trusted = lab.world.trusted()
    stranger = str(Authority("stranger").pem_file(tmp_path / "stranger.pem"))
    sentence = refused(lab, "SSL", trusted, {"ssl.truststore.location": stranger})
    assert "not trusted: self-signed certificate in certificate chain" in sentence
    assert "must be in A.ssl.truststore.location" in sentence
    assert "certificate has expired" in refused(lab, "EXPIRED", trusted)
    sentence = refused(lab, "ELSEWHERE", trusted)
    assert "IP address mismatch, certificate is not valid for '127.0.0.1'" in sentence
    assert "or leave A.ssl.endpoint.identification.algorithm empty" in sentence


def test_the_host_name_is_not_looked_at_where_it_shall_not_be(lab: Lab) -> None:
    keys = {"ssl.endpoint.identification.algorithm": ""}
    spec = lab.north.spec("A", "ELSEWHERE", lab.world.trusted(), keys)
    admin = Admin("A", spec.bootstrap, spec.security, "test", timeout_s=60)
    assert admin.view([]).brokers
    admin.close()


def test_a_missing_client_certificate_and_a_strange_one_are_told_apart(lab: Lab, tmp_path: Path) -> None:
    sentence = refused(lab, "MTLS", lab.world.trusted())
    assert "asks for a client certificate" in sentence
    assert "set A.ssl.keystore.location" in sentence
    strange = Authority("stranger").issue(name="mirror").pem_file(tmp_path / "strange.pem")
    sentence = refused(lab, "MTLS", lab.world.trusted(), {"ssl.keystore.location": str(strange)})
    assert "refused our client certificate" in sentence


def test_the_wrong_protocol_is_named(lab: Lab) -> None:
    spec = lab.north.spec("A", "SSL", lab.world.trusted())
    port = int(lab.north.cluster.bootstrap.rpartition(":")[2])
    address = spec.bootstrap[0]._replace(port=port)
    admin = Admin("A", (address,), spec.security, "test", timeout_s=60)
    with pytest.raises(UnreachableError, match=r"while TLS was agreed on; is A\.security\.protocol its listener's"):
        admin.view([])


# --- sessions and secrets that change ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_session_is_renewed_before_it_ends_and_no_connection_is_lost(
    lab: Lab, mechanism: str, alias: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half a session is left for the renewal: the usual fifth of one so short is less than a busy machine may take.
    monkeypatch.setattr(login_module, "_MIN_RENEWAL_SHARE", 0.4)
    monkeypatch.setattr(login_module, "_MAX_RENEWAL_SHARE", 0.5)
    make_topic(lab.north.cluster, topic)
    copy = Copy(lab.north.cluster, lab.south.cluster, alias, topic)
    parts = (lab.world.trusted(), lab.world.login(mechanism))
    lease = HandLease()
    source, target = lab.north.spec(alias, "SHORT", *parts), lab.south.spec("target", "SHORT", *parts)
    loop = CopyLoop(copy.spec(once=False, source=source, target=target), lease)
    join = run_in_background(loop)
    write(lab.north.cluster, topic, [{"value": b"first", "partition": 0}])
    wait_for(lambda: copy.committed().get((topic, 0)) == 0)  # type: ignore[call-overload]
    before = {connection: connection.session for connection in loop._clients.network._lost_callbacks}
    firsts = {connection: session.log_in_at for connection, session in before.items() if session}
    assert firsts
    wait_for(lambda: all(c.session.log_in_at > first + 1 for c, first in firsts.items() if c.session))
    wait_for(lambda: all(c.session.log_in_at > first + 3 for c, first in firsts.items() if c.session))
    write(lab.north.cluster, topic, [{"value": b"second", "partition": 0}])
    wait_for(lambda: copy.committed().get((topic, 0)) == 1)  # type: ignore[call-overload]
    assert set(firsts) <= set(loop._clients.network._lost_callbacks), "a connection was lost"
    lease.stop_reason = "the test is over"
    join()
    assert not any(report.issue or report.unavailable_clusters for report in lease.reports)


@contextmanager
def running_flow(lab: Lab, alias: str, topic: str, *lines: str) -> Iterator[SourceFlow]:
    text = (
        f"clusters = {alias}, target",
        f"target.bootstrap.servers = {lab.south.cluster.bootstrap}",
        f"{alias}->target.enabled = true",
        f"{alias}->target.topics = {topic}",
        "heartbeats.replication.enabled = false",
        "emit.offset-syncs.enabled = false",
        "heliograph.restart.backoff.max.ms = 500",
        "tasks.max = 1",
        *lines,
    )
    config = load("\n".join(text), MachineLookup())
    flow = SourceFlow(config, config.flows[0], cast("SparkEngine", ThreadEngine()), flow_count=1, keeps_trying=True)
    flow.start()
    try:
        yield flow
    finally:
        flow.stop()
        assert flow.join(180)


def test_a_password_that_changes_is_used_as_soon_as_the_file_has_it_without_a_restart(
    lab: Lab, alias: str, topic: str, tmp_path: Path
) -> None:
    """The old one stops working while the process runs with `--watch`: it names the login until the file is right."""
    make_topic(lab.north.cluster, topic)
    secret = tmp_path / "secret.properties"
    secret.write_text("password=first-canary\n")
    lab.north.set_password("first-canary", alias)
    jaas = f'{SCRAM} username="{alias}" password="${{file:{secret}:password}}";'
    keys = lab.north.keys("SHORT", lab.world.trusted(), {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas})
    lines = [f"{alias}.{name}={value}" for name, value in keys.items()]
    lines += ["heartbeats.replication.enabled=false", "tasks.max=1"]
    words = f"refused the user '{alias}' of {alias}.sasl.jaas.config"
    file = tmp_path / "mm2.properties"
    with day(lab.north.cluster, lab.south.cluster, alias, topic, *lines, watched=file) as flow:
        flow.write(10)
        flow.wait_until_caught_up()
        since = flow.begin_fault()
        lab.north.set_password("second-canary", alias)
        flow.await_all(
            "password changed noticed",
            since,
            60.0,  # a session lasts for ten seconds
            state=lambda: flow.state() == "retrying" and words in flow.partition()["reason"],
            lag=lambda: flow.whole()["lag_records"] is None,
            ready=lambda: flow.ready()[0] == 503 and words in flow.ready()[1],
            trace=lambda: flow.is_any("Source", "FAILED") and words in flow.trace(),
            log=lambda: flow.log(f"^ERROR .*{words}"),
            checkpoints=lambda: flow.is_only("Checkpoint", "FAILED") and words in flow.trace("Checkpoint"),
        )
        flow.write(5)
        assert flow.end(lab.south.cluster, f"{alias}.{topic}") == 10, "nobody gets in with the old one"
        secret.write_text("password=second-canary\n")
        flow.cleared("password changed", "task 0 runs again")
        wait_for(lambda: flow.is_only("Checkpoint", "RUNNING"))
        assert len(flow.log(f"^ERROR .*{words}")) <= 2, "of a renewal and of a login, however often it was tried"
        assert flow.log(f"{file}|canary") == [], "the file itself has not changed"
    assert read(lab.south.cluster, f"{alias}.{topic}", 2) == read(lab.north.cluster, topic, 2)


def assert_copied_once_mended(flow: SourceFlow, why: str, mend: AbstractContextManager[object]) -> None:
    """A flow of one record: FAILED, with one sentence; RUNNING without being asked to."""
    errors: list[str] = []

    def has_failed() -> bool:
        if flow.status.state == "FAILED" and (error := flow.error) is not None:  # until it is tried again
            errors.append(str(error))
        return bool(errors)

    wait_for(has_failed)
    assert errors[0].startswith(f"The cluster '{flow.flow.source}' cannot be used: ")
    assert why in errors[0]
    assert "canary" not in errors[0]
    with mend:
        wait_for(lambda: flow.status.state == "RUNNING" and flow.error is None)
        wait_for(lambda: flow.status.counts.records == 1)


@pytest.mark.parametrize(
    ("door", "why"), [("EXPIRED", "certificate has expired"), ("ELSEWHERE", "certificate is not valid for '127.0.0.1'")]
)
def test_a_flow_begins_once_its_broker_shows_a_certificate_that_holds(
    lab: Lab, door: str, why: str, alias: str, topic: str
) -> None:
    make_topic(lab.north.cluster, topic)
    write(lab.north.cluster, topic, [{"value": b"x", "partition": 0}])
    keys = lab.north.keys(door, lab.world.trusted())
    with running_flow(lab, alias, topic, *(f"{alias}.{name} = {value}" for name, value in keys.items())) as flow:
        assert_copied_once_mended(flow, why, lab.north.showing(door, lab.world.folder / "broker.pem"))


@pytest.mark.parametrize("what", ["truststore", "password"])
def test_a_flow_begins_once_its_files_are_right(lab: Lab, what: str, alias: str, topic: str, tmp_path: Path) -> None:
    make_topic(lab.north.cluster, topic)
    write(lab.north.cluster, topic, [{"value": b"x", "partition": 0}])
    authority = lab.world.authority if what == "password" else Authority("stranger")
    trusted = authority.pem_file(tmp_path / "ca.pem")
    secret = tmp_path / "secret.properties"
    secret.write_text(f"password={PASSWORD if what == 'truststore' else 'wrong-canary'}\n")
    login = {
        "ssl.truststore.location": str(trusted),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} username="mirror" password="${{file:{secret}:password}}";',
    }
    keys = lab.north.keys("SASL_SSL", login)

    @contextmanager
    def mended() -> Iterator[None]:
        lab.world.authority.pem_file(trusted)
        secret.write_text(f"password={PASSWORD}\n")
        yield

    why = f"must be in {alias}.ssl.truststore.location" if what == "truststore" else f"of {alias}.sasl.jaas.config"
    with running_flow(lab, alias, topic, *(f"{alias}.{name} = {value}" for name, value in keys.items())) as flow:
        assert_copied_once_mended(flow, why, mended())


def test_a_truststore_that_is_renewed_on_disk_is_used_by_the_next_connection(lab: Lab, tmp_path: Path) -> None:
    path = Authority("stranger").pem_file(tmp_path / "ca.pem")
    spec = lab.north.spec("A", "SSL", {"ssl.truststore.location": str(path)})
    admin = Admin("A", spec.bootstrap, spec.security, "test", timeout_s=60)
    with pytest.raises(AuthenticationError, match="not trusted"):
        admin.view([])
    lab.world.authority.pem_file(path)
    assert admin.view([]).brokers
    admin.close()
