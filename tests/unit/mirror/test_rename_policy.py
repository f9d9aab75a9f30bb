"""The rename policy: names from a map, read in both directions."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from heliograph.mirror.policy.replication_policy import ReplicationPolicy, make_policy
from heliograph.mirror.topics.topic_rules import TopicRules


def settings(rules: str, otherwise: str | None = None, source: str = "A", target: str = "B") -> Settings:
    values = {
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "replication.policy.class": "RenameReplicationPolicy",
        "heliograph.rename.topics": rules,
    }
    return Settings(values | ({"heliograph.rename.otherwise": otherwise} if otherwise else {}))


def policy(rules: str, otherwise: str | None = None) -> ReplicationPolicy:
    return make_policy(settings(rules, otherwise))


EXAMPLE = "orders=eu-orders, (.*)-raw=$1"


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("orders", "eu-orders"),
        ("clicks-raw", "clicks"),
        ("pay", "A.pay"),
        ("heartbeats", "A.heartbeats"),
        ("B.heartbeats", "A.B.heartbeats"),
    ],
)
def test_the_first_rule_names_the_copy_and_other_topics_get_the_prefix(topic: str, remote: str) -> None:
    names = policy(EXAMPLE)
    assert names.format_remote_topic("A", topic) == remote
    assert names.upstream_topic(remote) == topic
    assert names.topic_source(remote) == "A"


def test_other_topics_keep_their_names_if_configured() -> None:
    names = policy("orders=eu-orders", "identity")
    assert names.format_remote_topic("A", "pay") == "pay"
    assert names.upstream_topic("pay") == "pay"
    assert names.topic_source("pay") == "A"
    assert names.format_remote_topic("A", "heartbeats") == "A.heartbeats"


def test_a_name_that_the_map_gives_up_is_nobodys_copy() -> None:
    names = policy("orders=eu-orders", "identity")
    assert names.topic_source("orders") is None
    assert names.upstream_topic("orders") is None


def test_a_dot_in_a_plain_name_is_a_dot() -> None:
    names = policy("shop.orders=orders")
    assert names.format_remote_topic("A", "shop.orders") == "orders"
    assert names.format_remote_topic("A", "shopXorders") == "A.shopXorders"


@pytest.mark.parametrize(
    ("rules", "topic", "remote"),
    [
        (r"shop[.](.*)=$1", "shop.orders", "orders"),
        (r"shop\.(.*)=eu.$1", "shop.orders", "eu.orders"),
        ("(?<region>eu|us)-(?<name>.*)=${name}.${region}", "eu-orders", "orders.eu"),
        ("(.*)=eu-$1", "orders", "eu-orders"),
        ("(.*)-(.*)-x=$2-$1-y", "a-b-c-x", "c-a-b-y"),
        ("([a-z&&[^x]]+)=$1-$1", "ab", "ab-ab"),
        ("v([(]|[0-9]+)=w$1", "v12", "w12"),
    ],
)
def test_regexes_with_groups_are_read_in_both_directions(rules: str, topic: str, remote: str) -> None:
    names = policy(rules)
    assert names.format_remote_topic("A", topic) == remote
    assert names.upstream_topic(remote) == topic


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ("a=x, b=x", "'a=x' and 'b=x' give two topics the same name"),
        ("a=x, a=y", "'a=x' and 'a=y' rename the same topic, and only the first would count"),
        ("(.*)-raw=$1, (.*)-src=$1", "give two topics the same name"),
        ("orders-.*=all", r"'\.' outside of a group matches what the new name would lose"),
        ("(eu|us)-orders=orders", r"\$1 is not used on the right"),
        ("(.*)-(.*)=$1$2", "two groups follow each other"),
        ("(.*)=$2", r"\$2 names a group that the left side does not have"),
        ("(.*)=a/$1", "'/' on the right cannot stand in a topic's name"),
        ("a=b, b=c", "the name on the right of 'a=b' is on the left of 'b=c'"),
        ("a=b, b=a", "could not be distinguished from an original"),
        ("orders", "a rule is written from=to"),
        ("=x", "a rule is written from=to"),
        ("(a=b", r"a '\(' is not closed"),
        ("((a)|b)=$1", r"has a group in it; write \(\?:...\)"),
        ("(?:a)=b", "does not keep what it matches"),
        ("([z-a])=$1", "runs backwards"),
        ("", "needs at least one rule"),
    ],
)
def test_a_map_that_cannot_work_is_refused(rules: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"heliograph\.rename\.topics: .*{sentence}"):
        policy(rules)


def test_all_problems_of_a_map_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        policy("orders, a=x, b=x, (.*=c")
    assert len(caught.value.problems) == 3


def test_two_topics_that_would_share_a_remote_topic_are_not_mixed() -> None:
    rules = TopicRules.of(settings(EXAMPLE))
    topics = ["eu-orders-raw", "orders", "pay"]
    assert rules.chosen(topics) == ("orders", "pay")
    assert rules.clashes(topics) == {
        "eu-orders-raw": "its copy would be called 'eu-orders', which is the name of the copy of 'orders'"
    }
    assert rules.chosen(["eu-orders-raw", "pay"]) == ("eu-orders-raw", "pay")


def test_a_copy_is_not_copied_again_by_the_same_map() -> None:
    there, back = TopicRules.of(settings(EXAMPLE)), TopicRules.of(settings(EXAMPLE, source="B", target="A"))
    assert there.replicates("orders")
    assert not back.replicates("eu-orders")
    assert not back.replicates("A.pay")
    growing = TopicRules.of(settings("(.*)=eu-$1"))
    assert growing.replicates("orders")
    assert not growing.replicates("eu-orders")


def test_a_rule_that_only_takes_text_away_makes_no_topic_suspicious() -> None:
    rules = TopicRules.of(settings("(.*)-raw=$1", "identity"))
    for topic in ("orders", "orders-raw", "orders-raw-raw", "x"):
        assert rules.replicates(topic)


def test_a_name_that_a_rule_would_give_can_be_kept_on_purpose() -> None:
    assert not TopicRules.of(settings("(.*)-raw-v1=$1-v1", "identity")).replicates("pay-v1")
    rules = TopicRules.of(settings("pay-v1=pay-v1, (.*)-raw-v1=$1-v1", "identity"))
    assert rules.replicates("pay-v1")
    assert rules.remote_topic("pay-v1") == "pay-v1"
    assert rules.replicates("orders-raw-v1")


def test_a_topic_whose_copy_could_not_be_read_back_is_named_as_other_topics_are() -> None:
    names = policy("x[.](.*)=$1")
    assert names.format_remote_topic("A", "x.orders") == "orders"
    assert names.format_remote_topic("A", "x.x.orders") == "A.x.x.orders"
    assert names.format_remote_topic("A", "x.") == "A.x."
    assert names.format_remote_topic("A", "x...") == "A.x..."
    kept = policy("pay-v1=pay-v1, (.*)-raw-v1=$1-v1", "identity")
    assert kept.format_remote_topic("A", "pay-raw-v1") == "pay-raw-v1"


_names = st.lists(st.sampled_from(["a", "b", "-", ".", "x", "x.", "-raw", "eu-"]), min_size=1, max_size=8).map("".join)
_maps = st.sampled_from(
    [EXAMPLE, "(.*)=eu-$1", "a=b-x, (a.*)=c.$1", "(.*)-(.*)=y.$2-$1", "x[.](.*)=$1", "(a+)(?<r>.*)=z-$1.${r}"]
)


@given(_maps, st.sampled_from(["default", "identity"]), st.sets(_names, min_size=1, max_size=6))
@example("x[.](.*)=$1", "default", {"x.x."})
@example("(.*)-raw=$1", "identity", {"a-raw-raw", "a-raw"})
def test_what_is_copied_under_a_name_of_the_map_is_read_back_from_it(
    rules: str, otherwise: str, topics: set[str]
) -> None:
    flow = TopicRules.of(settings(rules, otherwise))
    chosen = flow.chosen(topics)
    remotes = [flow.remote_topic(topic) for topic in chosen]
    assert len(set(remotes)) == len(remotes)
    for topic, remote in zip(chosen, remotes, strict=True):
        if remote not in (topic, f"A.{topic}"):
            assert flow.policy.upstream_topic(remote) == topic
            assert flow.policy.topic_source(remote) == "A"
