"""A member against a scripted coordinator: every response that it can get, and none at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from heliograph.connect.group.group_protocol import GroupSettings
from heliograph.connect.group.leadership import decode_claim
from heliograph.connect.group.membership import Membership, Standing
from heliograph.errors import BrokerError, ClusterError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from tests.support.brokers.scripted_broker import LOST_AFTER, ScriptedCluster

LOADING, NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE = 14, 16, 22, 25, 27
GROUP_AUTHORIZATION_FAILED, MEMBER_ID_REQUIRED = 30, 79
_URL = "http://here:8083"
_PATIENCE_S = 60


class Worker:
    """A member of the scripted group, and the changes that it reported."""

    def __init__(
        self,
        cluster: ScriptedCluster,
        on_change: Callable[[Standing], None] | None = None,
        session_timeout_ms: int = 60_000,  # a member that only waits for the processor keeps its lead
    ) -> None:
        def make_admin(timeout_s: float) -> Admin:
            return Admin("scripted", cluster.bootstrap, Security(), "worker", timeout_s=timeout_s)

        self.reported: list[Standing] = []
        settings = GroupSettings("workers", session_timeout_ms=session_timeout_ms, heartbeat_interval_ms=20)
        self.member = Membership(make_admin, settings, _URL, on_change or self.reported.append)

    @property
    def lost_the_lead(self) -> bool:
        return any(not standing.is_leader for standing in self.reported)


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(brokers=2, topics={}) as cluster:
        yield cluster


@pytest.fixture
def worker(cluster: ScriptedCluster) -> Iterator[Worker]:
    yield from joined(Worker(cluster), cluster)


@pytest.fixture
def brief(cluster: ScriptedCluster) -> Iterator[Worker]:
    """A worker with a lease of 4 s."""
    yield from joined(Worker(cluster, session_timeout_ms=6_000), cluster)


def joined(worker: Worker, cluster: ScriptedCluster) -> Iterator[Worker]:
    worker.member.start()
    worker.member.wait_until_joined(_PATIENCE_S)
    wait_for(lambda: worker.reported)
    yield worker
    cluster.release(HeartbeatRequest)
    worker.member.stop()


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)


def leading(generation: int, since: int | None = None) -> Standing:
    return Standing(True, _URL, generation, since or generation)


def claims_of(cluster: ScriptedCluster) -> list[int | None]:
    claims = [decode_claim(bytes(r.protocols[0].metadata)) for r in cluster.requests(JoinGroupRequest)]
    return [claim.leads_since for claim in claims if claim is not None]


def test_a_member_alone_leads_and_leaves(cluster: ScriptedCluster, worker: Worker) -> None:
    assert worker.member.standing == leading(1)
    wait_for(lambda: len(cluster.requests(HeartbeatRequest)) > 3)
    worker.member.stop()
    assert not worker.member.is_leader
    assert worker.reported == [leading(1), Standing()]
    assert [request.member_id for request in cluster.requests(LeaveGroupRequest)] == ["member-1"]


def test_a_member_that_dies_does_not_leave(cluster: ScriptedCluster, worker: Worker) -> None:
    worker.member.stop(leave=False)
    assert cluster.requests(LeaveGroupRequest) == []


def test_a_member_takes_the_name_it_is_given(cluster: ScriptedCluster) -> None:
    cluster.script(JoinGroupRequest, MEMBER_ID_REQUIRED)
    worker = Worker(cluster)
    worker.member.start()
    worker.member.wait_until_joined(_PATIENCE_S)
    assert [request.member_id for request in cluster.requests(JoinGroupRequest)] == ["", "member-1"]
    worker.member.stop()


def test_a_leader_claims_the_lead_in_a_rebalance_and_keeps_it(cluster: ScriptedCluster, worker: Worker) -> None:
    for generation in (2, 3):
        cluster.script(HeartbeatRequest, REBALANCE)
        wait_for(lambda wanted=generation: worker.member.generation == wanted)
    assert claims_of(cluster) == [None, 1, 1]
    wait_for(lambda: worker.reported[-1] == leading(3, since=1))
    assert not worker.lost_the_lead


def test_a_leader_that_is_unknown_stops_and_comes_as_a_stranger(cluster: ScriptedCluster, worker: Worker) -> None:
    cluster.script(HeartbeatRequest, UNKNOWN_MEMBER)
    wait_for(lambda: worker.reported[-1] == leading(2))
    assert [request.member_id for request in cluster.requests(JoinGroupRequest)] == ["", ""]
    assert claims_of(cluster) == [None, None]


def test_a_leader_whose_generation_is_over_stops_and_joins_without_a_claim(
    cluster: ScriptedCluster, worker: Worker
) -> None:
    cluster.script(HeartbeatRequest, ILLEGAL_GENERATION)
    wait_for(lambda: worker.reported[-1] == leading(2))
    assert [request.member_id for request in cluster.requests(JoinGroupRequest)] == ["", "member-1"]
    assert claims_of(cluster) == [None, None]


def test_a_leader_that_resigns_joins_without_a_claim(cluster: ScriptedCluster, worker: Worker) -> None:
    worker.member.resign()
    wait_for(lambda: worker.reported[-1] == leading(2))
    assert [request.member_id for request in cluster.requests(JoinGroupRequest)] == ["", "member-1"]
    assert claims_of(cluster) == [None, None]


def test_a_leader_stays_while_its_join_is_not_answered(cluster: ScriptedCluster, brief: Worker) -> None:
    """A join lasts until all members have come; heartbeats meanwhile keep the lease."""
    cluster.hold(JoinGroupRequest)
    cluster.script(HeartbeatRequest, *[REBALANCE] * 400)
    wait_for(lambda: len(cluster.requests(JoinGroupRequest)) == 2)
    seen = len(cluster.requests(HeartbeatRequest))
    wait_for(lambda: len(cluster.requests(HeartbeatRequest)) > seen + 240)  # longer than the lease
    assert brief.member.is_leader
    cluster.release(JoinGroupRequest)
    wait_for(lambda: brief.member.generation >= 2)
    assert not brief.lost_the_lead


def test_a_silent_coordinator_ends_the_lead_and_its_word_brings_it_back(
    cluster: ScriptedCluster, brief: Worker
) -> None:
    cluster.hold(HeartbeatRequest)
    wait_for(lambda: brief.lost_the_lead)
    assert not brief.member.is_leader
    assert brief.member.leader_url is None
    cluster.release(HeartbeatRequest)
    wait_for(lambda: brief.member.is_leader)
    wait_for(lambda: len(brief.reported) == 3)
    # On a machine so slow that the session has ended meanwhile it had to join again.
    generation = len(cluster.requests(JoinGroupRequest))
    assert brief.reported == [leading(1), Standing(), leading(generation)]


def test_a_heartbeat_follows_a_coordinator_that_moves(cluster: ScriptedCluster, worker: Worker) -> None:
    cluster.coordinator = 2
    cluster.script(HeartbeatRequest, LOADING, NOT_COORDINATOR)
    wait_for(lambda: cluster.requests(HeartbeatRequest, node_id=2))
    assert not worker.lost_the_lead


def test_a_join_is_repeated_after_a_sync_that_failed(cluster: ScriptedCluster) -> None:
    cluster.script(JoinGroupRequest, LOADING, NOT_COORDINATOR, LOST_AFTER, UNKNOWN_MEMBER)
    cluster.script(SyncGroupRequest, REBALANCE, ILLEGAL_GENERATION, UNKNOWN_MEMBER)
    worker = Worker(cluster)
    worker.member.start()
    worker.member.wait_until_joined(_PATIENCE_S)
    assert worker.member.is_leader
    assert len(cluster.requests(SyncGroupRequest)) == 4
    worker.member.stop()


def test_a_missing_permission_is_named_and_waited_for(cluster: ScriptedCluster) -> None:
    cluster.script(JoinGroupRequest, GROUP_AUTHORIZATION_FAILED)
    worker = Worker(cluster)
    worker.member.start()
    with pytest.raises(BrokerError) as refused:
        worker.member.wait_until_joined(_PATIENCE_S)
    words = "'scripted' does not let us use the group 'workers'; the principal needs READ on it."
    assert str(refused.value) == words
    wait_for(lambda: worker.member.is_leader)
    assert worker.member.issue is None
    worker.member.stop()


def test_waiting_ends_with_what_is_known() -> None:
    with ScriptedCluster(topics={}) as cluster:
        cluster.hold(JoinGroupRequest)
        worker = Worker(cluster)
        worker.member.start()
        with pytest.raises(ClusterError, match="The group 'workers' has named no leader within 0 s"):
            worker.member.wait_until_joined(0.01)
        worker.member.stop(leave=False)


def test_a_worker_whose_callback_raises_leaves(cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _args: None)

    def fail(_standing: Standing) -> None:
        raise RuntimeError("no")

    worker = Worker(cluster, fail)
    worker.member.start()
    wait_for(lambda: cluster.requests(LeaveGroupRequest))
    assert not worker.member.is_leader


def test_rebalances_are_counted_with_the_time_of_the_last(cluster: ScriptedCluster, worker: Worker) -> None:
    first = worker.member.snapshot()
    assert (first.is_leader, first.is_rebalancing, first.generation, first.rebalances) == (True, False, 1, 1)
    assert first.rebalanced_at is not None
    assert abs(first.rebalanced_at - time.time()) < _PATIENCE_S
    cluster.script(HeartbeatRequest, REBALANCE)
    wait_for(lambda: worker.member.snapshot().rebalances == 2)
    last = worker.member.snapshot()
    assert last.generation == 2
    assert (last.rebalanced_at or 0) >= first.rebalanced_at
    worker.member.stop()
    assert worker.member.snapshot().is_leader is False
