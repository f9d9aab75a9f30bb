"""Heartbeats, cycles, Identity (MirrorSourceConnectorTest), and circles that no name can prevent."""

from __future__ import annotations

import pytest

from heliograph.config.resolve.settings import Settings
from heliograph.mirror.policy.replication_policy import (
    DefaultReplicationPolicy,
    ReplicationPolicy,
    is_cycle,
    upstream_hops,
)
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.mirror.topics.topology import Topology, warn_about_cycles
from heliograph.model import Flow

IDENTITY = {"replication.policy.class": "IdentityReplicationPolicy"}
RENAME = {"replication.policy.class": "RenameReplicationPolicy"}


def settings(flow: Flow, **values: str) -> Settings:
    base = {"source.cluster.alias": flow.source, "target.cluster.alias": flow.target}
    return Settings(base | {name.replace("__", "-").replace("_", "."): value for name, value in values.items()})


def flow_rules(values: dict[str, str] | None = None, topology: Topology | None = None) -> TopicRules:
    base = {"source.cluster.alias": "source", "target.cluster.alias": "target"}
    return TopicRules.of(Settings(base | (values or {})), topology)


def test_replicates_heartbeats_by_default() -> None:
    rules = flow_rules()
    assert rules.replicates("heartbeats")
    assert rules.replicates("us-west.heartbeats")


def test_replicates_heartbeats_despite_filter() -> None:
    rules = flow_rules({"topics": "x"})
    assert rules.replicates("heartbeats")
    assert rules.replicates("us-west.heartbeats")
    assert not rules.replicates("my-heartbeats")
    with_separator = flow_rules({"topics": "x", "replication.policy.separator": "_"})
    assert with_separator.replicates("us-west_heartbeats")
    assert not with_separator.replicates("us-west.heartbeats")


def test_does_not_replicate_heartbeats_when_disabled() -> None:
    rules = flow_rules({"topics": "x", "heartbeats.replication.enabled": "false"})
    assert not rules.replicates("heartbeats")
    assert not rules.replicates("us-west.heartbeats")


def test_replicates_heartbeats_when_disabled_but_filter_allows() -> None:
    rules = flow_rules({"topics": ".*", "heartbeats.replication.enabled": "false"})
    assert rules.replicates("heartbeats")
    assert rules.replicates("us-west.heartbeats")


@pytest.mark.parametrize(
    "topic",
    ["target.topic1", "target.source.topic1", "source.target.topic1", "other.target.topic1", "target.heartbeats"],
)
def test_no_cycles(topic: str) -> None:
    assert not flow_rules().replicates(topic)


def test_no_cycles_of_a_cluster_with_itself() -> None:
    """KAFKA-9914, which 4.3.1 does not have: `source.source.source.heartbeats` grows no more."""
    assert flow_rules().replicates("topic1")
    assert flow_rules().replicates("other.topic1")
    assert not flow_rules().replicates("source.topic1")
    assert not flow_rules().replicates("other.source.topic1")
    assert not flow_rules(IDENTITY).replicates("source.heartbeats")


def test_identity_replication() -> None:
    rules = flow_rules(IDENTITY)
    for topic in ("topic1", "source.topic1", "target.topic1", "target.source.topic1"):
        assert rules.replicates(topic)
    assert rules.replicates("heartbeats")
    assert rules.replicates("us-west.heartbeats")
    assert not rules.replicates("target.heartbeats")
    assert not rules.replicates("target.source.heartbeats")


def test_identity_copies_a_topic_that_merely_ends_with_heartbeats_under_its_name() -> None:
    """In 4.3.1 `my-heartbeats` becomes `source.my-heartbeats`, is not found on the target and created for ever."""
    rules = flow_rules(IDENTITY)
    assert rules.remote_topic("my-heartbeats") == "my-heartbeats"
    assert rules.policy.topic_source("my-heartbeats") == "source"


class Vague(DefaultReplicationPolicy):
    """Knows where a topic comes from, but not its name there."""

    def upstream_topic(self, topic: str) -> str | None:  # noqa: ARG002
        return None


def test_is_cycle_with_null_upstream_topic() -> None:
    assert not is_cycle(Vague(), "other.topic", "source", "target")
    assert is_cycle(Vague(), "target.topic", "source", "target")


class Endless(ReplicationPolicy):
    """Calls every topic the copy of one with a longer name."""

    def format_remote_topic(self, source: str, topic: str) -> str:  # noqa: ARG002
        return topic.removesuffix("x")

    def topic_source(self, topic: str) -> str | None:  # noqa: ARG002
        return "other"

    def upstream_topic(self, topic: str) -> str | None:
        return f"{topic}x"


def test_a_policy_without_end_ends() -> None:
    assert not is_cycle(Endless(), "t", "source", "target")
    assert len(list(upstream_hops(Endless(), "t"))) == 249
    assert not Endless().is_heartbeats_topic("t")


A_B, B_A, B_C, C_A = Flow("A", "B"), Flow("B", "A"), Flow("B", "C"), Flow("C", "A")


def test_two_flows_that_keep_names_are_warned_of() -> None:
    (warning,) = warn_about_cycles({flow: settings(flow, **_plain(IDENTITY)) for flow in (A_B, B_A)})
    assert warning.startswith("A->B and B->A all copy topics of any name without changing the name")


def _plain(values: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in values.items()}


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (".*", "orders", "the topic 'orders'"),
        ("orders.*", ".*", "topics that begin with 'orders'"),
        (r"eu\.orders.*", r"eu\..*", "topics that begin with 'eu.orders'"),
        ("orders, pay", "pay, x", "the topic 'pay'"),
        ("(eu|us)-.*", "eu-.*", "topics that begin with 'eu-'"),
        ("orders.*", "pay.*", None),
        ("orders", "orders-eu", None),
        ("orders", "ord", None),
        ("", ".*", None),
    ],
)
def test_flows_are_warned_of_where_their_topics_overlap(one: str, other: str, shared: str | None) -> None:
    warnings = warn_about_cycles(
        {A_B: settings(A_B, topics=one, **_plain(IDENTITY)), B_A: settings(B_A, topics=other, **_plain(IDENTITY))}
    )
    assert len(warnings) == (shared is not None)
    assert all(str(shared) in warning for warning in warnings)


def test_a_circle_of_three_is_warned_of_once() -> None:
    circle = {flow: settings(flow, **_plain(IDENTITY)) for flow in (B_C, C_A, A_B)}
    (warning,) = warn_about_cycles(circle)
    assert warning.startswith("A->B, B->C and C->A all copy")
    assert warn_about_cycles(circle | {C_A: settings(C_A)}) == []


def test_a_rename_map_that_leaves_other_names_alone_is_warned_of() -> None:
    keeping = _plain(RENAME) | {"heliograph_rename_topics": "a=b", "heliograph_rename_otherwise": "identity"}
    assert len(warn_about_cycles({flow: settings(flow, **keeping) for flow in (A_B, B_A)})) == 1
    only_renamed = keeping | {"topics": "a"}
    assert warn_about_cycles({flow: settings(flow, **only_renamed) for flow in (A_B, B_A)}) == []


def test_a_copy_that_one_flow_renamed_is_recognised_by_the_flow_back() -> None:
    there = settings(A_B, heliograph_rename_topics="orders=eu-orders", **_plain(RENAME))
    back = settings(B_A)
    topology = Topology.of({A_B: there, B_A: back})
    assert TopicRules.of(back).replicates("eu-orders")
    assert not TopicRules.of(back, topology).replicates("eu-orders")
    assert TopicRules.of(back, topology).replicates("orders")


def test_a_copy_is_followed_over_a_third_cluster() -> None:
    topology = Topology.of(
        {
            A_B: settings(A_B, heliograph_rename_topics="orders=eu-orders", **_plain(RENAME)),
            B_C: settings(B_C, heliograph_rename_topics="eu-orders=all-orders", **_plain(RENAME)),
            C_A: settings(C_A),
        }
    )
    assert topology.has_been_on("A", "C", "all-orders")
    assert not TopicRules.of(settings(C_A), topology).replicates("all-orders")
    assert TopicRules.of(settings(C_A), topology).replicates("orders")
