"""Which configs of remote topics are altered: MM2's rules, but only where something differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.resolve.settings import Settings
from heliograph.mirror.topics.topic_configs import ConfigPlan
from heliograph.mirror.topics.topic_configs import plan_configs as plan_with
from heliograph.mirror.topics.topic_rules import TopicRules, plan_topics
from heliograph.model import AlterConfigs, ConfigChange, ConfigEntry, CreateTopic, TopicState

DEFAULT = "the target's default"


def rules(**values: str) -> TopicRules:
    base = {"source.cluster.alias": "A", "target.cluster.alias": "B"}
    return TopicRules.of(Settings(base | {key.replace("_", "."): value for key, value in values.items()}))


Described = Mapping[str, tuple[ConfigEntry, ...]]


def plan_configs(flow: TopicRules, source: Described, target: Described) -> ConfigPlan:
    return plan_with(flow.configs, {topic: flow.remote_topic(topic) for topic in source}, source, target)


def own(name: str, value: str) -> ConfigEntry:
    """Set on the topic itself."""
    return ConfigEntry(name, value, is_topic_config=True)


def default(name: str, value: str = DEFAULT) -> ConfigEntry:
    return ConfigEntry(name, value, is_default=True)


def changes(source: list[ConfigEntry], target: list[ConfigEntry], **values: str) -> tuple[ConfigChange, ...]:
    plan = plan_configs(rules(**values), {"t": tuple(source)}, {"A.t": tuple(target)})
    return plan.alters[0].changes if plan.alters else ()


def test_a_value_set_on_the_source_is_set_on_the_target_where_it_differs() -> None:
    source = [own("retention.ms", "1000"), own("segment.ms", "5")]
    assert changes(source, [default("retention.ms", "7"), own("segment.ms", "5")]) == (
        ConfigChange("retention.ms", "7", "1000"),
    )


def test_a_value_the_target_has_by_default_is_not_written() -> None:
    assert changes([own("retention.ms", "7")], [default("retention.ms", "7")]) == ()


def test_a_default_on_the_source_removes_what_was_set_on_the_target() -> None:
    source = [default("retention.ms", "7"), default("segment.ms", "8")]
    assert changes(source, [own("retention.ms", "1"), default("segment.ms", "9")]) == (
        ConfigChange("retention.ms", "1", None),
    )


def test_defaults_from_the_source_are_set() -> None:
    """MirrorSourceConnectorTest.testConfigPropertyFilteringWithAlterConfigsAndSourceDefault"""
    source = [default("retention.ms", "7"), default("segment.ms", "9")]
    target = [own("retention.ms", "1"), default("segment.ms", "9")]
    assert changes(source, target, use_defaults_from="source") == (ConfigChange("retention.ms", "1", "7"),)


def test_config_property_filtering() -> None:
    """MirrorSourceConnectorTest.testConfigPropertyFiltering: defaults count, excluded properties do not."""
    source = [own("name-1", "value-1"), default("name-2"), own("min.insync.replicas", "2")]
    target = [default("name-1"), own("name-2", "x"), own("min.insync.replicas", "1")]
    assert [change.name for change in changes(source, target)] == ["name-1", "name-2"]


def test_config_property_filtering_with_source_default() -> None:
    source = [own("name-1", "value-1"), default("name-2", "value-2"), own("min.insync.replicas", "2")]
    target = [default("name-1"), default("name-2"), own("min.insync.replicas", "1")]
    found = changes(source, target, use_defaults_from="source")
    assert [(change.name, change.new) for change in found] == [("name-1", "value-1"), ("name-2", "value-2")]


def test_new_topic_configs() -> None:
    """MirrorSourceConnectorTest.testNewTopicConfigs: an own list of excluded properties holds at creation too."""
    exclude = "follower.replication.throttled.replicas, message.timestamp.difference.max.ms, exclude.param.*"
    configs = (
        own("name-1", "value-1"),
        own("exclude.param.param1", "value-param1"),
        own("min.insync.replicas", "2"),
    )
    (action,) = plan_topics(rules(config_properties_exclude=exclude), [TopicState("t", 1, configs)], {})
    assert isinstance(action, CreateTopic)
    assert dict(action.configs) == {"name-1": "value-1", "min.insync.replicas": "2"}


def test_what_a_topic_cannot_choose_is_left_alone() -> None:
    source = [
        ConfigEntry("x.read", "1", is_read_only=True),
        ConfigEntry("x.secret", None, is_sensitive=True),
        ConfigEntry("x.static", "1", is_static_broker_config=True),
        own("message.format.version", "2.8"),
        own("message.downconversion.enable", "true"),
    ]
    assert changes(source, [own(entry.name, "other") for entry in source]) == ()


def test_a_config_the_target_does_not_know_is_named_and_left_out() -> None:
    source = {"t": (own("new.one", "1"), own("retention.ms", "1"), default("new.default"))}
    plan = plan_configs(rules(), source, {"A.t": (default("retention.ms"),)})
    assert plan == ConfigPlan(
        (AlterConfigs("A.t", (ConfigChange("retention.ms", DEFAULT, "1"),)),), unknown=("new.one",)
    )


def test_a_topic_without_a_copy_is_no_matter_of_config_sync() -> None:
    assert plan_configs(rules(), {"t": (own("retention.ms", "1"),)}, {}) == ConfigPlan()


NAMES = st.sampled_from(["retention.ms", "segment.ms", "min.insync.replicas", "message.format.version", "x"])
ENTRIES = st.builds(
    ConfigEntry,
    NAMES,
    st.sampled_from(["1", "2", DEFAULT]),
    is_read_only=st.booleans(),
    is_static_broker_config=st.booleans(),
).flatmap(
    lambda entry: st.sampled_from(
        [entry, replace(entry, is_default=True), replace(entry, is_topic_config=True, is_static_broker_config=False)]
    )
)
TOPICS = st.dictionaries(st.sampled_from(["t1", "t2"]), st.lists(ENTRIES, unique_by=lambda entry: entry.name))


@given(TOPICS, TOPICS, st.sampled_from(["source", "target"]))
def test_a_plan_that_was_applied_leaves_nothing_to_plan(
    source: dict[str, list[ConfigEntry]], target: dict[str, list[ConfigEntry]], defaults_from: str
) -> None:
    chosen = rules(use_defaults_from=defaults_from)
    here = {topic: tuple(entries) for topic, entries in source.items()}
    there = {f"A.{topic}": {entry.name: entry for entry in entries} for topic, entries in target.items()}

    def plan() -> ConfigPlan:
        return plan_configs(chosen, here, {topic: tuple(entries.values()) for topic, entries in there.items()})

    for alter in plan().alters:
        for name, old, new in alter.changes:
            assert there[alter.topic][name].value == old
            assert name not in {"min.insync.replicas", "message.format.version"}
            there[alter.topic][name] = default(name) if new is None else own(name, new)
    assert plan().alters == ()
