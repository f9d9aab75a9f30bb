"""A worker that does not lead passes requests on to the one that does."""

from __future__ import annotations

import socket
import threading

from heliograph.api.routes import ROUTES
from heliograph.worker.connect_errors import NO_LEADER
from tests.rest_worker import rest_worker

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


def test_without_a_leader_the_client_is_told_to_come_again() -> None:
    with rest_worker() as worker:
        worker.herder.leader = NO_LEADER.error()
        reply = worker.ask("PUT", "/connectors/x/pause")
        assert (reply.status, reply.body["message"]) == (409, NO_LEADER.text)
        assert worker.ask("GET", "/").status == 200


def test_a_leader_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
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
