"""Topic, group and config-property filters (MirrorSourceConfigTest, MirrorCheckpointConfigTest: the matching tests)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from heliograph.mirror.policy.filters import NameFilter, config_property_filter, group_filter, topic_filter
from tests.support.diagnostics import texts


def topics(include: str, exclude: str | None = None) -> Callable[[str], bool]:
    values = {"topics": include} | ({} if exclude is None else {"topics.exclude": exclude})
    return topic_filter(Settings(values)).accepts


def test_topic_matching() -> None:
    chosen = topics("topic1")
    assert chosen("topic1")
    assert not chosen("topic2")


def test_no_topics_blank_matches_nothing_not_even_the_empty_name() -> None:
    for blank in ("", "  ", " , "):
        chosen = topics(blank)
        assert not chosen("topic1")
        assert not chosen("")


def test_all_topics() -> None:
    chosen = topics(".*")
    assert chosen("topic1")
    assert chosen("topic2")


def test_list_of_topics_with_blanks_and_empty_entries() -> None:
    chosen = topics("topic1 ,  topic2,,topic[3-4]")
    assert [chosen(f"topic{number}") for number in range(6)] == [False, True, True, True, True, False]


def test_a_pattern_matches_the_whole_name() -> None:
    assert not topics("topic")("topic1")
    assert not topics("opic1")("topic1")
    assert not topics("a|ab", "a.*")("ab")


def test_exclude_wins_and_a_blank_exclude_excludes_nothing() -> None:
    assert not topics("a, b", "b")("b")
    assert topics(".*", "")("__consumer_offsets")


def test_flags_reach_over_the_comma_as_they_do_in_java() -> None:
    chosen = topics("(?i)orders, pay")
    assert chosen("ORDERS")
    assert chosen("PAY")
    assert not topics("pay, (?i)orders")("PAY")


def test_a_group_cut_by_a_comma_is_whole_again_as_it_is_in_java() -> None:
    assert topics("(orders,pay)-eu")("pay-eu")


def test_config_property_matching() -> None:
    chosen = config_property_filter(Settings({"config.properties.exclude": "prop2"}))
    assert chosen.accepts("prop1")
    assert not chosen.accepts("prop2")
    assert chosen.why_not("prop2") == "config.properties.exclude matches it"


def test_default_config_properties_leave_the_topics_own_timestamp_limits_in() -> None:
    """Reference 2.1: the list names the broker's keys, so the topic's are copied."""
    chosen = config_property_filter(Settings({}))
    assert chosen.accepts("message.timestamp.before.max.ms")
    assert not chosen.accepts("min.insync.replicas")
    assert not chosen.accepts("message.timestamp.type")


def test_group_matching() -> None:
    chosen = group_filter(Settings({"groups": "group1"}))
    assert chosen.accepts("group1")
    assert not chosen.accepts("group2")
    assert chosen.why_not("group2") == "no pattern in groups matches it"


@pytest.mark.parametrize(
    ("group", "accepted"),
    [
        ("orders", True),
        ("Gruppe ä", True),
        ("console-consumer-123", False),
        ("connect-sink", False),
        ("__internal", False),
        ("my-connect-sink", True),
    ],
)
def test_groups_by_default(group: str, accepted: bool) -> None:
    assert group_filter(Settings({})).accepts(group) is accepted


def test_every_bad_pattern_of_a_list_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        topics("ok, [a, b, (?x)c")
    assert [problem.partition(" cannot")[0] for problem in texts(caught.value.problems)] == [
        "topics: '[a'",
        "topics: '(?x)c'",
    ]


def test_a_comma_in_a_quantifier_is_explained() -> None:
    with pytest.raises(ConfigError, match="A comma separates patterns"):
        topics("a{1,3}")


@pytest.mark.parametrize(
    ("key", "make"),
    [
        ("topic.filter.class", topic_filter),
        ("group.filter.class", group_filter),
        ("config.property.filter.class", config_property_filter),
    ],
)
def test_a_java_filter_is_refused_with_the_way_out(key: str, make: Callable[[Settings], NameFilter]) -> None:
    with pytest.raises(ConfigError, match=rf"{key}: 'com\.acme\.Mine' is a Java class.*package\.module:Class"):
        make(Settings({key: "com.acme.Mine"}))
    with pytest.raises(ConfigError, match=f"{key}: there is no 'Mine'"):
        make(Settings({key: "Mine"}))


def test_a_list_of_many_plain_names_may_be_long() -> None:
    names = [f"department-{number:05}.orders.placed" for number in range(20_000)]
    chosen = topic_filter(Settings({"topics": ",".join(names)}))
    assert all(map(chosen.accepts, names[::1_000]))
    assert not chosen.accepts("department-20000.orders.placed")
    with pytest.raises(ConfigError, match=r"^topics: the list has .* the limit for a list with groups"):
        topic_filter(Settings({"topics": ",".join((*names, "(?i)x"))}))
