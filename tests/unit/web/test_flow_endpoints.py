"""`/heliograph/v1` and the probes: what a caller may see, a page at a time, and nothing where nothing is known."""

from __future__ import annotations

from typing import Any, cast

import pytest

from heliograph.cli.connect_client import ConnectClient, FlowsClient
from heliograph.connect.runtime.connect_worker import StartingHerder
from heliograph.model import Flow, RestartRequest
from heliograph.status.flow_snapshot import FlowLosses, FlowSnapshot
from heliograph.status.losses import Loss, LossCause
from heliograph.status.partition_status import PartitionState
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.flow_snapshots import flow, partition
from tests.support.connect.rest_worker import rest_worker

MIRROR = flow("mirror", partition("t", 0, PartitionState.CAUGHT_UP, 0), partition("t", 1, PartitionState.FAILED, 5_121))


class Asked:
    def __init__(self, *flows: FlowSnapshot) -> None:
        self.herder = FakeHerder()
        self.herder.flow_snapshots = list(flows)

    def get(self, path: str) -> tuple[int, Any]:
        with rest_worker(self.herder) as worker:
            answer = worker.ask("GET", path)
            return answer.status, answer.body


def test_a_failed_partition_counts_in_the_lag_of_its_flow() -> None:
    status, body = Asked(MIRROR).get("/heliograph/v1/flows")
    assert status == 200
    (shown,) = body["flows"]
    assert (shown["lag_records"], shown["lag_records_at_least"], shown["lag_seconds"]) == (5_121, 5_121, 512.1)
    assert shown["partitions"] == {
        "total": 2, "copying": 0, "caught_up": 1, "waiting": 0, "retrying": 0, "failed": 1, "done": 0,
    }  # fmt: skip
    assert shown["tasks"] == [{"id": 0, "state": "FAILED", "partitions": 2, "trace": "t-1: no."}]


def test_a_lag_that_is_not_known_is_null() -> None:
    some = flow("f", partition("t", 0, PartitionState.COPYING, 3), partition("t", 1, PartitionState.WAITING, None))
    shown = Asked(some).get("/heliograph/v1/flows/f")[1]
    assert (shown["lag_records"], shown["lag_records_at_least"], shown["partitions_with_unknown_lag"]) == (None, 3, 1)
    assert shown["lag_seconds"] is None


def test_partitions_are_found_by_state_and_topic_and_come_in_pages() -> None:
    asked = Asked(flow("a->b", *(partition("t", n, PartitionState.COPYING, n) for n in range(5)), *MIRROR.partitions))
    path = "/heliograph/v1/flows/a-%3Eb/partitions"
    status, page = asked.get(f"{path}?limit=3&start=3")
    assert (status, [row["partition"] for row in page["partitions"]], page["next"]) == (200, [3, 4, 0], 6)
    (failed,) = asked.get(f"{path}?state=failed&topic=t")[1]["partitions"]
    assert failed == {
        "topic": "t",
        "partition": 1,
        "remote_topic": "A.t",
        "state": "failed",
        "since": "2023-11-14T22:13:20.000Z",
        "reason": "the batch at offset 7 was refused",
        "position": 7,
        "log_end": 5_128,
        "log_end_at": "2023-11-14T22:13:20.000Z",
        "lag_records": 5_121,
        "lag_seconds": 512.1,
        "last_acknowledged": None,
        "records": 7,
        "bytes": 700,
    }
    assert asked.get(f"{path}?topic=other")[1] == {"partitions": [], "total": 0, "next": None}


def test_a_page_has_at_most_a_thousand_partitions_and_the_command_reads_all_pages() -> None:
    herder = Asked(flow("f", *(partition("t", n, PartitionState.COPYING, n) for n in range(2_500)))).herder
    with rest_worker(herder) as worker:
        page = worker.ask("GET", "/heliograph/v1/flows/f/partitions").body
        assert (len(page["partitions"]), page["total"], page["next"]) == (1_000, 2_500, 1_000)
        assert len(FlowsClient(ConnectClient(worker.url)).partitions("f")) == 2_500


@pytest.mark.parametrize(
    "query", ["state=lost", "limit=0", "limit=1001", "limit=x", "start=-1", "start=99999999999", "start=%D9%A3"]
)
def test_a_wrong_parameter_is_refused(query: str) -> None:
    status, body = Asked(MIRROR).get(f"/heliograph/v1/flows/mirror/partitions?{query}")
    assert (status, body["error_code"]) == (400, 400)
    assert body["message"].startswith(f"The parameter '{query.partition('=')[0]}' must be ")


def loss(at_ms: int, count: int) -> Loss:
    return Loss(at_ms, Flow("A", "B"), "t", 1, 10, 9 + count, count, LossCause.SOURCE_TRUNCATED)


def test_losses_come_in_pages_the_newest_first() -> None:
    asked = Asked(MIRROR)
    asked.herder.flow_losses = [
        FlowLosses("mirror", "mirror", (loss(3_000, 3), loss(1_000, 1))),
        FlowLosses("other", "other", (loss(2_000, 2),)),
    ]
    status, body = asked.get("/heliograph/v1/losses?limit=2")
    assert (status, body["total"], body["next"]) == (200, 3, 2)
    assert [(row["flow"], row["count"]) for row in body["losses"]] == [("mirror", 3), ("other", 2)]
    assert asked.get("/heliograph/v1/losses?start=2")[1] == {
        "losses": [
            {
                "at": "1970-01-01T00:00:01.000Z",
                "flow": "mirror",
                "topic": "t",
                "partition": 1,
                "first_offset": 10,
                "last_offset": 10,
                "count": 1,
                "count_is_exact": True,
                "cause": "source_truncated",
            }
        ],
        "total": 3,
        "next": None,
    }
    assert [row["count"] for row in asked.get("/heliograph/v1/losses?flow=other")[1]["losses"]] == [2]
    assert asked.get("/heliograph/v1/losses?flow=none")[0] == 404
    assert asked.get("/heliograph/v1/losses?limit=0")[0] == 400


def test_an_unknown_flow_is_not_found() -> None:
    assert Asked(MIRROR).get("/heliograph/v1/flows/other") == (
        404,
        {"error_code": 404, "message": "Flow other not found"},
    )


def test_readiness_has_the_reasons_and_liveness_none() -> None:
    stalled = flow("stalled", unready=("cluster 'B': broker 1 at b:9092 has not answered a Produce request for 3 s",))
    asked = Asked(MIRROR, stalled)
    assert asked.get("/health/ready") == (
        503,
        {"status": "not ready", "reasons": [{"flow": "stalled", "reason": stalled.unready[0]}]},
    )
    assert asked.get("/health/live") == (200, {"status": "live"})
    assert Asked(MIRROR).get("/health/ready") == (200, {"status": "ready", "reasons": []})
    asked = Asked(MIRROR)
    asked.herder.ready = False
    assert asked.get("/health/ready")[0] == 503


def test_a_starting_worker_answers_its_probes() -> None:
    with rest_worker(cast("FakeHerder", StartingHerder())) as worker:
        assert worker.ask("GET", "/heliograph/v1/flows").status == 409
        answer = worker.ask("GET", "/health/ready")
        assert (answer.status, answer.body["reasons"]) == (503, [{"flow": None, "reason": "the worker is starting"}])
        assert worker.ask("GET", "/health/live").status == 200


def test_a_follower_answers_its_probes_itself() -> None:
    herder = FakeHerder()
    herder.leader = "http://127.0.0.1:1"
    with rest_worker(herder) as worker:
        assert worker.ask("GET", "/health/ready").body == {"status": "ready", "reasons": []}


@pytest.mark.parametrize(
    ("body", "request_"),
    [
        (None, RestartRequest()),
        ({}, RestartRequest()),
        ({"topic": "t"}, RestartRequest("t")),
        ({"topic": "t", "partition": 3, "from": "beginning"}, RestartRequest("t", 3, "beginning")),
        ({"topic": "t", "from": 17}, RestartRequest("t", None, 17)),
        ({"from": "committed"}, RestartRequest()),
    ],
)
def test_a_restart_of_partitions_reaches_the_herder(body: dict[str, object] | None, request_: RestartRequest) -> None:
    herder = Asked(flow("A->B")).herder
    with rest_worker(herder) as worker:
        reply = worker.ask("POST", "/heliograph/v1/flows/A-%3EB/restart", body)
        assert (reply.status, reply.body["restarted"][0]["from"]) == (202, 7)
        assert worker.ask("POST", "/heliograph/v1/flows/none/restart", body).status == 404
    assert herder.calls == [("restart_partitions", "A->B", request_)]


@pytest.mark.parametrize(
    "body",
    [{"partition": 1}, {"topic": 1}, {"topic": "t", "partition": -1}, {"from": "then"}, {"from": True}, {"to": 1}],
)
def test_a_restart_that_cannot_be_understood_is_refused(body: dict[str, object]) -> None:
    herder = Asked(flow("A->B")).herder
    with rest_worker(herder) as worker:
        assert worker.ask("POST", "/heliograph/v1/flows/A-%3EB/restart", body).status == 500
    assert herder.calls == []
