"""Which topics are replicated, and what is planned for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from heliograph.mirror.topics.topic_rules import TopicRules, plan_topics
from heliograph.model import AddPartitions, ConfigEntry, CreateTopic, TopicState


def rules(**values: str) -> TopicRules:
    base = {"source.cluster.alias": "A", "target.cluster.alias": "B"}
    return TopicRules.of(Settings(base | {key.replace("_", "."): value for key, value in values.items()}))


def test_no_copy_has_the_name_of_a_topic_of_the_worker_itself() -> None:
    stores = {
        "config.storage.topic": "x-configs",
        "offset.storage.topic": "x-offsets",
        "status.storage.topic": "x-status",
    }
    identity = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    base = {"source.cluster.alias": "x", "target.cluster.alias": "B", "topics": ".*", **stores}
    for policy, own in ((identity, stores.values()), ({"replication.policy.separator": "-"}, ("configs", "status"))):
        flow = TopicRules.of(Settings({**base, **policy}))
        assert all("where the worker keeps its own state" in str(flow.why_not(topic)) for topic in own)
        assert flow.replicates("orders")
    assert rules(topics=".*", config_storage_topic="x-configs").replicates("x-configs")  # its copy is A.x-configs


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("orders", None),
        ("foo.internal", None),
        ("_schemas", None),
        ("a.replica", "topics.exclude matches it"),
        ("__consumer_offsets", "it is an internal topic"),
        ("mm2-configs.A.internal", "it is an internal topic"),
        ("B.orders", "it came from 'B'"),
        ("heartbeats", None),
    ],
)
def test_defaults_replicate_user_topics_only(topic: str, reason: str | None) -> None:
    reported = rules().why_not(topic)
    assert reported is None if reason is None else reported is not None and reason in reported


@pytest.mark.parametrize(
    ("topic", "passes_filter", "is_internal"),
    [
        ("foo.internal", True, False),
        ("foo-internal", True, False),
        ("connect-configs", True, False),
        ("_schemas", True, False),
        ("a.replica", False, False),
        ("__consumer_offsets", False, True),
        ("mm2-configs.A.internal", False, True),
        ("A.checkpoints.internal", True, True),
        (".hidden", True, True),
        ("A.mm2-configs.B.internal", True, False),
    ],
)
def test_the_verified_matrix_of_the_defaults(topic: str, passes_filter: bool, is_internal: bool) -> None:
    """Reference 2.1 and 2.2, as 4.3.1 answers; the clusters have other names than in the topics."""
    flow = TopicRules.of(Settings({"source.cluster.alias": "S", "target.cluster.alias": "T"}))
    assert flow.names.accepts(topic) is passes_filter
    assert flow.policy.is_internal_topic(topic) is is_internal
    assert flow.replicates(topic) is (passes_filter and not is_internal)


def test_patterns_match_the_whole_name_and_exclude_wins() -> None:
    chosen = rules(topics="ord.*, pay", topics_exclude="orders-old")
    assert chosen.replicates("orders")
    assert not chosen.replicates("orders-old")
    assert not chosen.replicates("payments")
    assert chosen.replicates("pay")


def test_an_empty_list_of_topics_matches_nothing() -> None:
    assert not rules(topics="").replicates("orders")


def test_heartbeats_are_replicated_despite_the_filter_unless_switched_off() -> None:
    assert rules(topics="x").replicates("heartbeats")
    assert not rules(topics="x", heartbeats_replication_enabled="false").replicates("heartbeats")


@pytest.mark.parametrize("pattern", ["ord(", "a{1,3}", r"\p{IsLatin}", "(?x)a b"])
def test_a_pattern_that_cannot_be_read_names_the_key(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"topics: '.*'"):
        rules(topics=pattern)


def entry(name: str, value: str = "1", **flags: bool) -> ConfigEntry:
    return ConfigEntry(name, value, **flags)


def test_a_new_topic_gets_the_sources_own_configs_only() -> None:
    configs = (
        entry("retention.ms"),
        entry("segment.ms", is_default=True),
        entry("min.insync.replicas"),
        entry("message.format.version"),
        entry("message.downconversion.enable", is_default=True),
        entry("x.read", is_read_only=True),
        entry("x.secret", is_sensitive=True),
        entry("x.static", is_static_broker_config=True),
    )
    (action,) = plan_topics(rules(replication_factor="3"), [TopicState("t", 4, configs)], {})
    assert action == CreateTopic("A.t", 4, 3, (("retention.ms", "1"),))
    (action,) = plan_topics(rules(use_defaults_from="source"), [TopicState("t", 4, configs)], {})
    assert isinstance(action, CreateTopic)
    assert dict(action.configs) == {"retention.ms": "1", "segment.ms": "1"}


def test_partitions_grow_and_never_shrink() -> None:
    assert plan_topics(rules(), [TopicState("t", 4)], {"A.t": 2}) == (AddPartitions("A.t", 4),)
    assert plan_topics(rules(), [TopicState("t", 4)], {"A.t": 9}) == ()


def test_refresh_topic_partitions() -> None:
    """MirrorSourceConnectorTest.testRefreshTopicPartitions: created until the target has it, then left alone."""
    source = [TopicState("topic", 1)]
    for _round in range(2):
        assert plan_topics(rules(), source, {}) == (CreateTopic("A.topic", 1, 2, ()),)
    assert plan_topics(rules(), source, {"A.topic": 1}) == ()


def test_refresh_topic_partitions_topic_on_target_first() -> None:
    """MirrorSourceConnectorTest.testRefreshTopicPartitionsTopicOnTargetFirst: a copy without a source is no matter."""
    assert plan_topics(rules(), [], {"A.topic": 1}) == ()
    assert plan_topics(rules(), [TopicState("topic", 1)], {"A.topic": 1}) == ()


_counts = st.dictionaries(st.sampled_from(["t1", "t2", "t3"]), st.integers(1, 9))


@given(_counts, _counts)
def test_a_plan_that_was_applied_leaves_nothing_to_plan(source: dict[str, int], target: dict[str, int]) -> None:
    states = [TopicState(name, count) for name, count in source.items()]
    existing = {f"A.{name}": count for name, count in target.items()}
    for action in plan_topics(rules(), states, existing):
        assert existing.get(action.name, 0) < action.partition_count
        existing[action.name] = action.partition_count
    assert plan_topics(rules(), states, existing) == ()
