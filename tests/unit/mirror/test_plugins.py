"""Policies and filters of the user's own, named `package.module:Class`."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from heliograph.mirror.policy.filters import config_property_filter, group_filter, topic_filter
from heliograph.mirror.policy.replication_policy import ReplicationPolicy, is_cycle, make_policy
from heliograph.mirror.topics.internal_topics import checkpoints_topic
from heliograph.mirror.topics.topic_rules import TopicRules

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "custom-policies-and-filters.md"


class Broken:
    """Fails while it is made."""

    def __init__(self) -> None:
        raise RuntimeError("no license")

    def should_replicate_topic(self, topic: str) -> bool:
        raise AssertionError(topic)


class NeedsMore(ReplicationPolicy):
    """Lacks a method."""

    def format_remote_topic(self, source: str, topic: str) -> str:
        return source + topic

    def topic_source(self, topic: str) -> str | None:
        return topic


class Refuses:
    """Does not like its settings."""

    def configure(self, settings: dict[str, str]) -> None:
        raise ValueError(f"acme.regions is missing among {len(settings)} settings.")

    def should_replicate_topic(self, topic: str) -> bool:
        raise AssertionError(topic)


class Sloppy:
    """Only answers."""

    def format_remote_topic(self, source: str, topic: str) -> str:
        return f"{source}/{topic}"

    def topic_source(self, topic: str) -> str | None:
        return topic.partition("/")[0] if "/" in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.partition("/")[2] or None

    def should_replicate_topic(self, topic: str) -> int:
        return len(topic) % 2

    def should_replicate_group(self, group: str) -> bool:
        return group == "g"

    def should_replicate_config_property(self, name: str) -> bool:
        return name == "retention.ms"


def named(key: str, class_name: str) -> Settings:
    return Settings({key: f"{__name__}:{class_name}", "source.cluster.alias": "A", "target.cluster.alias": "B"})


def test_a_policy_needs_three_answers_and_gets_the_rest() -> None:
    policy = make_policy(named("replication.policy.class", "Sloppy"))
    assert policy.original_topic("A/C/t") == "t"
    assert policy.is_heartbeats_topic("C/heartbeats")
    assert is_cycle(policy, "B/t", "A", "B")
    assert checkpoints_topic(named("replication.policy.class", "Sloppy")).name == "A.checkpoints.internal"


def test_filters_are_asked_and_named_as_the_reason() -> None:
    topics = topic_filter(named("topic.filter.class", "Sloppy"))
    assert topics.accepts("abc") is True
    assert topics.accepts("ab") is False
    rules = TopicRules.of(named("topic.filter.class", "Sloppy"))
    assert rules.why_not("ab") == f"topic.filter.class ({__name__}:Sloppy) does not accept it"
    assert group_filter(named("group.filter.class", "Sloppy")).accepts("g")
    assert not group_filter(named("group.filter.class", "Sloppy")).accepts("h")
    assert config_property_filter(named("config.property.filter.class", "Sloppy")).accepts("retention.ms")


@pytest.mark.parametrize(
    ("key", "class_name", "sentence"),
    [
        ("replication.policy.class", "Nobody", "has no class 'Nobody'"),
        ("replication.policy.class", "GUIDE", "has no class 'GUIDE'"),
        ("replication.policy.class", "NeedsMore", "needs the method upstream_topic"),
        ("replication.policy.class", "Refuses", "needs the method format_remote_topic and topic_source and upstream"),
        ("topic.filter.class", "Refuses", "cannot be created: ValueError: acme.regions is missing among 3 settings."),
        ("topic.filter.class", "Broken", "cannot be created: RuntimeError: no license."),
        ("topic.filter.class", "NeedsMore", "needs the method should_replicate_topic"),
    ],
)
def test_the_error_for_a_class_that_cannot_be_used_names_its_key(key: str, class_name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"{re.escape(key)}: .*{re.escape(sentence)}"):
        (make_policy if key.startswith("repl") else topic_filter)(named(key, class_name))


def test_the_error_for_a_missing_module_names_its_key() -> None:
    with pytest.raises(ConfigError, match=r"replication\.policy\.class: the module 'acme\.names' cannot be imported"):
        make_policy(Settings({"replication.policy.class": "acme.names:Mine"}))


@pytest.mark.parametrize(
    ("class_name", "sentence"),
    [
        ("com.acme.RenamePolicy", "is a Java class, which Heliograph cannot load; write it in Python"),
        ("com.acme.DefaultReplicationPolicy", "is a Java class"),
        ("IdentityReplicationPolcy", "Did you mean 'IdentityReplicationPolicy'?"),
        ("Mine", "your own is named package.module:Class"),
    ],
)
def test_a_policy_that_is_not_known_is_refused(class_name: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"replication\.policy\.class: .*{re.escape(sentence)}"):
        make_policy(Settings({"replication.policy.class": class_name}))


@pytest.fixture
def acme() -> Iterator[None]:
    """The guide's Python block as the module it says it is."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    module = types.ModuleType("acme_mirror")
    exec(code, module.__dict__)  # noqa: S102
    sys.modules["acme_mirror"] = module
    yield
    del sys.modules["acme_mirror"]


@pytest.mark.usefixtures("acme")
def test_the_guides_example_does_what_the_guide_says() -> None:
    (text,) = re.findall(r"```properties\n(A->B\.replication.*?)```", GUIDE.read_text(), re.DOTALL)
    lines = [line.partition(" = ") for line in text.strip().splitlines()]
    values = {name.removeprefix("A->B."): value for name, _, value in lines}
    rules = TopicRules.of(Settings(values | {"source.cluster.alias": "A", "target.cluster.alias": "B"}))
    assert rules.remote_topic("orders") == "orders-from-A"
    assert rules.policy.topic_source("orders-from-A") == "A"
    assert rules.policy.upstream_topic("orders-from-A") == "orders"
    assert rules.why_not("orders-from-B") == "it came from 'B' or this flow before; copying it would go in circles"
    assert rules.replicates("pay-v2")
    assert not rules.replicates("pay-old")
    assert rules.replicates("heartbeats")
