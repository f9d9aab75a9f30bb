"""A plan names what MM2 makes for itself on both clusters, with the replicas that small clusters allow."""

from __future__ import annotations

from typing import Any, cast

from heliograph.config.validate.dedicated_file import load
from heliograph.kafka.admin.admin import Admin, ClusterView
from heliograph.model import Address, Flow
from heliograph.operations.flow_plan import FlowPlan, _Planner
from tests.support.config_files import FakeLookup, minimal


class FakeAdmin:
    """A cluster of some brokers and topics that can only be looked at."""

    def __init__(self, alias: str, topics: tuple[str, ...] = (), brokers: int = 1) -> None:
        self.alias = alias
        self._topics = topics
        self._brokers = {number: Address("b", 9092 + number) for number in range(brokers)}

    def view(self, names: list[str]) -> ClusterView:
        return ClusterView(self._brokers, 0, {name: 1 for name in names if name in self._topics}, {}, {})


def planned(source: FakeAdmin, target: FakeAdmin, *lines: str) -> FlowPlan:
    admins: Any = (cast("Admin", source), cast("Admin", target))
    planner = _Planner(load(minimal(*lines), FakeLookup()), Flow("A", "B"), *admins, None)
    planner._plan_internal_topics()
    return planner._plan


def test_fresh_clusters_get_heartbeats_both_ways() -> None:
    plan = planned(FakeAdmin("A"), FakeAdmin("B"))
    created = [topic.name for topic in plan.creates]
    assert created == ["mm2-offsets.A.internal", "heartbeats", "A.checkpoints.internal"]
    assert {topic.replication_factor for topic in plan.creates} == {1}
    bent = "with the default replication factor 3; using 1"
    assert plan.notes == [
        "heartbeats will be created on 'A' for the heartbeats of B->A, and copied to A.heartbeats",
        "mm2-offset-syncs.B.internal will be created on 'A' for the offset syncs",
        f"B: 1 broker cannot hold mm2-offsets.A.internal, heartbeats, A.checkpoints.internal {bent}",
        f"A: 1 broker cannot hold heartbeats, mm2-offset-syncs.B.internal {bent}",
    ]
    assert plan.issues == []


def test_what_is_there_or_not_wanted_is_not_planned() -> None:
    there = ("heartbeats", "mm2-offset-syncs.B.internal", "mm2-offsets.A.internal", "A.checkpoints.internal")
    plan = planned(FakeAdmin("A", there), FakeAdmin("B", there))
    assert (plan.creates, plan.notes) == ([], [])
    silent = planned(FakeAdmin("A", brokers=3), FakeAdmin("B", brokers=3), "emit.heartbeats.enabled=false")
    assert [note for note in silent.notes if "heartbeats" in note] == []
    lines = ("heartbeats.replication.enabled=false", "topics=orders")
    only = planned(FakeAdmin("A", brokers=3), FakeAdmin("B", brokers=3), *lines)
    assert "heartbeats will be created on 'A' for the heartbeats of B->A" in only.notes


def test_a_users_factor_that_a_cluster_cannot_hold_is_an_issue_on_either_side() -> None:
    lines = ("offset-syncs.topic.replication.factor=3", "checkpoints.topic.replication.factor=2")
    plan = planned(FakeAdmin("A"), FakeAdmin("B"), *lines)
    assert [issue.partition("; ")[0] for issue in plan.issues] == [
        "offset-syncs.topic.replication.factor is 3, but the cluster 'A' has 1 broker",
        "checkpoints.topic.replication.factor is 2, but the cluster 'B' has 1 broker",
    ]
