"""Who comes in to REST: the login, TLS, certificates of clients, and what is not waited for; over real sockets."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest
import trustme
from click.testing import CliRunner

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.main import cli
from heliograph.cli.rest_service import WantedRest, rest_option, wanted_rest
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.resolve.jaas import login_modules
from heliograph.config.validate import dedicated_file
from heliograph.errors import ConfigError, KeyStoreError
from heliograph.web.endpoints.routes import ROUTES
from heliograph.web.server import app
from heliograph.web.server.rest_server import RestProtocol
from tests.interop.rest_story import ask
from tests.support.clusters import stores
from tests.support.clusters.certificates import Authority
from tests.support.connect.rest_worker import PASSWORD, RestWorker, guarded_worker, login_lines

INTERNAL = [("POST", "/connectors/x/tasks"), ("PUT", "/connectors/x/fence")]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestWorker]:
    with guarded_worker(login_lines(tmp_path_factory.mktemp("login"), "ann", "bob")) as running:
        yield running


@pytest.fixture
def worker(guarded: RestWorker) -> RestWorker:
    """Where nobody is logged in yet."""
    return guarded.log_in(None)


# --- the login ------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.path}")
def test_every_endpoint_asks_for_the_login_but_those_connect_leaves_open(row: object, worker: RestWorker) -> None:
    method, path = row.method, row.path.replace("{connector}", "x")  # type: ignore[attr-defined]
    reply = worker.ask(method, path, None if method == "GET" else {})
    if (method, path) in INTERNAL:
        assert (reply.status, reply.body["message"]) == (400, "Internal request missing required signature")
        return
    assert reply.status == 401
    assert reply.body == {"error_code": 401, "message": "User cannot access the resource."}
    assert reply.headers["www-authenticate"] == 'Basic realm="Connect"'
    assert worker.ask("OPTIONS", path).status == 401
    assert worker.log_in("ann").ask(method, path, None if method == "GET" else {}).status != 401


@pytest.mark.parametrize(
    "authorization",
    [
        "Basic YW5uOndyb25n",  # ann:wrong
        "Basic Y2FybDpzZWNyZXQ=",  # carl:secret
        "Basic OnNlY3JldA==",  # no name
        "Basic YW5u",  # no colon
        "Basic !!!",
        "Basic /w==",
        "Basic",
        "Bearer YW5uOnNlY3JldA==",
        "",
    ],
)
def test_a_wrong_login_is_not_let_in(worker: RestWorker, authorization: str) -> None:
    assert worker.ask("GET", "/connectors", authorization=authorization).status == 401


def test_a_right_login_is_let_in(worker: RestWorker) -> None:
    assert worker.log_in("bob").ask("GET", "/connectors").body == []
    assert worker.ask("GET", "/connectors", authorization="bAsIc Ym9iOnNlY3JldA==").status == 200


def test_a_changed_file_of_users_counts_at_once_and_an_unreadable_one_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with guarded_worker(login_lines(tmp_path, "ann", "bob")) as worker:
        (tmp_path / "users.properties").write_text("ann=another\n")
        assert worker.log_in("ann").ask("GET", "/connectors").status == 401
        assert worker.log_in("ann", "another").ask("GET", "/connectors").status == 200
        (tmp_path / "users.properties").write_bytes(b"\xff\xfe")
        assert worker.ask("GET", "/connectors").status == 200
        assert "REST continues with the files as last read" in caplog.text
        assert "another" not in caplog.text
        (tmp_path / "users.properties").write_text("")
        assert worker.ask("GET", "/connectors").status == 401, "an empty file lets nobody in"


def test_a_stranger_is_refused_before_his_body_is_read(worker: RestWorker) -> None:
    with connected(worker) as stranger:
        stranger.sendall(b"POST /connectors HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        answer = read_all(stranger)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    ("jaas", "words"),
    [
        ("", "there is no section KafkaConnect"),
        ("KafkaClient { a.B required; };", "there is no section KafkaConnect"),
        ("KafkaConnect { a.B required; };", "must have one login module, .*PropertyFileLoginModule, not a.B"),
        ("KafkaConnect { };", "there is no section KafkaConnect"),
        ("KafkaConnect { MODULE required file=a; MODULE required file=b; };", "must have one login module"),
        ("KafkaConnect { MODULE required; };", "lacks the option file"),
        ('KafkaConnect { MODULE required file="/none/x"; };', "/none/x: REST's login needs this file"),
        ("KafkaConnect { MODULE required file=x }", "a semicolon is missing"),
        ("KafkaConnect { MODULE required file x; };", "'=' is expected"),
        ("KafkaConnect { MODULE required file=a;", "there is no section KafkaConnect"),
        ("KafkaConnect MODULE", "there is no section KafkaConnect"),
        ('KafkaConnect { MODULE required file="x; };', "a quote is opened and not closed"),
    ],
)
def test_a_jaas_file_that_names_no_users_is_a_sentence(tmp_path: Path, jaas: str, words: str) -> None:
    lines = login_lines(tmp_path)
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    (tmp_path / "jaas.conf").write_text(jaas.replace("MODULE", module))
    with pytest.raises(ConfigError, match=words), guarded_worker(lines):
        pass


def test_a_jaas_file_is_read_as_java_reads_it() -> None:
    text = """
    // for brokers; not for REST
    KafkaServer { a.B required user="x;}" ; };
    /* two
       modules */
    KafkaConnect {
        a.B required   # the first
            file="/with \\"quotes\\"/x" other=plain;
        c.D sufficient;
    };
    """
    found = login_modules(text, "KafkaConnect", "jaas.conf")
    assert [(module.class_name, module.options) for module in found] == [
        ("a.B", {"file": '/with "quotes"/x', "other": "plain"}),
        ("c.D", {}),
    ]


def test_a_jaas_file_may_be_named_as_for_a_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = login_lines(tmp_path, "ann")
    file = lines.pop("heliograph.rest.jaas.config.file")
    with (
        pytest.raises(ConfigError, match=r"rest\.extension\.classes: the login needs a JAAS file"),
        guarded_worker(lines),
    ):
        pass
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={file} -Da=b")
    with guarded_worker(lines) as running:
        assert running.ask("GET", "/").status == 401
        assert running.log_in("ann").ask("GET", "/").status == 200


def test_an_extension_that_is_not_there_is_refused_since_it_may_have_been_the_lock(tmp_path: Path) -> None:
    lines = {**login_lines(tmp_path), "rest.extension.classes": "com.example.Security"}
    with pytest.raises(ConfigError, match=r"com\.example\.Security is a Java class"), guarded_worker(lines):
        pass


# --- TLS ------------------------------------------------------------------------------------------
def test_https_and_http_are_served_side_by_side(authority: Authority) -> None:
    lines = {**authority.lines(), "listeners": "https://127.0.0.1:0, http://127.0.0.1:0"}
    with guarded_worker(lines) as running:
        secured, plain = running.server.listeners
        assert (secured.url[:8], plain.url[:7]) == ("https://", "http://")
        running.tls = authority.client()
        config = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"}
        created = running.ask("POST", "/connectors", {"name": "hb", "config": config})
        assert created.headers["location"] == f"{secured.url}/connectors/hb"
        assert ask(plain.url, "GET", "/connectors")[2] == b'["hb"]'
        running.tls = ssl.create_default_context()
        with pytest.raises(ssl.SSLCertVerificationError):
            running.ask("GET", "/")


@pytest.mark.parametrize("kind", ["PKCS12", "JKS", "inline"])
def test_the_key_may_be_in_a_store_of_any_kind(tmp_path: Path, kind: str) -> None:
    authority = stores.Authority()
    own = authority.issue("127.0.0.1")
    lines = {"listeners": "https://127.0.0.1:0", "listeners.https.ssl.keystore.password": stores.STORE_PASSWORD}
    location = "listeners.https.ssl.keystore.location"
    if kind == "inline":
        lines["listeners.https.ssl.keystore.key"] = own.key_pem()
        lines["listeners.https.ssl.keystore.certificate.chain"] = own.chain_pem
    elif kind == "JKS":
        lines[location] = str(own.jks_file(tmp_path / "own.jks"))
    else:
        lines[location] = str(own.pkcs12_file(tmp_path / "own.p12"))
    with guarded_worker(lines) as running:
        running.tls = ssl.create_default_context(cadata=authority.pem)
        assert running.ask("GET", "/connectors").status == 200


def test_a_client_without_the_certificate_that_is_required_is_not_heard(authority: Authority) -> None:
    with guarded_worker(authority.lines("required")) as running:
        running.tls = authority.client()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            running.ask("GET", "/connectors")
        (authority.folder / "other").mkdir()
        running.tls = authority.client(Authority(authority.folder / "other").issue("stranger"))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            running.ask("GET", "/connectors")
        running.tls = authority.client(authority.issue("client"))
        assert running.ask("GET", "/connectors").status == 200


def test_a_renewed_certificate_is_shown_to_the_next_client(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    def shown() -> bytes | None:
        with (
            connected(running) as plain,
            authority.client().wrap_socket(plain, server_hostname="127.0.0.1") as secured,
        ):
            return secured.getpeercert(binary_form=True)

    with guarded_worker(authority.lines()) as running:
        first = shown()
        assert first == shown()
        authority.issue("worker")
        second = shown()
        assert second != first
        (authority.folder / "worker.pem").write_text("half a fi")
        assert shown() == second
        assert "REST continues with the files as last read: listeners.https.ssl.keystore.location" in caplog.text


def test_a_trust_that_is_withdrawn_is_withdrawn_at_once(authority: Authority) -> None:
    with guarded_worker(authority.lines("required")) as running:
        running.tls = authority.client(authority.issue("client"))
        assert running.ask("GET", "/").status == 200
        trustme.CA().cert_pem.write_to_path(str(authority.file))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            running.ask("GET", "/")


def test_a_certificate_behind_a_placeholder_is_renewed_too(authority: Authority, tmp_path: Path) -> None:
    lines = authority.lines()
    stored = Path(lines.pop("listeners.https.ssl.keystore.location"))
    lines.pop("listeners.https.ssl.keystore.type", None)
    (tmp_path / "tls").mkdir()

    def mount() -> None:
        (tmp_path / "tls" / "both").write_bytes(stored.read_bytes())

    mount()
    key, chain = "listeners.https.ssl.keystore.key", "listeners.https.ssl.keystore.certificate.chain"
    held = f"${{dir:{tmp_path}/tls:both}}"
    with guarded_worker({**lines, key: held, chain: held}) as running:
        running.tls = authority.client()
        assert running.ask("GET", "/").status == 200
        first = ssl.get_server_certificate(("127.0.0.1", running.server.listeners[0].port))
        authority.issue("worker")
        mount()
        assert ssl.get_server_certificate(("127.0.0.1", running.server.listeners[0].port)) != first


def test_certificates_are_asked_for_over_tls_1_3_unless_the_file_wants_less(authority: Authority) -> None:
    older = authority.client(authority.issue("client"))
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    lines = authority.lines("required")
    with guarded_worker(lines) as running:
        running.tls = older
        with pytest.raises((ssl.SSLError, ConnectionError)):
            running.ask("GET", "/")
    with guarded_worker({**lines, "listeners.https.ssl.enabled.protocols": "TLSv1.2,TLSv1.3"}) as running:
        running.tls = older
        assert running.ask("GET", "/").status == 200


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (
            "listeners.https.ssl.keystore.location",
            "listeners.https.ssl.keystore.location: an https listener needs a key",
        ),
        ("listeners.https.ssl.truststore.location", "ssl.client.auth=required needs the certificates that are trusted"),
    ],
)
def test_what_https_lacks_is_named(authority: Authority, without: str, words: str) -> None:
    lines = {key: value for key, value in authority.lines("required").items() if key != without}
    with pytest.raises(ConfigError, match=words), guarded_worker(lines):
        pass


def test_the_prefix_counts_as_a_whole_and_the_files_own_keys_count_without_it(authority: Authority) -> None:
    plain = {key.removeprefix("listeners.https."): value for key, value in authority.lines("required").items()}
    with guarded_worker(plain) as running:
        running.tls = authority.client(authority.issue("client"))
        assert running.ask("GET", "/").status == 200
    with (
        pytest.raises(ConfigError, match="needs a key"),
        guarded_worker({**plain, "listeners.https.ssl.protocol": "TLSv1.3"}),
    ):
        pass


def test_a_store_that_cannot_be_read_is_named(authority: Authority) -> None:
    with (
        pytest.raises(KeyStoreError, match=r"listeners\.https\.ssl\.keystore\.location=/none/x"),
        guarded_worker({**authority.lines(), "listeners.https.ssl.keystore.location": "/none/x"}),
    ):
        pass


# --- what is not waited for -----------------------------------------------------------------------
OPEN = {"listeners": "http://127.0.0.1:0"}
JSON = b"Content-Type: application/json\r\n"


def connected(running: RestWorker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.server.listeners[0].port), 20)


def read_all(client: socket.socket) -> bytes:
    answer = b""
    while chunk := client.recv(10_000):
        answer += chunk
    return answer


def is_cut_off(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_headers_that_come_byte_by_byte_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with guarded_worker(OPEN) as running:
        assert running.ask("GET", "/connectors").status == 200
        monkeypatch.setattr(RestProtocol, "headers_timeout_s", 1.0)
        with connected(running) as silent, connected(running) as slow:
            with pytest.raises(ConnectionError):
                for byte in b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 10_000:
                    slow.sendall(bytes([byte]))
                    time.sleep(0.01)
            assert is_cut_off(silent)


def test_the_second_request_of_a_connection_is_not_waited_for_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RestProtocol, "headers_timeout_s", 3.0)  # the first one must come in time
    with guarded_worker(OPEN) as running, connected(running) as client:
        client.sendall(b"GET /connectors HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"[]"):
            more = client.recv(10_000)
            assert more, answer
            answer += more
        client.sendall(b"GET /conn")
        assert is_cut_off(client)


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "BODY_TIMEOUT_S", 0.5)
    with guarded_worker(OPEN) as running:
        with connected(running) as slow:
            slow.sendall(
                b"PUT /connectors/x/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 5\r\n\r\n{"
            )
            answer = read_all(slow)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert running.ask("GET", "/connectors").status == 200


def test_bodies_together_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LARGEST_BODIES_BYTES", 1000)
    with guarded_worker(OPEN) as running:
        head = b"PUT /connectors/x/config HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: 900\r\n\r\n"
        with connected(running) as first, connected(running) as second:
            first.sendall(head + b" " * 800)
            assert running.ask("GET", "/connectors").status == 200  # by now the first is being read
            second.sendall(head + b" " * 800)
            assert read_all(second).startswith(b"HTTP/1.1 429 ")
        assert running.ask("PUT", "/connectors/x/config", {"a": "b"}).status == 400


def test_a_body_that_says_it_is_too_large_is_refused_unread() -> None:
    with guarded_worker(OPEN) as running, connected(running) as client:
        client.sendall(
            b"PUT /connectors/x/config HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: 99999999\r\n\r\n"
        )
        assert read_all(client).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("method", "path", "login", "status"),
    [
        ("PUT", "/connectors/x/fence", None, 400),
        ("POST", "/connectors/x/tasks", None, 400),
        ("PUT", "/connectors/x/config", None, 401),
        ("PUT", "/no/such/path", None, 404),
        ("PUT", "/connectors", None, 405),
        ("PUT", "/connectors/orders-1/config", "ann", 404),
        ("PUT", "/connectors/shared-1/config", "ann", 403),
        ("PUT", "/admin/loggers/root", "ann", 403),
        ("PUT", "/connectors/ann-1/pause", "ann", 413),
        ("PUT", "/connectors/ann-1/config", "ann", 413),
    ],
)
def test_what_is_refused_is_refused_before_its_body_is_read(
    tmp_path: Path, method: str, path: str, login: str | None, status: int
) -> None:
    (tmp_path / "rules.yaml").write_text("- {users: ann, see: shared-.*, change: ann-.*}\n")
    lines = {**login_lines(tmp_path, "ann"), "heliograph.rest.rules.file": f"{tmp_path}/rules.yaml"}
    with guarded_worker(lines) as running, connected(running) as client:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n".encode() + JSON
        if login is not None:
            head += f"Authorization: {running.log_in(login).authorization}\r\n".encode()
        client.sendall(head + b"\r\n{")
        answer = read_all(client)  # until the connection is closed: the rest is not waited for
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_a_wrong_media_type_is_refused_before_its_body_is_read() -> None:
    with guarded_worker(OPEN) as running, connected(running) as client:
        client.sendall(
            b"PUT /connectors/x/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
            b"Content-Length: 9\r\n\r\n{"
        )
        assert read_all(client).startswith(b"HTTP/1.1 415 ")


def test_bodies_of_internal_routes_take_nothing_of_the_budget_of_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LARGEST_BODIES_BYTES", 1_200_000)
    head = b"PUT /connectors/x/fence HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: 65000\r\n\r\n"
    with guarded_worker(login_lines(tmp_path, "ann")) as running:
        strangers = [connected(running) for _stranger in range(20)]
        for stranger in strangers:
            # What is sent after the refusal may be cut off.
            with suppress(ConnectionError):
                stranger.sendall(head + b" " * 60_000)
        assert running.log_in("ann").ask("GET", "/connectors").status == 200
        config = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A", "x": "y" * 1_000_000}
        assert running.ask("PUT", "/connectors/x/config", config).status == 201
        for stranger in strangers:
            stranger.close()


def test_callers_without_a_certificate_do_not_take_the_budget_of_those_with_one(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LARGEST_UNNAMED_BODIES_BYTES", 1000)
    monkeypatch.setattr(app, "LARGEST_BODIES_BYTES", 2500)
    head = b"PUT /connectors/x/config HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: 100000\r\n\r\n"
    config = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A", "x": "y" * 2_000}
    with guarded_worker(authority.lines("requested")) as running, connected(running) as plain:
        running.tls = authority.client()
        with running.tls.wrap_socket(plain, server_hostname="127.0.0.1") as stranger:
            stranger.sendall(head + b" " * 900)
            assert running.ask("GET", "/connectors").status == 200
            assert running.ask("PUT", "/connectors/x/config", config).status == 429
            running.tls = authority.client(authority.issue("client"))
            assert running.ask("PUT", "/connectors/x/config", config).status == 201


def test_headers_beyond_all_reason_are_refused() -> None:
    with guarded_worker(OPEN) as running, connected(running) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000)
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")


# --- the REST of a file ---------------------------------------------------------------------------
def wanted(text: str, *arguments: str) -> WantedRest | None:
    """What `run FILE ARGUMENTS` would serve."""
    config = load(f"clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n{text}")
    found: list[WantedRest | None] = []

    @click.command()
    @rest_option
    def command() -> None:
        found.append(wanted_rest(config))

    command(list(arguments), standalone_mode=False)
    return found[0]


def load(text: str) -> MirrorMakerConfig:
    return dedicated_file.load(text, MachineLookup())


def test_the_rest_of_a_file_has_the_same_door(authority: Authority, tmp_path: Path) -> None:
    keys = {**login_lines(tmp_path, "ann"), **authority.lines("required")}
    text = "\n".join(f"{key} = {value}" for key, value in keys.items())
    for rest in (wanted(text), wanted(text.replace("listeners =", "x.y ="), "--rest", "https://127.0.0.1:0")):
        assert rest is not None
        assert [listener.url for listener in rest.listeners] == ["https://127.0.0.1:0"]
        assert rest.authenticator.listener_tls is not None
        assert rest.authenticator.challenge is not None
    plain = wanted(text, "--rest", "0")
    assert plain is not None
    assert plain.authenticator.challenge is not None, "a login is asked for also where there is no TLS"
    assert plain.authenticator.listener_tls is None


def test_a_file_whose_door_cannot_be_made_serves_no_rest_at_all(caplog: pytest.LogCaptureFixture) -> None:
    assert wanted("listeners = https://127.0.0.1:0") is None
    assert "REST is not served: ssl.keystore.location: an https listener needs a key" in caplog.text
    assert wanted("listeners = http://127.0.0.1:0\nrest.extension.classes = a.B") is None
    with pytest.raises(ConfigError, match="needs a key"):
        wanted("", "--rest", "https://127.0.0.1:0")


# --- the commands ---------------------------------------------------------------------------------
def test_the_commands_log_in_and_trust_whom_they_are_told_to(authority: Authority, tmp_path: Path) -> None:
    def connectors(*options: object) -> object:
        result = CliRunner().invoke(cli, ["connectors", "--url", running.url, "--json", *map(str, options)])
        return result.output if result.exception is None else str(result.exception)

    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    client = authority.issue("client")
    login = ("--user", "ann", "--password-file", tmp_path / "password")
    with guarded_worker({**login_lines(tmp_path, "ann"), **authority.lines("required")}) as running:
        assert connectors("--ca-file", authority.file, "--cert-file", client, *login) == "[]\n"
        refused = connectors("--ca-file", authority.file, "--cert-file", client)
        assert refused == "User cannot access the resource. (HTTP 401)"
        assert "cannot be trusted" in str(connectors(*login))
        assert "--ca-file" in str(connectors(*login))
        assert "broke off" in str(connectors("--ca-file", authority.file, *login))
