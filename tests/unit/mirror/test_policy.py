"""Replication policies: names, sources, cycles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from heliograph.mirror.policy.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    is_cycle,
    make_policy,
    upstream_hops,
)
from heliograph.model import Flow

DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("A", DEFAULT)
names = st.text(st.sampled_from("abcXYZ0-_."), min_size=1)
aliases = st.text(st.sampled_from("abcXYZ0-_"), min_size=1)


@given(aliases, names.filter(lambda name: name.strip(".")))
def test_a_remote_topic_shows_its_source_and_its_upstream_name(alias: str, topic: str) -> None:
    remote = DEFAULT.format_remote_topic(alias, topic)
    assert DEFAULT.topic_source(remote) == alias
    assert DEFAULT.upstream_topic(remote) == topic


@pytest.mark.parametrize(
    ("topic", "source", "upstream"),
    [
        ("orders", None, None),
        ("a.", None, None),
        ("a..", None, None),
        (".x", "", "x"),
        ("a..b", "a", ".b"),
        ("a.b.c", "a", "b.c"),
    ],
)
def test_java_split_quirks(topic: str, source: str | None, upstream: str | None) -> None:
    assert (DEFAULT.topic_source(topic), DEFAULT.upstream_topic(topic)) == (source, upstream)


def test_an_empty_separator_is_for_identity_alone() -> None:
    """Users write it beside Identity out of habit; with the default policy no name would show its source."""
    empty = {"replication.policy.separator": "", "source.cluster.alias": "A"}
    with pytest.raises(ConfigError, match=r"replication\.policy\.separator: it is empty"):
        make_policy(Settings(empty))
    policy = make_policy(Settings({**empty, "replication.policy.class": "IdentityReplicationPolicy"}))
    assert policy.format_remote_topic("A", "orders") == "orders"
    assert policy.topic_source("orders") is None or policy.topic_source("orders") == "A"


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("__consumer_offsets", True),
        (".hidden", True),
        ("mm2-configs.A.internal", True),
        ("A.checkpoints.internal", True),
        ("foo.internal", False),
        ("connect-configs", False),
        ("A.mm2-configs.B.internal", False),
    ],
)
def test_internal_topics(topic: str, internal: bool) -> None:
    assert DEFAULT.is_internal_topic(topic) is internal


@pytest.mark.parametrize(
    ("topic", "cycle"),
    [
        ("topic1", False),
        ("target.topic1", True),
        ("target.source.topic1", True),
        ("other.target.topic1", True),
        ("other.topic1", False),
        ("source.topic1", True),
    ],
)
def test_cycles_by_name(topic: str, cycle: bool) -> None:
    assert is_cycle(DEFAULT, topic, "source", "target") is cycle


def test_identity_keeps_names_but_for_heartbeats() -> None:
    assert IDENTITY.format_remote_topic("A", "orders") == "orders"
    assert IDENTITY.format_remote_topic("A", "heartbeats") == "A.heartbeats"
    assert IDENTITY.format_remote_topic("A", "my-heartbeats") == "my-heartbeats"
    assert not is_cycle(IDENTITY, "B.orders", "A", "B")
    assert is_cycle(IDENTITY, "B.heartbeats", "A", "B")


def test_heartbeats_are_recognised_through_copies() -> None:
    assert DEFAULT.is_heartbeats_topic("heartbeats")
    assert DEFAULT.is_heartbeats_topic("B.C.heartbeats")
    assert not DEFAULT.is_heartbeats_topic("my-heartbeats")


def test_a_policy_is_named_by_its_java_class() -> None:
    strimzi = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
    settings = Settings({"replication.policy.class": strimzi, "source.cluster.alias": "A"})
    assert isinstance(make_policy(settings), IdentityReplicationPolicy)
    with pytest.raises(ConfigError, match=r"'com\.acme\.Mine' is a Java class"):
        make_policy(Settings({"replication.policy.class": "com.acme.Mine"}))


def test_internal_topic_names() -> None:
    """ReplicationPolicyTest.testInternalTopic, offsetSyncsTopic, checkpointsTopic, heartbeatsTopic."""
    assert DEFAULT.offset_syncs_topic("CLUSTER") == "mm2-offset-syncs.CLUSTER.internal"
    assert DEFAULT.checkpoints_topic("CLUSTER") == "CLUSTER.checkpoints.internal"
    assert DEFAULT.heartbeats_topic() == "heartbeats"
    assert DEFAULT.is_checkpoints_topic("CLUSTER.checkpoints.internal")
    assert DEFAULT.is_mm2_internal_topic("CLUSTER.checkpoints.internal")
    assert DEFAULT.is_mm2_internal_topic("mm2-offset-syncs.CLUSTER.internal")
    assert not DEFAULT.is_mm2_internal_topic("mm2-foo-bar")
    assert not DEFAULT.is_mm2_internal_topic("foo-bar.internal")
    assert not DEFAULT.is_internal_topic("heartbeats")


@pytest.mark.parametrize("policy_class", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
@pytest.mark.parametrize(("separator_enabled", "used"), [("true", "__"), ("false", ".")])
def test_separator_of_internal_topics(policy_class: str, separator_enabled: str, used: str) -> None:
    """ReplicationPolicyTest: offset-syncs and checkpoints follow the separator if enabled, heartbeats never do."""
    policy = make_policy(
        Settings(
            {
                "replication.policy.class": policy_class,
                "replication.policy.separator": "__",
                "replication.policy.internal.topic.separator.enabled": separator_enabled,
                "source.cluster.alias": "A",
            }
        )
    )
    assert policy.offset_syncs_topic("B") == f"mm2-offset-syncs{used}B{used}internal"
    assert policy.checkpoints_topic("A") == f"A{used}checkpoints{used}internal"
    assert policy.heartbeats_topic() == "heartbeats"
    assert policy.is_internal_topic(policy.offset_syncs_topic("B"))
    assert policy.is_checkpoints_topic(policy.checkpoints_topic("A"))
    assert policy.is_heartbeats_topic("A__heartbeats")


@pytest.mark.parametrize(
    ("topic", "default", "identity"),
    [
        ("orders", "orders", "orders"),
        ("A.orders", "orders", "A.orders"),
        ("A.B.orders", "orders", "A.B.orders"),
        ("A.B.heartbeats", "heartbeats", "heartbeats"),
        ("my-heartbeats", "my-heartbeats", "my-heartbeats"),
    ],
)
def test_original_topic(topic: str, default: str, identity: str) -> None:
    assert DEFAULT.original_topic(topic) == default
    assert IDENTITY.original_topic(topic) == identity


def test_lineage_lists_the_hops_latest_first() -> None:
    assert list(upstream_hops(DEFAULT, "C.B.orders")) == [("C", "B.orders"), ("B", "orders")]
    assert list(upstream_hops(IDENTITY, "orders")) == [("A", "orders")]


@given(st.lists(aliases, min_size=1, max_size=4), names.filter(lambda name: "." not in name))
def test_a_copy_of_copies_shows_every_hop(hops: list[str], topic: str) -> None:
    remote = topic
    for alias in hops:
        remote = DEFAULT.format_remote_topic(alias, remote)
    assert [source for source, _ in upstream_hops(DEFAULT, remote)] == hops[::-1]
    assert DEFAULT.original_topic(remote) == topic


@given(aliases, names)
def test_identity_reads_back_what_it_names(alias: str, topic: str) -> None:
    policy = IdentityReplicationPolicy(alias, DEFAULT)
    remote = policy.format_remote_topic(alias, topic)
    assert policy.upstream_topic(remote) == topic
    assert policy.topic_source(remote) == alias


def test_source_and_target_are_equal_as_a_pair() -> None:
    """SourceAndTargetTest.testEquals."""
    assert Flow("source", "target") == Flow("source", "target")
    assert Flow("source", "target") != Flow("target", "source")
    assert Flow("source", "target") != Flow("other", "target")
    assert len({Flow("source", "target"), Flow("source", "target")}) == 1
    assert str(Flow("source", "target")) == "source->target"


def test_a_custom_separator_applies_to_internal_topics_unless_disabled() -> None:
    policy = make_policy(Settings({"replication.policy.separator": "_"}))
    assert policy.is_internal_topic("A_checkpoints_internal")
    dotted = make_policy(
        Settings({"replication.policy.separator": "_", "replication.policy.internal.topic.separator.enabled": "false"})
    )
    assert dotted.is_internal_topic("A.checkpoints.internal")
    assert dotted.format_remote_topic("A", "t") == "A_t"
