"""Replication policies: names, sources, cycles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.types import Settings
from heliograph.errors import ConfigError
from heliograph.mirror.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    is_cycle,
    make_policy,
)

DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("A", DEFAULT)
names = st.text(st.sampled_from("abcXYZ0-_."), min_size=1)
aliases = st.text(st.sampled_from("abcXYZ0-_"), min_size=1)


@given(aliases, names.filter(lambda name: name.strip(".")))
def test_a_remote_topic_tells_its_source_and_its_upstream_name(alias: str, topic: str) -> None:
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


def test_a_custom_separator_reaches_internal_topics_unless_told_otherwise() -> None:
    policy = make_policy(Settings({"replication.policy.separator": "_"}))
    assert policy.is_internal_topic("A_checkpoints_internal")
    dotted = make_policy(
        Settings({"replication.policy.separator": "_", "replication.policy.internal.topic.separator.enabled": "false"})
    )
    assert dotted.is_internal_topic("A.checkpoints.internal")
    assert dotted.format_remote_topic("A", "t") == "A_t"
