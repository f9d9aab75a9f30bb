"""A worker that does not lead passes requests on to the one that does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from heliograph.connect.contract.refusals import NO_LEADER
from heliograph.embedded.process import free_ports
from heliograph.errors import ConnectError
from heliograph.web.access import callers
from heliograph.web.access.callers import HEADER, CallerIdentity, sign
from heliograph.web.endpoints.routes import ROUTES
from tests.support.clusters.certificates import Authority, subject
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import guarded_worker, login_lines, rest_worker

HEARTBEAT = {"connector.class": "MirrorHeartbeat", "source.cluster.alias": "A"}


def test_a_follower_answers_what_the_leader_answers() -> None:
    with rest_worker() as leader, rest_worker() as follower:
        follower.herder.leader = leader.url
        created = follower.ask("POST", "/connectors?x=1", {"name": "a b-ü", "config": HEARTBEAT})
        assert created.status == 201
        assert created.headers["location"] == f"{follower.url}/connectors/a%20b-%C3%BC"
        assert leader.herder.connectors() == ["a b-ü"]
        assert follower.herder.connectors() == []
        for path in ("/connectors", "/connectors?expand=info&expand=status", "/connectors/a%20b-%C3%BC/tasks"):
            assert follower.ask("GET", path).body == leader.ask("GET", path).body
        assert follower.ask("PUT", "/connectors/a%20b-%C3%BC/pause").status == 202
        assert leader.herder.targets == {"a b-ü": "PAUSED"}
        refused = follower.ask("GET", "/connectors/x")
        assert (refused.status, refused.body["message"]) == (404, "Connector x not found")
        assert follower.ask("HEAD", "/connectors").headers["content-length"] == str(len('["a b-ü"]'.encode()))
        assert follower.ask("DELETE", "/connectors/a%20b-%C3%BC").status == 204
        assert leader.herder.connectors() == []


def test_a_follower_answers_for_itself_what_concerns_itself() -> None:
    local = {row.path for row in ROUTES if row.is_local and row.method == "GET"}
    assert local == {
        "/",
        "/health",
        "/health/live",
        "/health/ready",
        "/metrics",
        "/connector-plugins",
        "/connector-plugins/{plugin}/config",
        "/admin/loggers",
        "/admin/loggers/{logger}",
    }
    with rest_worker() as follower:
        follower.herder.leader = "http://127.0.0.1:1"
        for path in local:
            assert follower.ask("GET", path.format(plugin="MirrorSource", logger="root")).status == 200


def test_two_that_take_each_other_for_the_leader_do_not_ask_in_circles() -> None:
    with rest_worker() as one, rest_worker() as other:
        one.herder.leader, other.herder.leader = other.url, one.url
        reply = one.ask("GET", "/connectors")
    assert (reply.status, reply.body["message"]) == (
        409,
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    )


def test_without_a_leader_the_client_is_asked_to_retry() -> None:
    with rest_worker() as worker:
        worker.herder.leader = NO_LEADER.error()
        reply = worker.ask("PUT", "/connectors/x/pause")
        assert (reply.status, reply.body["message"]) == (409, NO_LEADER.text)
        assert worker.ask("GET", "/").status == 200


def test_a_leader_that_does_not_answer_is_named() -> None:
    (port,) = free_ports(1)
    with rest_worker() as worker:
        worker.herder.leader = f"http://127.0.0.1:{port}/"
        reply = worker.ask("GET", "/connectors")
    assert reply.status == 500
    assert reply.body["message"].startswith(
        f"IO Error trying to forward REST request: http://127.0.0.1:{port}/ does not answer"
    )


def test_a_leader_that_speaks_no_http_is_an_error_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, rest_worker() as worker:
        worker.herder.leader = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def babble() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"babble\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        reply = worker.ask("GET", "/connectors")
        thread.join()
    assert reply.status == 500
    assert "does not answer" in reply.body["message"]


def answering(listener: socket.socket, head: str, piece: bytes, pieces: int) -> threading.Thread:
    """Somebody in the leader's place, who answers one request with these headers and so many pieces."""

    def answer() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(10_000)
            connection.sendall(f"HTTP/1.1 200 OK\r\nconnection: close\r\n{head}\r\n\r\n".encode())
            for _ in range(pieces):
                connection.sendall(piece)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_an_answer_that_is_cut_off_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, rest_worker() as worker:
        worker.herder.leader = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = answering(listener, "content-length: 100", b"[]", 1)
        reply = worker.ask("GET", "/connectors")
        thread.join()
    assert (reply.status, "IncompleteRead" in reply.body["message"]) == (500, True)


def test_an_answer_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.web.server.forwarding._MOST_ANSWER_BYTES", 1 << 20)
    with socket.create_server(("127.0.0.1", 0)) as listener, rest_worker() as worker:
        worker.herder.leader = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = answering(listener, "content-type: application/json", b" " * (1 << 20), 64)
        reply = worker.ask("GET", "/connectors")
        thread.join()
    assert reply.status == 500
    assert "longer than 1048576 bytes" in reply.body["message"]


@pytest.mark.parametrize("leader", ["http://[x", "http://127.0.0.1:99999999", "http://a\0b:1", "ftp://127.0.0.1:1", ""])
def test_a_leader_without_a_usable_address_is_one_that_does_not_answer(leader: str) -> None:
    with rest_worker() as worker:
        worker.herder.leader = leader
        reply = worker.ask("GET", "/connectors")
    assert reply.status == 500
    assert reply.body["message"].startswith("IO Error trying to forward REST request: ")


@pytest.mark.parametrize("kind", ["text/html", "text/plain"])
def test_an_answer_makes_neither_a_page_nor_headers(kind: str) -> None:
    """A page of the follower's address could call its API from the browser of who looks at it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, rest_worker() as worker:
        worker.herder.leader = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = answering(listener, f"content-type: {kind}", b'[\r\n"x-forged: 1", "<script>"]', 1)
        reply = worker.ask("GET", "/connectors")
        thread.join()
    assert reply.body == ["x-forged: 1", "<script>"]
    assert reply.headers["content-type"] == "application/json"
    assert "allow" not in reply.headers


# --- callers with names ---------------------------------------------------------------------------
RULES = "- {users: payments, change: payments-.*}\n- {users: platform, change: .*}\n"


@pytest.fixture
def lines(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "rules.yaml").write_text(RULES)
    named = login_lines(tmp_path, "payments", "platform")
    return {**named, "heliograph.rest.rules.file": f"{tmp_path}/rules.yaml"}


def test_the_leader_holds_a_caller_of_a_follower_to_its_rules(lines: dict[str, str]) -> None:
    with guarded_worker(lines) as leader, guarded_worker(lines) as follower:
        follower.herder.leader = leader.url
        assert follower.ask("GET", "/connectors").status == 401
        for name in ("payments-ü", "orders-1"):
            created = follower.log_in("platform").ask("POST", "/connectors", {"name": name, "config": HEARTBEAT})
            assert created.status == 201
        follower.log_in("payments")
        assert follower.ask("GET", "/connectors?expand=info").body.keys() == {"payments-ü"}
        assert follower.ask("HEAD", "/connectors").status == 200
        assert follower.ask("DELETE", "/connectors/orders-1").status == 404
        assert follower.ask("POST", "/connectors", {"name": "orders-2", "config": HEARTBEAT}).status == 403
        assert follower.ask("DELETE", "/connectors/payments-%C3%BC?x=1").status == 204
        assert leader.herder.connectors() == ["orders-1"]


def test_a_password_does_not_travel_to_the_leader(lines: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, guarded_worker(lines) as follower:
        follower.herder.leader = f"http://127.0.0.1:{listener.getsockname()[1]}"
        heard: list[bytes] = []

        def hear() -> None:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(10_000))

        thread = threading.Thread(target=hear)
        thread.start()
        assert follower.log_in("payments").ask("GET", "/connectors").status == 500
        thread.join()
    assert b"x-heliograph-forwarded: " in heard[0]
    assert b"authorization" not in heard[0].lower()


def test_only_a_worker_of_the_group_can_name_the_caller(lines: dict[str, str]) -> None:
    platform, payments = CallerIdentity("user", "platform"), CallerIdentity("user", "payments")
    body, target = b'{"name": "orders-9", "config": {}}', "/connectors?forward=false"
    with guarded_worker(lines) as leader:
        key = leader.herder.keys[0]

        def signed(by: bytes = key) -> str:
            return sign(platform, "POST", target, body, by)

        def ask(header: str, method: str = "POST", target: str = target, body: bytes = body) -> int:
            headers = {"content-type": "application/json", HEADER: header}
            return leader.send(method, target, body, headers).status

        assert ask(signed()) == 400, "let in, and refused for its config"
        assert ask(signed(b"another key")) == 401
        assert ask(signed(), body=b"{}") == 401
        assert ask(signed(), target="/connectors?forward=false&x=1") == 401
        assert ask(signed(), method="PUT", target="/connectors/x/config") == 401
        of_payments, of_platform = sign(payments, "POST", target, body, key).partition("."), signed().partition(".")
        assert ask(f"{of_platform[0]}.{of_payments[2]}") == 401
        for nonsense in ("", ".", "x.y", "é.é", f"{of_platform[0]}", f"{of_platform[0]}."):
            assert ask(nonsense) == 401, nonsense
        leader.herder.keys = (b"a new key", key)
        assert ask(signed()) == 400, "the key before still counts"
        leader.herder.keys = (b"a newer key", b"a new key")
        assert ask(signed()) == 401


def test_a_signed_header_counts_once_and_for_half_a_minute(
    lines: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    platform, target, begin = CallerIdentity("user", "platform"), "/connectors?forward=false", 1_900_000_000.0
    with guarded_worker(lines) as leader:

        def ask(header: str, at: float) -> int:
            monkeypatch.setattr(callers.time, "time", lambda: at)
            return leader.ask("GET", target, **{HEADER: header}).status

        def signed(at: float = begin) -> str:
            monkeypatch.setattr(callers.time, "time", lambda: at)
            return sign(platform, "GET", target, b"", leader.herder.keys[0])

        header = signed()
        assert [ask(header, begin), ask(header, begin), ask(header, begin + 29)] == [200, 401, 401]
        ahead = signed(begin + 25)
        assert [ask(ahead, begin), ask(ahead, begin + 50)] == [200, 401], "a number is remembered as long as it is good"
        assert [ask(signed(), begin + 29), ask(signed(), begin + 31), ask(signed(), begin - 31)] == [200, 401, 401]
    assert caplog.text.count("Synchronize the clocks of the workers") == 1


def test_the_numbers_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "_MOST_REMEMBERED", 10)
    forwards, now, allowed = callers.Forwards(), 1_900_000_000.0, 0
    monkeypatch.setattr(callers.time, "time", lambda: now)

    def use() -> None:
        forwards.verify(sign(None, "GET", "/", b"", b"key"), "GET", "/", [b"key"])

    with pytest.raises(ConnectError):
        for allowed in range(20):  # noqa: B007
            use()
    assert allowed == 10
    now += 31
    use()


def test_without_a_session_key_the_client_is_asked_to_retry(lines: dict[str, str]) -> None:
    class Keyless(FakeHerder):
        def session_keys(self) -> tuple[bytes, ...]:
            raise NO_LEADER.error()

    with guarded_worker(lines, Keyless()) as follower:
        follower.herder.leader = "http://127.0.0.1:1"
        assert follower.log_in("payments").ask("GET", "/connectors").status == 409


def test_a_certificates_subject_is_passed_on_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    client = authority.issue("client", "payments")
    (tmp_path / "rules.yaml").write_text(f"- certificates: ['{subject(client)}']\n  change: payments-.*\n")
    secured = {**authority.lines("required"), "heliograph.rest.rules.file": f"{tmp_path}/rules.yaml"}
    with guarded_worker(secured) as leader, guarded_worker(secured) as follower:
        follower.herder.leader = leader.url
        follower.tls = authority.client(client)
        created = follower.ask("POST", "/connectors", {"name": "payments-1", "config": HEARTBEAT})
        assert (created.status, created.headers["location"]) == (201, f"{follower.url}/connectors/payments-1")
        assert follower.ask("POST", "/connectors", {"name": "orders-1", "config": HEARTBEAT}).status == 403
        assert leader.herder.connectors() == ["payments-1"]
        assert follower.ask("GET", "/connectors").body == ["payments-1"]


def test_nothing_is_sent_to_a_leader_whose_certificate_is_not_trusted(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = Authority(tmp_path / "one"), Authority(tmp_path / "two")
    with guarded_worker(one.lines()) as leader, guarded_worker(two.lines()) as follower:
        follower.herder.leader = leader.url
        follower.tls = two.client()
        reply = follower.ask("GET", "/connectors")
    assert reply.status == 500
    assert "certificate verify failed" in reply.body["message"]
